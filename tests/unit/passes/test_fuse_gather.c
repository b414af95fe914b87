// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/fuse.h"

// Fuses a copy of a graph of x (2, 3, 1) and dy with up to 12 elements, and checks that y and dx
// stay the same; how many nodes are a Reshape then.
static int reshapes_of(const char *text)
{
    static const double numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    ot_model *model = read_prepared(text), *fused = read_prepared(text);
    const ot_shape dy = find_value(model, "dy")->shape;
    evaluation before = {0}, after = {0};
    int n;

    assert_ok(ot__fuse_gather(fused));
    assert_ok(ot__graph_verify(fused->graph));
    for (int i = 0; i < 2; i++) {
        feed(i == 0 ? &before : &after, "x", new_tensor(OT_F32, OT_SHAPE(2, 3, 1), numbers));
        feed(i == 0 ? &before : &after, "dy", new_tensor(OT_F32, dy, numbers));
    }
    compute(&before, model);
    compute(&after, fused);
    assert_true(ot__shape_equal(&find_value(fused, "y")->shape, &find_value(model, "y")->shape));
    for (int64_t k = 0; k < 6; k++) {
        assert_true(element(&after, "y", k) == element(&before, "y", k));
        assert_true(element(&after, "dx", k) == element(&before, "dx", k));
    }
    n = count_nodes(fused, "Reshape");
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    ot_model_destroy(fused);
    return n;
}

#define TEXT(dy, y, axis, indices)                                                                 \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (float[2,3,1] x, "        \
    "float" dy " dy) => (float" y " y, float[2,3,1] dx) <int64[3] s = {2,3,1}, int64" indices "> " \
    "{ y = Gather<axis = " axis ">(x, i) dx = com.microsoft.GatherGrad<axis = " axis               \
    ">(s, i, dy) }"

static void every_slice_once_and_in_order_is_a_reshape(void **state)
{
    (void)state;
    assert_int_equal(reshapes_of(TEXT("[2,3,1,1]", "[2,3,1,1]", "2", "[1,1] i = {0}")), 2);
    assert_int_equal(reshapes_of(TEXT("[2,3]", "[2,3]", "-1", " i = {-1}")), 2);
    assert_int_equal(reshapes_of(TEXT("[2,3,1]", "[2,3,1]", "1", "[3] i = {0,1,-1}")), 2);
}

static void other_indices_stay(void **state)
{
    (void)state;
    assert_int_equal(reshapes_of(TEXT("[2,3,1]", "[2,3,1]", "1", "[3] i = {0,2,1}")), 0);
    assert_int_equal(reshapes_of(TEXT("[2,3,1]", "[2,3,1]", "1", "[3] i = {0,1,1}")), 0);
    assert_int_equal(reshapes_of(TEXT("[2,3,2]", "[2,3,2]", "2", "[2] i = {0,0}")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slice_once_and_in_order_is_a_reshape),
        cmocka_unit_test(other_indices_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
