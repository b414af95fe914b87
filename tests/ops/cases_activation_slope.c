// SPDX-License-Identifier: Apache-2.0
// The values are those of mpmath with 30 digits, of the slope by its diff().
#include "harness.h"

#define X "{-20,-3,-1,-0.25,0,0.5,1,2,6,20}"
#define GELU                                                                                       \
    "{0,-0.004049694095,-0.1586552539,-0.1003234186,0,0.3457312306,0.8413447461,1.954499736,"      \
    "5.999999994,20}"
#define GELU_SLOPE                                                                                 \
    "{0,-0.0119456472,-0.08331547059,0.3046266451,0.5,0.8674951247,1.083315471,1.085231801,"       \
    "1.000000035,1}"
#define FAST                                                                                       \
    "{0,-0.003637392082,-0.1588080094,-0.1003246493,0,0.3457140098,0.8411919906,1.954597694,6,20}"
#define FAST_SLOPE                                                                                 \
    "{0,-0.01158416663,-0.08296408385,0.3046459048,0.5,0.8673699035,1.082964084,1.086099257,"      \
    "1.000000001,1}"
#define QUICK                                                                                      \
    "{-3.293410241e-14,-0.01807130971,-0.1542042341,-0.0988003501,0,0.3503884366,0.8457957659,"    \
    "1.935658623,5.999779646,20}"
#define QUICK_SLOPE                                                                                \
    "{-5.440713719e-14,-0.02454832391,-0.06777960656,0.293499559,0.5,0.879221912,1.067779607,"     \
    "1.073815354,1.000338302,1}"
#define SWISH                                                                                      \
    "{-4.122307236e-8,-0.1422776195,-0.2689414214,-0.1094558748,0,0.3112296656,0.7310585786,"      \
    "1.761594156,5.985164261,19.99999996}"
#define SWISH_SLOPE                                                                                \
    "{-3.916191866e-8,-0.08810410602,0.07232948813,0.3762899784,0.5,0.7399611873,0.9276705119,"    \
    "1.090784249,1.012326433,1.000000039}"

static const ot_op_case activation_slope_cases[] = {
    {.name = "Gelu",
     .in = {"f32[10]" X},
     .attrs = "activation = \"Gelu\"",
     .out = {"f32[10]" GELU, "f32[10]" GELU_SLOPE}},
    {.name = "Gelu, f64",
     .in = {"f64[10]" X},
     .attrs = "activation = \"Gelu\"",
     .out = {"f64[10]" GELU, "f64[10]" GELU_SLOPE}},
    {.name = "FastGelu",
     .in = {"f32[10]" X},
     .attrs = "activation = \"FastGelu\"",
     .out = {"f32[10]" FAST, "f32[10]" FAST_SLOPE}},
    {.name = "FastGelu, f64",
     .in = {"f64[10]" X},
     .attrs = "activation = \"FastGelu\"",
     .out = {"f64[10]" FAST, "f64[10]" FAST_SLOPE}},
    {.name = "QuickGelu",
     .in = {"f32[10]" X},
     .attrs = "activation = \"QuickGelu\"",
     .out = {"f32[10]" QUICK, "f32[10]" QUICK_SLOPE}},
    {.name = "QuickGelu with another alpha, f64",
     .in = {"f64[10]" X},
     .attrs = "activation = \"QuickGelu\", alpha = 1.0",
     .out = {"f64[10]" SWISH, "f64[10]" SWISH_SLOPE}},
    {.name = "several blocks",
     .in = {"f32[3,17001]"},
     .attrs = "activation = \"Gelu\"",
     .out = {"f32[3,17001]", "f32[3,17001]"}},
    {.name = "several blocks of FastGelu",
     .in = {"f32[2,3,299]"},
     .attrs = "activation = \"FastGelu\"",
     .out = {"f32[2,3,299]", "f32[2,3,299]"}},
    {.name = "not a number, infinity",
     .in = {"f32[3]{nan,inf,0}"},
     .attrs = "activation = \"QuickGelu\"",
     .out = {"f32[3]{nan,inf,0}", "f32[3]{nan,nan,0.5}"}},
    {.name = "empty",
     .in = {"f32[3,0]"},
     .attrs = "activation = \"Gelu\"",
     .out = {"f32[3,0]", "f32[3,0]"}},
    {.name = "another activation",
     .in = {"f32[2]"},
     .attrs = "activation = \"Relu\"",
     .error = OT_ERR_INVALID},
    {.name = "no activation", .in = {"f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ActivationSlope", 1, activation_slope_cases)
