// SPDX-License-Identifier: Apache-2.0
// Types: float[N,3], seq(float[]), map(int64, string), optional(...), sparse_tensor(float[2,3]),
// opaque(domain,name).
#include <string.h>

#include "onnx/text/parse.h"
#include "onnx/text/print.h"

// Field numbers of TypeProto and of the messages in it.
enum { TENSOR = 1, SEQUENCE = 4, MAP = 5, OPAQUE = 7, SPARSE = 8, OPTIONAL = 9 };

static const struct {
    const char *word;
    uint32_t field;
} constructors[] = {
    {"seq", SEQUENCE},         {"map", MAP},       {"optional", OPTIONAL},
    {"sparse_tensor", SPARSE}, {"opaque", OPAQUE},
};

static bool word_dtype(ot__bytes word, ot_dtype *dtype)
{
    char name[32];

    if (word.size == 0 || word.size >= sizeof name)
        return false;
    memcpy(name, word.data, word.size);
    name[word.size] = '\0';
    return ot__dtype_from_onnx_name(name, dtype);
}

static uint32_t constructor_field(ot__bytes word)
{
    for (size_t i = 0; i < OT_COUNT(constructors); i++)
        if (ot__word_is(word, constructors[i].word))
            return constructors[i].field;
    return 0;
}

bool ot__is_type_word(ot__bytes word)
{
    ot_dtype dtype;

    return word_dtype(word, &dtype) || constructor_field(word) != 0;
}

bool ot__parse_is_type(ot__parser *p)
{
    return ot__is_type_word(ot__parse_peek_word(p));
}

// ---- reading ----

static ot_status parse_dim(ot__parser *p, int64_t *dim)
{
    const char *name;

    *dim = OT_DIM_UNKNOWN;
    if (ot__parse_accept(p, '?'))
        return OT_OK;
    if (ot__parse_peek(p) != '"' && ot__parse_peek_word(p).size == 0) {
        OT_TRY(ot__parse_integer(p, dim));
        if (*dim < -1)
            return ot__parse_error(p, "size %" PRId64 " is negative", *dim);
        if (*dim == -1)
            *dim = OT_DIM_UNKNOWN;
        return OT_OK;
    }
    OT_TRY(ot__parse_name(p, &name));
    *dim = ot__dim_symbol(p->model, name);
    return *dim == OT_DIM_UNKNOWN && *name ? OT_ERR_NO_MEMORY : OT_OK;
}

// float: a scalar; float[]: of unknown rank; float[2,N]
static ot_status parse_tensor_type(ot__parser *p, ot_value *value)
{
    ot__bytes word = ot__parse_peek_word(p);

    if (!word_dtype(word, &value->dtype))
        return ot__parse_error(p, "expected the name of an element type");
    p->at += word.size;
    value->kind = OT_VALUE_TENSOR;
    value->shape = (ot_shape){0};
    value->has_shape = !ot__parse_accept(p, '[');
    if (value->has_shape || ot__parse_accept(p, ']'))
        return OT_OK;
    value->has_shape = true;
    do {
        if (value->shape.ndim == OT_MAX_NDIM)
            return ot__parse_error(p, "more than %d axes", OT_MAX_NDIM);
        OT_TRY(parse_dim(p, &value->shape.dim[value->shape.ndim++]));
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, ']');
}

static ot_status parse_type_bytes(ot__parser *p, ot__buf *out);

// opaque(), opaque(name), opaque(domain,name); the domain may have points
static ot_status parse_opaque(ot__parser *p, ot__wire *out)
{
    ot__buf path = {0};
    const char *name = NULL;
    ot_status st = OT_OK;

    if (ot__parse_peek(p) == ')')
        return OT_OK;
    do {
        st = ot__parse_word(p, &name);
        ot__buf_printf(&path, "%s%s", path.length ? "." : "", st == OT_OK ? name : "");
    } while (st == OT_OK && ot__parse_accept(p, '.'));
    OT_THEN(st, ot__buf_status(&path));
    if (st == OT_OK && ot__parse_accept(p, ',')) {
        st = ot__parse_word(p, &name);
        ot__wire_put_name(out, 1, path.data);
        ot__wire_put_name(out, 2, st == OT_OK ? name : "");
    } else if (st == OT_OK) {
        ot__wire_put_name(out, 2, path.data);
    }
    ot__buf_deinit(&path);
    return st;
}

static ot_status parse_key_type(ot__parser *p, ot__wire *out)
{
    ot__bytes word = ot__parse_peek_word(p);
    ot_dtype dtype;

    if (!word_dtype(word, &dtype))
        return ot__parse_error(p, "expected the name of an element type");
    p->at += word.size;
    ot__wire_put_int(out, 1, dtype);
    return ot__parse_expect(p, ',');
}

// What stands in the parentheses of a constructor, as the message of that field.
static ot_status parse_constructed(ot__parser *p, uint32_t field, ot__buf *out)
{
    ot__wire wire = ot__wire_to(out);
    ot__buf inner = {0};
    ot_value sparse = {0};
    ot_status st = OT_OK;

    switch (field) {
    case OPAQUE:
        st = parse_opaque(p, &wire);
        break;
    case SPARSE: // the same message as a tensor's type
        st = parse_tensor_type(p, &sparse);
        if (st == OT_OK)
            ot__write_tensor_type(&wire, &(ot__typed_value){p->model, &sparse});
        break;
    case MAP:
        st = parse_key_type(p, &wire);
        // the value type is the second field
        OT_THEN(st, parse_type_bytes(p, &inner));
        if (st == OT_OK)
            ot__wire_put_bytes(&wire, 2, inner.data, inner.length);
        break;
    default:
        st = parse_type_bytes(p, &inner);
        if (st == OT_OK)
            ot__wire_put_bytes(&wire, 1, inner.data, inner.length);
        break;
    }
    ot__buf_deinit(&inner);
    return st == OT_OK ? wire.status : st;
}

static ot_status parse_type_bytes_inside(ot__parser *p, ot__buf *out)
{
    ot__bytes word = ot__parse_peek_word(p);
    uint32_t field = constructor_field(word);
    ot__wire wire = ot__wire_to(out);
    ot__buf inner = {0};
    ot_value tensor = {0};
    ot_status st;

    if (field == 0) {
        OT_TRY(parse_tensor_type(p, &tensor));
        ot__wire_put_message(&wire, TENSOR, ot__write_tensor_type,
                             &(ot__typed_value){p->model, &tensor});
        return wire.status;
    }
    p->at += word.size;
    OT_TRY(ot__parse_expect(p, '('));
    st = parse_constructed(p, field, &inner);
    OT_THEN(st, ot__parse_expect(p, ')'));
    if (st == OT_OK)
        ot__wire_put_bytes(&wire, field, inner.data, inner.length);
    ot__buf_deinit(&inner);
    return st == OT_OK ? wire.status : st;
}

static ot_status parse_type_bytes(ot__parser *p, ot__buf *out)
{
    OT_TRY(ot__parse_enter(p));
    OT_TRY(parse_type_bytes_inside(p, out));
    p->depth--;
    return OT_OK;
}

ot_status ot__parse_type(ot__parser *p, ot_value *value, ot__bytes *bytes)
{
    ot__buf buf = {0};
    ot__bytes kept;
    ot_status st;

    // By far the most types are tensors', which need no detour.
    if (!bytes && constructor_field(ot__parse_peek_word(p)) == 0)
        return parse_tensor_type(p, value);
    st = parse_type_bytes(p, &buf);
    st = ot__keep_bytes(&p->reader, st, &buf, &kept);
    OT_THEN(st, ot__read_type(&p->reader, kept, value));
    if (bytes)
        *bytes = kept;
    return st;
}

// ---- writing ----

static void print_dim(ot__buf *out, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__field field;

    while (ot__wire_next(&walk, &field)) {
        const uint8_t *p = field.data;
        uint64_t value;

        if (field.number == 1 && ot__wire_varint(&p, field.data + field.size, &value)) {
            ot__buf_printf(out, "%" PRId64, (int64_t)value);
            return;
        }
        if (field.number == 2 && field.size > 0) {
            ot__print_name(out, field.data, field.size);
            return;
        }
    }
    ot__buf_text(out, "?");
}

// A tensor's or a sparse tensor's type.
static void print_tensor_type(ot__buf *out, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__bytes shape = {0};
    ot__bytes dim;
    uint64_t dtype = 0;
    ot__field field;
    int n = 0;

    while (ot__wire_next(&walk, &field)) {
        const uint8_t *p = field.data;

        if (field.number == 1)
            ot__wire_varint(&p, field.data + field.size, &dtype);
        else if (field.number == 2)
            shape = (ot__bytes){field.data, field.size};
    }
    ot__buf_text(out, ot__dtype_onnx_name((ot_dtype)dtype));
    if (!shape.data)
        ot__buf_text(out, "[]");
    for (walk = ot__walk_over(shape); ot__wire_next_of(&walk, 1, &dim);) {
        ot__buf_text(out, n++ ? "," : "[");
        print_dim(out, dim);
    }
    if (n > 0)
        ot__buf_text(out, "]");
}

static void print_opaque(ot__buf *out, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__field field;

    while (ot__wire_next(&walk, &field)) {
        ot__buf_append(out, field.data, field.size);
        if (field.number == 1 && field.size > 0)
            ot__buf_text(out, ",");
    }
}

static void print_element_type(ot__buf *out, uint32_t constructor, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__field field;

    while (ot__wire_next(&walk, &field)) {
        const uint8_t *p = field.data;
        uint64_t dtype;

        if (constructor == MAP && field.number == 1 &&
            ot__wire_varint(&p, field.data + field.size, &dtype))
            ot__buf_printf(out, "%s, ", ot__dtype_onnx_name((ot_dtype)dtype));
        else if (field.wire_type == OT_WIRE_BYTES)
            ot__print_type(out, (ot__bytes){field.data, field.size});
    }
}

void ot__print_type(ot__buf *out, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__field field;

    while (ot__wire_next(&walk, &field)) {
        const ot__bytes inner = {field.data, field.size};

        if (field.number == TENSOR)
            print_tensor_type(out, inner);
        for (size_t i = 0; i < OT_COUNT(constructors); i++) {
            if (constructors[i].field != field.number)
                continue;
            ot__buf_printf(out, "%s(", constructors[i].word);
            if (field.number == OPAQUE)
                print_opaque(out, inner);
            else if (field.number == SPARSE)
                print_tensor_type(out, inner);
            else
                print_element_type(out, field.number, inner);
            ot__buf_text(out, ")");
        }
    }
}
