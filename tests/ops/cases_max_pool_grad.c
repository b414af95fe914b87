// SPDX-License-Identifier: Apache-2.0
// Values: ONNX Runtime's for the first, PyTorch's for the second.
#include "harness.h"

static const ot_op_case max_pool_grad_cases[] = {
    {.name = "the same element twice",
     .in = {"f32[1,1,1,2]{1,2}", "i64[1,1,1,2]{1,1}"},
     .attrs = "kernel_shape = [1, 3]",
     .out = {"f32[1,1,1,4]{0,3,0,0}"}},
    {.name = "several planes",
     .in = {"f32[2,2,2,2]{1,2,4,2,-3,2,0,4,-3,4,1,-3,-4,4,4,4}",
            "i64[2,2,2,2]{4,6,12,14,20,22,25,30,33,35,40,43,53,51,61,58}"},
     .attrs = "kernel_shape = [2, 2], strides = [2, 2], __input_extents = [4, 4]",
     .out = {"f32[2,2,4,4]{0,0,0,0,1,0,2,0,0,0,0,0,4,0,2,0,0,0,0,0,-3,0,2,0,0,0,0,0,0,0,4,0,0,-3,0,"
             "4,0,0,0,0,1,0,0,-3,0,0,0,0,0,0,0,4,0,-4,0,0,0,0,4,0,0,4,0,0}"}},
    {.name = "an index beyond the tensor",
     .in = {"f32[1,1,1,2]{1,2}", "i64[1,1,1,2]{1,4}"},
     .attrs = "kernel_shape = [1, 3]",
     .error = OT_ERR_INVALID},
    {.name = "an index into another plane",
     .in = {"f32[1,2,1,1]{1,2}", "i64[1,2,1,1]{1,1}"},
     .attrs = "kernel_shape = [1, 2]",
     .error = OT_ERR_INVALID},
    {.name = "indices of another shape",
     .in = {"f32[1,1,1,2]", "i64[1,1,2,1]"},
     .attrs = "kernel_shape = [1, 3]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("MaxPoolGrad", 9, max_pool_grad_cases)
