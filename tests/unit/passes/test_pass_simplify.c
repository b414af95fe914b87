// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

static int nodes_left(const char *nodes)
{
    ot_model *model;
    char text[512];
    int n;

    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"
             "g (float[2, 3] x) => (float[2, 3] y)"
             "<float half = {0.5}, float zero = {0}, bool on = {1}, bool off = {0},"
             " int64[2] same = {2, 3}, int64[2] flat = {6, 1}> { %s }",
             nodes);
    model = read_prepared(text);
    assert_ok(ot__pass_simplify(model));
    n = model->graph->n_nodes;
    ot_model_destroy(model);
    return n;
}

static void nodes_that_hand_on_their_input_are_gone(void **state)
{
    (void)state;
    assert_int_equal(nodes_left("a = Identity(x) y = Relu(a)"), 1);
    assert_int_equal(nodes_left("a = Identity(x) b = Identity(a) y = Relu(b)"), 1);
    assert_int_equal(nodes_left("a = Cast<to = 1>(x) y = Relu(a)"), 1);
    assert_int_equal(nodes_left("a = Reshape(x, same) y = Relu(a)"), 1);
    assert_int_equal(nodes_left("a = Dropout(x, half) y = Relu(a)"), 1);
    assert_int_equal(nodes_left("a = Dropout(x, half, off) y = Relu(a)"), 1);
    assert_int_equal(nodes_left("a = Dropout(x, zero, on) y = Relu(a)"), 1);
}

static void nodes_that_change_something_stay(void **state)
{
    (void)state;
    assert_int_equal(nodes_left("a = Cast<to = 11>(x) b = Cast<to = 1>(a) y = Relu(b)"), 3);
    assert_int_equal(nodes_left("a = Reshape(x, flat) b = Reshape(a, same) y = Relu(b)"), 3);
    assert_int_equal(nodes_left("a = Dropout(x, half, on) y = Relu(a)"), 2);
}

static void outputs_of_the_graph_keep_their_node(void **state)
{
    (void)state;
    assert_int_equal(nodes_left("a = Relu(x) y = Identity(a)"), 2);
}

static void a_dropout_whose_mask_is_read_stays(void **state)
{
    (void)state;
    assert_int_equal(nodes_left("a, m = Dropout(x, half, off) n = Cast<to = 1>(m) y = Mul(a, n)"),
                     3);
}

// The gradient of what drops nothing is the identity, and then nobody reads the mask.
static void a_dropout_that_drops_nothing_goes_with_its_gradient(void **state)
{
    (void)state;
    assert_int_equal(nodes_left("a, m = Dropout(x, zero, on) b = Relu(a)"
                                " c = com.microsoft.DropoutGrad(b, m, zero, on) y = Neg(c)"),
                     2);
    assert_int_equal(nodes_left("a, m = Dropout(x, half, on) b = Relu(a)"
                                " c = com.microsoft.DropoutGrad(b, m, half, on) y = Neg(c)"),
                     4);
    assert_int_equal(nodes_left("a, m = Dropout(x, half, off) b = Relu(a)"
                                " c = com.microsoft.DropoutGrad(b, m, half, on) y = Neg(c)"),
                     4);
    assert_int_equal(nodes_left("a, m = Dropout(x, zero, on) b = Relu(a) l = Less(x, b)"
                                " c = com.microsoft.DropoutGrad(b, l, zero, on) y = Neg(c)"),
                     4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_hand_on_their_input_are_gone),
        cmocka_unit_test(nodes_that_change_something_stay),
        cmocka_unit_test(outputs_of_the_graph_keep_their_node),
        cmocka_unit_test(a_dropout_whose_mask_is_read_stays),
        cmocka_unit_test(a_dropout_that_drops_nothing_goes_with_its_gradient),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
