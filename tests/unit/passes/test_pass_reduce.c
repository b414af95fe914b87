// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/passes.h"

static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
                           "g (float[2] x, float[2] a, float[2] b, float[2] c, bool[1] reset) => "
                           "(bool[1] a_done, bool[1] b_done, bool[1] c_done) {"
                           "  y = Neg (x)"
                           "  a_done = com.microsoft.InPlaceAccumulatorV2 (a, y, reset)"
                           "  z = Exp (y)"
                           "  b_done = com.microsoft.InPlaceAccumulatorV2 (b, z, reset)"
                           "  u = Neg (z)"
                           "  c_done = com.microsoft.InPlaceAccumulatorV2 (c, u, reset)"
                           "}";

static void expect_node(const ot_graph *g, int k, const char *op_type, const char *input)
{
    assert_true(k < g->n_nodes);
    assert_string_equal(g->nodes[k]->op_type, op_type);
    assert_string_equal(g->nodes[k]->inputs[0]->name, input);
}

static void a_sum_begins_behind_the_last_gradient_of_its_bucket(void **state)
{
    const int bucket_of[] = {-1, 1, 1, 0, -1}; // 2 has no gradients here
    ot_model *model = read_prepared(text);
    const ot_graph *g = model->graph;

    (void)state;
    assert_ok(ot__pass_reduce(model->graph, bucket_of, 3));
    assert_int_equal(g->n_nodes, 8);
    expect_node(g, 3, "InPlaceAccumulatorV2", "b");
    expect_node(g, 4, "ReduceStart", "a_done");
    assert_int_equal(g->nodes[4]->n_inputs, 2);
    assert_string_equal(g->nodes[4]->inputs[1]->name, "b_done");
    assert_int_equal(ot_attr_int(g->nodes[4], "bucket"), 1);
    expect_node(g, 6, "InPlaceAccumulatorV2", "c");
    expect_node(g, 7, "ReduceStart", "c_done");
    assert_int_equal(ot_attr_int(g->nodes[7], "bucket"), 0);
    assert_ok(ot__graph_verify(g));
    ot_model_destroy(model);
}

static void every_failing_allocation_is_reported_and_nothing_leaks(void **state)
{
    const int bucket_of[] = {-1, 0, 0, 0, -1};
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int64_t n = 0; n < 100 && st == OT_ERR_NO_MEMORY; n++) {
        ot_model *model = read_prepared(text);

        ot__alloc_fail_after(n);
        st = ot__pass_reduce(model->graph, bucket_of, 1);
        ot__alloc_fail_after(-1);
        ot_model_destroy(model);
    }
    assert_ok(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_begins_behind_the_last_gradient_of_its_bucket),
        cmocka_unit_test(every_failing_allocation_is_reported_and_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
