// SPDX-License-Identifier: Apache-2.0
// Values: the formula in f64.
#include "harness.h"

#define X "f32[2,4,3]{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4,2,3,2,-3}"

static const ot_op_case group_norm_training_cases[] = {
    {.name = "two groups",
     .in = {X, "f32[4]{1,2,-0.5,3}", "f32[4]{0,1,-1,0.5}"},
     .attrs = "num_groups = 2",
     .out = {"f32[2,4,3]{0.6064493,1.598821,0.6064493,-1.095007,-1.095007,-0.4334256,-1.707106,-1."
             "441941,-0.3812824,-0.03032934,1.560659,-3.212305,-0.07352139,-0.9557781,-0.07352139,"
             "3.499727,3.499727,-1.793813,-1.435194,-0.216651,-1.261116,3.111163,2.066698,-3."
             "155629}",
             "f32[2,2]{-0.8333333,0.3333333,0.1666667,0.5}",
             "f32[2,2]{0.3307905,0.5303293,0.4411283,0.3481551}"}},
    {.name = "one group, epsilon, channels along another axis",
     .in = {X, "f32[4,1]{1,2,-0.5,3}", "f32[4,1]{0,1,-1,0.5}"},
     .attrs = "num_groups = 1, epsilon = 0.5",
     .out = {"f32[2,4,3]{0.4662524,1.585258,0.4662524,-1.797514,-1.797514,-1.051511,-1.606128,-1."
             "419627,-0.6736233,0.7797514,1.898757,-1.45826,-0.1240347,-0.8682431,-0.1240347,2."
             "984556,2.984556,-1.480695,-1.496139,-0.1937742,-1.310087,3.476834,2.360521,-3."
             "221042}"}},
    {.name = "neither scale nor B",
     .in = {"f32[2,2,2]{1,4,1,-4,-4,-3,3,2}"},
     .attrs = "num_groups = 1",
     .out = {"f32[2,2,2]{0.1740776,1.218543,0.1740776,-1.566698,-1.150792,-0.8219945,1."
             "150792,0.8219945}"}},
    {.name = "a scale without B", // xh = (-1, 1, -1, 1)
     .in = {"f32[1,2,2]{-3,3,-3,3}", "f32[2]{2,5}"},
     .attrs = "num_groups = 2",
     .out = {"f32[1,2,2]{-1.999999,1.999999,-4.999997,4.999997}"}},
    {.name = "a channel a group",
     .in = {"f32[2,4,3,2]", "f32[4]", "f32[4]"},
     .attrs = "num_groups = 4",
     .out = {"f32[2,4,3,2]", "f32[2,4]", "f32[2,4]"},
     .flags = OT_CASE_IMAGE},
    {.name = "blocks of channels, two of which are a group",
     .in = {"f32[2,64,5,7]", "f32[64,1,1]", "f32[64,1,1]"},
     .attrs = "num_groups = 2",
     .out = {"f32[2,64,5,7]"},
     .flags = OT_CASE_IMAGE},
    {.name = "groups across blocks of channels",
     .in = {"f32[3,48,4,3]", "f32[48]", "f32[48]"},
     .attrs = "num_groups = 4",
     .out = {"f32[3,48,4,3]"},
     .flags = OT_CASE_IMAGE},
    {.name = "large means", // which differ from channel to channel
     .in = {"f32[1,2,2]{1001,1003,-999,-997}"},
     .attrs = "num_groups = 1",
     .out = {"f32[1,2,2]{0.9989995,1.000999,-1.000999,-0.9989995}", "f32[1,1]{2}",
             "f32[1,1]{0.0009999995}"}},
    {.name = "no spatial axes",
     .in = {"f32[3,4]", "f32[4]", "f32[4]"},
     .attrs = "num_groups = 2",
     .out = {"f32[3,4]"}},
    {.name = "long channels",
     .in = {"f32[2,3,4099]", "f32[3]", "f32[3]"},
     .attrs = "num_groups = 1",
     .out = {"f32[2,3,4099]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "groups that do not divide the channels",
     .in = {"f32[2,4,3]", "f32[4]", "f32[4]"},
     .attrs = "num_groups = 3",
     .error = OT_ERR_INVALID},
    {.name = "no group",
     .in = {"f32[2,4,3]", "f32[4]", "f32[4]"},
     .attrs = "num_groups = 0",
     .error = OT_ERR_INVALID},
    {.name = "a scale of other channels",
     .in = {"f32[2,4,3]", "f32[2]", "f32[4]"},
     .attrs = "num_groups = 2",
     .error = OT_ERR_INVALID},
    {.name = "a scale of four by four",
     .in = {"f32[2,4,3]", "f32[4,4]", "f32[4]"},
     .attrs = "num_groups = 2",
     .error = OT_ERR_INVALID},
    {.name = "one axis", .in = {"f32[4]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GroupNormTraining", 1, group_norm_training_cases)
