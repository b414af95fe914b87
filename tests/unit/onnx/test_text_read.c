// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

static void assert_refused(const char *text, const char *message)
{
    ot_model *model;

    assert_int_equal(ot__text_read(text, strlen(text), NULL, "file.onnxtxt", &model),
                     OT_ERR_FORMAT);
    assert_null(model);
    assert_true(ot__starts_with(ot_error_message(), "file.onnxtxt: "));
    assert_message_has(message);
}

#define MODEL(body)                                                                                \
    "<ir_version: 10, opset_import: [\"\" : 21]> g (float[2] x) => (float[2] y) " body

// y = Op <attributes> (x)
static ot_model *model_with_attrs(const char *attrs)
{
    char text[512];

    snprintf(text, sizeof text, MODEL("{ y = Op <%s> (x) }"), attrs);
    return model_of(text);
}

static void assert_attrs_refused(const char *attrs, const char *message)
{
    char text[512];

    snprintf(text, sizeof text, MODEL("{ y = Op <%s> (x) }"), attrs);
    assert_refused(text, message);
}

// ---- what the onnx package writes and reads ----

static void a_printed_model_is_the_model_that_was_printed(void **state)
{
    ot_model *printed, *parsed;
    ot__buf ours = {0}, theirs = {0};

    (void)state; // both files are made by the onnx package, see make_data.py
    assert_int_equal(ot_model_load(OT_TEST_DIR "/data/printed.onnxtxt", NULL, &printed), OT_OK);
    assert_int_equal(ot_model_load(OT_TEST_DIR "/data/parsed.onnx", NULL, &parsed), OT_OK);
    assert_int_equal(ot__onnx_write(printed, &ours), OT_OK);
    assert_int_equal(ot__onnx_write(parsed, &theirs), OT_OK);
    assert_int_equal(ours.length, theirs.length);
    assert_memory_equal(ours.data, theirs.data, ours.length);
    ot__buf_deinit(&ours);
    ot__buf_deinit(&theirs);
    ot_model_destroy(printed);
    ot_model_destroy(parsed);
}

// ---- what it reads ----

static void a_header_is_optional(void **state)
{
    ot_model *model = model_of("g () => () {}");

    (void)state;
    assert_int_equal(model->ir_version, 10);
    assert_int_equal(ot__model_opset(model, ""), 21);
    ot_model_destroy(model);
}

static void names_may_be_quoted_anywhere(void **state)
{
    ot_model *model = model_of(
        "\"the graph\" (float[\"N/2\"] \"in 1\") => (\"out\\\\\\\"\")"
        " { [\"node: 1\"] \"out\\\\\\\"\" = \"my-domain\".\"aten::op\" <\"a.b\" = 1> (\"in 1\") }");
    const ot_node *node = model->graph->nodes[0];

    (void)state;
    assert_string_equal(model->graph->name, "the graph");
    assert_string_equal(model->graph->inputs[0]->name, "in 1");
    assert_string_equal(model->graph->outputs[0]->name, "out\\\"");
    assert_string_equal(node->name, "node: 1");
    assert_string_equal(node->domain, "my-domain");
    assert_string_equal(node->op_type, "aten::op");
    assert_non_null(ot__node_attr(node, "a.b"));
    assert_string_equal(ot__dim_name(model, model->graph->inputs[0]->shape.dim[0]), "N/2");
    ot_model_destroy(model);
}

static void omitted_values_are_empty_names_or_nothing_before_a_comma(void **state)
{
    ot_model *model = model_of(MODEL("{ a, , b = Op (, x, \"\", x,) y = Op (a, \"\") }"));
    const ot_node *node = model->graph->nodes[0];

    (void)state;
    assert_int_equal(node->n_outputs, 3);
    assert_null(node->outputs[1]);
    assert_int_equal(node->n_inputs, 4);
    assert_null(node->inputs[0]);
    assert_non_null(node->inputs[1]);
    assert_null(node->inputs[2]);
    assert_int_equal(model->graph->nodes[1]->n_inputs, 2);
    ot_model_destroy(model);
}

static void types_without_brackets_are_scalars(void **state)
{
    ot_model *model = model_of("g (float s, float[] any, float[1,?,N] t, untyped) => () {}");
    ot_value *const *inputs = model->graph->inputs;

    (void)state;
    assert_true(inputs[0]->has_shape && inputs[0]->shape.ndim == 0);
    assert_false(inputs[1]->has_shape);
    assert_int_equal(inputs[1]->kind, OT_VALUE_TENSOR);
    assert_int_equal(inputs[2]->shape.ndim, 3);
    assert_true(inputs[2]->shape.dim[1] == OT_DIM_UNKNOWN);
    assert_int_equal(inputs[3]->kind, OT_VALUE_UNTYPED);
    ot_model_destroy(model);
}

static void attributes_take_the_kind_of_their_values(void **state)
{
    ot_model *model =
        model_with_attrs("i = -7, f = 1e-2, s = \"t\", is = [1, 2], fs = [1, 2.5], ss = [\"a\"],"
                         " stated: float = 3, none: strings = [], inf = -inf, t = int64[2] {4, 5}");
    const ot_node *node = model->graph->nodes[0];

    (void)state;
    assert_int_equal(ot__node_attr(node, "i")->i, -7);
    assert_true(ot__node_attr(node, "f")->f == 0.01f);
    assert_int_equal(ot__node_attr(node, "is")->kind, OT_ATTR_INTS);
    assert_int_equal(ot__node_attr(node, "fs")->kind, OT_ATTR_FLOATS);
    assert_true(ot__node_attr(node, "fs")->floats[0] == 1.0f);
    assert_int_equal(ot__node_attr(node, "ss")->strings[0].data[0], 'a');
    assert_true(ot__node_attr(node, "stated")->f == 3.0f);
    assert_int_equal(ot__node_attr(node, "none")->kind, OT_ATTR_STRINGS);
    assert_int_equal(ot__node_attr(node, "none")->n, 0);
    assert_true(ot__node_attr(node, "inf")->f < 0);
    assert_int_equal(ot__tensor_get_i64(ot__node_attr(node, "t")->t, 1), 5);
    ot_model_destroy(model);
}

static void initializers_hold_their_elements(void **state)
{
    ot_model *model = model_of(MODEL(
        "<float[2,1] w = {0.1, -3e38}, bool t = {1}, float16[1] h = {15360},"
        " uint64[1] u = {18446744073709551615}, string[2] s = {\"a\", \"\"}> { y = Op (x) }"));
    const ot_graph *g = model->graph;

    (void)state;
    assert_true(((float *)ot__graph_find(g, "w")->constant->data)[0] == 0.1f);
    assert_true(ot__tensor_get_f64(ot__graph_find(g, "h")->constant, 0) == 1.0);
    assert_true(*(uint64_t *)ot__graph_find(g, "u")->constant->data == UINT64_MAX);
    assert_int_equal(((ot__string *)ot__graph_find(g, "s")->constant->data)[1].size, 0);
    assert_int_equal(g->n_initializers, 5);
    ot_model_destroy(model);
}

// ---- what it refuses ----

static void errors_name_line_and_column(void **state)
{
    (void)state;
    assert_refused("g (float[2] x) => (y)\n{\n   y = Neg [x]\n}",
                   "line 3, column 12: expected '(', found '['");
    assert_refused("g (float[2] x", "line 1, column 14: expected ')', found the end");
    assert_refused("g (float[2] x) = (y) {}", "expected '=>', found '='");
    assert_refused("", "expected a name, found the end");
}

static void names_are_checked_as_in_protobuf(void **state)
{
    (void)state;
    assert_refused(MODEL("{ y = Neg (ghost) }"), "Neg of 'y': input 0, 'ghost', is not defined");
    assert_refused(MODEL("{ y = Neg (h) h = Abs (x) }"),
                   "input 0, 'h', is used before Abs of 'h' defines it");
    assert_refused(MODEL("{ y = Neg (h) h = Abs (y) }"), "depends on its own output");
    assert_refused(MODEL("{ y = Neg (x) y = Abs (x) }"),
                   "output 'y' is made by Neg of 'y' already");
    assert_refused(MODEL("{ x = Neg (x) y = Abs (x) }"), "output 'x' has the name of an input");
    assert_refused(MODEL("{ y, y = Split (x) }"), "output 'y' is listed twice");
    assert_refused(MODEL("{ z = Neg (x) }"), "output 'y' of graph 'g' is not defined");
    assert_refused("g (x, x) => () {}", "input 'x' is listed twice");
    assert_refused("g (bool c) => (y) { y = If (c) <then_branch = t () => (c, c) {},"
                   " else_branch = e () => (c) {}> }",
                   "output 'c' of graph 't' is listed twice");
    assert_refused(MODEL("<float w = {1}, float w = {2}> { y = Neg (x) }"),
                   "initializer 'w' is defined twice");
    assert_refused("g (\"\") => () {}", "a value has an empty name");
}

static void attributes_are_checked(void **state)
{
    (void)state;
    assert_attrs_refused("a: int = 1.5", "a value of kind FLOAT, expected INT");
    assert_attrs_refused("a: ints = [1, \"x\"]", "a value of kind STRING, expected INT");
    assert_attrs_refused("a = [1, \"x\"]", "a list with elements of kind INT and STRING");
    assert_attrs_refused("a: int = [1]", "a list for an attribute of kind INT");
    assert_attrs_refused("a = []", "an empty list needs its type stated");
    assert_attrs_refused("a = 1, a = 2", "attribute 'a' is given twice");
    assert_attrs_refused("a = @b", "'a' refers to a function's attribute, but is in none");
    assert_attrs_refused("a: real = 1", "expected the type of an attribute");
    assert_attrs_refused("a = 1e39", "1e39 does not fit float");
    assert_attrs_refused("a = 9223372036854775808", "does not fit 64 bits with a sign");
    assert_attrs_refused("a = 99999999999999999999999", "does not fit 64 bits");
}

static void elements_are_checked(void **state)
{
    (void)state;
    assert_refused(MODEL("<float[2] w = {1}> { y = Neg (x) }"), "1 elements, expected 2");
    assert_refused(MODEL("<float[1] w = {1, 2}> { y = Neg (x) }"),
                   "more elements than the 1 of the shape");
    assert_refused(MODEL("<float[2] w = {}> { y = Neg (x) }"), "no elements, expected 2");
    assert_refused(MODEL("<float[N] w = {1}> { y = Neg (x) }"),
                   "elements of 'w' need a type with a shape of numbers");
    assert_refused(MODEL("<float[1000000000000] w = {1}> { y = Neg (x) }"),
                   "'w' has no 1000000000000 elements");
    assert_refused(MODEL("<uint8[1] w = {256}> { y = Neg (x) }"), "entry 0, 256, does not fit u8");
    assert_refused(MODEL("<int64[1] w = {1.5}> { y = Neg (x) }"), "expected an integer, found 1.5");
    assert_refused(MODEL("<float[1] w = {x}> { y = Neg (x) }"), "expected a number, found 'x'");
    assert_refused(MODEL("<string[1] w = {1}> { y = Neg (x) }"), "expected a string, found '1'");
    assert_refused(MODEL("<float[-2] w = {1}> { y = Neg (x) }"), "size -2 is negative");
    assert_refused(MODEL("<float[9223372036854775807,2] w = {1}> { y = Neg (x) }"),
                   "more elements than can be counted");
}

static void strings_must_end(void **state)
{
    (void)state;
    assert_refused("g (x) => () { = Op <a = \"open> (x) }", "the string has no end");
    assert_refused("\"open\\", "the string has no end");
}

static void nesting_has_a_limit(void **state)
{
    char text[2048] = "g (";
    ot_model *model;

    (void)state;
    for (int i = 0; i < 200; i++)
        strcat(text, "seq(");
    assert_int_equal(ot__text_read(text, strlen(text), NULL, "f", &model), OT_ERR_NO_MEMORY);
    assert_message_has("nested more than 64 deep");
}

static void unknown_header_entries_are_refused(void **state)
{
    (void)state;
    assert_refused("<colour: 1> g () => () {}", "a model has no 'colour'");
    assert_refused("<ir_version: 0> g () => () {}", "ir_version is 0");
    assert_refused("g () => () {} <producer_name: \"p\"> f () => () {}",
                   "a function has no 'producer_name'");
}

static void reading_survives_every_failing_allocation(void **state)
{
    const char *text =
        "<ir_version: 8, opset_import: [\"\" : 17], metadata_props: [\"k\": \"v\"]>"
        " g (seq(float) s, float[N] x) => (y) <float w = {1}, float[N] h> {"
        " h = Op <l = [1, 2], t = float {1}, g = i () => (a) { a = Neg (x) }> (x, w) y = d.f (h) }"
        " <domain: \"d\", opset_import: [\"\" : 17]> f <k> (a) => (b) { b = Op <v: int = @k> (a) }";
    ot_model *model;
    int64_t n = 0;
    ot_status st;

    (void)state;
    do {
        ot__alloc_fail_after(n++);
        st = ot__text_read(text, strlen(text), NULL, "file", &model);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && !model));
    } while (st != OT_OK);
    assert_true(n > 10);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_printed_model_is_the_model_that_was_printed),
        cmocka_unit_test(a_header_is_optional),
        cmocka_unit_test(names_may_be_quoted_anywhere),
        cmocka_unit_test(omitted_values_are_empty_names_or_nothing_before_a_comma),
        cmocka_unit_test(types_without_brackets_are_scalars),
        cmocka_unit_test(attributes_take_the_kind_of_their_values),
        cmocka_unit_test(initializers_hold_their_elements),
        cmocka_unit_test(errors_name_line_and_column),
        cmocka_unit_test(names_are_checked_as_in_protobuf),
        cmocka_unit_test(attributes_are_checked),
        cmocka_unit_test(elements_are_checked),
        cmocka_unit_test(strings_must_end),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(unknown_header_entries_are_refused),
        cmocka_unit_test(reading_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
