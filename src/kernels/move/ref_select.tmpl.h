// SPDX-License-Identifier: Apache-2.0
// One element size of ref_select.c.

static int64_t FN(count_nonzero)(const void *x, int64_t n, uint64_t bits)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        count += (((const T *)x)[i] & bits) != 0;
    return count;
}

// The positions in a row of what is not 0 go to y from `found` on; gives where they end.
static int64_t FN(row_nonzero)(int64_t *y, const void *x, int64_t start, int64_t n, int64_t found,
                               uint64_t bits)
{
    const T *row = (const T *)x + start;

    for (int64_t i = 0; i < n; i++)
        if ((row[i] & bits) != 0)
            y[found++] = i;
    return found;
}
