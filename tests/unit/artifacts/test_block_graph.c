// SPDX-License-Identifier: Apache-2.0
#include "block_tests.h"

static const char forward[] = "(float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}>"
                              "{ y = Mul(x, w) }";

// ---- inputs ----

static void an_input_like_a_value_has_its_symbols(void **state)
{
    ot_block *b = block_over(forward);
    ot_value *t = ot_block_input_like(b, ot_block_output(b, 0), NULL);
    ot_model *model = finished(b, ot_block_sub(b, ot_block_value(b, "y"), t));
    const ot_value *input = find_value(model, "onnx::input::1");

    (void)state;
    assert_true(input->is_input);
    assert_int_equal(input->dtype, OT_F32);
    assert_string_equal(ot__dim_name(model, input->shape.dim[0]), "N");
    assert_int_equal(input->shape.dim[1], 3);
    ot_model_destroy(model);
}

static void inputs_that_cannot_be_are_refused(void **state)
{
    const ot_shape deep = {.ndim = 17}, negative = {.ndim = -1};
    ot_block *b = block_over(forward);

    (void)state;
    assert_refused(b, ot_block_input(b, "x", OT_F32, NULL), OT_ERR_INVALID,
                   "input: 'x' is a value of the graph already");
    b = block_over(forward);
    assert_refused(b, ot_block_input(b, "", OT_F32, NULL), OT_ERR_INVALID,
                   "input: a name is empty");
    b = block_over(forward);
    assert_refused(b, ot_block_input(b, "t", OT_STRING, NULL), OT_ERR_UNSUPPORTED,
                   "input: element type string");
    b = block_over(forward);
    assert_refused(b, ot_block_input(b, "t", (ot_dtype)77, NULL), OT_ERR_UNSUPPORTED,
                   "input: element type unknown");
    b = block_over(forward);
    assert_refused(b, ot_block_input(b, "t", OT_F32, &deep), OT_ERR_INVALID, "input: 17 axes");
    b = block_over(forward);
    assert_refused(b, ot_block_input(b, "t", OT_F32, &negative), OT_ERR_INVALID, "input: -1 axes");
    b = block_over(forward);
    assert_refused(b, ot_block_input_like(b, NULL, "t"), OT_ERR_INVALID,
                   "input like: a value is NULL");
    b = block_over(forward);
    assert_refused(b, ot_block_input_sequence(b, "x", OT_F32), OT_ERR_INVALID, "'x' is a value");
}

static void values_are_found_by_name_and_outputs_by_number(void **state)
{
    ot_block *b = block_over(forward);

    (void)state;
    assert_ptr_equal(ot_block_value(b, "y"), ot_block_output(b, 0));
    assert_string_equal(ot_block_value_name(ot_block_output(b, 0)), "y");
    assert_refused(b, ot_block_output(b, 1), OT_ERR_NOT_FOUND, "output: number 1 of 1");
    b = block_over(forward);
    assert_refused(b, ot_block_output(b, -1), OT_ERR_NOT_FOUND, "output: number -1 of 1");
    b = block_over(forward);
    assert_refused(b, ot_block_value(b, NULL), OT_ERR_INVALID, "value: a name is NULL");
}

static void values_of_another_builder_are_refused(void **state)
{
    ot_block *other = block_over(forward), *b = block_over(forward);

    (void)state;
    assert_refused(b, ot_block_neg(b, ot_block_output(other, 0)), OT_ERR_INVALID,
                   "Neg: 'y' is a value of another builder");
    ot_block_destroy(other);
}

// ---- initializers ----

static void initializers_and_constants_are_copies(void **state)
{
    double elements[] = {7, 8, 9};
    ot_tensor *tensor = new_tensor(OT_F32, OT_SHAPE(3), elements);
    ot_block *b = block_over(forward);
    ot_value *v = ot_block_initializer(b, "v", tensor), *c = ot_block_constant_tensor(b, tensor);
    ot_value *sum = ot_block_add(b, v, c);
    ot_model *model;

    (void)state;
    ot_tensor_destroy(tensor);
    model = finished(b, ot_block_add(b, sum, ot_block_constant(b, 0.5, OT_F32)));
    assert_true(ot__tensor_get_f64(find_value(model, "v")->constant, 2) == 9.0);
    assert_true(ot__tensor_get_f64(find_value(model, "onnx::initializer::1")->constant, 0) == 7.0);
    assert_true(ot__tensor_get_f64(find_value(model, "onnx::initializer::4")->constant, 0) == 0.5);
    assert_int_equal(find_value(model, "onnx::initializer::4")->shape.ndim, 1);
    ot_model_destroy(model);
}

static void initializers_that_cannot_be_are_refused(void **state)
{
    const double one = 1.0;
    ot_tensor *tensor = new_tensor(OT_F32, OT_SHAPE(1), &one);
    ot_block *b = block_over(forward);

    (void)state;
    assert_refused(b, ot_block_initializer(b, "w", tensor), OT_ERR_INVALID,
                   "initializer: 'w' is a value of the graph already");
    b = block_over(forward);
    assert_refused(b, ot_block_initializer(b, "v", NULL), OT_ERR_INVALID,
                   "initializer: the tensor is NULL");
    b = block_over(forward);
    assert_refused(b, ot_block_constant_tensor(b, NULL), OT_ERR_INVALID,
                   "constant: the tensor is NULL");
    b = block_over(forward);
    assert_refused(b, ot_block_constant(b, 1.0, OT_DTYPE_UNDEFINED), OT_ERR_UNSUPPORTED,
                   "constant: element type undefined");
    b = block_over(forward);
    assert_refused(b, ot_block_constant(b, 1.0, OT_C64), OT_ERR_INVALID, "constant: ");
    ot_tensor_destroy(tensor);
}

// ---- nodes ----

static void any_operator_is_a_node_with_attributes_in_text(void **state)
{
    ot_block *b = block_over("(float[4, 6] x) => (float[4, 6] x) { }");
    ot_value *x = ot_block_value(b, "x"), *parts[2], *y;
    ot_model *model;

    (void)state;
    ot_block_node(b, "Split", "axis = 1", &x, 1, parts, 2);
    y = ot_block_op(b, "Gemm", "transB = 1, alpha = 2", parts, 2);
    model = finished(b, ot_block_op(b, "com.microsoft.Gelu", NULL, &y, 1));
    assert_nodes(model,
                 "   [\"onnx::Split::3\"] \"onnx::split_output::1\", \"onnx::split_output::2\" = "
                 "Split <axis: int = 1> (x)\n"
                 "   [\"onnx::Gemm::5\"] \"onnx::gemm_output::4\" = Gemm <transB: int = 1, "
                 "alpha: float = 2> (\"onnx::split_output::1\", \"onnx::split_output::2\")\n"
                 "   [\"onnx::Gelu::7\"] \"onnx::gelu_output::6\" = com.microsoft.Gelu "
                 "(\"onnx::gemm_output::4\")\n");
    assert_int_equal(find_value(model, "onnx::gemm_output::4")->shape.dim[1], 4);
    ot_model_destroy(model);
}

static void omitted_inputs_are_null(void **state)
{
    ot_block *b = block_over("(float[4] x, float top) => (float[4] x, float top) { }");
    ot_value *in[] = {ot_block_value(b, "x"), NULL, ot_block_value(b, "top")};
    ot_model *model = finished(b, ot_block_op(b, "Clip", NULL, in, 3));

    (void)state;
    assert_nodes(model, "   [\"onnx::Clip::2\"] \"onnx::clip_output::1\" = Clip (x, \"\", top)\n");
    ot_model_destroy(model);
}

static void nodes_that_cannot_be_are_refused(void **state)
{
    static const struct {
        const char *op, *attrs;
        int n_inputs, n_outputs;
        ot_status status;
        const char *text;
    } cases[] = {
        {"Foo", NULL, 1, 1, OT_ERR_UNSUPPORTED, "Foo 'onnx::Foo::2': domain ai.onnx has no"},
        {"com.acme.Foo", NULL, 1, 1, OT_ERR_UNSUPPORTED, "domain com.acme has no"},
        {"", NULL, 1, 1, OT_ERR_UNSUPPORTED, "has no operator of that name"},
        {".", NULL, 1, 1, OT_ERR_UNSUPPORTED, "has no operator of that name"},
        {NULL, NULL, 1, 1, OT_ERR_INVALID, "node: 1 inputs and 1 outputs of no operator"},
        {"Relu", "slope = 2", 1, 1, OT_ERR_INVALID, "slope"},
        {"Relu", "][", 1, 1, OT_ERR_FORMAT, "Relu: attribute"},
        {"Relu", NULL, 0, 1, OT_ERR_INVALID, "Relu 'onnx::Relu::2'"},
        {"Relu", NULL, 1, 3, OT_ERR_INVALID, "Relu 'onnx::Relu::4'"},
        {"Relu", NULL, -1, 1, OT_ERR_INVALID, "Relu: -1 inputs"},
        {"Relu", NULL, 1, 0, OT_ERR_INVALID, "Relu: 1 inputs and 0 outputs"},
        {"Add", NULL, 2, 1, OT_ERR_INVALID, "Add 'onnx::Add::2'"}, // the second is NULL
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_block *b = block_over(forward);
        ot_value *in[] = {ot_block_value(b, "x"), NULL}, *out[3] = {in[0], in[0], in[0]};

        ot_block_node(b, cases[i].op, cases[i].attrs, in, cases[i].n_inputs, out,
                      cases[i].n_outputs);
        for (int k = 0; k < cases[i].n_outputs; k++)
            assert_null(out[k]);
        assert_refused(b, NULL, cases[i].status, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_input_like_a_value_has_its_symbols),
        cmocka_unit_test(inputs_that_cannot_be_are_refused),
        cmocka_unit_test(values_are_found_by_name_and_outputs_by_number),
        cmocka_unit_test(values_of_another_builder_are_refused),
        cmocka_unit_test(initializers_and_constants_are_copies),
        cmocka_unit_test(initializers_that_cannot_be_are_refused),
        cmocka_unit_test(any_operator_is_a_node_with_attributes_in_text),
        cmocka_unit_test(omitted_inputs_are_null),
        cmocka_unit_test(nodes_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
