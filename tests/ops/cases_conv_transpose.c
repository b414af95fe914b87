// Expected values: ONNX's node test convtranspose.
#include "ops/harness.h"

static const ot_op_case conv_transpose_cases[] = {
    {.name = "plain",
     .in = {"f32[1,1,3,3]{0,1,2,3,4,5,6,7,8}", "f32[1,2,3,3]{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}"},
     .out = {"f32[1,2,5,5]{0,1,3,3,2,3,8,15,12,7,9,21,36,27,15,9,20,33,24,13,6,13,21,15,8,"
             "0,1,3,3,2,3,8,15,12,7,9,21,36,27,15,9,20,33,24,13,6,13,21,15,8}"}},
    {.name = "strided, with bias and groups",
     .in = {"f32[2,4,3,2]", "f32[4,3,3,3]", "f32[6]"},
     .attrs = "group = 2, strides = [2, 3], pads = [1, 0, 0, 1], output_padding = [1, 2]",
     .out = {"f32[2,6,7,7]"}},
    {.name = "output_shape",
     .in = {"f32[1,1,3,3]", "f32[1,2,3,3]"},
     .attrs = "strides = [3, 2], output_shape = [10, 8]",
     .out = {"f32[1,2,10,8]"}},
    {.name = "same upper",
     .in = {"f32[1,1,3,3]", "f32[1,2,3,3]"},
     .attrs = "auto_pad = \"SAME_UPPER\", strides = [2, 2]",
     .out = {"f32[1,2,6,6]"}},
    {.name = "one axis",
     .in = {"f32[1,1,3]", "f32[1,2,3]"},
     .attrs = "dilations = [2]",
     .out = {"f32[1,2,7]"}},
    {.name = "channels differ", .in = {"f32[1,3,5,5]", "f32[2,2,3,3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ConvTranspose", 11, conv_transpose_cases)
