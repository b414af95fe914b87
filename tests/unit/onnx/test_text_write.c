// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

static const char *written(const ot_model *model, int max_elements)
{
    static char text[4096];
    const ot__text_options options = {max_elements};
    ot__buf buf = {0};

    assert_int_equal(ot__text_write(model, &options, &buf), OT_OK);
    assert_true(buf.length < sizeof text);
    strcpy(text, buf.data);
    ot__buf_deinit(&buf);
    return text;
}

static void the_layout_is_that_of_the_printer(void **state)
{
    const char *text =
        "<\n"
        "   ir_version: 10,\n"
        "   opset_import: [\"\" : 21]\n"
        ">\n"
        "g (float[N,2] x, int64 s) => (float[] y)\n"
        "   <float[2] w = {1,-2.5},\n"
        "    float[N,2] h>\n"
        "{\n"
        "   [\"/fc/Add\"] h = Add (x, w)\n"
        "   y = com.example.Op <alpha: float = 0.5, axes: ints = [0, 1]> (h, \"\", s)\n"
        "}\n";
    ot_model *model = model_of(text);

    (void)state;
    assert_string_equal(written(model, 0), text);
    ot_model_destroy(model);
}

static void subgraphs_are_indented(void **state)
{
    const char *graph = "g (bool c, float x) => (y) {\n"
                        "   y = If (c) <then_branch: graph = t () => (r) {\n"
                        "      r = Neg (x)\n"
                        "   }>\n"
                        "}\n";
    ot_model *model = model_of(graph);
    ot__buf buf = {0};

    (void)state;
    assert_int_equal(ot__text_write(model, NULL, &buf), OT_OK);
    assert_true(ot__ends_with(buf.data, graph));
    ot__buf_deinit(&buf);
    ot_model_destroy(model);
}

static void constants_are_shortened_on_request(void **state)
{
    ot_model *model =
        model_of("g (x) => (y) <float[4] w = {1,2,3,4}> { y = Op <l = [1, 2, 3]> (x, w) }");

    (void)state;
    assert_non_null(strstr(written(model, 2), "{1,2,...}"));
    assert_non_null(strstr(written(model, 2), "[1, 2, ...]"));
    assert_non_null(strstr(written(model, 4), "{1,2,3,4}"));
    ot_model_destroy(model);
}

static void numbers_read_back_the_same(void **state)
{
    ot_model *model =
        model_of("g (x) => (y) <float[5] w = {0.1, 16777217, 3.4028235e38, 1e-45, -0},"
                 " double[2] d = {0.1, 5e-324}> { y = Op (x) }");
    ot_model *again = model_of(written(model, 0));

    (void)state;
    assert_memory_equal(ot__graph_find(model->graph, "w")->constant->data,
                        ot__graph_find(again->graph, "w")->constant->data, 20);
    assert_memory_equal(ot__graph_find(model->graph, "d")->constant->data,
                        ot__graph_find(again->graph, "d")->constant->data, 16);
    ot_model_destroy(model);
    ot_model_destroy(again);
}

static void types_read_back_the_same(void **state)
{
    const char *const types[] = {"seq(float[N,?])",
                                 "map(string, seq(int64))",
                                 "optional(seq(float[]))",
                                 "sparse_tensor(float[2,3])",
                                 "opaque(a.b,c)",
                                 "opaque()",
                                 "opaque(name)"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(types); i++) {
        char text[128];
        ot_model *model;

        snprintf(text, sizeof text, "g (%s x) => () {}", types[i]);
        model = model_of(text);
        if (!strstr(written(model, 0), types[i]))
            fail_msg("%s became %s", types[i], written(model, 0));
        ot_model_destroy(model);
    }
}

static void a_name_that_is_also_a_type_is_quoted(void **state)
{
    ot_model *model = model_of("g (\"float\", float[1] \"seq\") => () {}");

    (void)state;
    assert_non_null(strstr(written(model, 0), "g (\"float\", float[1] \"seq\")"));
    ot_model_destroy(model);
}

static void sparse_attributes_have_no_text(void **state)
{
    ot_model *model = model_of("g (x) => (y) { y = Op (x) }");
    const ot__text_options all = {0};
    ot__buf buf = {0};

    (void)state;
    assert_non_null(ot__node_add_attr(model->graph->nodes[0], "v", OT_ATTR_SPARSE_TENSOR));
    assert_int_equal(ot__text_write(model, &all, &buf), OT_ERR_UNSUPPORTED);
    assert_message_has("attribute 'v': sparse tensors cannot be written as text");
    ot__buf_deinit(&buf);
    assert_non_null(strstr(written(model, 8), "v: sparse_tensor = ..."));
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_that_of_the_printer),
        cmocka_unit_test(subgraphs_are_indented),
        cmocka_unit_test(constants_are_shortened_on_request),
        cmocka_unit_test(numbers_read_back_the_same),
        cmocka_unit_test(types_read_back_the_same),
        cmocka_unit_test(a_name_that_is_also_a_type_is_quoted),
        cmocka_unit_test(sparse_attributes_have_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
