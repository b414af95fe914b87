// SPDX-License-Identifier: Apache-2.0
// One array of the IDX format (MNIST): 0 0 type ndim, big-endian extents, big-endian elements.
#include "data/data.h"

static const ot_dtype dtypes[UINT8_MAX + 1] = {
    [0x08] = OT_U8,  [0x09] = OT_I8,  [0x0b] = OT_I16,
    [0x0c] = OT_I32, [0x0d] = OT_F32, [0x0e] = OT_F64,
};

ot_status ot__idx_add(ot_dataset *dataset, ot__source *source, const char *name)
{
    const uint64_t n_bytes = source->input.size;
    uint8_t bytes[4 + 4 * UINT8_MAX] = {0};
    ot__field field = {.source = source};
    ot_shape shape = {0};
    int64_t count;
    size_t start, needed;

    OT_TRY(ot__file_input_read(&source->input, source->path, 0, bytes,
                               (size_t)OT_MIN(n_bytes, (uint64_t)sizeof(bytes))));
    if (n_bytes < 4 || bytes[0] != 0 || bytes[1] != 0)
        return ot__error(OT_ERR_FORMAT, "%s: is not an IDX file", source->path);
    field.dtype = dtypes[bytes[2]];
    shape.ndim = bytes[3];
    start = 4 + 4 * (size_t)bytes[3];
    if (field.dtype == OT_DTYPE_UNDEFINED || shape.ndim < 1 || shape.ndim > OT_MAX_NDIM ||
        start > n_bytes)
        return ot__error(OT_ERR_FORMAT,
                         "%s: declares element type %d and %d axes in %" PRIu64 " bytes",
                         source->path, bytes[2], bytes[3], n_bytes);
    for (int i = 0; i < shape.ndim; i++) {
        const uint8_t *b = bytes + 4 + 4 * i;
        shape.dim[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
    }
    if (!ot__shape_count(&shape, &count) || !ot__dtype_bytes(field.dtype, count, &needed) ||
        needed > n_bytes - start)
        return ot__error(OT_ERR_FORMAT, "%s: is stated as %s%s but has %" PRIu64 " bytes",
                         source->path, ot_dtype_name(field.dtype), OT_SHAPE_TEXT(&shape),
                         n_bytes - start);
    ot__field_place(&field, start);
    field.swap_bytes = ot_dtype_size(field.dtype) > 1;
    return ot__dataset_add_array(dataset, name, &shape, field);
}
