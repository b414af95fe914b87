// SPDX-License-Identifier: Apache-2.0
// Values: the formula in f64.
#include "harness.h"

#define DY "f32[2,4,3]{2,-1,0,3,1,-2,1,1,-3,2,0,4,-1,-2,3,1,0,2,-4,1,1,2,-1,3}"
#define X "f32[2,4,3]{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4,2,3,2,-3}"
#define MEAN "f32[2,2]{-0.8333333,0.3333333,0.1666667,0.5}"
#define INV_STD "f32[2,2]{0.3307905,0.5303293,0.4411283,0.3481551}"

static const ot_op_case group_norm_grad_cases[] = {
    {.name = "two groups",
     .in = {DY, X, "f32[4]{1,2,-0.5,3}", MEAN, INV_STD},
     .attrs = "num_groups = 2",
     .out = {"f32[2,4,3]{0.5831563,-0.08646861,-0.07842472,1.368407,0.04524528,-1.831916,0.4640315,"
             "-0.4226103,-2.908519,1.251247,-1.044088,2.659939,-0.8894101,-1.416379,0.8751033,0."
             "5627365,-0.3195202,1.18747,0.1969359,-1.387345,-0.7754365,1.589556,-1.645824,2."
             "022113}",
             "f32[4]{1.378591,-4.300537,1.484383,-7.740379}", "f32[4]{1,5,-3,10}"}},
    {.name = "without a scale",
     .in = {DY, X, "", MEAN, INV_STD},
     .attrs = "num_groups = 2",
     .out = {"f32[2,4,3]{0.6012544,-0.2191867,-0.06032665,0.6454942,-0.01608688,-0.9511483,2."
             "485912e-07,0.03314574,-1.95559,0.6297661,-0.4640381,1.756716,-0.6605003,-1.087322,1."
             "104013,0.2002962,-0.2408322,0.684345,-1.157001,-0.4009051,0.4431062,0.9319299,-0."
             "253204,0.4360737}"}},
    {.name = "of the scale and B alone",
     .in = {DY, X, "f32[4,1,1]{1,2,-0.5,3}", MEAN, INV_STD},
     .attrs = "num_groups = 2",
     .out = {"", "f32[4,1,1]{1.378591,-4.300537,1.484383,-7.740379}", "f32[4,1,1]{1,5,-3,10}"}},
    {.name = "blocks of channels",
     .in = {"f32[2,64,5,7]", "f32[2,64,5,7]", "f32[64]", "f32[2,4] in -0.1..0.1",
            "f32[2,4] in 0.7..1"},
     .attrs = "num_groups = 4",
     .out = {"f32[2,64,5,7]", "f32[64]", "f32[64]"}},
    {.name = "many elements of a channel",
     .in = {"f32[3,4,70,9]", "f32[3,4,70,9]", "f32[4]", "f32[3,4] in -0.1..0.1",
            "f32[3,4] in 0.7..1"},
     .attrs = "num_groups = 4",
     .out = {"f32[3,4,70,9]", "f32[4]", "f32[4]"}},
    {.name = "dY of another shape",
     .in = {"f32[2,4,2]", X, "f32[4]", MEAN, INV_STD},
     .attrs = "num_groups = 2",
     .error = OT_ERR_INVALID},
    {.name = "a mean of other groups",
     .in = {DY, X, "f32[4]", "f32[2,4]", INV_STD},
     .attrs = "num_groups = 2",
     .error = OT_ERR_INVALID},
    {.name = "groups that do not divide the channels",
     .in = {DY, X, "f32[4]", MEAN, INV_STD},
     .attrs = "num_groups = 3",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GroupNormGrad", 1, group_norm_grad_cases)
