// SPDX-License-Identifier: Apache-2.0
// Values with their types, tensors and attributes of .ort files.
#include <string.h>

#include "onnx/ort/ort.h"

// ---- types: from protobuf's form, in which the model states those it does not compute with ----

static size_t ort_write_type(ot__ort_writer *w, const Onnx__TypeProto *type);

static size_t ort_write_extent(ot__ort_writer *w, const void *context, size_t i)
{
    const Onnx__TensorShapeProto__Dimension *dim =
        ((const Onnx__TensorShapeProto *)context)->dim[i];
    const bool is_number =
        dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
        dim->dim_value >= 0;
    const char *symbol = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                             ? ot__fb_given(dim->dim_param)
                             : NULL;
    ot__fb_field fields[2] = {{.n_bytes = is_number || symbol ? 4 : 0},
                              {.text = ot__fb_given(dim->denotation)}};
    ot__fb_field value[3] = {
        {.n_bytes = 1, .value = is_number ? ORT_DIM_NUMBER : ORT_DIM_SYMBOL},
        {.n_bytes = is_number ? 8 : 0, .value = is_number ? (uint64_t)dim->dim_value : 0},
        {.text = symbol},
    };
    const size_t position = ot__fb_begin_table(w->buf, fields, 2);

    if (is_number || symbol)
        ot__fb_patch(w->buf, fields[0].position, ot__fb_write_table(w->buf, value, 3));
    ot__fb_write_strings(w->buf, fields, 2);
    return position;
}

static size_t ort_write_shape(ot__ort_writer *w, const Onnx__TensorShapeProto *shape)
{
    ot__fb_field field = {.n_bytes = 4};
    const size_t position = ot__fb_write_table(w->buf, &field, 1);

    ot__ort_put_list(w, &field, (int)shape->n_dim, ort_write_extent, shape);
    return position;
}

static size_t ort_write_tensor_type(ot__ort_writer *w, const Onnx__TypeProto__Tensor *tensor)
{
    ot__fb_field fields[2] = {{.n_bytes = 4, .value = (uint64_t)tensor->elem_type},
                              {.n_bytes = tensor->shape ? 4 : 0}};
    const size_t position = ot__fb_write_table(w->buf, fields, 2);

    if (tensor->elem_type == 0)
        w->status = ot__error(OT_ERR_INVALID, "no element type is known, which .ort files need");
    else if (tensor->shape)
        ot__fb_patch(w->buf, fields[1].position, ort_write_shape(w, tensor->shape));
    return position;
}

// A sequence, or a map, which has a key type before that of its elements.
static size_t ort_write_container(ot__ort_writer *w, ot__fb_field *fields, int n_fields,
                                  const Onnx__TypeProto *element)
{
    const size_t position = ot__fb_write_table(w->buf, fields, n_fields);

    if (element)
        ot__fb_patch(w->buf, fields[n_fields - 1].position, ort_write_type(w, element));
    else
        w->status = ot__error(OT_ERR_INVALID, "a sequence or map has no element type");
    return position;
}

static size_t ort_write_type(ot__ort_writer *w, const Onnx__TypeProto *type)
{
    const uint64_t tag = type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? ORT_TAG_TENSOR
                         : type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE
                             ? ORT_TAG_SEQUENCE
                         : type->value_case == ONNX__TYPE_PROTO__VALUE_MAP_TYPE ? ORT_TAG_MAP
                                                                                : ORT_TAG_NONE;
    ot__fb_field fields[ORT_TYPE_SLOTS] = {
        [ORT_TYPE_DENOTATION] = {.text = ot__fb_given(type->denotation)},
        [ORT_TYPE_TAG] = {.n_bytes = 1, .value = tag},
        [ORT_TYPE_TABLE] = {.n_bytes = 4},
    };
    const size_t position = ot__fb_write_table(w->buf, fields, ORT_TYPE_SLOTS);
    const size_t field = fields[ORT_TYPE_TABLE].position;
    ot__fb_field parts[2] = {{.n_bytes = 4}, {.n_bytes = 4}};

    if (tag == ORT_TAG_TENSOR)
        ot__fb_patch(w->buf, field, ort_write_tensor_type(w, type->tensor_type));
    else if (tag == ORT_TAG_SEQUENCE)
        ot__fb_patch(w->buf, field,
                     ort_write_container(w, parts, 1, type->sequence_type->elem_type));
    else if (tag == ORT_TAG_MAP) {
        parts[0].value = (uint64_t)type->map_type->key_type;
        ot__fb_patch(w->buf, field, ort_write_container(w, parts, 2, type->map_type->value_type));
    } else
        w->status = ot__error(OT_ERR_UNSUPPORTED, "is neither tensor nor sequence nor map, which "
                                                  "is all that .ort files hold");
    return position;
}

// ---- values ----

static void *allocate(void *unused, size_t size)
{
    (void)unused;
    return ot__alloc(size);
}

static void ort_release(void *unused, void *block)
{
    (void)unused;
    ot__free(block);
}

static size_t write_value_type(ot__ort_writer *w, const ot_value *value)
{
    const ot__typed_value typed = {w->model, value};
    ProtobufCAllocator allocator = {allocate, ort_release, NULL};
    ot__buf proto = {0};
    ot__wire wire = ot__wire_to(&proto);
    Onnx__TypeProto *type = NULL;
    size_t position = 0;

    if (value->kind == OT_VALUE_UNTYPED) {
        w->status = ot__error(OT_ERR_INVALID, "no type is known, which .ort files need");
        return 0;
    }
    ot__write_type(&wire, &typed);
    w->status = wire.status;
    if (w->status == OT_OK) {
        type = onnx__type_proto__unpack(&allocator, proto.length, (const uint8_t *)proto.data);
        w->status = type ? OT_OK : ot__error(OT_ERR_NO_MEMORY, "a type cannot be taken apart");
    }
    if (type)
        position = ort_write_type(w, type);
    if (type)
        onnx__type_proto__free_unpacked(type, &allocator);
    ot__buf_deinit(&proto);
    return position;
}

size_t ot__ort_write_value(ot__ort_writer *w, const ot_value *value)
{
    ot__fb_field fields[ORT_VALUE_SLOTS] = {
        [ORT_VALUE_NAME] = {.text = value ? value->name : ""},
        [ORT_VALUE_DOC] = {.text = value && value->doc ? value->doc : ""},
        [ORT_VALUE_TYPE] = {.n_bytes = value ? 4 : 0},
    };
    const size_t position = ot__fb_write_table(w->buf, fields, ORT_VALUE_SLOTS);

    if (!value)
        return position;
    ot__fb_patch(w->buf, fields[ORT_VALUE_TYPE].position, write_value_type(w, value));
    w->status = ot__error_prefix(w->status, "value '%s'", value->name);
    return position;
}

// ---- tensors ----

static size_t write_string(ot__ort_writer *w, const void *context, size_t i)
{
    const ot__string *string = (const ot__string *)context + i;

    return ot__fb_write_text(w->buf, string->data, string->size);
}

size_t ot__ort_write_tensor(ot__ort_writer *w, const ot_tensor *tensor, const char *name,
                            const char *doc)
{
    const bool is_text = tensor->dtype == OT_STRING;
    ot__fb_field fields[ORT_TENSOR_SLOTS] = {
        [ORT_TENSOR_NAME] = {.text = name},
        [ORT_TENSOR_DOC] = {.text = ot__fb_given(doc)},
        [ORT_TENSOR_DIMS] = {.n_bytes = 4},
        [ORT_TENSOR_TYPE] = {.n_bytes = 4, .value = (uint64_t)tensor->dtype},
        [ORT_TENSOR_RAW] = {.n_bytes = is_text ? 0 : 4},
        [ORT_TENSOR_STRINGS] = {.n_bytes = is_text ? 4 : 0},
    };
    size_t position;

    if (tensor->n_bytes > INT32_MAX || w->buf->length > INT32_MAX - tensor->n_bytes) {
        w->status = ot__error(OT_ERR_UNSUPPORTED, "tensor '%s' passes the %d bytes of .ort files",
                              name, INT32_MAX);
        return 0;
    }
    position = ot__fb_write_table(w->buf, fields, ORT_TENSOR_SLOTS);
    ot__fb_patch(w->buf, fields[ORT_TENSOR_DIMS].position,
                 ot__fb_write_i64s(w->buf, tensor->shape.dim, tensor->shape.ndim));
    if (is_text)
        ot__ort_put_list(w, &fields[ORT_TENSOR_STRINGS],
                         (int)(tensor->n_bytes / sizeof(ot__string)), write_string, tensor->data);
    else
        ot__fb_patch(w->buf, fields[ORT_TENSOR_RAW].position,
                     ot__fb_write_bytes(w->buf, tensor->data, tensor->n_bytes));
    return position;
}

// ---- attributes ----

static uint32_t ort_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static size_t write_floats(ot__ort_writer *w, const ot_attr *attr)
{
    const size_t list = ot__fb_write_count(w->buf, (size_t)attr->n);

    for (int i = 0; i < attr->n; i++)
        ot__fb_write_word(w->buf, ort_float_bits(attr->floats[i]));
    return list;
}

// One of several, or the only one.
static size_t ort_write_tensor(ot__ort_writer *w, const void *context, size_t i)
{
    const ot_attr *attr = context;
    const ot__tensor_note *note = attr->notes ? &attr->notes[i] : NULL;

    return ot__ort_write_tensor(w, attr->t ? attr->t : attr->tensors[i], note ? note->name : "",
                                note ? note->doc : NULL);
}

static size_t write_attr_value(ot__ort_writer *w, const ot_attr *attr)
{
    switch (attr->kind) {
    case OT_ATTR_STRING:
        return ot__fb_write_text(w->buf, attr->s.data, attr->s.size);
    case OT_ATTR_TENSOR:
        return ort_write_tensor(w, attr, 0);
    case OT_ATTR_GRAPH:
        return ot__ort_write_graph(w, attr->g);
    case OT_ATTR_FLOATS:
        return write_floats(w, attr);
    case OT_ATTR_INTS:
        return ot__fb_write_i64s(w->buf, attr->ints, attr->n);
    case OT_ATTR_STRINGS:
        return ot__ort_write_list(w, (size_t)attr->n, write_string, attr->strings);
    default:
        return ot__ort_write_list(w, (size_t)attr->n, ort_write_tensor, attr);
    }
}

size_t ot__ort_write_attr(ot__ort_writer *w, const void *attrs, size_t i)
{
    const ot_attr *attr = ((ot_attr *const *)attrs)[i];
    const int slot = ot__ort_slot_of(attr->kind);
    const bool is_number = attr->kind == OT_ATTR_FLOAT || attr->kind == OT_ATTR_INT;
    ot__fb_field fields[ORT_ATTR_SLOTS] = {
        [ORT_ATTR_NAME] = {.text = attr->name},
        [ORT_ATTR_DOC] = {.text = ot__fb_given(attr->doc)},
        [ORT_ATTR_TYPE] = {.n_bytes = 4, .value = (uint64_t)attr->kind},
    };
    size_t position;

    if (slot < 0) {
        w->status = ot__error(OT_ERR_UNSUPPORTED,
                              "attribute '%s' of kind %s cannot be written to .ort files",
                              attr->name, ot__attr_kind_name(attr->kind));
        return 0;
    }
    fields[slot].n_bytes = attr->kind == OT_ATTR_INT ? 8 : 4;
    if (is_number)
        fields[slot].value =
            attr->kind == OT_ATTR_INT ? (uint64_t)attr->i : ort_float_bits(attr->f);
    position = ot__fb_write_table(w->buf, fields, ORT_ATTR_SLOTS);
    if (!is_number)
        ot__fb_patch(w->buf, fields[slot].position, write_attr_value(w, attr));
    return position;
}
