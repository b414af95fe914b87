// SPDX-License-Identifier: Apache-2.0
// Expected values: those of Conv in cases_conv.c (ONNX's node tests), with B added and below 0 cut
// off.
#include "ops/harness.h"

#define X5 "f32[1,1,5,5]{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24}"
#define ONES "f32[1,1,3,3]{1,1,1,1,1,1,1,1,1}"

static const ot_op_case conv_relu_cases[] = {
    {.name = "padded",
     .in = {X5, ONES, "f32[1]{-60}"},
     .attrs = "kernel_shape = [3, 3], pads = [1, 1, 1, 1]",
     .out = {"f32[1,1,5,5]{0,0,0,0,0,0,0,3,12,0,3,39,48,57,21,33,84,93,102,51,12,51,57,63,24}"}},
    {.name = "without bias",
     .in = {X5, "f32[1,1,3,3]{-1,-1,-1,-1,-1,-1,-1,-1,-1}"},
     .attrs = "kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]",
     .out = {"f32[1,1,3,3]{0,0,0,0,0,0,0,0,0}"}},
    {.name = "groups and bias",
     .in = {"f32[2,4,5,4]", "f32[6,2,3,2]", "f32[6]"},
     .attrs = "group = 2",
     .out = {"f32[2,6,3,3]"}},
    {.name = "one axis",
     .in = {"f32[2,3,9]", "f32[4,3,4]", "f32[4]"},
     .attrs = "strides = [2], pads = [1, 2]",
     .out = {"f32[2,4,5]"}},
    {.name = "whole blocks of channels",
     .in = {"f32[2,32,9,9]", "f32[32,32,3,3]", "f32[32]"},
     .attrs = "auto_pad = \"SAME_UPPER\"",
     .out = {"f32[2,32,9,9]"},
     .tolerance = 4},
    {.name = "f64", .in = {"f64[2,3,5,5]", "f64[4,3,2,2]", "f64[4]"}, .out = {"f64[2,4,4,4]"}},
    {.name = "bias of the wrong length",
     .in = {"f32[1,2,4,4]", "f32[3,2,3,3]", "f32[2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ConvRelu", 1, conv_relu_cases)
