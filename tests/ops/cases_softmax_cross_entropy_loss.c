// SPDX-License-Identifier: Apache-2.0
// Values of the gradient: recorded from ONNX Runtime training 1.19.2. The scores' softmax is (1, 2,
// 5) / 8 and (1, 1, 2) / 4.
#include "ops/harness.h"

#define SCORES "f32[2,3]{0,0.69314718056,1.60943791243,0,0,0.69314718056}"
#define LOG_PROB                                                                                   \
    "f32[2,3]{-2.07944154168,-1.38629436112,-0.470003629246,-1.38629436112,-1.38629436112,-0."     \
    "69314718056}"
#define LABELS "i64[2]{2,0}"

static const ot_op_case sce_cases[] = {
    {.name = "mean", .in = {SCORES, LABELS}, .out = {"f32[]{0.928148995183}", LOG_PROB}},
    {.name = "sum",
     .in = {SCORES, LABELS},
     .attrs = "reduction = \"sum\"",
     .out = {"f32[]{1.85629799037}"}},
    {.name = "none",
     .in = {SCORES, LABELS},
     .attrs = "reduction = \"none\"",
     .out = {"f32[2]{0.470003629246,1.38629436112}"}},
    {.name = "weights, mean",
     .in = {SCORES, LABELS, "f32[3]{1,2,3}"},
     .out = {"f32[]{0.699076312214}", LOG_PROB}},
    {.name = "ignored label",
     .in = {SCORES, "i64[2]{2,-100}"},
     .attrs = "ignore_index = -100",
     .out = {"f32[]{0.470003629246}", LOG_PROB}},
    {.name = "all ignored",
     .in = {SCORES, "i32[2]{1,1}"},
     .attrs = "ignore_index = 1",
     .out = {"f32[]{0}"}},
    {.name = "i32 labels", .in = {"f32[4,5]", "i32[4]{0,4,2,2}"}, .out = {"f32[]", "f32[4,5]"}},
    {.name = "images",
     .in = {"f32[2,3,2,2]", "i64[2,2,2]{0,1,2,0,1,1,2,2}", "f32[3]"},
     .out = {"f32[]", "f32[2,3,2,2]"}},
    {.name = "images, none",
     .in = {"f32[2,3,2]", "i64[2,2]{0,1,2,0}"},
     .attrs = "reduction = \"none\", ignore_index = 1",
     .out = {"f32[2,2]", "f32[2,3,2]"}},
    {.name = "label too large", .in = {SCORES, "i64[2]{3,0}"}, .error = OT_ERR_INVALID},
    {.name = "label -1 is no exception", .in = {SCORES, "i64[2]{-1,0}"}, .error = OT_ERR_INVALID},
    {.name = "labels of another shape", .in = {SCORES, "i64[3]{0,0,0}"}, .error = OT_ERR_INVALID},
    {.name = "unknown reduction",
     .in = {SCORES, LABELS},
     .attrs = "reduction = \"max\"",
     .error = OT_ERR_INVALID},
    {.name = "weight of another length", .in = {SCORES, LABELS, "f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("SoftmaxCrossEntropyLoss", 13, sce_cases)

#define ORT_LOG_PROB "f32[2,3]{-0.5,-1.5,-2,-1,-1,-1.2}"
#define ORT_LABELS "i64[2]{0,2}"
static const ot_op_case sce_grad_cases[] = {
    {.name = "mean",
     .in = {"f32[]{1}", ORT_LOG_PROB, ORT_LABELS},
     .out = {"f32[2,3]{-0.196735,0.111565,0.0676676,0.18394,0.18394,-0.349403}"},
     .tolerance = 10},
    {.name = "sum",
     .in = {"f32[]{1}", ORT_LOG_PROB, ORT_LABELS},
     .attrs = "reduction = \"sum\"",
     .out = {"f32[2,3]{-0.393469,0.22313,0.135335,0.367879,0.367879,-0.698806}"},
     .tolerance = 10},
    {.name = "mean, weights",
     .in = {"f32[]{1}", ORT_LOG_PROB, ORT_LABELS, "f32[3]{1,2,3}"},
     .out = {"f32[2,3]{-0.0983673,0.0557825,0.0338338,0.27591,0.27591,-0.524104}"},
     .tolerance = 10},
    {.name = "mean, ignored",
     .in = {"f32[]{1}", ORT_LOG_PROB, ORT_LABELS},
     .attrs = "ignore_index = 0",
     .out = {"f32[2,3]{0,0,0,0.367879,0.367879,-0.698806}"},
     .tolerance = 10},
    {.name = "none",
     .in = {"f32[2]{1,2}", ORT_LOG_PROB, ORT_LABELS},
     .attrs = "reduction = \"none\"",
     .out = {"f32[2,3]{-0.393469,0.22313,0.135335,0.735759,0.735759,-1.39761}"},
     .tolerance = 10},
    {.name = "images",
     .in = {"f32[]{1}", "f32[1,2,2]{-0.5,-0.7,-0.9,-1}", "i64[1,2]{0,1}"},
     .out = {"f32[1,2,2]{-0.196735,0.248293,0.203285,-0.31606}"},
     .tolerance = 10},
    {.name = "label too large",
     .in = {"f32[]{1}", ORT_LOG_PROB, "i64[2]{0,3}"},
     .error = OT_ERR_INVALID},
    {.name = "labels of another shape",
     .in = {"f32[]{1}", ORT_LOG_PROB, "i64[1]{0}"},
     .error = OT_ERR_INVALID},
    {.name = "dY of another shape",
     .in = {"f32[1]{1}", ORT_LOG_PROB, ORT_LABELS},
     .attrs = "reduction = \"none\"",
     .error = OT_ERR_INVALID},
    {.name = "no dY", .in = {"f32[0]", ORT_LOG_PROB, ORT_LABELS}, .error = OT_ERR_INVALID},
    {.name = "weight of another length",
     .in = {"f32[]{1}", ORT_LOG_PROB, ORT_LABELS, "f32[2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.SoftmaxCrossEntropyLossGrad", 1, sce_grad_cases)

static const ot_op_case nll_cases[] = {
    {.name = "mean", .in = {LOG_PROB, LABELS}, .out = {"f32[]{0.928148995183}"}},
    {.name = "weights, mean",
     .in = {LOG_PROB, LABELS, "f32[3]{1,2,3}"},
     .out = {"f32[]{0.699076312214}"}},
    {.name = "sum",
     .in = {"f32[3,4]", "i32[3]{0,3,1}"},
     .attrs = "reduction = \"sum\"",
     .out = {"f32[]"}},
    {.name = "images, none, ignored",
     .in = {"f32[2,3,2]", "i64[2,2]{0,1,2,0}"},
     .attrs = "reduction = \"none\", ignore_index = 0",
     .out = {"f32[2,2]"}},
    {.name = "label too large", .in = {LOG_PROB, "i64[2]{0,3}"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("NegativeLogLikelihoodLoss", 13, nll_cases)

static const ot_op_case nll_grad_cases[] = {
    {.name = "mean, weights",
     .in = {"f32[]{2}", LOG_PROB, LABELS, "f32[3]{1,2,3}"},
     .out = {"f32[2,3]{0,0,-1.5,-0.5,0,0}"}},
    {.name = "none, ignored",
     .in = {"f32[2]{2,3}", LOG_PROB, LABELS},
     .attrs = "reduction = \"none\", ignore_index = 2",
     .out = {"f32[2,3]{0,0,0,-3,0,0}"}},
    {.name = "labels of another shape",
     .in = {"f32[]{1}", LOG_PROB, "i64[1]{0}"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.NegativeLogLikelihoodLossGrad", 1, nll_grad_cases)

static const ot_op_case sce_internal_cases[] = {
    {.name = "mean", .in = {SCORES, LABELS}, .out = {"f32[]{0.928148995183}", LOG_PROB}},
    {.name = "ignored label as an input",
     .in = {SCORES, "i64[2]{2,7}", "", "i64[]{7}"},
     .out = {"f32[]{0.470003629246}", LOG_PROB}},
    {.name = "weights and ignored label",
     .in = {"f32[3,4]", "i64[3]{0,3,1}", "f32[4]", "i64[]{3}"},
     .attrs = "reduction = \"sum\"",
     .out = {"f32[]", "f32[3,4]"}},
    {.name = "label too large", .in = {SCORES, "i64[2]{3,0}"}, .error = OT_ERR_INVALID},
    {.name = "no label to ignore", .in = {SCORES, LABELS, "", "i64[0]{}"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.SoftmaxCrossEntropyLossInternal", 1, sce_internal_cases)

static const ot_op_case sce_internal_grad_cases[] = {
    {.name = "mean, ignored label as an input",
     .in = {"f32[]{1}", ORT_LOG_PROB, ORT_LABELS, "", "i64[]{0}"},
     .out = {"f32[2,3]{0,0,0,0.367879,0.367879,-0.698806}"},
     .tolerance = 10},
    {.name = "a bias",
     .in = {"f32[]{1}", ORT_LOG_PROB, ORT_LABELS, "", "", "f32[2,3]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.SoftmaxCrossEntropyLossInternalGrad", 1, sce_internal_grad_cases)
