// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

// Of ONNX's tests: pairs of boxes that overlap, and one far away.
#define BOXES                                                                                      \
    "f32[1,6,4]{0,0,1,1,0,0.1,1,1.1,0,-0.1,1,0.9,0,10,1,11,0,10.1,1,11.1,0,100,1,101} const"
#define SCORES "f32[1,1,6]{0.9,0.75,0.6,0.95,0.5,0.3} const"
#define MOST(n) "i64[1]{" #n "} const"
#define HALF "f32[1]{0.5} const"
#define NONE "f32[1]{0} const"

static const ot_op_case non_max_suppression_cases[] = {
    {.name = "by IoU",
     .in = {BOXES, SCORES, MOST(3), HALF, NONE},
     .out = {"i64[3,3]{0,0,3,0,0,0,0,0,5}"}},
    {.name = "by score",
     .in = {BOXES, SCORES, MOST(3), HALF, "f32[1]{0.4} const"},
     .out = {"i64[2,3]{0,0,3,0,0,0}"}},
    {.name = "at most two",
     .in = {BOXES, SCORES, MOST(2), HALF, NONE},
     .out = {"i64[2,3]{0,0,3,0,0,0}"}},
    {.name = "corners the other way",
     .in =
         {"f32[1,6,4]{1,1,0,0,0,0.1,1,1.1,0,0.9,1,-0.1,0,10,1,11,1,10.1,0,11.1,1,101,0,100} const",
          SCORES, MOST(3), HALF, NONE},
     .out = {"i64[3,3]{0,0,3,0,0,0,0,0,5}"}},
    {.name = "centers",
     .in = {"f32[1,6,4]{0.5,0.5,1,1,0.5,0.6,1,1,0.5,0.4,1,1,0.5,10.5,1,1,0.5,10.6,1,1,0.5,100.5,"
            "1,1} const",
            SCORES, MOST(3), HALF, NONE},
     .attrs = "center_point_box = 1",
     .out = {"i64[3,3]{0,0,3,0,0,0,0,0,5}"}},
    {.name = "the same box",
     .in = {"f32[1,3,4]{0,0,1,1,0,0,1,1,0,0,1,1} const", "f32[1,1,3]{0.9,0.9,0.9} const", MOST(3),
            HALF, NONE},
     .out = {"i64[1,3]{0,0,0}"}},
    {.name = "two classes of two batches",
     .in = {"f32[2,2,4]{0,0,1,1,0,10,1,11,0,0,1,1,0,0,1,1} const",
            "f32[2,2,2]{0.9,0.8,0.1,0.2,0.5,0.6,0.7,0.7} const", MOST(2), HALF, NONE},
     .out = {"i64[6,3]{0,0,0,0,0,1,0,1,1,0,1,0,1,0,1,1,1,0}"}},
    // Two of three halves: IoU is 1 / 3.
    {.name = "exactly the threshold is kept",
     .in = {"f32[1,2,4]{0,0,1,2,0,1,1,3} const", "f32[1,1,2]{0.9,0.8} const", MOST(2),
            "f32[1]{0.33333334} const", NONE},
     .out = {"i64[2,3]{0,0,0,0,0,1}"}},
    {.name = "any overlap",
     .in = {"f32[1,2,4]{0,0,1,2,0,1,1,3} const", "f32[1,1,2]{0.9,0.8} const", MOST(2)},
     .out = {"i64[1,3]{0,0,0}"}},
    {.name = "NaN scores are left out",
     .in = {"f32[1,2,4]{0,0,1,1,0,10,1,11} const", "f32[1,1,2]{nan,0.8} const", MOST(2)},
     .out = {"i64[1,3]{0,0,1}"}},
    {.name = "boxes without an area",
     .in = {"f32[1,2,4]{0,0,0,0,0,0,0,0} const", "f32[1,1,2]{0.9,0.8} const", MOST(2)},
     .out = {"i64[2,3]{0,0,0,0,0,1}"}},
    {.name = "none by default", .in = {BOXES, SCORES}, .out = {"i64[0,3]"}},
    {.name = "fewer than none", .in = {BOXES, SCORES, MOST(-1)}, .out = {"i64[0,3]"}},
    {.name = "no boxes",
     .in = {"f32[1,0,4] const", "f32[1,2,0] const", MOST(2)},
     .out = {"i64[0,3]"}},
    {.name = "numbers",
     .in = {BOXES, SCORES, "i64[]{1} const", "f32[]{0.5} const"},
     .out = {"i64[1,3]{0,0,3}"}},
    {.name = "opset 10", .in = {BOXES, SCORES, MOST(1)}, .out = {"i64[1,3]{0,0,3}"}, .opset = 10},
    {.name = "an IoU above 1",
     .in = {BOXES, SCORES, MOST(1), "f32[1]{1.5} const"},
     .error = OT_ERR_INVALID},
    {.name = "an IoU that is NaN",
     .in = {BOXES, SCORES, MOST(1), "f32[1]{nan} const"},
     .error = OT_ERR_INVALID},
    {.name = "scores of other boxes",
     .in = {BOXES, "f32[1,1,5]", MOST(1)},
     .error = OT_ERR_INVALID},
    {.name = "scores of another batch",
     .in = {BOXES, "f32[2,1,6]", MOST(1)},
     .error = OT_ERR_INVALID},
    {.name = "boxes of five numbers",
     .in = {"f32[1,6,5]", SCORES, MOST(1)},
     .error = OT_ERR_INVALID},
    {.name = "a list of boxes", .in = {"f32[6,4]", SCORES, MOST(1)}, .error = OT_ERR_INVALID},
    {.name = "two bounds", .in = {BOXES, SCORES, "i64[2]{1,1}"}, .error = OT_ERR_INVALID},
    {.name = "an unknown kind of box",
     .in = {BOXES, SCORES, MOST(1)},
     .attrs = "center_point_box = 2",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("NonMaxSuppression", 11, non_max_suppression_cases)
