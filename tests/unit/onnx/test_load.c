// SPDX-License-Identifier: Apache-2.0
#include "unit/onnx/folder.h"

static const char *const text = "g (float[2] x) => (float[2] y) { y = Neg (x) }";

static void the_form_is_told_by_the_bytes(void **state)
{
    ot_model *model, *again;
    ot__buf bytes = {0};

    (void)state;
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &model), OT_OK);
    assert_int_equal(ot__onnx_write(model, &bytes), OT_OK);
    assert_int_equal(ot_model_load_buffer(bytes.data, bytes.length, NULL, &again), OT_OK);
    assert_string_equal(again->graph->name, "g");
    ot_model_destroy(model);
    ot_model_destroy(again);
    write_file("a.model", text, strlen(text));
    write_file("b.model", bytes.data, bytes.length);
    ot__buf_deinit(&bytes);
    assert_int_equal(ot_model_load(in_folder("a.model"), NULL, &model), OT_OK);
    ot_model_destroy(model);
    assert_int_equal(ot_model_load(in_folder("b.model"), NULL, &model), OT_OK);
    ot_model_destroy(model);
}

static void text_may_start_with_space_and_comments(void **state)
{
    const char *commented =
        "\n  # a comment\n <ir_version: 8, opset_import: [\"\" : 17]> g () => () {}";
    ot_model *model;

    (void)state;
    assert_int_equal(ot_model_load_buffer(commented, strlen(commented), NULL, &model), OT_OK);
    assert_int_equal(model->ir_version, 8);
    ot_model_destroy(model);
}

static void bytes_in_memory_are_copied(void **state)
{
    // ir_version 10; graph: node (input x, output y, op_type Neg), input x, output y
    const char file[] = "\x08\x0a\x3a\x17\x0a\x0b\x0a\x01x\x12\x01y\x22\x03Neg"
                        "\x5a\x03\x0a\x01x\x62\x03\x0a\x01y";
    const size_t n = sizeof file - 1;
    char *gone = malloc(n);
    ot_model *model;

    (void)state;
    memcpy(gone, file, n);
    if (ot_model_load_buffer(gone, n, NULL, &model) != OT_OK)
        fail_msg("%s", ot_error_message());
    free(gone);
    assert_string_equal(model->graph->nodes[0]->op_type, "Neg");
    ot_model_destroy(model);
}

static void messages_start_with_the_file(void **state)
{
    ot_model *model;

    (void)state;
    assert_int_equal(ot_model_load(in_folder("none.onnx"), NULL, &model), OT_ERR_IO);
    assert_message_has("none.onnx");
    assert_null(model);
    write_file("bad.onnx", "\xff\xff\xff", 3);
    assert_int_equal(ot_model_load(in_folder("bad.onnx"), NULL, &model), OT_ERR_FORMAT);
    assert_message_has("bad.onnx: malformed or truncated field");
    write_file("empty.onnx", "", 0);
    assert_int_equal(ot_model_load(in_folder("empty.onnx"), NULL, &model), OT_ERR_FORMAT);
    assert_message_has("empty.onnx: is empty, expected a model");
    assert_int_equal(ot_model_load(folder, NULL, &model), OT_ERR_IO);
}

static void loading_survives_every_failing_allocation(void **state)
{
    ot_model *model;
    int64_t n = 0;
    ot_status st;

    (void)state;
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &model), OT_OK);
    assert_int_equal(ot_model_save(model, in_folder("m.onnx"), NULL), OT_OK);
    ot_model_destroy(model);
    do {
        ot__alloc_fail_after(n++);
        st = ot_model_load(in_folder("m.onnx"), NULL, &model);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && !model));
    } while (st != OT_OK);
    assert_true(n > 10);
    ot_model_destroy(model);
}

static void an_input_without_end_stops_at_the_memory_limit(void **state)
{
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_model *model;

    (void)state;
    options.max_memory = 1 << 20;
    assert_int_equal(ot_model_load("/dev/zero", &options, &model), OT_ERR_NO_MEMORY);
    assert_null(model);
    assert_message_has("/dev/zero: has no end within 1048576 bytes");
}

// In memory a small node takes many times its bytes in a file.
static void many_small_nodes_are_within_the_memory_limit(void **state)
{
    enum { N_NODES = 200000 };
    ot__buf bytes = {0}, file = {0};
    ot_model *model, *again;

    (void)state;
    ot__buf_text(&bytes, "g (float x) => (float y0) {");
    for (int i = 0; i < N_NODES; i++)
        ot__buf_printf(&bytes, "y%d=Neg(x)", i);
    ot__buf_text(&bytes, "}");
    assert_false(bytes.failed);
    assert_int_equal(ot_model_load_buffer(bytes.data, bytes.length, NULL, &model), OT_OK);
    assert_int_equal(ot__onnx_write(model, &file), OT_OK);
    ot_model_destroy(model);
    assert_int_equal(ot_model_load_buffer(file.data, file.length, NULL, &again), OT_OK);
    assert_int_equal(ot_model_node_count(again), N_NODES);
    ot_model_destroy(again);
    ot__buf_deinit(&bytes);
    ot__buf_deinit(&file);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(the_form_is_told_by_the_bytes),
        TEST(text_may_start_with_space_and_comments),
        TEST(bytes_in_memory_are_copied),
        TEST(messages_start_with_the_file),
        TEST(loading_survives_every_failing_allocation),
        TEST(an_input_without_end_stops_at_the_memory_limit),
        TEST(many_small_nodes_are_within_the_memory_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
