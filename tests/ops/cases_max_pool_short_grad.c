// SPDX-License-Identifier: Apache-2.0
// Values: those of MaxPoolGrad's cases, and by hand.
#include "harness.h"

static const ot_op_case max_pool_short_grad_cases[] = {
    {.name = "the same element twice",
     .in = {"f32[1,1,1,2]{1,2}", "u8[1,1,1,2]{1,0}"},
     .attrs = "kernel_shape = [1, 3]",
     .out = {"f32[1,1,1,4]{0,3,0,0}"}},
    {.name = "several planes",
     .in = {"f32[2,2,2,2]{1,2,4,2,-3,2,0,4,-3,4,1,-3,-4,4,4,4}",
            "u8[2,2,2,2]{2,2,2,2,2,2,1,2,1,1,0,1,3,1,3,0}"},
     .attrs = "kernel_shape = [2, 2], strides = [2, 2], __input_extents = [4, 4]",
     .out = {"f32[2,2,4,4]{0,0,0,0,1,0,2,0,0,0,0,0,4,0,2,0,0,0,0,0,-3,0,2,0,0,0,0,0,0,0,4,0,0,-3,0,"
             "4,0,0,0,0,1,0,0,-3,0,0,0,0,0,0,0,4,0,-4,0,0,0,0,4,0,0,4,0,0}"}},
    {.name = "positions in the planes",
     .in = {"f32[1,2,1,2]{1,2,3,4}", "i32[1,2,1,2]{1,1,-1,3}"},
     .attrs = "kernel_shape = [1, 3]",
     .out = {"f32[1,2,1,4]{0,3,0,0,0,0,0,4}"}},
    {.name = "pads, dilations and a window with nothing in it",
     .in = {"f32[1,1,1,3]{1,2,4}", "u8[1,1,1,3]{1,255,0}"},
     .attrs = "kernel_shape = [1, 2], dilations = [1, 3], pads = [0, 1, 0, 1]",
     .out = {"f32[1,1,1,4]{0,4,1,0}"}},
    {.name = "a cell that the window has not",
     .in = {"f32[1,1,1,2]{1,2}", "u8[1,1,1,2]{1,3}"},
     .attrs = "kernel_shape = [1, 3]",
     .error = OT_ERR_INVALID},
    {.name = "a cell before the plane",
     .in = {"f32[1,1,1,2]{1,2}", "u8[1,1,1,2]{0,1}"},
     .attrs = "kernel_shape = [1, 3], pads = [0, 1, 0, 0]",
     .error = OT_ERR_INVALID},
    {.name = "a position behind the plane",
     .in = {"f32[1,2,1,1]{1,2}", "i32[1,2,1,1]{1,2}"},
     .attrs = "kernel_shape = [1, 2]",
     .error = OT_ERR_INVALID},
    {.name = "maxima of another shape",
     .in = {"f32[1,1,1,2]", "u8[1,1,2,1]"},
     .attrs = "kernel_shape = [1, 3]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.MaxPoolShortGrad", 1, max_pool_short_grad_cases)
