// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]> "
#define PARAMETERS "float[2] s, float[2] b, float[2] m, float[2] v"
#define NORM "ai.onnxtrain.BatchNormRelu"
// As gradients do, this reads the statistics late.
#define LATE                                                                                       \
    " w = ReduceSum<keepdims = 0>(q) u = Add(mean, inv) t = ReduceSum<keepdims = 0>(u)"            \
    " z = Add(w, t) }"

enum { N_NUMBERS = 24 };

// Runs the pass on a copy and checks that the outputs stay the same.
static ot_model *recompute(const char *text)
{
    static double numbers[2 * N_NUMBERS];
    ot_model *model = read_prepared(text), *changed = read_prepared(text);
    evaluation before = {0}, after = {0};

    for (int k = 0; k < 2 * N_NUMBERS; k++)
        numbers[k] = (k * 7 % 11 - 4) * 0.5;
    assert_ok(ot__pass_recompute(changed, false));
    assert_ok(ot__graph_verify(changed->graph));
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        feed(&before, x->name, new_tensor(x->dtype, x->shape, numbers + i));
        feed(&after, x->name, new_tensor(x->dtype, x->shape, numbers + i));
    }
    compute(&before, model);
    compute(&after, changed);
    for (int o = 0; o < model->graph->n_outputs; o++) {
        const char *name = model->graph->outputs[o]->name;

        for (int64_t k = 0; k < ot_tensor_count(result(&before, name)); k++)
            assert_float_equal(element(&after, name, k), element(&before, name, k), 1e-5);
    }
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    return changed;
}

static int position(const ot_model *model, const char *op_type)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        if (strcmp(model->graph->nodes[n]->op_type, op_type) == 0)
            return n;
    return -1;
}

// Something large that comes and goes while y is idle.
#define LARGE " big = Concat<axis = 2>(c, c, c, c, c) sum = ReduceSum<keepdims = 0>(big)"

static void a_value_is_made_again_before_its_late_reader(void **state)
{
    ot_model *model =
        recompute(HEAD "g (float[2,2,3] in, " PARAMETERS ") => (float z)"
                       "{ x = Abs(in) y, rm, rv, mean, inv = " NORM
                       "(x, s, b, m, v) c = Neg(y)" LARGE "  p = Mul(x, y) q = Sub(p, sum)" LATE);
    const int at = position(model, "BatchNormReluAgain");

    (void)state;
    assert_int_equal(position(model, "Mul"), at + 1);
    assert_ptr_equal(model->graph->nodes[at + 1]->inputs[1], model->graph->nodes[at]->outputs[0]);
    assert_ptr_equal(find_node(model, "Neg")->inputs[0],
                     find_node(model, "BatchNormRelu")->outputs[0]);
    ot_model_destroy(model);
}

static void what_would_have_to_be_kept_for_it_is_not_worth_it(void **state)
{
    ot_model *model =
        recompute(HEAD "g (float[2,2,3] in, " PARAMETERS ") => (float z)"
                       "{ x = Abs(in) y, rm, rv, mean, inv = " NORM
                       "(x, s, b, m, v) c = Neg(y)" LARGE "  p = Abs(y) q = Sub(p, sum)" LATE);

    (void)state;
    assert_int_equal(position(model, "BatchNormReluAgain"), -1);
    ot_model_destroy(model);
}

static void a_value_that_is_not_idle_at_the_peak_is_kept(void **state)
{
    ot_model *model = recompute(HEAD "g (float[2,2,3] in, " PARAMETERS ") => (float z)"
                                     "{ x = Abs(in) y, rm, rv, mean, inv = " NORM
                                     "(x, s, b, m, v) c = Neg(y) d = Neg(c)"
                                     "  big = Concat<axis = 2>(y, x, d, y, x, x, y)"
                                     "  z = ReduceSum<keepdims = 0>(big) }");

    (void)state;
    assert_int_equal(position(model, "BatchNormReluAgain"), -1);
    ot_model_destroy(model);
}

static void outputs_are_kept(void **state)
{
    ot_model *model =
        recompute(HEAD "g (float[2,2,3] in, " PARAMETERS ")"
                       " => (float[2,2,3] y, float z)"
                       "{ x = Abs(in) y, rm, rv, mean, inv = " NORM
                       "(x, s, b, m, v) c = Neg(y)" LARGE "  p = Mul(x, y) q = Sub(p, sum)" LATE);

    (void)state;
    assert_int_equal(position(model, "BatchNormReluAgain"), -1);
    ot_model_destroy(model);
}

#define SUMMED(before)                                                                             \
    HEAD "g (float[2,2,3] in, " PARAMETERS ", float[2,2,3] r) => (float z)"                        \
         "{ x = Abs(in) " before " y, rm, rv, mean, inv = " NORM                                   \
         "(x, s, b, m, v, other) c = Neg(y)" LARGE "  p = Mul(x, y)"

static void a_sum_is_made_again_where_its_other_operand_is_kept(void **state)
{
    ot_model *kept =
        recompute(SUMMED("other = Neg(r)") " p2 = Sub(p, other) q = Sub(p2, sum)" LATE);
    ot_model *gone = recompute(SUMMED("other = Neg(r)") " q = Sub(p, sum)" LATE);
    const ot_node *again = find_node(kept, "BatchNormReluAgain");

    (void)state;
    assert_non_null(again);
    assert_int_equal(again->n_inputs, 6);
    assert_ptr_equal(again->inputs[5], find_node(kept, "BatchNormRelu")->inputs[5]);
    assert_int_equal(position(gone, "BatchNormReluAgain"), -1);
    ot_model_destroy(kept);
    ot_model_destroy(gone);
}

// Both cannot go: what the second is made of again is what the first made.
static void of_a_value_and_a_sum_with_it_one_is_made_again(void **state)
{
    ot_model *model =
        recompute(SUMMED("other, rm0, rv0, mean0, inv0 = " NORM
                         "(x, s, b, m, v)") " p2 = Sub(p, other) u0 = Add(mean0, inv0) t0 = "
                                            "ReduceSum<keepdims = 0>(u0)"
                                            " p3 = Sub(p2, t0) q = Sub(p3, sum)" LATE);

    (void)state;
    assert_int_equal(count_nodes(model, "BatchNormReluAgain"), 1);
    ot_model_destroy(model);
}

static void a_graph_without_such_values_stays_as_it_is(void **state)
{
    ot_model *model = recompute(HEAD "g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_made_again_before_its_late_reader),
        cmocka_unit_test(what_would_have_to_be_kept_for_it_is_not_worth_it),
        cmocka_unit_test(a_value_that_is_not_idle_at_the_peak_is_kept),
        cmocka_unit_test(outputs_are_kept),
        cmocka_unit_test(a_sum_is_made_again_where_its_other_operand_is_kept),
        cmocka_unit_test(of_a_value_and_a_sum_with_it_one_is_made_again),
        cmocka_unit_test(a_graph_without_such_values_stays_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
