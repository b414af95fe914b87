// Expected values: recorded from ONNX Runtime training 1.19.2.
#include "ops/harness.h"

static const ot_op_case conv_grad_cases[] = {
    {.name = "all three",
     .in = {"f32[1,1,2,2]{1,2,3,4}", "f32[1,1,3,3]{1,2,3,4,5,6,7,8,9}", "f32[1,1,2,2]{1,0,0,1}"},
     .out = {"f32[1,1,3,3]{1,2,0,3,5,2,0,3,4}", "f32[1,1,2,2]{37,47,67,77}", "f32[1]{10}"}},
    {.name = "batch, groups and strides",
     .in = {"f32[2,6,3,2]", "f32[2,4,5,4]", "f32[6,2,1,2]"},
     .attrs = "group = 2, strides = [2, 2]",
     .out = {"f32[2,4,5,4]", "f32[6,2,1,2]", "f32[6]"}},
    {.name = "dY of another convolution",
     .in = {"f32[1,1,3,3]", "f32[1,1,3,3]", "f32[1,1,2,2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.ConvGrad", 1, conv_grad_cases)
