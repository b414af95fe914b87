// SPDX-License-Identifier: Apache-2.0
// Checked against central differences by the cases of LpPool; here values, with 0 where a norm is.
#include "harness.h"

static const ot_op_case lp_pool_grad_cases[] = {
    {.name = "p = 2",
     .in = {"f32[1,1,4]{0,0,3,-4}", "f32[1,1,4]{0,0,3,-4}", "f32[1,1,4]{1,1,1,1}"},
     .attrs = "kernel_shape = [1], p = 1",
     .out = {"f32[1,1,4]{0,0,3,4}"}},
    {.name = "norms of zero pass nothing",
     .in = {"f32[1,1,2]{1,10}", "f32[1,1,4]{0,0,3,-4}", "f32[1,1,2]{0,5}"},
     .attrs = "kernel_shape = [2], strides = [2]",
     .out = {"f32[1,1,4]{0,0,6,-8}"}},
    {.name = "norms of zero pass nothing, p = 3",
     .in = {"f32[1,1,2]{1,10}", "f32[1,1,4]{0,0,3,-4}", "f32[1,1,2]{0,5}"},
     .attrs = "kernel_shape = [2], strides = [2], p = 3",
     .out = {"f32[1,1,4]{0,0,3.6,-6.4}"}},
    {.name = "overlapping windows",
     .in = {"f32[2,2,3,4]", "f32[2,2,4,5]", "f32[2,2,3,4] in 1..3"},
     .attrs = "kernel_shape = [2, 2]"},
    {.name = "large",
     .in = {"f32[2,4,39,69]", "f32[2,4,40,70]", "f32[2,4,39,69] in 1..3"},
     .attrs = "kernel_shape = [2, 2]"},
    {.name = "another shape than the window makes",
     .in = {"f32[1,1,4]", "f32[1,1,4]", "f32[1,1,4]"},
     .attrs = "kernel_shape = [2]",
     .error = OT_ERR_INVALID},
    {.name = "Y of another shape",
     .in = {"f32[1,1,3]", "f32[1,1,4]", "f32[1,1,4]"},
     .attrs = "kernel_shape = [2]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.LpPoolGrad", 1, lp_pool_grad_cases)
