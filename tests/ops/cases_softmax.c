// SPDX-License-Identifier: Apache-2.0
// Values of the gradients: recorded from ONNX Runtime training 1.19.2. Softmax of (0, ln 2, ln 5)
// is (1, 2, 5) / 8.
#include "ops/harness.h"

static const ot_op_case softmax_cases[] = {
    {.name = "values",
     .in = {"f32[1,3]{0,0.69314718056,1.60943791243}"},
     .out = {"f32[1,3]{0.125,0.25,0.625}"}},
    {.name = "large",
     .in = {"f32[2]{1000,1000}"},
     .out = {"f32[2]{0.5,0.5}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "last axis", .in = {"f32[2,3,4]"}, .out = {"f32[2,3,4]"}},
    {.name = "first axis", .in = {"f32[2,3,4]"}, .attrs = "axis = 0", .out = {"f32[2,3,4]"}},
    {.name = "middle axis", .in = {"f32[2,3,4]"}, .attrs = "axis = -2", .out = {"f32[2,3,4]"}},
    {.name = "opset 11, last axis",
     .in = {"f32[2,3]"},
     .attrs = "axis = 1",
     .out = {"f32[2,3]"},
     .opset = 11},
    {.name = "empty", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}},
    {.name = "axis out of range", .in = {"f32[2,3]"}, .attrs = "axis = 2", .error = OT_ERR_INVALID},
    {.name = "edges of rows", .in = {"f32[3,N]"}, .edges = "N row+"},
    {.name = "edges of columns",
     .in = {"f32[2,K,C]"},
     .attrs = "axis = 1",
     .out = {"f32[2,K,C]"},
     .edges = "K column_part+, C columns+",
     .flags = OT_CASE_NO_GRAD},
    {.name = "channels", .in = {"f32[2,21,8,9]"}, .attrs = "axis = 1", .out = {"f32[2,21,8,9]"}},
    {0},
};
OT_OP_TEST("Softmax", 13, softmax_cases)

static const ot_op_case log_softmax_cases[] = {
    {.name = "values",
     .in = {"f32[1,3]{0,0.69314718056,1.60943791243}"},
     .out = {"f32[1,3]{-2.07944154168,-1.38629436112,-0.470003629246}"}},
    {.name = "large",
     .in = {"f32[2]{1000,1000}"},
     .out = {"f32[2]{-0.69314718056,-0.69314718056}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "last axis", .in = {"f32[2,3,4]"}, .out = {"f32[2,3,4]"}},
    {.name = "middle axis", .in = {"f32[2,3,4]"}, .attrs = "axis = 1", .out = {"f32[2,3,4]"}},
    {.name = "axis out of range",
     .in = {"f32[2,3]"},
     .attrs = "axis = -3",
     .error = OT_ERR_INVALID},
    {.name = "edges of columns",
     .in = {"f32[2,K,C]"},
     .attrs = "axis = 1",
     .out = {"f32[2,K,C]"},
     .edges = "K column_part+, C columns+",
     .flags = OT_CASE_NO_GRAD},
    {.name = "channels", .in = {"f32[2,21,8,9]"}, .attrs = "axis = 1", .out = {"f32[2,21,8,9]"}},
    {0},
};
OT_OP_TEST("LogSoftmax", 13, log_softmax_cases)

#define DY "f32[1,3]{1,2,3}"
static const ot_op_case softmax_grad_13_cases[] = {
    {.name = "values", .in = {DY, "f32[1,3]{0.2,0.3,0.5}"}, .out = {"f32[1,3]{-0.26,-0.09,0.35}"}},
    {.name = "middle axis",
     .in = {"f32[2,3,4]", "f32[2,3,4] in 0.1..0.5"},
     .attrs = "axis = 1",
     .out = {"f32[2,3,4]"}},
    {.name = "shapes that differ", .in = {"f32[2,3]", "f32[2,2]"}, .error = OT_ERR_INVALID},
    {.name = "edges of columns",
     .in = {"f32[2,K,C]", "f32[2,K,C] in 0.1..0.5"},
     .attrs = "axis = 1",
     .out = {"f32[2,K,C]"},
     .edges = "K column_part+, C columns+"},
    {0},
};
OT_OP_TEST("com.microsoft.SoftmaxGrad_13", 1, softmax_grad_13_cases)

static const ot_op_case softmax_grad_cases[] = {
    {.name = "values",
     .in = {"f32[1,3,1]{1,2,3}", "f32[1,3,1]{0.2,0.3,0.5}"},
     .out = {"f32[1,3,1]{-0.26,-0.09,0.35}"}},
    {.name = "all axes from 1 as one",
     .in = {"f32[1,1,3]{1,2,3}", "f32[1,1,3]{0.2,0.3,0.5}"},
     .out = {"f32[1,1,3]{-0.26,-0.09,0.35}"}},
    {0},
};
OT_OP_TEST("com.microsoft.SoftmaxGrad", 1, softmax_grad_cases)

static const ot_op_case log_softmax_grad_13_cases[] = {
    {.name = "values",
     .in = {DY, "f32[1,3]{-0.5,-1.5,-2}"},
     .out = {"f32[1,3]{-2.63918,0.661219,2.18799}"},
     .tolerance = 10},
    {.name = "middle axis",
     .in = {"f32[2,3,4]", "f32[2,3,4] in -2..-0.1"},
     .attrs = "axis = 1",
     .out = {"f32[2,3,4]"}},
    {.name = "edges of columns",
     .in = {"f32[2,K,C]", "f32[2,K,C] in -3..-0.5"},
     .attrs = "axis = 1",
     .out = {"f32[2,K,C]"},
     .edges = "K column_part+, C columns+"},
    {0},
};
OT_OP_TEST("com.microsoft.LogSoftmaxGrad_13", 1, log_softmax_grad_13_cases)

static const ot_op_case log_softmax_grad_cases[] = {
    {.name = "all axes from 1 as one",
     .in = {"f32[1,1,3]{1,2,3}", "f32[1,1,3]{-0.5,-1.5,-2}"},
     .out = {"f32[1,1,3]{-2.63918,0.661219,2.18799}"},
     .tolerance = 10},
    {0},
};
OT_OP_TEST("com.microsoft.LogSoftmaxGrad", 1, log_softmax_grad_cases)
