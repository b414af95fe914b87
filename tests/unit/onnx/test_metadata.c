// SPDX-License-Identifier: Apache-2.0
// metadata_props of nodes, values, initializers and graphs.
#include "unit/onnx/wire_build.h"

enum { NODE_PROPS = 9, INFO_PROPS = 4, TENSOR_PROPS = 16, GRAPH_PROPS = 16 };

static message entry(const char *key, const char *value)
{
    message m = {0};

    put_text(&m, 1, key);
    put_text(&m, 2, value);
    return m;
}

static void put_entry(message *m, unsigned field, const char *key, const char *value)
{
    const message e = entry(key, value);

    put_message(m, field, &e);
}

// y2 = Neg (w), where node, y2 and w say something.
static message telling_model(void)
{
    const int64_t dims[] = {1};
    message neg = node("Neg", "w", "y2"), w = tensor("w", OT_F32, 1, dims), g = graph(),
            made = value_info("y2"), kept = value_info("w");

    put_entry(&neg, NODE_PROPS, "scope", "enc.0");
    put_entry(&neg, NODE_PROPS, "trace", "line 3");
    put_bytes(&w, 9, (float[]){1}, 4);
    put_entry(&w, TENSOR_PROPS, "of", "tensor");
    put_entry(&made, INFO_PROPS, "of", "made");
    put_entry(&kept, INFO_PROPS, "kind", "PARAMETER");
    put_message(&g, 1, &neg);
    put_message(&g, 5, &w);
    put_message(&g, 13, &made);
    put_message(&g, 13, &kept);
    put_entry(&g, GRAPH_PROPS, "signature", "w: PARAMETER");
    return model(&g);
}

static void assert_tells(const ot_model *m)
{
    const ot_node *neg = maker(m, "y2");
    const ot_value *w = ot__graph_find(m->graph, "w");

    assert_string_equal(ot__metadata_get(&neg->metadata, "scope"), "enc.0");
    assert_string_equal(ot__metadata_get(&neg->metadata, "trace"), "line 3");
    assert_null(ot__metadata_get(&neg->metadata, "kind"));
    assert_string_equal(ot__metadata_get(&neg->outputs[0]->metadata, "of"), "made");
    assert_string_equal(ot__metadata_get(&w->metadata, "kind"), "PARAMETER");
    assert_string_equal(ot__metadata_get(&w->metadata, "of"), "tensor");
    assert_null(ot__metadata_get(&w->metadata, "scope"));
    assert_null(ot__metadata_get(&ot__graph_find(m->graph, "x")->metadata, "of"));
    assert_string_equal(ot__metadata_get(&m->graph->metadata, "signature"), "w: PARAMETER");
    assert_null(ot__metadata_get(&m->graph->metadata, "of"));
}

static void nodes_values_initializers_and_graphs_tell(void **state)
{
    const message m = telling_model();
    ot_model *first = read_message(&m), *copy;

    (void)state;
    assert_tells(first);
    assert_int_equal(ot__model_clone(first, &copy), OT_OK);
    ot_model_destroy(first);
    assert_tells(copy);
    ot_model_destroy(copy);
}

// Once as read, once as written.
static void what_they_tell_is_written_once(void **state)
{
    const message m = telling_model();
    ot_model *first = read_message(&m), *second;
    ot__buf once = {0}, twice = {0};

    (void)state;
    assert_int_equal(ot__onnx_write(first, &once), OT_OK);
    assert_int_equal(once.length, m.n);
    assert_int_equal(ot__onnx_read(once.data, once.length, NULL, "again", NULL, &second), OT_OK);
    assert_tells(second);
    assert_int_equal(ot__onnx_write(second, &twice), OT_OK);
    assert_int_equal(twice.length, once.length);
    assert_memory_equal(twice.data, once.data, once.length);
    ot_model_destroy(first);
    ot_model_destroy(second);
    ot__buf_deinit(&once);
    ot__buf_deinit(&twice);
}

static void nodes_of_functions_tell_where_they_are_called(void **state)
{
    message body = node("Neg", "a", "b"), f = {0}, opset = {0}, call = node("F", "x", "y2"),
            g = graph(), m;
    ot_model *read;

    (void)state;
    put_entry(&body, NODE_PROPS, "scope", "inner");
    put_text(&f, 1, "F");
    put_text(&f, 4, "a");
    put_text(&f, 5, "b");
    put_message(&f, 7, &body);
    put_text(&f, 10, "local");
    put_text(&opset, 1, "");
    put_int(&opset, 2, 21);
    put_message(&f, 9, &opset);
    put_text(&call, 7, "local");
    put_message(&g, 1, &call);
    m = model(&g);
    put_message(&m, 25, &f);
    read = read_message(&m);
    assert_int_equal(ot__model_inline_functions(read), OT_OK);
    assert_string_equal(ot__metadata_get(&maker(read, "y2")->metadata, "scope"), "inner");
    ot_model_destroy(read);
}

static void incomplete_entries_are_passed_through(void **state)
{
    message neg = node("Neg", "x", "y2"), only_key = {0}, m;
    ot_model *read;
    ot__buf out = {0};

    (void)state;
    put_text(&only_key, 1, "lonely");
    put_message(&neg, NODE_PROPS, &only_key);
    put_bytes(&neg, NODE_PROPS, "", 0);
    put_entry(&neg, NODE_PROPS, "scope", "enc");
    m = model_with_node(&neg);
    read = read_message(&m);
    assert_string_equal(ot__metadata_get(&maker(read, "y2")->metadata, "scope"), "enc");
    assert_null(ot__metadata_get(&maker(read, "y2")->metadata, "lonely"));
    assert_int_equal(ot__onnx_write(read, &out), OT_OK);
    assert_int_equal(out.length, m.n);
    ot_model_destroy(read);
    ot__buf_deinit(&out);
}

static void a_value_described_again_and_again_is_read(void **state)
{
    message g = graph(), w = tensor("w", OT_F32, 0, NULL), m;
    ot_model *read;

    (void)state;
    put_bytes(&w, 9, (float[]){1}, 4);
    put_message(&g, 5, &w);
    for (int i = 0; i < 100; i++) {
        message info = value_info("w");

        put_entry(&info, INFO_PROPS, "k", i == 0 ? "first" : "other");
        put_message(&g, 13, &info);
    }
    m = model(&g);
    read = read_message(&m);
    assert_string_equal(ot__metadata_get(&ot__graph_find(read->graph, "w")->metadata, "k"),
                        "first");
    ot_model_destroy(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_values_initializers_and_graphs_tell),
        cmocka_unit_test(what_they_tell_is_written_once),
        cmocka_unit_test(nodes_of_functions_tell_where_they_are_called),
        cmocka_unit_test(incomplete_entries_are_passed_through),
        cmocka_unit_test(a_value_described_again_and_again_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
