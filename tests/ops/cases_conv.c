// Expected values: ONNX's node tests of Conv (basic_conv_with_padding, with_strides_padding,
// autopad_same).
#include "ops/harness.h"

#define X5 "f32[1,1,5,5]{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24}"
#define ONES "f32[1,1,3,3]{1,1,1,1,1,1,1,1,1}"

static const ot_op_case conv_cases[] = {
    {.name = "padded",
     .in = {X5, ONES},
     .attrs = "kernel_shape = [3, 3], pads = [1, 1, 1, 1]",
     .out = {"f32[1,1,5,5]{12,21,27,33,24,33,54,63,72,51,63,99,108,117,81,93,144,153,162,111,72,"
             "111,117,123,84}"}},
    {.name = "strided",
     .in = {X5, ONES},
     .attrs = "kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]",
     .out = {"f32[1,1,3,3]{12,27,24,63,108,81,72,117,84}"}},
    {.name = "groups and bias",
     .in = {"f32[2,4,5,4]", "f32[6,2,3,2]", "f32[6]"},
     .attrs = "group = 2",
     .out = {"f32[2,6,3,3]"}},
    {.name = "dilated",
     .in = {"f32[1,2,7,7]", "f32[3,2,3,3]"},
     .attrs = "dilations = [2, 3]",
     .out = {"f32[1,3,3,1]"}},
    {.name = "one axis",
     .in = {"f32[2,3,9]", "f32[4,3,4]", "f32[4]"},
     .attrs = "strides = [2], pads = [1, 2]",
     .out = {"f32[2,4,5]"}},
    {.name = "three axes",
     .in = {"f32[1,2,3,4,5]", "f32[2,2,2,3,2]"},
     .attrs = "pads = [0, 1, 0, 1, 0, 1]",
     .out = {"f32[1,2,3,3,5]"}},
    {.name = "same upper",
     .in = {"f32[1,1,5,6]", "f32[1,1,2,3]"},
     .attrs = "auto_pad = \"SAME_UPPER\", strides = [2, 2]",
     .out = {"f32[1,1,3,3]"}},
    {.name = "same lower",
     .in = {"f32[1,1,5,6]", "f32[1,1,2,3]"},
     .attrs = "auto_pad = \"SAME_LOWER\", strides = [2, 2]",
     .out = {"f32[1,1,3,3]"}},
    {.name = "channels differ", .in = {"f32[1,3,5,5]", "f32[2,2,3,3]"}, .error = OT_ERR_INVALID},
    {.name = "kernel larger than the image",
     .in = {"f32[1,1,2,2]", "f32[1,1,3,3]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Conv", 11, conv_cases)
