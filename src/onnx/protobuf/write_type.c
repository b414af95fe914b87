// SPDX-License-Identifier: Apache-2.0
// Types and shapes of values, written.
#include <string.h>

#include "onnx/protobuf/write.h"

// ---- types kept as bytes ----
//
// A tensor type that said more than we model (denotations, unknown fields) is written as it came,
// unless the type or the shape has changed since.

static bool extent_matches(const ot_model *model, ot__bytes bytes, int64_t dim)
{
    const char *name = ot__dim_name(model, dim);
    ot__walk walk = ot__walk_over(bytes);
    bool matches = dim == OT_DIM_UNKNOWN;
    ot__field field;

    while (ot__wire_next(&walk, &field)) {
        uint64_t value;
        const uint8_t *p = field.data;

        if (field.number == 1 && ot__wire_varint(&p, field.data + field.size, &value))
            matches = (int64_t)value == dim || ((int64_t)value == -1 && dim == OT_DIM_UNKNOWN);
        else if (field.number == 2)
            matches = field.size == 0 ? dim == OT_DIM_UNKNOWN
                                      : name && strlen(name) == field.size &&
                                            memcmp(name, field.data, field.size) == 0;
    }
    return matches;
}

static bool shape_matches(const ot__typed_value *typed, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    int axis = 0;
    ot__bytes extent;

    for (; ot__wire_next_of(&walk, 1, &extent); axis++)
        if (axis >= typed->value->shape.ndim ||
            !extent_matches(typed->model, extent, typed->value->shape.dim[axis]))
            return false;
    return axis == typed->value->shape.ndim;
}

static bool tensor_type_matches(const ot__typed_value *typed, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    uint64_t dtype = 0;
    bool has_shape = false;
    ot__field field;

    while (ot__wire_next(&walk, &field)) {
        const uint8_t *p = field.data;

        if (field.number == 1 && !ot__wire_varint(&p, field.data + field.size, &dtype))
            return false;
        if (field.number != 2)
            continue;
        if (has_shape || !shape_matches(typed, (ot__bytes){field.data, field.size}))
            return false;
        has_shape = true;
    }
    return dtype == (uint64_t)typed->value->dtype && has_shape == typed->value->has_shape;
}

static bool type_still_holds(const ot__typed_value *typed)
{
    const ot__bytes bytes = typed->value->type_bytes;
    ot__walk walk = ot__walk_over(bytes);
    ot__bytes tensor;

    if (typed->value->kind != OT_VALUE_TENSOR)
        return bytes.size > 0;
    return ot__wire_next_of(&walk, 1, &tensor) && tensor_type_matches(typed, tensor);
}

// ---- types composed ----

typedef struct extent {
    const ot_model *model;
    int64_t dim;
} extent;

static void pb_write_extent(ot__wire *wire, const void *object)
{
    const extent *e = object;

    if (ot__dim_is_number(e->dim))
        ot__wire_put_int(wire, 1, e->dim);
    else
        ot__wire_put_text(wire, 2, ot__dim_name(e->model, e->dim));
}

static void pb_write_shape(ot__wire *wire, const void *object)
{
    const ot__typed_value *typed = object;

    for (int i = 0; i < typed->value->shape.ndim; i++) {
        const extent e = {typed->model, typed->value->shape.dim[i]};

        ot__wire_put_message(wire, 1, pb_write_extent, &e);
    }
}

void ot__write_tensor_type(ot__wire *wire, const void *object)
{
    const ot__typed_value *typed = object;

    ot__wire_put_int(wire, 1, typed->value->dtype);
    if (typed->value->has_shape)
        ot__wire_put_message(wire, 2, pb_write_shape, typed);
}

static void write_type_of_tensor(ot__wire *wire, const void *object)
{
    ot__wire_put_message(wire, 1, ot__write_tensor_type, object);
}

static void write_sequence(ot__wire *wire, const void *object)
{
    ot__wire_put_message(wire, 1, write_type_of_tensor, object);
}

void ot__write_type(ot__wire *wire, const void *object)
{
    const ot__typed_value *typed = object;
    const ot_value *value = typed->value;

    if (type_still_holds(typed))
        ot__wire_raw(wire, value->type_bytes.data, value->type_bytes.size);
    else if (value->kind == OT_VALUE_SEQUENCE)
        ot__wire_put_message(wire, 4, write_sequence, typed);
    else if (value->kind == OT_VALUE_TENSOR)
        write_type_of_tensor(wire, typed);
}

void ot__write_value_info(ot__wire *wire, const void *typed_value)
{
    const ot__typed_value *typed = typed_value;

    ot__wire_put_name(wire, 1, typed->value->name);
    if (typed->value->kind != OT_VALUE_UNTYPED)
        ot__wire_put_message(wire, 2, ot__write_type, typed);
    ot__wire_put_text(wire, 3, typed->value->doc);
    ot__wire_raw(wire, typed->value->extra.data, typed->value->extra.size);
}
