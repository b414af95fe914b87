// SPDX-License-Identifier: Apache-2.0
// The typed fields of a TensorProto, brought into the one form that tensors have here.
#include <string.h>

#include "onnx/protobuf/read.h"

// Where ONNX keeps the elements of each type when they are not raw bytes.
typedef struct storage {
    uint32_t field;
    const char *name;
    size_t width;  // bytes per stored number; 0: varint
    int per_value; // stored numbers per element (complex types have two)
} storage;

static storage storage_of(ot_dtype dtype)
{
    static const storage others[] = {
        [OT_F32] = {4, "float_data", 4, 1},   [OT_C64] = {4, "float_data", 4, 2},
        [OT_F64] = {10, "double_data", 8, 1}, [OT_C128] = {10, "double_data", 8, 2},
        [OT_U32] = {11, "uint64_data", 0, 1}, [OT_U64] = {11, "uint64_data", 0, 1},
        [OT_I64] = {7, "int64_data", 0, 1},   [OT_STRING] = {6, "string_data", 0, 1},
    };
    const bool is_other = (size_t)dtype < OT_COUNT(others) && others[dtype].name;

    return is_other ? others[dtype] : (storage){5, "int32_data", 0, 1};
}

bool ot__is_float_storage(ot_dtype dtype)
{
    return storage_of(dtype).width > 0;
}

static bool is_six_bits(ot_dtype dtype)
{
    return dtype == OT_F6E2M3 || dtype == OT_F6E3M2;
}

// Numbers that the field must hold: below 8 bits several elements share a packed byte, except
// six-bit ones.
ot_status ot__stored_count(ot_dtype dtype, const ot_shape *shape, int64_t *count)
{
    size_t n_bytes;

    if (!ot__shape_count(shape, count) ||
        (dtype != OT_STRING && !ot__dtype_bytes(dtype, *count, &n_bytes)))
        return ot__error(OT_ERR_FORMAT, "the elements have no size in bytes");
    if (dtype == OT_STRING || ot_dtype_size(dtype) > 0 || is_six_bits(dtype)) {
        if (ot__mul_overflows(*count, storage_of(dtype).per_value, count))
            return ot__error(OT_ERR_FORMAT, "the elements cannot be counted");
        return OT_OK;
    }
    *count = (int64_t)n_bytes;
    return OT_OK;
}

static int64_t numbers_in(const ot__field *field, const storage *s)
{
    const uint8_t *at = field->data, *end = at + field->size;
    int64_t n = 0;

    if (field->wire_type != OT_WIRE_BYTES || s->field == storage_of(OT_STRING).field)
        return 1;
    if (s->width > 0)
        return (int64_t)(field->size / s->width);
    for (; at < end; at++)
        n += *at < 0x80; // the last byte of a varint
    return n;
}

ot_status ot__check_element_count(ot_dtype dtype, const ot_shape *shape, ot__bytes message)
{
    const storage s = storage_of(dtype);
    ot__walk walk = ot__walk_over(message);
    int64_t expected, found = 0;
    ot__field field;

    OT_TRY(ot__stored_count(dtype, shape, &expected));
    while (ot__wire_next(&walk, &field))
        if (field.number == s.field)
            found += numbers_in(&field, &s);
    if (found != expected)
        return ot__error(OT_ERR_FORMAT, "%s has %" PRId64 " entries, expected %" PRId64 " for %s",
                         s.name, found, expected, ot_dtype_name(dtype));
    return OT_OK;
}

ot_status ot__take_integer(ot__element_sink *to, uint64_t value)
{
    const ot_dtype dtype = to->tensor->dtype;
    size_t size = ot_dtype_size(dtype);
    uint8_t *data = to->tensor->data;

    if (is_six_bits(dtype)) {
        size_t bit = (size_t)to->index * 6;

        if (value > 63)
            return ot__error(OT_ERR_FORMAT, "entry %" PRId64 " does not fit 6 bits", to->index);
        data[bit / 8] |= (uint8_t)(value << bit % 8);
        if (bit % 8 > 2)
            data[bit / 8 + 1] |= (uint8_t)(value >> (8 - bit % 8));
        to->index++;
        return OT_OK;
    }
    if (size == 0)
        size = 1; // packed bytes
    // Negative numbers come sign-extended to 64 bits; unsigned types and bit patterns come as they
    // are.
    if (size < 8 && value >> (8 * size) != 0 && ~value >> (8 * size - 1) != 0)
        return ot__error(OT_ERR_FORMAT, "entry %" PRId64 ", %" PRId64 ", does not fit %s",
                         to->index, (int64_t)value, ot_dtype_name(dtype));
    memcpy(data + to->offset, &value, size);
    to->offset += size;
    to->index++;
    return OT_OK;
}

ot_status ot__take_float(ot__element_sink *to, double value)
{
    char *at = (char *)to->tensor->data + to->offset;
    const float as_f32 = (float)value;

    if (to->tensor->dtype == OT_F64 || to->tensor->dtype == OT_C128) {
        memcpy(at, &value, sizeof value);
        to->offset += sizeof value;
    } else {
        memcpy(at, &as_f32, sizeof as_f32);
        to->offset += sizeof as_f32;
    }
    to->index++;
    return OT_OK;
}

ot_status ot__take_string(ot__element_sink *to, ot__string string)
{
    memcpy((char *)to->tensor->data + to->offset, &string, sizeof string);
    to->offset += sizeof string;
    to->index++;
    return OT_OK;
}

static ot_status take_varints(ot__element_sink *to, const ot__field *field)
{
    const uint8_t *at = field->data, *end = at + field->size;
    uint64_t value;

    while (at < end) {
        if (!ot__wire_varint(&at, end, &value))
            return ot__error(OT_ERR_FORMAT, "malformed number");
        OT_TRY(ot__take_integer(to, value));
    }
    return OT_OK;
}

static ot_status take_field(ot__element_sink *to, const storage *s, const ot__field *field)
{
    if (to->tensor->dtype == OT_STRING)
        return ot__take_string(to, (ot__string){field->data, field->size});
    if (s->width == 0)
        return take_varints(to, field);
    memcpy((char *)to->tensor->data + to->offset, field->data, field->size);
    to->offset += field->size;
    return OT_OK;
}

ot_status ot__read_elements(ot_tensor *tensor, ot__bytes message)
{
    const storage s = storage_of(tensor->dtype);
    ot__walk walk = ot__walk_over(message);
    ot__element_sink to = {.tensor = tensor};
    ot__field field;

    while (ot__wire_next(&walk, &field))
        if (field.number == s.field)
            OT_TRY(take_field(&to, &s, &field));
    return OT_OK;
}
