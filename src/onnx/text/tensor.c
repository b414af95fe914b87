// SPDX-License-Identifier: Apache-2.0
// Tensors: float[2] {1,2.5}. Numbers are those that protobuf's typed fields would hold: f16, bf16
// and smaller floats as bit patterns, elements below 8 bits as the bytes they share, complex
// numbers as two.
#include <string.h>

#include "onnx/text/parse.h"
#include "onnx/text/print.h"

// ---- reading ----

static ot_status parse_element(ot__parser *p, ot__element_sink *to)
{
    const ot_dtype dtype = to->tensor->dtype;
    ot__number number;
    ot__string string;
    int64_t integer;
    double value;

    if (dtype == OT_STRING) {
        OT_TRY(ot__parse_quoted(p, &string));
        return ot__take_string(to, string);
    }
    OT_TRY(ot__parse_number(p, &number));
    if (!ot__is_float_storage(dtype)) {
        OT_TRY(ot__number_as_integer(p, &number, &integer));
        return ot__parse_locate(p, ot__take_integer(to, (uint64_t)integer));
    }
    if (dtype == OT_F32 || dtype == OT_C64)
        OT_TRY(ot__number_as_f32(p, &number, &value));
    else
        OT_TRY(ot__number_as_float(p, &number, &value));
    return ot__take_float(to, value);
}

static ot_status parse_elements(ot__parser *p, ot_tensor *tensor, int64_t expected)
{
    ot__element_sink to = {.tensor = tensor};

    if (ot__parse_accept(p, '}'))
        return expected == 0 ? OT_OK
                             : ot__parse_error(p, "no elements, expected %" PRId64, expected);
    do {
        if (to.index == expected)
            return ot__parse_error(p, "more elements than the %" PRId64 " of the shape", expected);
        OT_TRY(parse_element(p, &to));
    } while (ot__parse_accept(p, ','));
    if (to.index < expected)
        return ot__parse_error(p, "%" PRId64 " elements, expected %" PRId64, to.index, expected);
    return ot__parse_expect(p, '}');
}

static ot_status parse_external(ot__parser *p, const ot_value *type, const char *name,
                                ot_tensor **out)
{
    const size_t max_entries = 64; // there are five keys
    const char *entries[2 * 64];
    size_t n = 0;
    ot_status st;

    do {
        if (n == max_entries)
            return ot__parse_error(p, "more than %zu entries", max_entries);
        OT_TRY(ot__parse_text(p, &entries[2 * n]));
        OT_TRY(ot__parse_expect(p, ':'));
        OT_TRY(ot__parse_text(p, &entries[2 * n + 1]));
        n++;
    } while (ot__parse_accept(p, ','));
    OT_TRY(ot__parse_expect(p, ']'));
    st = ot__read_external(&p->reader, entries, n, type->dtype, &type->shape, out);
    return ot__parse_locate(p, ot__error_prefix(st, "tensor '%s'", name));
}

ot_status ot__parse_tensor(ot__parser *p, const ot_value *type, const char *name, ot_tensor **out)
{
    int64_t expected;
    bool has_elements;

    *out = NULL;
    if (type->kind != OT_VALUE_TENSOR || !type->has_shape || !ot__shape_is_static(&type->shape))
        return ot__parse_error(p, "elements of '%s' need a type with a shape of numbers", name);
    if (ot__parse_accept(p, '['))
        return parse_external(p, type, name, out);
    if (ot__stored_count(type->dtype, &type->shape, &expected) != OT_OK)
        return ot__parse_error(p, "the shape of '%s' has more elements than can be counted", name);
    has_elements = ot__parse_accept(p, '{');
    // Every element takes a character: nothing is allocated for what cannot be there.
    if (expected > p->end - p->at || (!has_elements && expected > 0))
        return ot__parse_error(p, "'%s' has no %" PRId64 " elements", name, expected);
    *out = ot__model_tensor_new(p->model, type->dtype, &type->shape);
    OT_TRY(ot__made(*out));
    return has_elements ? parse_elements(p, *out, expected) : OT_OK;
}

// ---- writing ----

static uint64_t unsigned_at(const uint8_t *data, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, data, size);
    return value;
}

static int64_t signed_at(const uint8_t *data, size_t size)
{
    uint64_t value = unsigned_at(data, size);
    unsigned unused = (unsigned)(64 - 8 * size);

    if (unused > 0 && value >> (8 * size - 1))
        value |= UINT64_MAX << (8 * size);
    return (int64_t)value;
}

static void print_float(ot__buf *out, const uint8_t *data, bool is_f32)
{
    float f;
    double d;

    memcpy(&f, data, sizeof f);
    if (is_f32)
        d = f;
    else
        memcpy(&d, data, sizeof d);
    ot__buf_float(out, d, is_f32);
}

static void print_element(ot__buf *out, const ot_tensor *tensor, int64_t index)
{
    const uint8_t *data = tensor->data;
    size_t size = OT_MAX(ot_dtype_size(tensor->dtype), (size_t)1), at = (size_t)index;

    switch (tensor->dtype) {
    case OT_STRING: {
        const ot__string *string = (const ot__string *)tensor->data + at;

        ot__print_quoted(out, string->data, string->size);
        break;
    }
    case OT_F32:
    case OT_C64:
        print_float(out, data + at * sizeof(float), true);
        break;
    case OT_F64:
    case OT_C128:
        print_float(out, data + at * sizeof(double), false);
        break;
    case OT_I8:
    case OT_I16:
    case OT_I32:
    case OT_I64:
        ot__buf_printf(out, "%" PRId64, signed_at(data + at * size, size));
        break;
    case OT_F6E2M3:
    case OT_F6E3M2: {
        unsigned low = data[at * 6 / 8], shift = (unsigned)(at * 6 % 8);
        unsigned high = shift > 2 ? data[at * 6 / 8 + 1] : 0;

        ot__buf_printf(out, "%u", (low | high << 8) >> shift & 63);
        break;
    }
    default:
        ot__buf_printf(out, "%" PRIu64, unsigned_at(data + at * size, size));
        break;
    }
}

static void print_elements(ot__printer *printer, const ot_tensor *tensor)
{
    int64_t count = 0;
    int64_t shown;

    (void)ot__stored_count(tensor->dtype, &tensor->shape, &count); // a tensor's shape has a count
    shown = printer->max_elements > 0 ? OT_MIN(count, printer->max_elements) : count;
    ot__buf_text(printer->out, "{");
    for (int64_t i = 0; i < shown && !printer->out->failed; i++) {
        if (i > 0)
            ot__buf_text(printer->out, ",");
        print_element(printer->out, tensor, i);
    }
    ot__buf_text(printer->out, shown < count ? ",...}" : "}");
}

void ot__print_tensor(ot__printer *printer, const ot_tensor *tensor, const char *name, bool equals)
{
    ot__buf_text(printer->out, ot__dtype_onnx_name(tensor->dtype));
    for (int i = 0; i < tensor->shape.ndim; i++)
        ot__buf_printf(printer->out, "%s%" PRId64, i ? "," : "[", tensor->shape.dim[i]);
    if (tensor->shape.ndim > 0)
        ot__buf_text(printer->out, "]");
    if (*name) {
        ot__buf_text(printer->out, " ");
        ot__print_id(printer->out, name);
    }
    ot__buf_text(printer->out, equals ? " = " : " ");
    print_elements(printer, tensor);
}
