// SPDX-License-Identifier: Apache-2.0
// .ort files of ONNX Runtime's own writer (data/make_ort.py), a small one put together by hand, and
// all of them cut and changed.
#include <stdlib.h>

#include "unit/graph/model_text.h"

static ot_status read_bytes(const ot__buf *bytes, const ot_model_options *options, ot_model **out)
{
    return ot__ort_read(bytes->data, bytes->length, options, "test", out);
}

static void load_bytes(const char *name, ot__buf *out)
{
    char path[512];
    ot__file_map map = {0};

    snprintf(path, sizeof path, "%s/data/%s", OT_TEST_DIR, name);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    ot__buf_append(out, map.data, map.size);
    ot__file_map_close(&map);
}

static ot_model *load(const char *name)
{
    char path[512];
    ot_model *model;

    snprintf(path, sizeof path, "%s/data/%s", OT_TEST_DIR, name);
    if (ot_model_load(path, NULL, &model) != OT_OK)
        fail_msg("%s", ot_error_message());
    return model;
}

static void a_file_with_the_least_that_is_needed_is_read(void **state)
{
    ot_model *model = load("relu.ort");
    ot_dtype dtype;
    ot_shape shape;

    (void)state;
    assert_int_equal(model->ir_version, 8);
    assert_int_equal(ot__model_opset(model, ""), 14);
    assert_int_equal(ot_model_node_count(model), 1);
    assert_string_equal(ot_model_node_operator(model, 0), "Relu");
    assert_string_equal(ot_model_input_name(model, 0), "x");
    assert_string_equal(ot_model_output_name(model, 0), "y");
    assert_int_equal(ot_model_value_info(model, "y", &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F32);
    assert_int_equal(shape.ndim, -1);
    ot_model_destroy(model);
}

// ---- against what ONNX Runtime makes of the same files ----

static void assert_same_names(const ot_model *a, const ot_model *b, ot_value *const *left,
                              ot_value *const *right, int n, int n_right)
{
    assert_int_equal(n, n_right);
    for (int i = 0; i < n; i++) {
        char x[200] = "", y[200] = "";

        assert_int_equal(left[i] == NULL, right[i] == NULL);
        if (!left[i])
            continue;
        assert_string_equal(left[i]->name, right[i]->name);
        // Only inputs and outputs of the graph have types in the runtime's .onnx files.
        if (right[i]->kind == OT_VALUE_UNTYPED)
            continue;
        assert_int_equal(left[i]->kind, right[i]->kind);
        assert_int_equal(left[i]->dtype, right[i]->dtype);
        assert_string_equal(ot__dims_text(a, &left[i]->shape, x, sizeof x),
                            ot__dims_text(b, &right[i]->shape, y, sizeof y));
    }
}

static void assert_same_tensor(const ot_tensor *a, const ot_tensor *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_true(ot__shape_equal(&a->shape, &b->shape));
    assert_int_equal(a->n_bytes, b->n_bytes);
    if (a->dtype != OT_STRING) {
        assert_memory_equal(a->data, b->data, a->n_bytes);
        return;
    }
    for (size_t i = 0; i < a->n_bytes / sizeof(ot__string); i++) {
        const ot__string *x = (const ot__string *)a->data + i, *y = (const ot__string *)b->data + i;

        assert_int_equal(x->size, y->size);
        assert_memory_equal(x->data, y->data, x->size);
    }
}

static void assert_same_graph(const ot_graph *a, const ot_graph *b);

static void assert_same_attr(const ot_attr *a, const ot_attr *b)
{
    assert_non_null(a);
    assert_int_equal(a->kind, b->kind);
    assert_true(a->f == b->f);
    assert_int_equal(a->i, b->i);
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->s.size, b->s.size);
    if (a->s.size > 0)
        assert_memory_equal(a->s.data, b->s.data, a->s.size);
    for (int i = 0; a->kind == OT_ATTR_INTS && i < a->n; i++)
        assert_int_equal(a->ints[i], b->ints[i]);
    if (a->kind == OT_ATTR_GRAPH)
        assert_same_graph(a->g, b->g);
}

static void assert_same_node(const ot_node *a, const ot_node *b)
{
    assert_string_equal(a->op_type, b->op_type);
    assert_string_equal(a->domain, b->domain);
    assert_string_equal(a->name, b->name);
    assert_same_names(a->graph->model, b->graph->model, a->inputs, b->inputs, a->n_inputs,
                      b->n_inputs);
    assert_same_names(a->graph->model, b->graph->model, a->outputs, b->outputs, a->n_outputs,
                      b->n_outputs);
    assert_int_equal(a->n_attrs, b->n_attrs);
    for (int i = 0; i < b->n_attrs; i++)
        assert_same_attr(ot__node_attr(a, b->attrs[i]->name), b->attrs[i]);
}

static void assert_same_graph(const ot_graph *a, const ot_graph *b)
{
    assert_same_names(a->model, b->model, a->inputs, b->inputs, a->n_inputs, b->n_inputs);
    assert_same_names(a->model, b->model, a->outputs, b->outputs, a->n_outputs, b->n_outputs);
    assert_int_equal(a->n_nodes, b->n_nodes);
    for (int i = 0; i < b->n_nodes; i++) {
        const ot_value *made = b->nodes[i]->outputs[0];

        assert_same_node(ot__graph_find(a, made->name)->producer, b->nodes[i]);
    }
    assert_int_equal(a->n_initializers, b->n_initializers);
    for (int i = 0; i < b->n_initializers; i++)
        assert_same_tensor(ot__graph_find(a, b->initializers[i]->name)->constant,
                           b->initializers[i]->constant);
}

static void files_of_onnx_runtime_hold_what_it_finds_in_them(void **state)
{
    static const char *const names[] = {"training", "optimizer", "parts"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        char ort[64], onnx[64];
        ot_model *model, *expected;

        snprintf(ort, sizeof ort, "%s.ort", names[i]);
        snprintf(onnx, sizeof onnx, "%s.converted.onnx", names[i]);
        model = load(ort);
        expected = load(onnx);
        assert_same_graph(model->graph, expected->graph);
        assert_string_equal(model->producer_name, expected->producer_name);
        assert_string_equal(model->doc, expected->doc);
        assert_int_equal(model->n_metadata, expected->n_metadata);
        ot_model_destroy(model);
        ot_model_destroy(expected);
    }
}

static void nodes_come_in_an_order_in_which_they_can_run(void **state)
{
    // In the file the fused node, which has the highest index, stands last.
    ot_model *model = load("training.ort");

    (void)state;
    assert_string_equal(ot_model_node_operator(model, 0), "com.microsoft.FusedGemm");
    ot_model_destroy(model);
}

static void model_strings_and_metadata_are_read(void **state)
{
    ot_model *model = load("parts.ort");

    (void)state;
    assert_string_equal(model->doc, "parts");
    assert_int_equal(model->model_version, 3);
    assert_string_equal(ot_model_metadata(model, "author"), "nobody");
    assert_int_equal(ot__graph_find(model->graph, "s")->kind, OT_VALUE_SEQUENCE);
    ot_model_destroy(model);
}

static void a_version_that_the_model_does_not_have_is_none(void **state)
{
    ot_model *model = load("training.ort"); // the file says 2^63 - 1

    (void)state;
    assert_int_equal(model->model_version, 0);
    ot_model_destroy(model);
}

static void sparse_initializers_become_dense(void **state)
{
    static const float expected[12] = {[3] = 2.5f, [10] = -1.0f};
    ot_model *model = load("sparse.ort");
    const ot_value *k = ot__graph_find(model->graph, "k");

    (void)state;
    assert_true(k->is_initializer);
    assert_int_equal(k->constant->n_bytes, sizeof expected);
    assert_memory_equal(k->constant->data, expected, sizeof expected);
    ot_model_destroy(model);
}

static void the_bytes_decide_what_a_file_is(void **state)
{
    ot__buf bytes = {0};
    ot_model *model;

    (void)state;
    load_bytes("relu.ort", &bytes);
    assert_int_equal(ot_model_load_buffer(bytes.data, bytes.length, NULL, &model), OT_OK);
    ot__buf_deinit(&bytes); // what is read has been copied
    assert_string_equal(ot_model_node_operator(model, 0), "Relu");
    ot_model_destroy(model);
}

// ---- bad files ----

static void assert_refused(ot__buf *bytes, ot_status status, const char *message)
{
    ot_model *model;

    assert_int_equal(read_bytes(bytes, NULL, &model), status);
    assert_null(model);
    assert_message_has(message);
    ot__buf_deinit(bytes);
}

// The bytes of relu.ort with one of them changed.
static ot__buf changed(size_t at, uint8_t byte)
{
    ot__buf bytes = {0};

    load_bytes("relu.ort", &bytes);
    bytes.data[at] = (char)byte;
    return bytes;
}

static void what_is_wrong_is_said(void **state)
{
    ot__buf bytes;

    (void)state;
    bytes = changed(0x28, '7'); // the version
    assert_refused(&bytes, OT_ERR_FORMAT, "test: has ORT format version '7', expected 1 to 6");
    bytes = changed(0x28, 'x');
    assert_refused(&bytes, OT_ERR_FORMAT, "version 'x'");
    bytes = changed(0x68 + 8, 0); // the opset
    assert_refused(&bytes, OT_ERR_FORMAT, "opset import 0 has an impossible version");
    bytes = changed(0xd4, 'z'); // the name of the first value
    assert_refused(&bytes, OT_ERR_FORMAT, "value 'x' of graph 'main' is not described");
    bytes = changed(0xd4, 'y');
    assert_refused(&bytes, OT_ERR_FORMAT, "value 'y' of graph 'main' is described twice");
    bytes = changed(0xf4, 99); // its element type
    assert_refused(&bytes, OT_ERR_FORMAT, "value 'x': element type 99 is not known");
    bytes = changed(0xe8, 9); // the kind of its type
    assert_refused(&bytes, OT_ERR_FORMAT, "value 'x': a type is of no kind that is known");
    bytes = changed(0x190, 'y'); // what the node reads
    assert_refused(&bytes, OT_ERR_FORMAT, "depends on its own output");
    bytes = changed(0x1a0, 'x'); // what it makes
    assert_refused(&bytes, OT_ERR_FORMAT, "output 'x' has the name of an input");
    bytes = changed(0x0, 0xf0); // where the root is
    assert_refused(&bytes, OT_ERR_FORMAT, "test: ");
}

static void files_cut_anywhere_are_refused(void **state)
{
    static const char *const names[] = {"relu.ort", "training.ort", "parts.ort", "sparse.ort"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        ot__buf bytes = {0};

        load_bytes(names[i], &bytes);
        for (size_t n = 0; n + 16 < bytes.length; n++) {
            uint8_t *cut = ot__alloc(n); // of the exact size, so that a sanitizer sees behind it
            ot_model *model;

            if (n > 0)
                memcpy(cut, bytes.data, n);
            // The real writer works from the back: what a file ends with may be its resolver,
            // which is not read, but more often is a name.
            if (ot__ort_read(cut, n, NULL, "cut", &model) == OT_OK)
                assert_true(n > bytes.length / 2);
            ot_model_destroy(model);
            ot__free(cut);
        }
        ot__buf_deinit(&bytes);
    }
}

static void a_changed_byte_or_offset_never_does_harm(void **state)
{
    static const uint32_t changes[] = {0x01, 0x04, 0x80, 0xff, 0xffffffff, 0x7fffffff, 0x80000000};
    static const char *const names[] = {"relu.ort", "parts.ort", "sparse.ort"};
    int n_refused = 0;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        ot__buf bytes = {0};

        load_bytes(names[i], &bytes);
        for (size_t at = 0; at + 4 <= bytes.length; at++)
            for (size_t k = 0; k < OT_COUNT(changes); k++) {
                uint32_t word, other;
                ot_model *model;

                if (k >= 4 && at % 4 != 0)
                    continue;
                memcpy(&word, bytes.data + at, sizeof word);
                other = word ^ changes[k];
                memcpy(bytes.data + at, &other, sizeof other);
                n_refused += read_bytes(&bytes, NULL, &model) != OT_OK;
                ot_model_destroy(model);
                memcpy(bytes.data + at, &word, sizeof word);
            }
        ot__buf_deinit(&bytes);
    }
    assert_true(n_refused > 1000);
}

// A node whose many outputs are one and the same long name.
static void a_long_text_is_not_read_again_and_again(void **state)
{
    enum { LENGTH = 1 << 20, TIMES = 1 << 16 };
    ot__fb_field root[2] = {{.n_bytes = 4}, {.n_bytes = 4}},
                 model[8] = {[1] = {.n_bytes = 4}, [7] = {.n_bytes = 4}},
                 opset[2] = {{.n_bytes = 4}, {.n_bytes = 8, .value = 14}},
                 graph[3] = {[2] = {.n_bytes = 4}}, node[10] = {[9] = {.n_bytes = 4}};
    ot__buf bytes = {0};
    size_t list, text;
    char *name = ot__alloc_zero(1, LENGTH + 1);

    (void)state;
    memset(name, 'a', LENGTH);
    ot__buf_append(&bytes, "\0\0\0\0ORTM", 8);
    ot__fb_patch(&bytes, 0, ot__fb_write_table(&bytes, root, 2));
    ot__fb_patch(&bytes, root[0].position, ot__fb_write_string(&bytes, "6"));
    ot__fb_patch(&bytes, root[1].position, ot__fb_write_table(&bytes, model, 8));
    list = ot__fb_write_offsets(&bytes, 1);
    ot__fb_patch(&bytes, model[1].position, list);
    ot__fb_patch(&bytes, list + 4, ot__fb_write_table(&bytes, opset, 2));
    ot__fb_patch(&bytes, opset[0].position, ot__fb_write_string(&bytes, ""));
    ot__fb_patch(&bytes, model[7].position, ot__fb_write_table(&bytes, graph, 3));
    list = ot__fb_write_offsets(&bytes, 1);
    ot__fb_patch(&bytes, graph[2].position, list);
    ot__fb_patch(&bytes, list + 4, ot__fb_write_table(&bytes, node, 10));
    list = ot__fb_write_offsets(&bytes, TIMES);
    ot__fb_patch(&bytes, node[9].position, list);
    text = ot__fb_write_string(&bytes, name);
    for (size_t i = 0; i < TIMES; i++)
        ot__fb_patch(&bytes, list + 4 + 4 * i, text);
    assert_refused(&bytes, OT_ERR_FORMAT, "is used too often");
    ot__free(name);
}

static void limits_hold(void **state)
{
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot__buf bytes = {0};
    ot_model *model;

    (void)state;
    load_bytes("parts.ort", &bytes);
    options.max_depth = 6; // a node of a subgraph is the seventh table
    assert_int_equal(read_bytes(&bytes, &options, &model), OT_ERR_NO_MEMORY);
    assert_message_has("tables are nested more than 6 deep");
    options.max_depth = 0;
    options.max_nodes = 5;
    assert_int_equal(read_bytes(&bytes, &options, &model), OT_ERR_NO_MEMORY);
    assert_message_has("more than 5 values");
    options.max_nodes = 0;
    options.max_memory = 2000;
    assert_int_equal(read_bytes(&bytes, &options, &model), OT_ERR_NO_MEMORY);
    ot__buf_deinit(&bytes);
}

static void failing_allocations_lose_nothing(void **state)
{
    static const char *const names[] = {"training.ort", "parts.ort", "sparse.ort"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        ot__buf bytes = {0};
        ot_status st = OT_ERR_NO_MEMORY;

        load_bytes(names[i], &bytes);
        for (int64_t n = 0; st != OT_OK; n++) {
            ot_model *model;

            assert_true(n < 2000);
            ot__alloc_fail_after(n);
            st = read_bytes(&bytes, NULL, &model);
            ot__alloc_fail_after(-1);
            assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
            ot_model_destroy(model);
        }
        ot__buf_deinit(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_with_the_least_that_is_needed_is_read),
        cmocka_unit_test(files_of_onnx_runtime_hold_what_it_finds_in_them),
        cmocka_unit_test(nodes_come_in_an_order_in_which_they_can_run),
        cmocka_unit_test(model_strings_and_metadata_are_read),
        cmocka_unit_test(a_version_that_the_model_does_not_have_is_none),
        cmocka_unit_test(sparse_initializers_become_dense),
        cmocka_unit_test(the_bytes_decide_what_a_file_is),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(files_cut_anywhere_are_refused),
        cmocka_unit_test(a_changed_byte_or_offset_never_does_harm),
        cmocka_unit_test(a_long_text_is_not_read_again_and_again),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(failing_allocations_lose_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
