// SPDX-License-Identifier: Apache-2.0
// Protobuf messages for tests, put together field by field.
#ifndef OT_TESTS_WIRE_BUILD_H
#define OT_TESTS_WIRE_BUILD_H

#include "unit/graph/model_text.h"

enum { WIRE_MAX = 4096 };

typedef struct message {
    size_t n;
    uint8_t bytes[WIRE_MAX];
} message;

static inline void put_byte(message *m, unsigned byte)
{
    assert_true(m->n < WIRE_MAX);
    m->bytes[m->n++] = (uint8_t)byte;
}

static inline void put_varint(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(m, (unsigned)(value & 0x7f) | 0x80);
    put_byte(m, (unsigned)value);
}

static inline void put_int(message *m, unsigned field, int64_t value)
{
    put_varint(m, field << 3);
    put_varint(m, (uint64_t)value);
}

static inline void put_bytes(message *m, unsigned field, const void *bytes, size_t n)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, n);
    for (size_t i = 0; i < n; i++)
        put_byte(m, ((const uint8_t *)bytes)[i]);
}

static inline void put_text(message *m, unsigned field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static inline void put_message(message *m, unsigned field, const message *inner)
{
    put_bytes(m, field, inner->bytes, inner->n);
}

// ---- ONNX ----

// The fields of a TensorProto without elements.
static inline message tensor(const char *name, int dtype, int n_dims, const int64_t *dims)
{
    message m = {0};

    for (int i = 0; i < n_dims; i++)
        put_int(&m, 1, dims[i]);
    put_int(&m, 2, dtype);
    put_text(&m, 8, name);
    return m;
}

static inline message value_info(const char *name)
{
    message m = {0};

    put_text(&m, 1, name);
    return m;
}

// A node with one input and one output; "" for none.
static inline message node(const char *op_type, const char *input, const char *output)
{
    message m = {0};

    if (*input)
        put_text(&m, 1, input);
    if (*output)
        put_text(&m, 2, output);
    put_text(&m, 4, op_type);
    return m;
}

// Input x, y = Neg (x), output y; more can be put in.
static inline message graph(void)
{
    const message x = value_info("x"), y = value_info("y"), neg = node("Neg", "x", "y");
    message m = {0};

    put_message(&m, 1, &neg);
    put_text(&m, 2, "g");
    put_message(&m, 11, &x);
    put_message(&m, 12, &y);
    return m;
}

static inline message model(const message *graph_message)
{
    message m = {0}, opset = {0};

    put_text(&opset, 1, "");
    put_int(&opset, 2, 21);
    put_int(&m, 1, 10);
    put_message(&m, 7, graph_message);
    put_message(&m, 8, &opset);
    return m;
}

static inline message model_with_initializer(const message *initializer)
{
    message g = graph();

    put_message(&g, 5, initializer);
    return model(&g);
}

static inline message model_with_node(const message *added)
{
    message g = graph();

    put_message(&g, 1, added);
    return model(&g);
}

// y2 = Op (x) with this attribute
static inline message model_with_attr(const message *attr)
{
    message op = node("Op", "x", "y2");

    put_text(&op, 3, "the op");
    put_message(&op, 5, attr);
    return model_with_node(&op);
}

static inline ot_model *read_message(const message *m)
{
    ot_model *out;

    if (ot__onnx_read(m->bytes, m->n, NULL, "file.onnx", NULL, &out) != OT_OK)
        fail_msg("%s", ot_error_message());
    return out;
}

// Refused with this status, by a message of one line that starts with the file and has this part.
static inline void assert_refused(const message *m, ot_status status, const char *part)
{
    ot_model *out;

    assert_int_equal(ot__onnx_read(m->bytes, m->n, NULL, "file.onnx", NULL, &out), status);
    assert_null(out);
    assert_true(ot__starts_with(ot_error_message(), "file.onnx: "));
    assert_null(strchr(ot_error_message(), '\n'));
    assert_message_has(part);
}

#endif
