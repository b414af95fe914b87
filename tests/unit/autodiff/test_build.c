// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "autodiff/autodiff.h"
#include "evaluate.h"

enum { MAX_FROM = 4 };

// Central differences of the summed target with respect to one element, in f64.
static double slope(const ot_model *forward, const evaluation *point, const char *target,
                    const char *name, int64_t index)
{
    const double h = 1e-5;
    double side[2];

    for (int s = 0; s < 2; s++) {
        evaluation e = {0};
        size_t position = 0;
        const char *key;
        void *tensor;

        while (ot__map_next(&point->tensors, &position, &key, &tensor)) {
            ot_tensor *copy;

            assert_ok(ot_tensor_clone(tensor, &copy));
            if (strcmp(key, name) == 0)
                ((double *)copy->data)[index] += s == 0 ? h : -h;
            feed(&e, key, copy);
        }
        compute(&e, forward);
        side[s] = 0.0;
        for (int64_t k = 0; k < ot_tensor_count(result(&e, target)); k++)
            side[s] += element(&e, target, k);
        evaluation_deinit(&e);
    }
    return (side[0] - side[1]) / (2 * h);
}

// The gradients that the built graph computes are those of central differences.
static void assert_gradients(const char *text, const char *const *names, int n_names)
{
    ot_model *model = read_prepared(text), *forward;
    ot_value *from[MAX_FROM], *grads[MAX_FROM];
    evaluation point = {0}, run = {0};

    assert_ok(ot__model_clone(model, &forward));
    for (int i = 0; i < n_names; i++)
        from[i] = find_value(model, names[i]);
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *input = model->graph->inputs[i];
        double elements[64];
        int64_t count;

        assert_true(ot__shape_count(&input->shape, &count));
        for (int64_t k = 0; k < count; k++)
            elements[k] = 0.3 + 0.7 * sin(1.3 * (double)k + i);
        feed(&point, input->name, new_tensor(input->dtype, input->shape, elements));
        feed(&run, input->name, new_tensor(input->dtype, input->shape, elements));
    }
    assert_ok(
        ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, n_names, grads));
    compute(&run, model);
    for (int i = 0; i < n_names; i++) {
        const ot_tensor *grad = result(&run, grads[i]->name);

        assert_true(ot__shape_equal(&grad->shape, &from[i]->shape));
        for (int64_t k = 0; k < ot_tensor_count(grad); k++)
            assert_true(fabs(ot__tensor_get_f64(grad, k) -
                             slope(forward, &point, "loss", names[i], k)) < 1e-7);
    }
    evaluation_deinit(&point);
    evaluation_deinit(&run);
    ot_model_destroy(forward);
    ot_model_destroy(model);
}

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17]> g (double[2,3] x, double[2,3] w, double[3] b) => " \
    "(double loss)"

static void gradients_are_those_of_central_differences(void **state)
{
    const char *const names[] = {"x", "w", "b"};

    (void)state;
    assert_gradients(
        HEAD "{ m = Mul(x, w) a = Add(m, b) t = Tanh(a) loss = ReduceSum<keepdims = 0>(t) }", names,
        3);
}

static void a_weight_that_one_node_reads_twice_gets_both_contributions(void **state)
{
    const char *const names[] = {"w"};

    (void)state;
    assert_gradients(HEAD "{ m = Mul(w, w) loss = ReduceSum<keepdims = 0>(m) }", names, 1);
    assert_gradients(HEAD "{ m = Add(w, w) n = Exp(m) loss = ReduceSum<keepdims = 0>(n) }", names,
                     1);
}

static void a_weight_that_several_nodes_read_gets_all_contributions(void **state)
{
    const char *const names[] = {"w", "x"};

    (void)state;
    assert_gradients(HEAD "{ a = Tanh(w) c = Mul(w, x) d = Relu(w) e = Add(a, c) f = Add(e, d)"
                          "  loss = ReduceSum<keepdims = 0>(f) }",
                     names, 2);
}

static void a_loss_that_is_no_scalar_starts_from_ones(void **state)
{
    const char *const names[] = {"w"};

    (void)state;
    assert_gradients("<ir_version: 8, opset_import: [\"\" : 17]>"
                     "g (double[2,3] x, double[2,3] w) => (double[2,3] loss)"
                     "{ a = Mul(x, w) loss = Tanh(a) }",
                     names, 1);
}

static void the_gradient_of_an_intermediate_value_can_be_asked_for(void **state)
{
    ot_model *model =
        read_prepared(HEAD "{ a = Mul(x, w) t = Tanh(a) loss = ReduceSum<keepdims = 0>(t) }");
    ot_value *from[] = {find_value(model, "a")}, *grads[1];

    (void)state;
    assert_ok(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads));
    assert_string_equal(grads[0]->name, "a_grad");
    assert_null(find_node(model, "MulGrad"));
    ot_model_destroy(model);
}

// Each contribution is found among the others without a walk over all of them.
static void a_node_may_read_a_weight_very_many_times(void **state)
{
    enum { N = 300000 };
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (double[1] w) => (double loss)"
                                    "{ c = Concat<axis = 0>(w, w)"
                                    "  loss = ReduceSum<keepdims = 0>(c) }");
    ot_value *from[] = {find_value(model, "w")}, *grads[1];
    ot_node *concat = model->graph->nodes[0];
    ot_shape shape = {.ndim = 1, .dim = {N}};

    (void)state;
    concat->inputs = ot__arena_alloc(model->arena, N * sizeof(ot_value *));
    assert_non_null(concat->inputs);
    for (int i = 0; i < N; i++)
        concat->inputs[i] = from[0];
    concat->n_inputs = N;
    ot__value_set(concat->outputs[0], OT_F64, &shape);
    assert_ok(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads));
    assert_int_equal(grads[0]->producer->n_inputs, N);
    ot_model_destroy(model);
}

static void frozen_parts_cost_no_gradient_nodes(void **state)
{
    ot_model *model = read_prepared(
        HEAD "{ [front] f = Exp(x) [back] a = Mul(f, w) loss = ReduceSum<keepdims = 0>(a) }");
    ot_value *from[] = {find_value(model, "w")}, *grads[1];

    (void)state;
    assert_ok(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads));
    for (int n = 0; n < model->graph->n_nodes; n++)
        assert_false(ot__starts_with(model->graph->nodes[n]->name, "front_Grad"));
    assert_null(ot__graph_find(model->graph, "f_grad"));
    ot_model_destroy(model);
}

static void names_follow_the_values_and_nodes_of_the_forward_graph(void **state)
{
    ot_model *model =
        read_prepared(HEAD "{ [one] a = Tanh(w) [two] c = Sigmoid(w) [sum] d = Add(a, c)"
                           "  [end] loss = ReduceSum<keepdims = 0>(d) }");
    ot_value *from[] = {find_value(model, "w")}, *grads[1];
    const ot_node *sum;

    (void)state;
    assert_ok(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads));
    assert_string_equal(grads[0]->name, "w_grad");
    sum = grads[0]->producer;
    assert_string_equal(sum->op_type, "Sum");
    assert_string_equal(sum->name, "AccumulateGrad_w_grad");
    assert_string_equal(sum->doc, "Backward pass");
    assert_int_equal(sum->n_inputs, 2);
    assert_string_equal(sum->inputs[0]->name, "w_grad_0");
    assert_string_equal(sum->inputs[0]->producer->name, "one_Grad/TanhGrad_0");
    assert_string_equal(sum->inputs[1]->name, "w_grad_1");
    assert_true(find_value(model, "loss_grad")->is_initializer);
    assert_int_equal(find_value(model, "loss_grad")->shape.ndim, 0);
    ot_model_destroy(model);
}

static void contributions_of_relu_are_numbered_last(void **state)
{
    ot_model *model = read_prepared(
        HEAD "{ a = Relu(w) c = Tanh(w) d = Add(a, c) loss = ReduceSum<keepdims = 0>(d) }");
    ot_value *from[] = {find_value(model, "w")}, *grads[1];

    (void)state;
    assert_ok(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads));
    assert_string_equal(find_value(model, "w_grad_0")->producer->op_type, "TanhGrad");
    assert_string_equal(find_value(model, "w_grad_1")->producer->op_type, "ReluGrad");
    ot_model_destroy(model);
}

static void nodes_without_names_get_one(void **state)
{
    ot_model *model =
        read_prepared(HEAD "{ [Tanh_0] a = Neg(w) c = Tanh(a) loss = ReduceSum<keepdims = 0>(c) }");
    ot_value *from[] = {find_value(model, "w")}, *grads[1];

    (void)state;
    assert_ok(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads));
    assert_string_equal(find_node(model, "Tanh")->name, "Tanh_1");
    assert_string_equal(find_node(model, "TanhGrad")->name, "Tanh_1_Grad/TanhGrad_0");
    ot_model_destroy(model);
}

static void names_of_gradients_that_the_model_uses_already_are_avoided(void **state)
{
    ot_model *model =
        read_prepared(HEAD "{ w_grad = Tanh(w) loss = ReduceSum<keepdims = 0>(w_grad) }");
    ot_value *from[] = {find_value(model, "w")}, *grads[1];

    (void)state;
    assert_ok(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads));
    assert_string_equal(grads[0]->name, "w_grad_1");
    ot_model_destroy(model);
}

static void values_that_do_not_reach_the_target_are_all_named_with_the_reason(void **state)
{
    ot_model *model = read_prepared(HEAD "{ u = Tanh(b) [cmp] c = Greater(x, x) d = Where(c, w, w)"
                                         "  loss = ReduceSum<keepdims = 0>(d) }");
    ot_value *from[] = {find_value(model, "w"), find_value(model, "b"), find_value(model, "x")},
             *grads[3];

    (void)state;
    assert_fails(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 3, grads),
                 OT_ERR_INVALID,
                 "no gradient reaches from 'loss' to 'b' (no path of operators), 'x' (only through "
                 "input 'A' of Greater 'cmp')");
    ot_model_destroy(model);
}

static void operators_without_gradient_are_all_named_with_path_and_advice(void **state)
{
    ot_model *model = read_prepared(
        HEAD "{ [first] a = Mul(x, w) [odd1] c = Exp(a) [odd2] d = Log(c) [last] e = Add(d, b)"
             "  loss = ReduceSum<keepdims = 0>(e) }");
    ot_node *odd1 = find_node(model, "Exp"), *odd2 = find_node(model, "Log");
    ot_op_def record1 = *odd1->op, record2 = *odd2->op;
    ot_value *from[] = {find_value(model, "w"), find_value(model, "b")}, *grads[2];

    (void)state;
    record1.grad = record2.grad = NULL;
    odd1->op = &record1;
    odd2->op = &record2;
    assert_fails(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 2, grads),
                 OT_ERR_UNSUPPORTED,
                 "2 operators on the way to 'loss' without gradient: Exp 'odd1' (from 'w' by "
                 "first), Log 'odd2' (from 'w' by first > odd1); freeze 'w' to train the rest");
    assert_ok(
        ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, &from[1], 1, grads));
    ot_model_destroy(model);
}

static void refuse(ot_grad *g)
{
    ot_grad_fail(g, "not in this form");
}

static void refusals_of_rules_are_all_reported(void **state)
{
    ot_model *model = read_prepared(
        HEAD "{ [odd1] c = Exp(w) [odd2] d = Log(c) loss = ReduceSum<keepdims = 0>(d) }");
    ot_node *odd1 = find_node(model, "Exp"), *odd2 = find_node(model, "Log");
    ot_op_def record1 = *odd1->op, record2 = *odd2->op;
    ot_value *from[] = {find_value(model, "w")}, *grads[1];

    (void)state;
    record1.grad = record2.grad = refuse;
    odd1->op = &record1;
    odd2->op = &record2;
    assert_fails(ot__autodiff_build(model->graph, find_value(model, "loss"), NULL, from, 1, grads),
                 OT_ERR_UNSUPPORTED,
                 "gradient of Log 'odd2': not in this form; gradient of Exp 'odd1'");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_central_differences),
        cmocka_unit_test(a_weight_that_one_node_reads_twice_gets_both_contributions),
        cmocka_unit_test(a_weight_that_several_nodes_read_gets_all_contributions),
        cmocka_unit_test(a_loss_that_is_no_scalar_starts_from_ones),
        cmocka_unit_test(the_gradient_of_an_intermediate_value_can_be_asked_for),
        cmocka_unit_test(a_node_may_read_a_weight_very_many_times),
        cmocka_unit_test(frozen_parts_cost_no_gradient_nodes),
        cmocka_unit_test(names_follow_the_values_and_nodes_of_the_forward_graph),
        cmocka_unit_test(contributions_of_relu_are_numbered_last),
        cmocka_unit_test(nodes_without_names_get_one),
        cmocka_unit_test(names_of_gradients_that_the_model_uses_already_are_avoided),
        cmocka_unit_test(values_that_do_not_reach_the_target_are_all_named_with_the_reason),
        cmocka_unit_test(operators_without_gradient_are_all_named_with_path_and_advice),
        cmocka_unit_test(refusals_of_rules_are_all_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
