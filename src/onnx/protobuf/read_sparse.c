// SPDX-License-Identifier: Apache-2.0
// Sparse initializers: read as dense ones, which is all that training knows.
#include <string.h>

#include "onnx/protobuf/read.h"

// Where element i of the values belongs: a linear index, or one coordinate per axis.
static ot_status find_place(const ot_tensor *indices, int64_t i, const ot_shape *shape,
                            int64_t count, int64_t *place)
{
    const bool is_linear = indices->shape.ndim == 1;
    int64_t at = is_linear ? ot__tensor_get_i64(indices, i) : 0;
    bool is_inside = at >= 0 && at < count;

    for (int axis = 0; !is_linear && axis < shape->ndim && is_inside; axis++) {
        int64_t k = ot__tensor_get_i64(indices, i * shape->ndim + axis);

        is_inside = k >= 0 && k < shape->dim[axis];
        at = at * shape->dim[axis] + k; // below count, which does not overflow
    }
    if (!is_inside)
        return ot__error(OT_ERR_FORMAT, "index %" PRId64 " lies outside the tensor", i);
    *place = at;
    return OT_OK;
}

static ot_status check_sparse(const ot_tensor *values, const ot_tensor *indices,
                              const ot_shape *shape)
{
    const ot_shape *s = &indices->shape;

    if (values->shape.ndim != 1 || values->dtype == OT_STRING || ot_dtype_size(values->dtype) == 0)
        return ot__error(OT_ERR_FORMAT, "sparse values are not a list of whole-byte elements");
    if (!ot__dtype_is_int(indices->dtype) || ot_dtype_size(indices->dtype) == 0 || s->ndim < 1 ||
        s->ndim > 2 || s->dim[0] != values->shape.dim[0] ||
        (s->ndim == 2 && s->dim[1] != shape->ndim))
        return ot__error(OT_ERR_FORMAT, "sparse indices do not fit the values");
    return OT_OK;
}

static ot_status spread(ot_tensor *dense, const ot_tensor *values, const ot_tensor *indices)
{
    const size_t size = ot_dtype_size(values->dtype);
    int64_t count = 0, place = 0;

    (void)ot__shape_count(&dense->shape, &count);
    for (int64_t i = 0; i < values->shape.dim[0]; i++) {
        OT_TRY(find_place(indices, i, &dense->shape, count, &place));
        memcpy((char *)dense->data + (size_t)place * size, (char *)values->data + (size_t)i * size,
               size);
    }
    return OT_OK;
}

ot_status ot__sparse_to_dense(ot_model *model, const ot_tensor *values, const ot_tensor *indices,
                              const ot_shape *shape, ot_tensor **out)
{
    int64_t count;

    *out = NULL;
    if (!ot__shape_count(shape, &count))
        return ot__error(OT_ERR_FORMAT, "a sparse tensor has more elements than can be addressed");
    OT_TRY(check_sparse(values, indices, shape));
    *out = ot__model_tensor_new(model, values->dtype, shape);
    return *out ? spread(*out, values, indices) : OT_ERR_NO_MEMORY;
}

static ot_status add_extent(uint64_t extent, ot_shape *shape)
{
    if (shape->ndim == OT_MAX_NDIM || extent > INT64_MAX)
        return ot__error(OT_ERR_FORMAT, "a sparse tensor has more than %d axes, or size %" PRIu64,
                         OT_MAX_NDIM, extent);
    shape->dim[shape->ndim++] = (int64_t)extent;
    return OT_OK;
}

// Numbers one by one, or packed.
static ot_status read_sparse_extents(const ot__field *field, ot_shape *shape)
{
    const uint8_t *at = field->data, *end = field->data + field->size;
    uint64_t extent;

    while (at < end) {
        if (!ot__wire_varint(&at, end, &extent))
            return ot__error(OT_ERR_FORMAT, "a dim size of a sparse tensor is malformed");
        OT_TRY(add_extent(extent, shape));
    }
    return OT_OK;
}

ot_status ot__read_sparse_tensor(ot__reader *reader, ot__bytes bytes, ot__read_tensor *out)
{
    enum { VALUES = 1, INDICES = 2, DIMS = 3 };
    ot__read_tensor indices = {0};
    ot_shape shape = {0};
    ot__walk walk = ot__walk_over(bytes);
    ot__field field;
    ot_status st = OT_OK;

    *out = (ot__read_tensor){0};
    while (st == OT_OK && ot__wire_next(&walk, &field)) {
        const ot__bytes inner = {field.data, field.size};

        if (field.number == VALUES)
            st = ot__read_tensor_proto(reader, inner, out);
        else if (field.number == INDICES)
            st = ot__read_tensor_proto(reader, inner, &indices);
        else if (field.number == DIMS)
            st = read_sparse_extents(&field, &shape);
    }
    OT_TRY(st);
    if (!out->tensor || !indices.tensor)
        return ot__error(OT_ERR_FORMAT, "a sparse initializer has no values or no indices");
    st = ot__sparse_to_dense(reader->model, out->tensor, indices.tensor, &shape, &out->tensor);
    return ot__error_prefix(st, "sparse initializer '%s'", out->name);
}
