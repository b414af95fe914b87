// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/fuse.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
#define NORM "com.microsoft.BatchNormInternal"
#define NORM_GRAD "com.microsoft.BatchNormalizationGrad"

// Fuses a copy and checks that the outputs stay the same.
static ot_model *fuse(const char *text)
{
    static double numbers[24];
    ot_model *model = read_prepared(text), *fused = read_prepared(text);
    evaluation before = {0}, after = {0};

    for (int k = 0; k < 24; k++)
        numbers[k] = (k * 7 % 11 - 4) * 0.5;
    assert_ok(ot__fuse_batch_norm(fused));
    assert_ok(ot__graph_verify(fused->graph));
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        feed(&before, x->name, new_tensor(x->dtype, x->shape, numbers + i));
        feed(&after, x->name, new_tensor(x->dtype, x->shape, numbers + i));
    }
    compute(&before, model);
    compute(&after, fused);
    for (int o = 0; o < model->graph->n_outputs; o++) {
        const char *name = model->graph->outputs[o]->name;

        for (int64_t k = 0; k < ot_tensor_count(result(&before, name)); k++)
            assert_float_equal(element(&after, name, k), element(&before, name, k), 1e-5);
    }
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    return fused;
}

static void norm_and_relu_become_one(void **state)
{
    ot_model *model = fuse(HEAD "g (float[2,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v)"
                                " => (float[2,2,3] y)"
                                "{ n, rm, rv, sm, si = " NORM "(x, s, b, m, v) y = Relu(n) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_non_null(find_node(model, "BatchNormRelu"));
    ot_model_destroy(model);
}

static void the_sum_of_a_residual_block_goes_along(void **state)
{
    ot_model *model = fuse(HEAD "g (float[2,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v,"
                                " float[2,2,3] z) => (float[2,2,3] y)"
                                "{ n, rm, rv, sm, si = " NORM "(x, s, b, m, v) a = Add(z, n)"
                                "  y = Relu(a) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_int_equal(find_node(model, "BatchNormRelu")->n_inputs, 6);
    ot_model_destroy(model);
}

static void what_others_read_or_is_stretched_is_left(void **state)
{
    ot_model *model = fuse(HEAD "g (float[2,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v)"
                                " => (float[2,2,3] y, float[2,2,3] n)"
                                "{ n, rm, rv, sm, si = " NORM "(x, s, b, m, v) y = Relu(n) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
    model = fuse(HEAD "g (float[2,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v,"
                      " float[3] z) => (float[2,2,3] y)"
                      "{ n, rm, rv, sm, si = " NORM "(x, s, b, m, v) a = Add(n, z) y = Relu(a) }");
    assert_int_equal(model->graph->n_nodes, 3);
    ot_model_destroy(model);
}

static void the_gradients_become_one_by_y(void **state)
{
    ot_model *model = fuse(
        HEAD "g (float[2,2,3] dy, float[2,2,3] x, float[2] s, float[2] m, float[2] i,"
             " float[2,2,3] y) => (float[2,2,3] dx, float[2] ds, float[2] db)"
             "{ g = com.microsoft.ReluGrad(dy, y) dx, ds, db = " NORM_GRAD "(g, x, s, m, i) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_int_equal(find_node(model, "BatchNormReluGrad")->n_outputs, 3);
    ot_model_destroy(model);
}

static void a_gradient_that_others_read_is_handed_out(void **state)
{
    ot_model *model =
        fuse(HEAD "g (float[2,2,3] dy, float[2,2,3] x, float[2] s, float[2] m, float[2] i,"
                  " float[2,2,3] y) => (float[2,2,3] dx, float[2,2,3] dz)"
                  "{ g = com.microsoft.ReluGrad(dy, y) dx, ds, db = " NORM_GRAD "(g, x, s, m, i)"
                  "  dz = Neg(g) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    assert_int_equal(find_node(model, "BatchNormReluGrad")->n_outputs, 4);
    ot_model_destroy(model);
}

static void without_a_sum_the_gradient_does_not_need_y(void **state)
{
    ot_model *model = fuse(
        HEAD "g (float[2,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v,"
             " float[2,2,3] dy) => (float[2,2,3] dx, float[2] ds, float[2,2,3] e)"
             "{ n, rm, rv, sm, si = " NORM "(x, s, b, m, v) y = Relu(n) e = Exp(y)"
             "  g = com.microsoft.ReluGrad(dy, y) dx, ds, db = " NORM_GRAD "(g, x, s, sm, si) }");
    const ot_node *grad = find_node(model, "BatchNormReluGrad");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 3);
    assert_null(grad->inputs[5]);
    assert_string_equal(grad->inputs[6]->name, "b");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_and_relu_become_one),
        cmocka_unit_test(the_sum_of_a_residual_block_goes_along),
        cmocka_unit_test(what_others_read_or_is_stretched_is_left),
        cmocka_unit_test(the_gradients_become_one_by_y),
        cmocka_unit_test(a_gradient_that_others_read_is_handed_out),
        cmocka_unit_test(without_a_sum_the_gradient_does_not_need_y),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
