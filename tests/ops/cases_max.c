#include "harness.h"

static const ot_op_case max_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{1,-2,3.5,0,inf,nan}", "f32[6]{2,0.5,-1.5,4,1,1}"},
     .out = {"f32[6]{2,0.5,3.5,4,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[6]{1,-2,3.5,0,inf,nan}", "f64[6]{2,0.5,-1.5,4,1,1}"},
     .out = {"f64[6]{2,0.5,3.5,4,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "i32", .in = {"i32[3]{3,-1,5}", "i32[3]{2,1,-7}"}, .out = {"i32[3]{3,1,5}"}},
    {.name = "i64", .in = {"i64[3]{3,-1,5}", "i64[3]{2,1,-7}"}, .out = {"i64[3]{3,1,5}"}},
    {.name = "no input", .error = OT_ERR_INVALID},
    {.name = "one input", .in = {"f32[3,4]"}, .out = {"f32[3,4]"}},
    {.name = "three inputs", .in = {"f32[3,4]", "f32[4]", "f32[3,1]"}, .out = {"f32[3,4]"}},
    {.name = "against a constant", .in = {"f32[3,4]", "f32[]{0.1} const"}, .out = {"f32[3,4]"}},
    {.name = "twenty inputs",
     .in = {"f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]",
            "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]",
            "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2,3]"},
     .out = {"f32[2,3]"}},
    {0},
};
OT_OP_TEST("Max", 13, max_cases)
