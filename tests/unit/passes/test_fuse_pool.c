// SPDX-License-Identifier: Apache-2.0
#include "fuse_fixture.h"

#define POOL                                                                                       \
    "p, i = MaxPool<kernel_shape = [2, 3], pads = [0, 1, 0, 1]>(y) "                               \
    "s = MaxPoolGrad<kernel_shape = [2, 3], pads = [0, 1, 0, 1]>(dp, i) "

static void the_mask_of_relu_is_taken_from_the_pools_result(void **state)
{
    ot_model *model =
        fuse(ot__fuse_pool, "g (float[2,3,4,5] x, float[2,3,3,5] dp)"
                            " => (float[2,3,3,5] p, float[2,3,4,5] dx)"
                            "{ y = Relu(x) " POOL "  dx = com.microsoft.ReluGrad(s, y) }");
    const ot_node *mask = find_node(model, "ReluGrad"),
                  *grad = find_node(model, "MaxPoolShortGrad");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 4);
    assert_string_equal(mask->inputs[0]->name, "dp");
    assert_string_equal(mask->inputs[1]->name, "p");
    assert_ptr_equal(grad->inputs[0], mask->outputs[0]);
    assert_string_equal(grad->outputs[0]->name, "dx");
    ot_model_destroy(model);
}

// The graph has the pool and a mask behind its gradient that must stay there.
static void expect_left(const char *graph)
{
    ot_model *model = fuse(ot__fuse_pool, graph);
    const ot_node *mask = find_node(model, "ReluGrad");

    assert_string_equal(mask->inputs[0]->name, "s");
    ot_model_destroy(model);
}

static void a_mask_by_something_else_stays(void **state)
{
    (void)state;
    expect_left("g (float[2,3,4,5] y, float[2,3,4,5] z, float[2,3,3,5] dp) => (float[2,3,4,5] dx)"
                "{ " POOL "dx = com.microsoft.ReluGrad(s, z) }");
}

static void a_gradient_that_something_else_reads_stays(void **state)
{
    (void)state;
    expect_left("g (float[2,3,4,5] y, float[2,3,3,5] dp) => (float[2,3,4,5] dx, float[2,3,4,5] s)"
                "{ " POOL "dx = com.microsoft.ReluGrad(s, y) }");
    expect_left("g (float[2,3,4,5] y, float[2,3,3,5] dp) => (float[2,3,4,5] dx, float[2,3,4,5] n)"
                "{ " POOL "dx = com.microsoft.ReluGrad(s, y) n = Neg(s) }");
}

#define FIRST(place, x)                                                                            \
    "y = GlobalMaxPool(x) flat = Reshape(" x ", flattened) first = ArgMax<axis = 2>(flat)"         \
    " is = Equal(" place ", first) rows = Reshape(dy, row) at = Where(is, rows, zero)"             \
    " dx = Reshape(at, whole) "
#define FIRST_CONSTANTS                                                                            \
    "<int64[3] flattened = {2, 3, 4}, int64[3] row = {2, 3, 1}, int64[4] whole = {2, 3, 2, 2},"    \
    " int64[4] place = {0, 1, 2, 3}, int64[4] other = {0, 1, 3, 2}, float zero = {0}>"

static void the_gradient_of_a_global_maximum_is_one_node(void **state)
{
    ot_model *model = fuse(ot__fuse_pool,
                           "g (float[2,3,2,2] x, float[2,3,1,1] dy)"
                           " => (float[2,3,2,2] dx) " FIRST_CONSTANTS "{ " FIRST("place", "x") "}");
    const ot_node *grad = find_node(model, "GlobalMaxPoolGrad");

    (void)state;
    assert_string_equal(grad->inputs[0]->name, "dy");
    assert_string_equal(grad->inputs[1]->name, "x");
    assert_string_equal(grad->inputs[2]->name, "y");
    assert_string_equal(grad->outputs[0]->name, "dx");
    ot_model_destroy(model);
}

static void assert_stays(const char *text)
{
    ot_model *model = fuse(ot__fuse_pool, text);

    for (int n = 0; n < model->graph->n_nodes; n++)
        assert_string_not_equal(model->graph->nodes[n]->op_type, "GlobalMaxPoolGrad");
    ot_model_destroy(model);
}

static void other_places_stay(void **state)
{
    (void)state;
    assert_stays("g (float[2,3,2,2] x, float[2,3,1,1] dy) => (float[2,3,2,2] dx) " FIRST_CONSTANTS
                 "{ " FIRST("other", "x") "}");
    assert_stays("g (float[2,3,2,2] x, float[2,3,1,1] dy) => (float[2,3,2,2] dx) " FIRST_CONSTANTS
                 "{ w = Neg(x) " FIRST("place", "w") "}");
    assert_stays("g (float[2,3,2,2] x, float[2,3,1,1] dy) => (float[2,3,2,2] dx, bool[2,3,4] "
                 "is) " FIRST_CONSTANTS "{ " FIRST("place", "x") "}");
}

static void indices_that_only_the_gradient_reads_take_a_byte(void **state)
{
    ot_model *model = fuse(ot__fuse_pool, "g (float[2,3,4,5] y, float[2,3,3,5] dp)"
                                          " => (float[2,3,3,5] p, float[2,3,4,5] s) { " POOL " }");
    const ot_node *pool = find_node(model, "MaxPoolShort"),
                  *grad = find_node(model, "MaxPoolShortGrad");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    assert_ptr_equal(grad->inputs[1], pool->outputs[1]);
    assert_int_equal(pool->outputs[1]->dtype, OT_U8);
    assert_true(ot__shape_equal(&pool->outputs[1]->shape, &pool->outputs[0]->shape));
    ot_model_destroy(model);
}

static void so_do_those_of_narrower_types(void **state)
{
    static const char *const types[] = {"float16", "bfloat16"};

    (void)state;
    for (size_t t = 0; t < OT_COUNT(types); t++) {
        char graph[400];
        ot_model *model;

        snprintf(graph, sizeof graph,
                 "g (%s[2,3,4,5] y, %s[2,3,3,5] dp) => (%s[2,3,3,5] p, %s[2,3,4,5] s) { " POOL " }",
                 types[t], types[t], types[t], types[t]);
        model = fuse(ot__fuse_pool, graph);
        assert_int_equal(find_node(model, "MaxPoolShort")->outputs[1]->dtype, OT_U8);
        ot_model_destroy(model);
    }
}

static void a_large_window_takes_positions_in_the_plane(void **state)
{
    ot_model *model = fuse(ot__fuse_pool, "g (float[1,1,20,20] y, float[1,1,5,5] dp)"
                                          " => (float[1,1,5,5] p, float[1,1,20,20] s)"
                                          "{ p, i = MaxPool<kernel_shape = [16, 16]>(y)"
                                          "  s = MaxPoolGrad<kernel_shape = [16, 16]>(dp, i) }");

    (void)state;
    assert_int_equal(find_node(model, "MaxPoolShort")->outputs[1]->dtype, OT_I32);
    ot_model_destroy(model);
}

static void expect_long(const char *graph)
{
    ot_model *model = fuse(ot__fuse_pool, graph);

    assert_null(find_node(model, "MaxPoolShort"));
    assert_non_null(find_node(model, "MaxPoolGrad"));
    ot_model_destroy(model);
}

static void indices_that_something_else_reads_or_another_window_stay(void **state)
{
    (void)state;
    expect_long("g (float[2,3,4,5] y, float[2,3,3,5] dp)"
                " => (float[2,3,3,5] p, float[2,3,4,5] s, int64[2,3,3,5] i) { " POOL " }");
    expect_long("g (float[2,3,4,5] y, float[2,3,3,5] dp)"
                " => (float[2,3,3,5] p, float[2,3,4,5] s, int64[2,3,3,5] n) { " POOL
                "n = Neg(i) }");
    expect_long("g (float[1,1,4,4] y, float[1,1,3,3] dp) => (float[1,1,3,3] p, float[1,1,4,4] s)"
                "{ p, i = MaxPool<kernel_shape = [2, 2]>(y)"
                "  s = MaxPoolGrad<kernel_shape = [2, 3], pads = [0, 0, 0, 1]>(dp, i) }");
    expect_long("g (float[1,1,4,4] y, float[1,1,3,3] dp) => (float[1,1,3,3] p, float[1,1,4,4] s)"
                "{ p, i = MaxPool<kernel_shape = [2, 2], storage_order = 1>(y)"
                "  s = MaxPoolGrad<kernel_shape = [2, 2]>(dp, i) }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mask_of_relu_is_taken_from_the_pools_result),
        cmocka_unit_test(a_mask_by_something_else_stays),
        cmocka_unit_test(a_gradient_that_something_else_reads_stays),
        cmocka_unit_test(the_gradient_of_a_global_maximum_is_one_node),
        cmocka_unit_test(other_places_stay),
        cmocka_unit_test(indices_that_only_the_gradient_reads_take_a_byte),
        cmocka_unit_test(so_do_those_of_narrower_types),
        cmocka_unit_test(a_large_window_takes_positions_in_the_plane),
        cmocka_unit_test(indices_that_something_else_reads_or_another_window_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
