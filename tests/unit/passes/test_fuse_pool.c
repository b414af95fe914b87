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
    const ot_node *mask = find_node(model, "ReluGrad"), *grad = find_node(model, "MaxPoolGrad");

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mask_of_relu_is_taken_from_the_pools_result),
        cmocka_unit_test(a_mask_by_something_else_stays),
        cmocka_unit_test(a_gradient_that_something_else_reads_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
