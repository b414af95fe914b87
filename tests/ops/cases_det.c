// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case det_cases[] = {
    {.name = "two by two", .in = {"f32[2,2]{0,1,2,3}"}, .out = {"f32[]{-2}"}}, // test_det_2d
    {.name = "a batch",                                                        // test_det_nd
     .in = {"f32[3,2,2]{1,2,3,4,1,2,2,1,1,3,3,1}"},
     .out = {"f32[3]{-2,-3,-8}"}},
    {.name = "a pivot of 0",
     .in = {"f32[3,3]{0,2,1,1,0,3,2,1,0}"},
     .out = {"f32[]{13}"}}, // by Sarrus: 0 + 12 + 1 - 0 - 0 - 0
    {.name = "one by one", .in = {"f32[2,1,1]{3,-4}"}, .out = {"f32[2]{3,-4}"}},
    // Matrices without an inverse have gradients too: of rank 2, and of rank 1, where they are 0.
    {.name = "rank 2 of 3",
     .in = {"f32[3,3]{1,2,3,4,5,6,7,8,9}"},
     .out = {"f32[]{0}"},
     .terms = 50},
    {.name = "rank 2 of 3, exactly", .in = {"f32[3,3]{1,0,0,0,2,0,0,0,0}"}, .out = {"f32[]{0}"}},
    {.name = "rank 1 of 3", .in = {"f32[3,3]{1,0,0,0,0,0,0,0,0}"}, .out = {"f32[]{0}"}},
    {.name = "zeros", .in = {"f32[2,2]{0,0,0,0}"}, .out = {"f32[]{0}"}},
    {.name = "five by five", .in = {"f32[2,3,5,5]"}, .out = {"f32[2,3]"}},
    {.name = "several threads",
     .in = {"f32[200,12,12] in 0..1"},
     .out = {"f32[200]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "no rows have determinant 1", .in = {"f32[2,0,0]"}, .out = {"f32[2]{1,1}"}},
    {.name = "no matrices", .in = {"f32[0,2,2]"}, .out = {"f32[0]"}},
    {.name = "NaN", .in = {"f32[2,2]{1,nan,2,3}"}, .out = {"f32[]{nan}"}, .flags = OT_CASE_NO_GRAD},
    {.name = "opset 11", .in = {"f32[2,2]{0,1,2,3}"}, .out = {"f32[]{-2}"}, .opset = 11},
    {.name = "not square", .in = {"f32[2,3]"}, .error = OT_ERR_INVALID},
    {.name = "a list", .in = {"f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "integers", .in = {"i32[2,2]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Det", 22, det_cases)

static const ot_op_case det_grad_cases[] = {
    {.name = "cofactors", .in = {"f32[]{2}", "f32[2,2]{0,1,2,3}"}, .out = {"f32[2,2]{6,-4,-2,0}"}},
    {.name = "without an inverse", // cofactors of 1 .. 9
     .in = {"f32[]{1}", "f32[3,3]{1,2,3,4,5,6,7,8,9}"},
     .out = {"f32[3,3]{-3,6,-3,6,-12,6,-3,6,-3}"},
     .terms = 50},
    {.name = "of rank 1",
     .in = {"f32[]{1}", "f32[3,3]{1,2,3,2,4,6,3,6,9}"},
     .out = {"f32[3,3]{0,0,0,0,0,0,0,0,0}"},
     .terms = 50},
    {.name = "one by one", .in = {"f32[2]{3,4}", "f32[2,1,1]{0,7}"}, .out = {"f32[2,1,1]{3,4}"}},
    {.name = "several threads",
     .in = {"f32[200]", "f32[200,12,12] in 0..1"},
     .out = {"f32[200,12,12]"}},
    {.name = "no matrices", .in = {"f32[0]", "f32[0,2,2]"}, .out = {"f32[0,2,2]"}},
    {.name = "no rows", .in = {"f32[2]", "f32[2,0,0]"}, .out = {"f32[2,0,0]"}},
    {.name = "another batch", .in = {"f32[3]", "f32[2,2,2]"}, .error = OT_ERR_INVALID},
    {.name = "not square", .in = {"f32[]", "f32[2,3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.DetGrad", 1, det_grad_cases)
