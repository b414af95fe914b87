// SPDX-License-Identifier: Apache-2.0
#include "unit/onnx/wire_build.h"

static void assert_guarded(const message *m, const ot_model_options *options, ot_status status,
                           const char *part)
{
    assert_int_equal(ot__onnx_guard(m->bytes, m->n, options, "file.onnx"), status);
    assert_true(ot__starts_with(ot_error_message(), "file.onnx: "));
    assert_message_has(part);
}

static void a_good_model_passes(void **state)
{
    const message g = graph(), m = model(&g);

    (void)state;
    assert_int_equal(ot__onnx_guard(m.bytes, m.n, NULL, "file.onnx"), OT_OK);
}

static void every_truncation_is_refused_or_a_whole_message(void **state)
{
    const message g = graph(), m = model(&g);
    int n_passed = 0;

    (void)state;
    for (size_t n = 0; n < m.n; n++)
        n_passed += ot__onnx_guard(m.bytes, n, NULL, "file.onnx") == OT_OK;
    assert_int_equal(n_passed, 3); // nothing, ir_version alone, and with the graph
}

static void a_length_past_the_end_is_named_with_its_place(void **state)
{
    message m = {0};

    (void)state;
    put_int(&m, 1, 10);
    put_varint(&m, 7 << 3 | 2);
    put_varint(&m, 1000);
    assert_guarded(&m, NULL, OT_ERR_FORMAT,
                   "malformed or truncated field of ModelProto at byte 2 of 5");
}

static void a_length_that_overflows_is_refused(void **state)
{
    message m = {0};

    (void)state;
    put_varint(&m, 7 << 3 | 2);
    put_varint(&m, UINT64_MAX);
    assert_guarded(&m, NULL, OT_ERR_FORMAT, "malformed or truncated field");
}

static void a_number_longer_than_64_bits_is_refused(void **state)
{
    message m = {0};

    (void)state;
    put_byte(&m, 1 << 3);
    for (int i = 0; i < 9; i++)
        put_byte(&m, 0xff);
    put_byte(&m, 2); // bit 64
    assert_guarded(&m, NULL, OT_ERR_FORMAT, "malformed or truncated field");
}

static void groups_are_refused(void **state)
{
    message m = {0};

    (void)state;
    put_varint(&m, 100 << 3 | 3);
    put_varint(&m, 100 << 3 | 4);
    assert_guarded(&m, NULL, OT_ERR_FORMAT, "malformed or truncated field");
}

static void field_number_zero_is_refused(void **state)
{
    message m = {0};

    (void)state;
    put_int(&m, 0, 1);
    assert_guarded(&m, NULL, OT_ERR_FORMAT, "malformed or truncated field");
}

static void a_wrong_wire_type_names_the_field(void **state)
{
    message m = {0};

    (void)state;
    put_int(&m, 7, 1);
    assert_guarded(&m, NULL, OT_ERR_FORMAT,
                   "graph of ModelProto at byte 0 has wire type 0, expected 2");
}

static void packed_numbers_must_fill_their_field(void **state)
{
    message w = tensor("w", 1, 0, NULL), m;

    (void)state;
    put_bytes(&w, 4, "12345", 5);
    m = model_with_initializer(&w);
    assert_guarded(&m, NULL, OT_ERR_FORMAT, "has 5 bytes, which is not a multiple of 4");
}

static void packed_integers_must_end(void **state)
{
    message w = tensor("w", 6, 0, NULL), m;

    (void)state;
    put_bytes(&w, 5, "\x01\x80", 2);
    m = model_with_initializer(&w);
    assert_guarded(&m, NULL, OT_ERR_FORMAT, "int32_data has a malformed number");
}

static void a_zero_byte_in_a_name_is_refused(void **state)
{
    message g = graph(), m;

    (void)state;
    put_bytes(&g, 10, "a\0b", 3);
    m = model(&g);
    assert_guarded(&m, NULL, OT_ERR_FORMAT, "doc_string of GraphProto");
    assert_message_has("zero byte");
}

// A type nested `depth` sequences deep, as graph input.
static message nested(int depth)
{
    message type = {0}, info = value_info("deep"), g = graph();

    for (int i = 0; i < depth; i++) {
        message element = {0}, outer = {0};

        put_message(&element, 1, &type);
        put_message(&outer, 4, &element);
        type = outer;
    }
    put_message(&info, 2, &type);
    put_message(&g, 11, &info);
    return model(&g);
}

static void nesting_has_a_limit_that_can_be_set(void **state)
{
    const message m = nested(40);
    ot_model_options options = OT_MODEL_OPTIONS_INIT;

    (void)state;
    assert_guarded(&m, NULL, OT_ERR_NO_MEMORY, "messages are nested more than 64 deep");
    options.max_depth = 200;
    assert_int_equal(ot__onnx_guard(m.bytes, m.n, &options, "file.onnx"), OT_OK);
}

static void counts_have_a_limit_that_can_be_set(void **state)
{
    const message bare = node("Op", "", ""), full = node("Op", "x", "z");
    message g = graph(), m;
    ot_model_options options = OT_MODEL_OPTIONS_INIT;

    (void)state;
    for (int i = 0; i < 5; i++)
        put_message(&g, 1, &bare);
    m = model(&g); // 6 nodes, 4 values
    options.max_nodes = 5;
    assert_guarded(&m, &options, OT_ERR_NO_MEMORY, "more than 5 nodes");
    options.max_nodes = 6;
    assert_int_equal(ot__onnx_guard(m.bytes, m.n, &options, "file.onnx"), OT_OK);
    m = model_with_node(&full); // 2 nodes, 6 values
    options.max_nodes = 5;
    assert_guarded(&m, &options, OT_ERR_NO_MEMORY, "more than 5 values");
}

static void memory_has_a_limit_that_can_be_set(void **state)
{
    const int64_t dims[] = {256};
    message w = tensor("w", 1, 1, dims), m;
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_model *out;

    (void)state;
    put_bytes(&w, 9, (uint8_t[1024]){0}, 1024);
    m = model_with_initializer(&w);
    options.max_memory = 100;
    assert_int_equal(ot__onnx_read(m.bytes, m.n, &options, "file.onnx", NULL, &out),
                     OT_ERR_NO_MEMORY);
    assert_null(out);
    assert_message_has("100 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_model_passes),
        cmocka_unit_test(every_truncation_is_refused_or_a_whole_message),
        cmocka_unit_test(a_length_past_the_end_is_named_with_its_place),
        cmocka_unit_test(a_length_that_overflows_is_refused),
        cmocka_unit_test(a_number_longer_than_64_bits_is_refused),
        cmocka_unit_test(groups_are_refused),
        cmocka_unit_test(field_number_zero_is_refused),
        cmocka_unit_test(a_wrong_wire_type_names_the_field),
        cmocka_unit_test(packed_numbers_must_fill_their_field),
        cmocka_unit_test(packed_integers_must_end),
        cmocka_unit_test(a_zero_byte_in_a_name_is_refused),
        cmocka_unit_test(nesting_has_a_limit_that_can_be_set),
        cmocka_unit_test(counts_have_a_limit_that_can_be_set),
        cmocka_unit_test(memory_has_a_limit_that_can_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
