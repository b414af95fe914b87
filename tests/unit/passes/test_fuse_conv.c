// SPDX-License-Identifier: Apache-2.0
#include "fuse_fixture.h"

#define INPUTS "float[2,2,4,4] x, float[3,2,3,3] w, float[3] b"

static void convolution_and_relu_become_one(void **state)
{
    ot_model *model = fuse(ot__fuse_conv, "g (" INPUTS ") => (float[2,3,2,2] y)"
                                          "{ c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>"
                                          "(x, w, b) y = Relu(c) }");
    const ot_node *node = find_node(model, "ConvRelu");
    int n;

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_non_null(node);
    assert_int_equal(node->n_inputs, 3);
    assert_int_equal(ot_attr_ints(node, "strides", &n)[0], 2);
    ot_model_destroy(model);
}

static void the_gradients_read_the_fused_result(void **state)
{
    ot_model *model = fuse(
        ot__fuse_conv, "g (" INPUTS ", float[2,3,2,2] dy) => (float[2,3,2,2] y, float[2,2,4,4] dx)"
                       "{ c = Conv(x, w, b) y = Relu(c) m = com.microsoft.ReluGrad(dy, y)"
                       "  dx = com.microsoft.ConvGrad(m, x, w) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 3);
    assert_non_null(find_node(model, "ConvRelu"));
    ot_model_destroy(model);
}

static void a_convolution_that_something_else_reads_stays(void **state)
{
    ot_model *model = fuse(ot__fuse_conv, "g (" INPUTS ") => (float[2,3,2,2] y, float[2,3,2,2] n)"
                                          "{ c = Conv(x, w, b) y = Relu(c) n = Neg(c) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 3);
    ot_model_destroy(model);
    model = fuse(ot__fuse_conv, "g (" INPUTS ") => (float[2,3,2,2] y, float[2,3,2,2] c)"
                                "{ c = Conv(x, w, b) y = Relu(c) }");
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_and_relu_become_one),
        cmocka_unit_test(the_gradients_read_the_fused_result),
        cmocka_unit_test(a_convolution_that_something_else_reads_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
