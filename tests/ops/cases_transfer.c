// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

// Without other ranks a bucket is whole: tensors go to their places in a buffer, with zeros between
// them, or come from there. What is asked of other ranks is in tests/unit/exec/test_transfer.c.
static const ot_op_case gather_start_cases[] = {
    {.name = "one parameter",
     .attrs = "bucket = 1, elements = 3, offsets = [0]",
     .in = {"", "f32[3]{1, 2, 3}"},
     .out = {"f32[3]{1, 2, 3}", "bool[1]{1}"}},
    {.name = "behind another node, with room between",
     .attrs = "bucket = 0, elements = 8, offsets = [1, 5]",
     .in = {"bool[1]{1}", "f32[1,2]{1, 2}", "f32[2]{3, 4}"},
     .out = {"f32[8]{0, 1, 2, 0, 0, 3, 4, 0}", "bool[1]{1}"}},
    {.name = "no elements",
     .attrs = "bucket = 0, elements = 2, offsets = [0, 1]",
     .in = {"", "f32[0,4]", "f32[]{7}"},
     .out = {"f32[2]{0, 7}", "bool[1]{1}"}},
    {.name = "images of one pixel, which lie alike in every layout",
     .attrs = "bucket = 0, elements = 32, offsets = [0]",
     .in = {"", "f32[1,32,1,1]"}},
    {.name = "parameters that overlap",
     .attrs = "bucket = 0, elements = 8, offsets = [0, 1]",
     .in = {"", "f32[2]", "f32[2]"},
     .error = OT_ERR_INVALID},
    {.name = "a buffer that is too small",
     .attrs = "bucket = 0, elements = 3, offsets = [0, 2]",
     .in = {"", "f32[2]", "f32[2]"},
     .error = OT_ERR_INVALID},
    {.name = "an offset below 0",
     .attrs = "bucket = 0, elements = 3, offsets = [-1]",
     .in = {"", "f32[2]"},
     .error = OT_ERR_INVALID},
    {.name = "fewer parameters than offsets",
     .attrs = "bucket = 0, elements = 8, offsets = [0, 4]",
     .in = {"", "f32[2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GatherStart", 1, gather_start_cases)

static const ot_op_case gather_wait_cases[] = {
    {.name = "two parameters",
     .attrs = "bucket = 0, elements = 8, offsets = [1, 5]",
     .in = {"f32[8]{9, 1, 2, 9, 9, 3, 4, 9}", "bool[1]{1}", "f32[1,2]", "f32[2]"},
     .out = {"bool[1]{1}", "f32[1,2]{1, 2}", "f32[2]{3, 4}"}},
    {.name = "images of one pixel, which lie alike in every layout",
     .attrs = "bucket = 0, elements = 32, offsets = [0]",
     .in = {"f32[32]", "bool[1]{1}", "f32[1,32,1,1]"},
     .out = {"bool[1]{1}", "f32[1,32,1,1]"}},
    {.name = "fewer values than parameters",
     .attrs = "bucket = 0, elements = 8, offsets = [1, 5]",
     .in = {"f32[8]", "bool[1]{1}", "f32[1,2]", "f32[2]"},
     .out = {"bool[1]", "f32[1,2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GatherWait", 1, gather_wait_cases)

static const ot_op_case scatter_start_cases[] = {
    {.name = "two gradients",
     .attrs = "bucket = 2, elements = 6, offsets = [0, 3]",
     .in = {"bool[1]{1}", "f32[2]", "f32[1,3]", "f32[2]{1, 2}", "f32[1,3]{3, 4, 5}"},
     .out = {"f32[6]{1, 2, 0, 3, 4, 5}", "bool[1]{1}"}},
    {.name = "images of one pixel, which lie alike in every layout",
     .attrs = "bucket = 0, elements = 32, offsets = [0]",
     .in = {"", "f32[1,32,1,1]", "f32[1,32,1,1]"}},
    {.name = "no accumulator for a gradient",
     .attrs = "bucket = 2, elements = 6, offsets = [0, 3]",
     .in = {"bool[1]{1}", "f32[2]", "f32[2]", "f32[1,3]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ScatterStart", 1, scatter_start_cases)

static const ot_op_case scatter_wait_cases[] = {
    {.name = "says that the sums are there",
     .attrs = "bucket = 2, elements = 4, offsets = [0]",
     .in = {"f32[4]", "bool[1]{1}"},
     .out = {"bool[1]{1}", "bool[1]{1}", "bool[1]{1}"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ScatterWait", 1, scatter_wait_cases)
