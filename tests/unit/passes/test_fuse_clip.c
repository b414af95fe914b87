// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/fuse.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> g (float[6] dy, float[6] x) => (float[6] y"
#define BOUNDS ") <float low = {-1}, float high = {2}, float zero = {0}> "

// Fuses a copy, checks that y stays the same and gives the number of nodes left.
static int fused_nodes(const char *text)
{
    static const double dy[] = {1, 2, 3, 4, 5, 6}, x[] = {-2, -1, 0, 2, 3, 1};
    ot_model *model = read_prepared(text), *fused = read_prepared(text);
    evaluation before = {0}, after = {0};
    int n;

    assert_ok(ot__fuse_clip(fused));
    assert_ok(ot__graph_verify(fused->graph));
    feed(&before, "dy", new_tensor(OT_F32, OT_SHAPE(6), dy));
    feed(&before, "x", new_tensor(OT_F32, OT_SHAPE(6), x));
    feed(&after, "dy", new_tensor(OT_F32, OT_SHAPE(6), dy));
    feed(&after, "x", new_tensor(OT_F32, OT_SHAPE(6), x));
    compute(&before, model);
    compute(&after, fused);
    for (int64_t k = 0; k < 6; k++)
        assert_true(element(&after, "y", k) == element(&before, "y", k));
    n = fused->graph->n_nodes;
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    ot_model_destroy(fused);
    return n;
}

static void the_gradient_of_clip_becomes_one_node(void **state)
{
    (void)state;
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ a = GreaterOrEqual(x, low) b = LessOrEqual(x, high)"
                                             " m = And(a, b) y = Where(m, dy, zero) }"),
                     1);
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ a = GreaterOrEqual(x, low) b = LessOrEqual(x, high)"
                                             " m = And(b, a) y = Where(m, dy, zero) }"),
                     1);
}

static void one_bound_will_do(void **state)
{
    (void)state;
    assert_int_equal(
        fused_nodes(HEAD BOUNDS "{ a = GreaterOrEqual(x, low) y = Where(a, dy, zero) }"), 1);
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ a = LessOrEqual(x, high) y = Where(a, dy, zero) }"),
                     1);
}

static void what_is_not_that_gradient_stays(void **state)
{
    (void)state;
    // Another value than 0, bounds of two values, the same bound twice, a mask with other readers.
    assert_int_equal(
        fused_nodes(HEAD BOUNDS "{ a = GreaterOrEqual(x, low) y = Where(a, dy, high) }"), 2);
    assert_int_equal(fused_nodes(HEAD BOUNDS
                                 "{ a = GreaterOrEqual(x, low) b = LessOrEqual(dy, high)"
                                 " m = And(a, b) y = Where(m, dy, zero) }"),
                     4);
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ a = LessOrEqual(x, low) b = LessOrEqual(x, high)"
                                             " m = And(a, b) y = Where(m, dy, zero) }"),
                     4);
    assert_int_equal(fused_nodes(HEAD ", bool[6] m" BOUNDS
                                      "{ m = GreaterOrEqual(x, low) y = Where(m, dy, zero) }"),
                     2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_of_clip_becomes_one_node),
        cmocka_unit_test(one_bound_will_do),
        cmocka_unit_test(what_is_not_that_gradient_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
