// SPDX-License-Identifier: Apache-2.0
// One type of indices of index_lines.c.

// The sign bit says whether an index is below 0 or not below `extent`.
static uint64_t FN(look_at_indices)(const T *index, int64_t n, int64_t extent)
{
    uint64_t outside = 0;

    for (int64_t i = 0; i < n; i++)
        outside |=
            (uint64_t)(int64_t)index[i] | ((uint64_t)extent - 1 - (uint64_t)(int64_t)index[i]);
    return outside;
}

// Offsets of n elements, one column further each unless the indices name columns: in `offset`, or
// the indices themselves. NULL where an index is out of range.
static const int64_t *FN(find_offsets)(int64_t *offset, const void *indices, int64_t n,
                                       int64_t extent, int64_t stride, bool names_columns)
{
    const T *index = indices;
    uint64_t outside = 0;

    if (sizeof(T) == sizeof(int64_t) && names_columns &&
        FN(look_at_indices)(index, n, extent) >> 63 == 0)
        return indices;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t given = (uint64_t)(int64_t)index[i];
        const uint64_t at = given + ((0 - (given >> 63)) & (uint64_t)extent);

        outside |= at | ((uint64_t)extent - 1 - at);
        offset[i] = (int64_t)at;
    }
    for (int64_t i = 0; i < n && !names_columns; i++)
        offset[i] = (int64_t)((uint64_t)offset[i] * (uint64_t)stride) + i; // also one out of range
    return outside >> 63 == 0 ? offset : NULL;
}
