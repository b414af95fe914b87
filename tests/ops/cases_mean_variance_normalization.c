// SPDX-License-Identifier: Apache-2.0
// Values: the formula in f64.
#include "harness.h"

#define X "{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4,2,3,2,-3}"

static const ot_op_case mean_variance_normalization_cases[] = {
    {.name = "channels of images",
     .in = {"f32[2,3,2,2]" X},
     .out =
         {"f32[2,3,2,2]{0.2609979,1.513788,0.2609979,-1.826985,-1.147222,-0.8307472,1.068103,0."
          "7516284,-1.017763,-0.05986843,0.419079,-1.017763,-0.1565987,-0.9917919,-0.1565987,1."
          "096191,1.068103,-0.8307472,1.068103,-1.147222,0.8980265,1.376974,0.8980265,-1.496711}"},
     .flags = OT_CASE_OPEN},
    {.name = "a negative axis",
     .in = {"f32[2,3,4]" X},
     .attrs = "axes = [-2]",
     .out =
         {"f32[2,3,4]{1.297771,1.278724,-0.7071068,-1.069045,-1.13555,-1.162476,1.414214,1.336306,-"
          "0.1622214,-0.1162476,-0.7071068,-0.2672612,-1.336306,-0.5080005,-1.336306,1.401826,1."
          "069045,-0.8890009,1.069045,-0.8626622,0.2672612,1.397001,0.2672612,-0.5391639}"},
     .flags = OT_CASE_OPEN},
    {.name = "all axes",
     .in = {"f32[2,3,4]" X},
     .attrs = "axes = [2, 0, 1]",
     .out =
         {"f32[2,3,4]{0.3677765,1.519077,0.3677765,-1.551057,-1.551057,-1.167291,1.13531,0.7515432,"
          "-0.7835238,-0.01599028,0.3677765,-0.7835238,-0.01599028,-0.7835238,-0.01599028,1.13531,"
          "1.13531,-1.167291,1.13531,-1.551057,0.7515432,1.13531,0.7515432,-1.167291}"},
     .flags = OT_CASE_OPEN},
    {.name = "opset 18", .in = {"f32[2,3,4,2]"}, .opset = 18, .flags = OT_CASE_OPEN},
    {.name = "opset 9", .in = {"f64[2,3,4,2]"}, .out = {"f64[2,3,4,2]"}, .opset = 9},
    {.name = "equal elements",
     .in = {"f32[1,2,1,2]{3,3,-2,-2}"},
     .out = {"f32[1,2,1,2]{0,0,0,0}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "no images",
     .in = {"f32[0,3,2,2]"},
     .out = {"f32[0,3,2,2]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "large", .in = {"f32[4,16,21,17]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "the usual axes of too few", .in = {"f32[2,3,4]"}, .error = OT_ERR_INVALID},
    {.name = "an axis beyond X",
     .in = {"f32[2,3]"},
     .attrs = "axes = [-3]",
     .error = OT_ERR_INVALID},
    {.name = "an axis twice",
     .in = {"f32[2,3]"},
     .attrs = "axes = [1, -1]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("MeanVarianceNormalization", 13, mean_variance_normalization_cases)
