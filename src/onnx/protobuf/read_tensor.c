// SPDX-License-Identifier: Apache-2.0
// TensorProto: what it is called, what it is, and where its elements are.
#include <string.h>

#include "onnx/protobuf/read.h"

enum { STRING_DATA = 6, RAW_DATA = 9, METADATA = 16, EXTERNAL = 1 };

static const uint64_t element_fields = OT_FIELD_BIT(4) | OT_FIELD_BIT(5) |
                                       OT_FIELD_BIT(STRING_DATA) | OT_FIELD_BIT(7) |
                                       OT_FIELD_BIT(RAW_DATA) | OT_FIELD_BIT(10) | OT_FIELD_BIT(11);
static const uint64_t kept_fields = OT_FIELD_BIT(1) | OT_FIELD_BIT(2) | OT_FIELD_BIT(3) |
                                    OT_FIELD_BIT(8) | OT_FIELD_BIT(12) | OT_FIELD_BIT(13) |
                                    OT_FIELD_BIT(14);

ot_status ot__read_dims(const void *dims, size_t n, ot_shape *shape)
{
    *shape = (ot_shape){0};
    if (n > OT_MAX_NDIM)
        return ot__error(OT_ERR_UNSUPPORTED, "%zu axes, at most %d are supported", n, OT_MAX_NDIM);
    shape->ndim = (int)n;
    if (n > 0)
        memcpy(shape->dim, dims, n * sizeof shape->dim[0]);
    for (int i = 0; i < shape->ndim; i++)
        if (shape->dim[i] < 0)
            return ot__error(OT_ERR_FORMAT, "size %" PRId64 " of axis %d is negative",
                             shape->dim[i], i);
    return OT_OK;
}

// ---- raw bytes and files ----

// Elements where they lie in the file, or a copy when they are not aligned for their type.
static ot_status tensor_over(ot_model *model, ot_dtype dtype, const ot_shape *shape,
                             const void *data, size_t n_bytes, ot_tensor **out)
{
    const size_t alignment = OT_MIN(OT_MAX(ot_dtype_size(dtype), (size_t)1), (size_t)8);

    if ((uintptr_t)data % alignment == 0) {
        *out = ot__model_tensor_over(model, dtype, shape, data, n_bytes);
        return ot__made(*out);
    }
    *out = ot__model_tensor_new(model, dtype, shape);
    OT_TRY(ot__made(*out));
    memcpy((*out)->data, data, n_bytes);
    return OT_OK;
}

static ot_status expected_bytes(ot_dtype dtype, const ot_shape *shape, size_t *n_bytes)
{
    int64_t count = 0;

    if (dtype == OT_STRING)
        return ot__error(OT_ERR_FORMAT, "strings cannot be raw bytes");
    if (!ot__shape_count(shape, &count) || !ot__dtype_bytes(dtype, count, n_bytes))
        return ot__error(OT_ERR_FORMAT, "%" PRId64 " elements of %s have no size in bytes", count,
                         ot_dtype_name(dtype));
    return OT_OK;
}

ot_status ot__read_raw(ot__reader *reader, ot_dtype dtype, const ot_shape *shape, ot__bytes raw,
                       ot_tensor **out)
{
    size_t expected;

    OT_TRY(expected_bytes(dtype, shape, &expected));
    if (raw.size != expected)
        return ot__error(OT_ERR_FORMAT, "raw_data has %zu bytes, expected %zu", raw.size, expected);
    if (reader->in_initializer && raw.size >= OT_SPAN_MIN) {
        *out = ot__model_tensor_over(reader->model, dtype, shape, raw.data, raw.size);
        return ot__made(*out);
    }
    return tensor_over(reader->model, dtype, shape, raw.data, raw.size, out);
}

static ot_status pb_read_number(const char *key, const char *text, int64_t *out)
{
    if (!ot__parse_int(text, out) || *out < 0)
        return ot__error(OT_ERR_FORMAT, "%s of external data is '%s', expected a number from 0",
                         key, text);
    return OT_OK;
}

ot_status ot__read_external(ot__reader *reader, const char *const *entries, size_t n_entries,
                            ot_dtype dtype, const ot_shape *shape, ot_tensor **out)
{
    ot__stored stored = {.length = -1};
    size_t expected;
    const void *data;

    for (size_t i = 0; i < n_entries; i++) {
        const char *key = entries[2 * i], *value = entries[2 * i + 1];

        if (strcmp(key, "location") == 0)
            stored.location = value;
        else if (strcmp(key, "offset") == 0)
            OT_TRY(pb_read_number(key, value, &stored.offset));
        else if (strcmp(key, "length") == 0)
            OT_TRY(pb_read_number(key, value, &stored.length));
        else if (strcmp(key, "checksum") == 0 && *value)
            stored.checksum = value;
    }
    if (!stored.location)
        return ot__error(OT_ERR_FORMAT, "external data without a location");
    OT_TRY(expected_bytes(dtype, shape, &expected));
    OT_TRY(ot__external_read(reader->model, &reader->external, &stored, expected, &data));
    return tensor_over(reader->model, dtype, shape, data, expected, out);
}

static ot_status read_external(ot__reader *reader, const Onnx__TensorProto *proto, ot_dtype dtype,
                               const ot_shape *shape, ot_tensor **out)
{
    const size_t max_entries = 64; // there are five keys
    const char *entries[2 * 64];

    if (proto->n_external_data > max_entries)
        return ot__error(OT_ERR_FORMAT, "external data has %zu entries", proto->n_external_data);
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = proto->external_data[i]->key, *value = proto->external_data[i]->value;

        entries[2 * i] = key ? key : "";
        entries[2 * i + 1] = value ? value : "";
    }
    return ot__read_external(reader, entries, proto->n_external_data, dtype, shape, out);
}

// ---- the message ----

// raw_data when there is one; *has_typed: another field holds elements.
static bool find_raw(ot__bytes bytes, ot__bytes *raw, bool *has_typed)
{
    ot__walk walk = ot__walk_over(bytes);
    bool found = false;
    ot__field field;

    *has_typed = false;
    while (ot__wire_next(&walk, &field)) {
        if (field.number >= 64 || !(element_fields & OT_FIELD_BIT(field.number)))
            continue;
        if (field.number == RAW_DATA) {
            *raw = (ot__bytes){field.data, field.size};
            found = true;
        } else if (field.size > 0 || field.wire_type != OT_WIRE_BYTES ||
                   field.number == STRING_DATA) {
            *has_typed = true;
        }
    }
    return found;
}

static ot_status pb_read_data(ot__reader *reader, const Onnx__TensorProto *proto, ot__bytes bytes,
                              ot_tensor **out)
{
    ot__bytes raw = {0};
    bool has_typed, has_raw = find_raw(bytes, &raw, &has_typed);
    ot_dtype dtype;
    ot_shape shape;
    int64_t count;

    OT_TRY(ot__read_dtype(proto->data_type, &dtype));
    OT_TRY(ot__read_dims(proto->dims, proto->n_dims, &shape));
    if (!ot__shape_count(&shape, &count))
        return ot__error(OT_ERR_FORMAT, "shape %s has more elements than can be counted",
                         OT_SHAPE_TEXT(&shape));
    if (proto->segment)
        return ot__error(OT_ERR_UNSUPPORTED, "tensors in segments are not supported");
    if (proto->has_data_location && (int)proto->data_location == EXTERNAL)
        return read_external(reader, proto, dtype, &shape, out);
    if (has_raw && has_typed && raw.size > 0)
        return ot__error(OT_ERR_FORMAT, "elements are in raw_data and in another field");
    if (has_raw && !has_typed)
        return ot__read_raw(reader, dtype, &shape, raw, out);
    OT_TRY(ot__check_element_count(dtype, &shape, bytes));
    *out = ot__model_tensor_new(reader->model, dtype, &shape);
    return *out ? ot__read_elements(*out, bytes) : OT_ERR_NO_MEMORY;
}

ot_status ot__read_tensor_proto(ot__reader *reader, ot__bytes bytes, ot__read_tensor *out)
{
    const Onnx__TensorProto *proto;
    ot__unpacked unpacked;
    ot_status st;

    *out = (ot__read_tensor){0};
    OT_TRY(ot__unpack(reader, &onnx__tensor_proto__descriptor, bytes, kept_fields, element_fields,
                      &unpacked));
    proto = (const Onnx__TensorProto *)unpacked.message;
    out->name = ot__read_text(reader, proto->name);
    out->doc = ot__read_text(reader, proto->doc_string);
    out->extra = unpacked.parts.rest;
    st =
        out->name && out->doc ? pb_read_data(reader, proto, bytes, &out->tensor) : OT_ERR_NO_MEMORY;
    OT_THEN(st, ot__read_metadata(reader, bytes, METADATA, &out->metadata));
    st = ot__error_prefix(st, "tensor '%s'", proto->name ? proto->name : "");
    ot__unpacked_deinit(&unpacked);
    return st;
}
