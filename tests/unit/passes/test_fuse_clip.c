// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/fuse.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[6] dy, float[6] x) => (float[6] y, "      \
    "float[6] dx"
#define BOUNDS ") <float low = {-1}, float high = {2}, float zero = {0}> "

// Fuses a copy, checks that its outputs stay the same and gives the number of nodes left.
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
    for (int64_t k = 0; k < 6; k++) {
        assert_true(element(&after, "y", k) == element(&before, "y", k));
        assert_true(element(&after, "dx", k) == element(&before, "dx", k));
    }
    n = fused->graph->n_nodes;
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    ot_model_destroy(fused);
    return n;
}

static void clip_makes_the_mask_of_its_gradient(void **state)
{
    (void)state;
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ y = Clip(x, low, high)"
                                             " a = GreaterOrEqual(x, low) b = LessOrEqual(x, high)"
                                             " m = And(a, b) dx = Where(m, dy, zero) }"),
                     2);
    assert_int_equal(fused_nodes(HEAD ", bool[6] m" BOUNDS "{ y = Clip(x, low, high)"
                                      " a = GreaterOrEqual(x, low) b = LessOrEqual(x, high)"
                                      " m = And(b, a) dx = Where(m, dy, zero) }"),
                     2);
}

static void so_does_clip_of_a_narrower_type(void **state)
{
    ot_model *model = read_prepared(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (bfloat16[6] dy, bfloat16[6] x, bfloat16 low,"
        " bfloat16 high, bfloat16 zero) => (bfloat16[6] y, bfloat16[6] dx)"
        "{ y = Clip(x, low, high) a = GreaterOrEqual(x, low) b = LessOrEqual(x, high)"
        "  m = And(a, b) dx = Where(m, dy, zero) }");

    (void)state;
    assert_ok(ot__fuse_clip(model));
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

static void one_bound_will_do(void **state)
{
    (void)state;
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ y = Clip(x, low) a = GreaterOrEqual(x, low)"
                                             " dx = Where(a, dy, zero) }"),
                     2);
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ y = Clip(x, , high) a = LessOrEqual(x, high)"
                                             " dx = Where(a, dy, zero) }"),
                     2);
}

static void what_is_not_that_mask_stays(void **state)
{
    (void)state;
    // No bounds, another bound, another X, one bound of two, a comparison with other readers.
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ y = Clip(x) a = GreaterOrEqual(x, low)"
                                             " dx = Where(a, dy, zero) }"),
                     3);
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ y = Clip(x, low) a = GreaterOrEqual(x, zero)"
                                             " dx = Where(a, dy, zero) }"),
                     3);
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ y = Clip(x, low, high)"
                                             " a = GreaterOrEqual(x, low) b = LessOrEqual(dy, high)"
                                             " m = And(a, b) dx = Where(m, dy, zero) }"),
                     5);
    assert_int_equal(fused_nodes(HEAD BOUNDS "{ y = Clip(x, low, high) a = GreaterOrEqual(x, low)"
                                             " dx = Where(a, dy, zero) }"),
                     3);
    assert_int_equal(fused_nodes(HEAD ", bool[6] a" BOUNDS "{ y = Clip(x, low, high)"
                                      " a = GreaterOrEqual(x, low) b = LessOrEqual(x, high)"
                                      " m = And(a, b) dx = Where(m, dy, zero) }"),
                     5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clip_makes_the_mask_of_its_gradient),
        cmocka_unit_test(so_does_clip_of_a_narrower_type),
        cmocka_unit_test(one_bound_will_do),
        cmocka_unit_test(what_is_not_that_mask_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
