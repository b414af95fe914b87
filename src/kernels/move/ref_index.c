// SPDX-License-Identifier: Apache-2.0
// Indices, with negative ones counting from the end, to offsets of slices. Every index is checked
// here, so that reading and writing by offset cannot leave the array.
#include "kernels/kernels.h"

int64_t ot__ref_index_get(const void *indices, size_t index_size, int64_t i)
{
    return index_size == sizeof(int32_t) ? ((const int32_t *)indices)[i]
                                         : ((const int64_t *)indices)[i];
}

// The index brought to 0..extent-1, or -1.
static int64_t wrap_index(int64_t index, int64_t extent)
{
    if (index < 0)
        index += extent; // extent >= 0: cannot overflow
    return index >= 0 && index < extent ? index : -1;
}

int64_t ot__ref_index_axis(int64_t *offset, const void *indices, size_t index_size, int64_t outer,
                           int64_t extent, int64_t n, int64_t inner)
{
    if (outer == 0)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = wrap_index(ot__ref_index_get(indices, index_size, i), extent);

        if (at < 0)
            return i;
        offset[i] = at * inner;
    }
    for (int64_t o = 1; o < outer; o++) {
        for (int64_t i = 0; i < n; i++)
            offset[o * n + i] = offset[i] + o * extent * inner;
    }
    return -1;
}

int64_t ot__ref_index_elements(int64_t *offset, const void *indices, size_t index_size,
                               const ot_shape *data, const ot_shape *index, int axis)
{
    int64_t stride[OT_MAX_NDIM], at[OT_MAX_NDIM] = {0}, count = 1, base = 0;

    ot__shape_strides(data, stride);
    for (int k = 0; k < index->ndim; k++)
        count *= index->dim[k];
    for (int64_t i = 0; i < count; i++) {
        const int64_t found =
            wrap_index(ot__ref_index_get(indices, index_size, i), data->dim[axis]);

        if (found < 0)
            return i;
        offset[i] = base + found * stride[axis];
        for (int k = index->ndim - 1; k >= 0; k--) { // the next element; base leaves `axis` out
            if (k != axis)
                base += stride[k];
            if (++at[k] < index->dim[k])
                break;
            if (k != axis)
                base -= at[k] * stride[k];
            at[k] = 0;
        }
    }
    return -1;
}

int64_t ot__ref_index_nd(int64_t *offset, const int64_t *indices, const ot_shape *data,
                         int batch_dims, int64_t batch, int64_t n, int depth)
{
    int64_t stride[OT_MAX_NDIM], per_batch = 1;

    ot__shape_strides(data, stride);
    for (int k = batch_dims; k < data->ndim; k++)
        per_batch *= data->dim[k];
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t i = b * n; i < (b + 1) * n; i++) {
            int64_t base = b * per_batch;

            for (int k = 0; k < depth; k++) {
                const int axis = batch_dims + k;
                const int64_t at = wrap_index(indices[i * depth + k], data->dim[axis]);

                if (at < 0)
                    return i * depth + k;
                base += at * stride[axis];
            }
            offset[i] = base;
        }
    }
    return -1;
}
