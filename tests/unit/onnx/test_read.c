// SPDX-License-Identifier: Apache-2.0
#include "unit/onnx/wire_build.h"

// ---- the file ----

static void a_file_without_a_graph_is_refused(void **state)
{
    message m = {0};

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "no ONNX model: ir_version is missing");
    put_int(&m, 1, 10);
    assert_refused(&m, OT_ERR_FORMAT, "the model has no graph");
}

static void two_graphs_are_refused(void **state)
{
    const message g = graph();
    message m = model(&g);

    (void)state;
    put_message(&m, 7, &g);
    assert_refused(&m, OT_ERR_FORMAT, "the model has more than one graph");
}

static void the_last_version_of_a_domain_counts(void **state)
{
    const message g = graph();
    message m = model(&g), opset = {0};
    ot_model *out;

    (void)state;
    put_int(&opset, 2, 17); // no domain is ""
    put_message(&m, 8, &opset);
    out = read_message(&m);
    assert_int_equal(out->n_opsets, 1);
    assert_int_equal(ot__model_opset(out, ""), 17);
    ot_model_destroy(out);
}

static void initializers_that_are_inputs_are_no_inputs(void **state)
{
    const int64_t dims[] = {0};
    message g = graph(), w = tensor("w", 1, 1, dims), info = value_info("w"), m;
    ot_model *out;

    (void)state;
    put_message(&g, 11, &info);
    put_message(&g, 5, &w);
    m = model(&g);
    out = read_message(&m);
    assert_int_equal(out->graph->n_inputs, 1);
    assert_false(ot__graph_find(out->graph, "w")->is_input);
    assert_true(ot__graph_find(out->graph, "w")->is_initializer);
    ot_model_destroy(out);
}

// ---- names ----

static void an_input_defined_twice_is_refused(void **state)
{
    message g = graph(), x = value_info("x"), m;

    (void)state;
    put_message(&g, 11, &x);
    m = model(&g);
    assert_refused(&m, OT_ERR_FORMAT, "input 'x' of graph 'g' is defined twice");
}

static void an_initializer_defined_twice_is_refused(void **state)
{
    const int64_t dims[] = {0};
    message g = graph(), w = tensor("w", 1, 1, dims), m;

    (void)state;
    put_message(&g, 5, &w);
    put_message(&g, 5, &w);
    m = model(&g);
    assert_refused(&m, OT_ERR_FORMAT, "initializer 'w' of graph 'g' is defined twice");
}

static void a_value_made_twice_is_refused(void **state)
{
    message op = node("Abs", "x", "y"), m;

    (void)state;
    put_text(&op, 3, "second");
    m = model_with_node(&op);
    assert_refused(&m, OT_ERR_FORMAT, "node 'second': output 'y' is made by Neg of 'y' already");
}

static void an_output_with_an_inputs_name_is_refused(void **state)
{
    const message op = node("Abs", "y", "x"), m = model_with_node(&op);

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "Abs node 1: output 'x' has the name of an input");
}

static void one_output_name_twice_in_a_node_is_refused(void **state)
{
    message op = node("Split", "x", "z"), m;

    (void)state;
    put_text(&op, 2, "z");
    m = model_with_node(&op);
    assert_refused(&m, OT_ERR_FORMAT, "Split node 2: output 'z' is listed twice");
}

static void graph_outputs_listed_twice_stay_so(void **state)
{
    message g = graph(), y = value_info("y"), m;
    ot_model *out;

    (void)state;
    put_message(&g, 12, &y);
    m = model(&g);
    out = read_message(&m);
    assert_int_equal(out->graph->n_outputs, 2);
    assert_ptr_equal(out->graph->outputs[0], out->graph->outputs[1]);
    ot_model_destroy(out);
}

static void things_without_names_are_refused(void **state)
{
    const int64_t dims[] = {0};
    const message info = value_info(""), w = tensor("", 1, 1, dims);
    message g = graph(), m;

    (void)state;
    put_message(&g, 11, &info);
    m = model(&g);
    assert_refused(&m, OT_ERR_FORMAT, "input 1 of graph 'g' has no name");
    g = graph();
    put_message(&g, 12, &info);
    m = model(&g);
    assert_refused(&m, OT_ERR_FORMAT, "output 1 of graph 'g' has no name");
    m = model_with_initializer(&w);
    assert_refused(&m, OT_ERR_FORMAT, "initializer 0 of graph 'g' has no name");
}

// ---- order ----

static void an_undefined_input_is_refused(void **state)
{
    const message op = node("Abs", "ghost", "z"), m = model_with_node(&op);

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "Abs of 'z': input 0, 'ghost', is not defined");
}

static void use_before_definition_names_the_definition(void **state)
{
    const message early = node("Abs", "late", "z"), late = node("Neg", "x", "late");
    message g = graph(), m;

    (void)state;
    put_message(&g, 1, &early);
    put_message(&g, 1, &late);
    m = model(&g);
    assert_refused(&m, OT_ERR_FORMAT,
                   "Abs of 'z': input 0, 'late', is used before Neg of 'late' defines it");
}

static void a_cycle_is_refused(void **state)
{
    const message there = node("Abs", "b", "a"), back = node("Neg", "a", "b");
    message g = graph(), m;

    (void)state;
    put_message(&g, 1, &there);
    put_message(&g, 1, &back);
    m = model(&g);
    assert_refused(&m, OT_ERR_FORMAT, "depends on its own output");
}

static void an_undefined_output_is_refused(void **state)
{
    const message z = value_info("z");
    message g = graph(), m;

    (void)state;
    put_message(&g, 12, &z);
    m = model(&g);
    assert_refused(&m, OT_ERR_FORMAT, "output 'z' of graph 'g' is not defined");
}

// ---- nodes and attributes ----

static void a_node_without_an_operator_is_refused(void **state)
{
    const message op = node("", "x", "z"), m = model_with_node(&op);

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "no op_type");
}

static message attr_of(const char *name, int kind)
{
    message m = {0};

    put_text(&m, 1, name);
    put_int(&m, 20, kind);
    return m;
}

static void a_value_that_is_not_of_the_stated_kind_is_refused(void **state)
{
    message attr = attr_of("alpha", OT_ATTR_FLOAT), m;

    (void)state;
    put_int(&attr, 3, 1);
    m = model_with_attr(&attr);
    assert_refused(
        &m, OT_ERR_FORMAT,
        "node 'the op': attribute 'alpha': holds a value of kind INT, but its type is FLOAT");
}

static void an_unknown_kind_is_refused(void **state)
{
    const message attr = attr_of("alpha", 77), m = model_with_attr(&attr);

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "attribute 'alpha': type 77 is not known");
}

static void the_kind_of_old_files_is_that_of_the_value(void **state)
{
    message attr = {0}, m;
    ot_model *out;

    (void)state;
    put_text(&attr, 1, "axis");
    put_int(&attr, 3, -2);
    m = model_with_attr(&attr);
    out = read_message(&m);
    assert_int_equal(ot__node_attr(maker(out, "y2"), "axis")->kind, OT_ATTR_INT);
    assert_int_equal(ot__node_attr(maker(out, "y2"), "axis")->i, -2);
    ot_model_destroy(out);
}

static void an_attribute_given_twice_is_refused(void **state)
{
    const message attr = attr_of("alpha", OT_ATTR_INT);
    message op = node("Op", "x", "z"), m;

    (void)state;
    put_message(&op, 5, &attr);
    put_message(&op, 5, &attr);
    m = model_with_node(&op);
    assert_refused(&m, OT_ERR_FORMAT, "attribute 'alpha' is given twice");
}

static void an_attribute_without_a_name_is_refused(void **state)
{
    const message attr = attr_of("", OT_ATTR_INT), m = model_with_attr(&attr);

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "an attribute has no name");
}

static void a_reference_outside_of_a_function_is_refused(void **state)
{
    message attr = attr_of("alpha", OT_ATTR_INT), m;

    (void)state;
    put_text(&attr, 21, "beta");
    m = model_with_attr(&attr);
    assert_refused(&m, OT_ERR_FORMAT, "refers to 'beta' of a function, but is in none");
}

static void a_tensor_attribute_needs_its_tensor(void **state)
{
    const message attr = attr_of("value", OT_ATTR_TENSOR), m = model_with_attr(&attr);

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "attribute 'value': has 0 values, expected one");
}

static void too_many_attributes_are_refused(void **state)
{
    ot__buf op = {0}, g = {0}, file = {0};
    const message head = node("Op", "x", "y"), x = value_info("x"), y = value_info("y");
    ot_model *out;
    message m = {0};

    (void)state;
    ot__buf_append(&op, head.bytes, head.n);
    for (int i = 0; i < 1025; i++) {
        message attr = {0}, field = {0};
        char name[16];

        snprintf(name, sizeof name, "a%d", i);
        attr = attr_of(name, OT_ATTR_INT);
        put_message(&field, 5, &attr);
        ot__buf_append(&op, field.bytes, field.n);
    }
    put_varint(&m, 1 << 3 | 2);
    put_varint(&m, op.length);
    ot__buf_append(&g, m.bytes, m.n);
    ot__buf_append(&g, op.data, op.length);
    m.n = 0;
    put_message(&m, 11, &x);
    put_message(&m, 12, &y);
    ot__buf_append(&g, m.bytes, m.n);
    m.n = 0;
    put_int(&m, 1, 10);
    put_varint(&m, 7 << 3 | 2);
    put_varint(&m, g.length);
    ot__buf_append(&file, m.bytes, m.n);
    ot__buf_append(&file, g.data, g.length);
    assert_int_equal(ot__onnx_read(file.data, file.length, NULL, "f", NULL, &out),
                     OT_ERR_NO_MEMORY);
    assert_message_has("more than 1024 attributes");
    ot__buf_deinit(&op);
    ot__buf_deinit(&g);
    ot__buf_deinit(&file);
}

// ---- types ----

static message model_with_type(const message *type)
{
    message info = value_info("typed"), g = graph();

    put_message(&info, 2, type);
    put_message(&g, 11, &info);
    return model(&g);
}

static void a_type_with_an_unknown_element_type_is_refused(void **state)
{
    message type = {0}, inner = {0}, m;

    (void)state;
    put_int(&inner, 1, 99);
    put_message(&type, 1, &inner);
    m = model_with_type(&type);
    assert_refused(&m, OT_ERR_FORMAT, "value 'typed': element type 99 is not known");
}

static message tensor_type_with_extents(int n, int64_t extent)
{
    message type = {0}, inner = {0}, shape = {0}, dim = {0};

    put_int(&dim, 1, extent);
    for (int i = 0; i < n; i++)
        put_message(&shape, 1, &dim);
    put_int(&inner, 1, OT_F32);
    put_message(&inner, 2, &shape);
    put_message(&type, 1, &inner);
    return type;
}

static void a_negative_extent_is_refused_but_minus_one_is_any(void **state)
{
    message type = tensor_type_with_extents(2, -7), m = model_with_type(&type);
    ot_model *out;

    (void)state;
    assert_refused(&m, OT_ERR_FORMAT, "value 'typed': size -7 of axis 0 is negative");
    type = tensor_type_with_extents(2, -1);
    m = model_with_type(&type);
    out = read_message(&m);
    assert_true(ot__graph_find(out->graph, "typed")->shape.dim[1] == OT_DIM_UNKNOWN);
    ot_model_destroy(out);
}

static void more_axes_than_are_supported_are_refused(void **state)
{
    const message type = tensor_type_with_extents(17, 1), m = model_with_type(&type);

    (void)state;
    assert_refused(&m, OT_ERR_UNSUPPORTED, "value 'typed': 17 axes, at most 16 are supported");
}

// ---- memory ----

static void reading_survives_every_failing_allocation(void **state)
{
    const int64_t dims[] = {2};
    message attr = attr_of("value", OT_ATTR_TENSOR), w = tensor("w", 1, 1, dims), op, m;
    ot_model *out;
    int64_t n = 0;
    ot_status st;

    (void)state;
    put_bytes(&w, 4, (float[]){1, 2}, 8);
    put_message(&attr, 5, &w);
    op = node("Op", "x", "y2");
    put_message(&op, 5, &attr);
    m = model_with_node(&op);
    do {
        ot__alloc_fail_after(n++);
        st = ot__onnx_read(m.bytes, m.n, NULL, "file.onnx", NULL, &out);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && !out));
    } while (st != OT_OK);
    assert_true(n > 20);
    ot_model_destroy(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_without_a_graph_is_refused),
        cmocka_unit_test(two_graphs_are_refused),
        cmocka_unit_test(the_last_version_of_a_domain_counts),
        cmocka_unit_test(initializers_that_are_inputs_are_no_inputs),
        cmocka_unit_test(an_input_defined_twice_is_refused),
        cmocka_unit_test(an_initializer_defined_twice_is_refused),
        cmocka_unit_test(a_value_made_twice_is_refused),
        cmocka_unit_test(an_output_with_an_inputs_name_is_refused),
        cmocka_unit_test(one_output_name_twice_in_a_node_is_refused),
        cmocka_unit_test(graph_outputs_listed_twice_stay_so),
        cmocka_unit_test(things_without_names_are_refused),
        cmocka_unit_test(an_undefined_input_is_refused),
        cmocka_unit_test(use_before_definition_names_the_definition),
        cmocka_unit_test(a_cycle_is_refused),
        cmocka_unit_test(an_undefined_output_is_refused),
        cmocka_unit_test(a_node_without_an_operator_is_refused),
        cmocka_unit_test(a_value_that_is_not_of_the_stated_kind_is_refused),
        cmocka_unit_test(an_unknown_kind_is_refused),
        cmocka_unit_test(the_kind_of_old_files_is_that_of_the_value),
        cmocka_unit_test(an_attribute_given_twice_is_refused),
        cmocka_unit_test(an_attribute_without_a_name_is_refused),
        cmocka_unit_test(a_reference_outside_of_a_function_is_refused),
        cmocka_unit_test(a_tensor_attribute_needs_its_tensor),
        cmocka_unit_test(too_many_attributes_are_refused),
        cmocka_unit_test(a_type_with_an_unknown_element_type_is_refused),
        cmocka_unit_test(a_negative_extent_is_refused_but_minus_one_is_any),
        cmocka_unit_test(more_axes_than_are_supported_are_refused),
        cmocka_unit_test(reading_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
