// SPDX-License-Identifier: Apache-2.0
// Types and shapes of values.
#include <string.h>

#include "onnx/protobuf/read.h"

ot_status ot__read_dtype(int64_t number, ot_dtype *dtype)
{
    if (number <= 0 || strcmp(ot_dtype_name((ot_dtype)number), "unknown") == 0)
        return ot__error(OT_ERR_FORMAT, "element type %" PRId64 " is not known", number);
    *dtype = (ot_dtype)number;
    return OT_OK;
}

static bool has_more(const ProtobufCMessage *message, const char *denotation)
{
    return message->n_unknown_fields > 0 || (denotation && *denotation);
}

// Does the shape say more than extents? Then the bytes are kept as well.
static bool shape_has_more(const Onnx__TensorShapeProto *shape)
{
    if (!shape)
        return false;
    for (size_t i = 0; i < shape->n_dim; i++)
        if (has_more(&shape->dim[i]->base, shape->dim[i]->denotation))
            return true;
    return has_more(&shape->base, NULL);
}

static ot_status pb_read_shape(ot__reader *reader, const Onnx__TensorShapeProto *proto,
                               ot_shape *shape)
{
    *shape = (ot_shape){0};
    if (proto->n_dim > OT_MAX_NDIM)
        return ot__error(OT_ERR_UNSUPPORTED, "%zu axes, at most %d are supported", proto->n_dim,
                         OT_MAX_NDIM);
    shape->ndim = (int)proto->n_dim;
    for (int i = 0; i < shape->ndim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = proto->dim[i];
        int64_t *out = &shape->dim[i];

        *out = OT_DIM_UNKNOWN;
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
            dim->dim_param && dim->dim_param[0]) {
            *out = ot__dim_symbol(reader->model, dim->dim_param);
            OT_TRY(ot__made(*out != OT_DIM_UNKNOWN));
        } else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
            *out = dim->dim_value;
            // -1 is how some exporters say "any".
            if (*out < -1)
                return ot__error(OT_ERR_FORMAT, "size %" PRId64 " of axis %d is negative", *out, i);
            if (*out == -1)
                *out = OT_DIM_UNKNOWN;
        }
    }
    return OT_OK;
}

static ot_status read_tensor_type(ot__reader *reader, const Onnx__TypeProto__Tensor *tensor,
                                  ot_value *value)
{
    value->has_shape = tensor->shape != NULL;
    if (tensor->shape)
        OT_TRY(pb_read_shape(reader, tensor->shape, &value->shape));
    value->dtype = OT_DTYPE_UNDEFINED;
    return tensor->elem_type == 0 ? OT_OK : ot__read_dtype(tensor->elem_type, &value->dtype);
}

static ot_status read_type(ot__reader *reader, const Onnx__TypeProto *type, ot__bytes bytes,
                           ot_value *value)
{
    const Onnx__TypeProto__Tensor *tensor = NULL;
    const Onnx__TypeProto *element;

    value->type_bytes = (ot__bytes){0};
    if (type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return OT_OK;
    value->kind = OT_VALUE_OTHER;
    if (type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        tensor = type->tensor_type;
        value->kind = OT_VALUE_TENSOR;
    } else if (type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        element = type->sequence_type->elem_type;
        if (element && element->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
            tensor = element->tensor_type;
            value->kind = OT_VALUE_SEQUENCE;
        }
    }
    if (value->kind != OT_VALUE_TENSOR || has_more(&type->base, type->denotation) ||
        has_more(&tensor->base, NULL) || shape_has_more(tensor->shape))
        value->type_bytes = bytes;
    return tensor ? read_tensor_type(reader, tensor, value) : OT_OK;
}

ot_status ot__read_type(ot__reader *reader, ot__bytes bytes, ot_value *value)
{
    ot__unpacked unpacked;
    ot_status st;

    OT_TRY(ot__unpack(reader, &onnx__type_proto__descriptor, bytes, UINT64_MAX, 0, &unpacked));
    st = read_type(reader, (const Onnx__TypeProto *)unpacked.message, bytes, value);
    ot__unpacked_deinit(&unpacked);
    return st;
}
