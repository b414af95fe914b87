// SPDX-License-Identifier: Apache-2.0
// Values with their types, tensors and attributes of .ort files.
#include <string.h>

#include "onnx/ort/ort.h"

// ---- types: from protobuf's form, in which the model states those it does not compute with ----

static size_t write_type(ot__ort_writer *w, const Onnx__TypeProto *type);

static size_t write_extent(ot__ort_writer *w, const Onnx__TensorShapeProto__Dimension *dim)
{
    const bool is_number =
        dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
        dim->dim_value >= 0;
    const bool is_symbol =
        dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param &&
        dim->dim_param[0];
    const bool has_denotation = dim->denotation && dim->denotation[0];
    ot__fb_field fields[2] = {{.n_bytes = is_number || is_symbol ? 4 : 0},
                              {.n_bytes = has_denotation ? 4 : 0}};
    ot__fb_field value[3] = {
        {.n_bytes = 1, .value = is_number ? ORT_DIM_NUMBER : ORT_DIM_SYMBOL},
        {.n_bytes = is_number ? 8 : 0, .value = is_number ? (uint64_t)dim->dim_value : 0},
        {.n_bytes = is_symbol ? 4 : 0},
    };
    const size_t position = ot__fb_write_table(w->buf, fields, 2);

    if (is_number || is_symbol)
        ot__fb_patch(w->buf, fields[0].position, ot__fb_write_table(w->buf, value, 3));
    if (is_symbol)
        ot__ort_write_text(w, &value[2], dim->dim_param);
    ot__ort_write_text(w, &fields[1], dim->denotation);
    return position;
}

static size_t write_shape(ot__ort_writer *w, const Onnx__TensorShapeProto *shape)
{
    ot__fb_field field = {.n_bytes = 4};
    const size_t position = ot__fb_write_table(w->buf, &field, 1);
    const size_t list = ot__fb_write_offsets(w->buf, shape->n_dim);

    ot__fb_patch(w->buf, field.position, list);
    for (size_t i = 0; i < shape->n_dim; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * i, write_extent(w, shape->dim[i]));
    return position;
}

static size_t write_tensor_type(ot__ort_writer *w, const Onnx__TypeProto__Tensor *tensor)
{
    ot__fb_field fields[2] = {{.n_bytes = 4, .value = (uint64_t)tensor->elem_type},
                              {.n_bytes = tensor->shape ? 4 : 0}};
    const size_t position = ot__fb_write_table(w->buf, fields, 2);

    if (tensor->elem_type == 0)
        w->status = ot__error(OT_ERR_INVALID, "no element type is known, which .ort files need");
    else if (tensor->shape)
        ot__fb_patch(w->buf, fields[1].position, write_shape(w, tensor->shape));
    return position;
}

static size_t write_element_type(ot__ort_writer *w, const ot__fb_field *field,
                                 const Onnx__TypeProto *element, size_t position)
{
    if (element)
        ot__fb_patch(w->buf, field->position, write_type(w, element));
    else
        w->status = ot__error(OT_ERR_INVALID, "a sequence or map has no element type");
    return position;
}

static size_t write_sequence_type(ot__ort_writer *w, const Onnx__TypeProto__Sequence *sequence)
{
    ot__fb_field field = {.n_bytes = 4};
    const size_t position = ot__fb_write_table(w->buf, &field, 1);

    return write_element_type(w, &field, sequence->elem_type, position);
}

static size_t write_map_type(ot__ort_writer *w, const Onnx__TypeProto__Map *map)
{
    ot__fb_field fields[2] = {{.n_bytes = 4, .value = (uint64_t)map->key_type}, {.n_bytes = 4}};
    const size_t position = ot__fb_write_table(w->buf, fields, 2);

    return write_element_type(w, &fields[1], map->value_type, position);
}

static size_t write_type(ot__ort_writer *w, const Onnx__TypeProto *type)
{
    const uint64_t tag = type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? ORT_TAG_TENSOR
                         : type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE
                             ? ORT_TAG_SEQUENCE
                         : type->value_case == ONNX__TYPE_PROTO__VALUE_MAP_TYPE ? ORT_TAG_MAP
                                                                                : ORT_TAG_NONE;
    ot__fb_field fields[ORT_TYPE_SLOTS] = {
        [ORT_TYPE_DENOTATION] = {.n_bytes = type->denotation && type->denotation[0] ? 4 : 0},
        [ORT_TYPE_TAG] = {.n_bytes = 1, .value = tag},
        [ORT_TYPE_TABLE] = {.n_bytes = 4},
    };
    const size_t position = ot__fb_write_table(w->buf, fields, ORT_TYPE_SLOTS);
    const size_t field = fields[ORT_TYPE_TABLE].position;

    ot__ort_write_text(w, &fields[ORT_TYPE_DENOTATION], type->denotation);
    if (tag == ORT_TAG_TENSOR)
        ot__fb_patch(w->buf, field, write_tensor_type(w, type->tensor_type));
    else if (tag == ORT_TAG_SEQUENCE)
        ot__fb_patch(w->buf, field, write_sequence_type(w, type->sequence_type));
    else if (tag == ORT_TAG_MAP)
        ot__fb_patch(w->buf, field, write_map_type(w, type->map_type));
    else
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

static void release(void *unused, void *block)
{
    (void)unused;
    ot__free(block);
}

static ot_status append(void *context, const void *bytes, size_t n_bytes)
{
    ot__buf_append(context, bytes, n_bytes);
    return ot__buf_status(context);
}

static size_t write_value_type(ot__ort_writer *w, const ot_value *value)
{
    const ot__typed_value typed = {w->model, value};
    ProtobufCAllocator allocator = {allocate, release, NULL};
    ot__buf proto = {0};
    ot__wire wire = {.write = append, .context = &proto};
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
        position = write_type(w, type);
    if (type)
        onnx__type_proto__free_unpacked(type, &allocator);
    ot__buf_deinit(&proto);
    return position;
}

size_t ot__ort_write_value(ot__ort_writer *w, const ot_value *value)
{
    const char *doc = value && value->doc ? value->doc : "";
    ot__fb_field fields[ORT_VALUE_SLOTS] = {
        [ORT_VALUE_NAME] = {.n_bytes = 4},
        [ORT_VALUE_DOC] = {.n_bytes = 4},
        [ORT_VALUE_TYPE] = {.n_bytes = value ? 4 : 0},
    };
    const size_t position = ot__fb_write_table(w->buf, fields, ORT_VALUE_SLOTS);

    ot__fb_patch(w->buf, fields[ORT_VALUE_NAME].position,
                 ot__fb_write_string(w->buf, value ? value->name : ""));
    ot__fb_patch(w->buf, fields[ORT_VALUE_DOC].position, ot__fb_write_string(w->buf, doc));
    if (!value)
        return position;
    ot__fb_patch(w->buf, fields[ORT_VALUE_TYPE].position, write_value_type(w, value));
    if (w->status != OT_OK)
        w->status = ot__error_prefix(w->status, "value '%s'", value->name);
    return position;
}

// ---- tensors ----

static size_t write_strings(ot__ort_writer *w, const ot__string *strings, size_t n)
{
    const size_t list = ot__fb_write_offsets(w->buf, n);

    for (size_t i = 0; i < n; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * i,
                     ot__fb_write_text(w->buf, strings[i].data, strings[i].size));
    return list;
}

size_t ot__ort_write_tensor(ot__ort_writer *w, const ot_tensor *tensor, const char *name,
                            const char *doc)
{
    const bool is_text = tensor->dtype == OT_STRING;
    ot__fb_field fields[ORT_TENSOR_SLOTS] = {
        [ORT_TENSOR_NAME] = {.n_bytes = 4},
        [ORT_TENSOR_DOC] = {.n_bytes = doc && doc[0] ? 4 : 0},
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
    ot__fb_patch(w->buf, fields[ORT_TENSOR_NAME].position, ot__fb_write_string(w->buf, name));
    ot__ort_write_text(w, &fields[ORT_TENSOR_DOC], doc);
    ot__fb_patch(w->buf, fields[ORT_TENSOR_DIMS].position,
                 ot__fb_write_i64s(w->buf, tensor->shape.dim, tensor->shape.ndim));
    if (is_text)
        ot__fb_patch(w->buf, fields[ORT_TENSOR_STRINGS].position,
                     write_strings(w, tensor->data, tensor->n_bytes / sizeof(ot__string)));
    else
        ot__fb_patch(w->buf, fields[ORT_TENSOR_RAW].position,
                     ot__fb_write_bytes(w->buf, tensor->data, tensor->n_bytes));
    return position;
}

// ---- attributes ----

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static size_t write_floats(ot__ort_writer *w, const ot_attr *attr)
{
    const size_t list = ot__fb_write_count(w->buf, (size_t)attr->n);

    for (int i = 0; i < attr->n; i++)
        ot__fb_write_word(w->buf, float_bits(attr->floats[i]));
    return list;
}

static size_t write_noted_tensor(ot__ort_writer *w, const ot_attr *attr, const ot_tensor *tensor,
                                 int i)
{
    const ot__tensor_note *note = attr->notes ? &attr->notes[i] : NULL;

    return ot__ort_write_tensor(w, tensor, note ? note->name : "", note ? note->doc : NULL);
}

static size_t write_tensors(ot__ort_writer *w, const ot_attr *attr)
{
    const size_t list = ot__fb_write_offsets(w->buf, (size_t)attr->n);

    for (int i = 0; i < attr->n && w->status == OT_OK; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * (size_t)i,
                     write_noted_tensor(w, attr, attr->tensors[i], i));
    return list;
}

static size_t write_attr_value(ot__ort_writer *w, const ot_attr *attr)
{
    switch (attr->kind) {
    case OT_ATTR_STRING:
        return ot__fb_write_text(w->buf, attr->s.data, attr->s.size);
    case OT_ATTR_TENSOR:
        return write_noted_tensor(w, attr, attr->t, 0);
    case OT_ATTR_GRAPH:
        return ot__ort_write_graph(w, attr->g);
    case OT_ATTR_FLOATS:
        return write_floats(w, attr);
    case OT_ATTR_INTS:
        return ot__fb_write_i64s(w->buf, attr->ints, attr->n);
    case OT_ATTR_STRINGS:
        return write_strings(w, attr->strings, (size_t)attr->n);
    default:
        return write_tensors(w, attr);
    }
}

size_t ot__ort_write_attr(ot__ort_writer *w, const ot_attr *attr)
{
    const int slot = ot__ort_slot_of(attr->kind);
    const bool is_number = attr->kind == OT_ATTR_FLOAT || attr->kind == OT_ATTR_INT;
    ot__fb_field fields[ORT_ATTR_SLOTS] = {
        [ORT_ATTR_NAME] = {.n_bytes = 4},
        [ORT_ATTR_DOC] = {.n_bytes = attr->doc && attr->doc[0] ? 4 : 0},
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
        fields[slot].value = attr->kind == OT_ATTR_INT ? (uint64_t)attr->i : float_bits(attr->f);
    position = ot__fb_write_table(w->buf, fields, ORT_ATTR_SLOTS);
    ot__fb_patch(w->buf, fields[ORT_ATTR_NAME].position, ot__fb_write_string(w->buf, attr->name));
    ot__ort_write_text(w, &fields[ORT_ATTR_DOC], attr->doc);
    if (!is_number)
        ot__fb_patch(w->buf, fields[slot].position, write_attr_value(w, attr));
    return position;
}
