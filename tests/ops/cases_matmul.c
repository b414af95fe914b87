// SPDX-License-Identifier: Apache-2.0
#include "ops/harness.h"

static const ot_op_case matmul_cases[] = {
    {.name = "values",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "f32[3,2]{1,0,0,1,1,1}"},
     .out = {"f32[2,2]{4,5,10,11}"}},
    {.name = "matrices", .in = {"f32[3,4]", "f32[4,5]"}, .out = {"f32[3,5]"}},
    {.name = "batches", .in = {"f32[2,3,4]", "f32[2,4,5]"}, .out = {"f32[2,3,5]"}},
    {.name = "batch times matrix", .in = {"f32[2,3,4]", "f32[4,5]"}, .out = {"f32[2,3,5]"}},
    {.name = "matrix times batch", .in = {"f32[3,4]", "f32[2,4,5]"}, .out = {"f32[2,3,5]"}},
    {.name = "batches broadcast", .in = {"f32[2,1,3,4]", "f32[5,4,2]"}, .out = {"f32[2,5,3,2]"}},
    {.name = "vector times matrix", .in = {"f32[4]", "f32[4,5]"}, .out = {"f32[5]"}},
    {.name = "matrix times vector", .in = {"f32[3,4]", "f32[4]"}, .out = {"f32[3]"}},
    {.name = "vector times batch", .in = {"f32[4]", "f32[2,4,5]"}, .out = {"f32[2,5]"}},
    {.name = "batch times vector", .in = {"f32[2,3,4]", "f32[4]"}, .out = {"f32[2,3]"}},
    {.name = "vectors", .in = {"f32[4]{1,2,3,4}", "f32[4]{1,0,1,0}"}, .out = {"f32[]{4}"}},
    {.name = "f64", .in = {"f64[2,3,4]", "f64[2,4,5]"}, .out = {"f64[2,3,5]"}},
    {.name = "empty", .in = {"f32[0,3,4]", "f32[4,5]"}, .out = {"f32[0,3,5]"}},
    {.name = "inner dimensions differ", .in = {"f32[3,4]", "f32[3,4]"}, .error = OT_ERR_INVALID},
    {.name = "batches differ", .in = {"f32[2,3,4]", "f32[3,4,5]"}, .error = OT_ERR_INVALID},
    {.name = "a scalar", .in = {"f32[]", "f32[4,5]"}, .error = OT_ERR_INVALID},
    {.name = "edges of tiles",
     .in = {"f32[2,M,5]", "f32[2,5,N]"},
     .edges = "M gemm_rows, N gemm_columns"},
    {0},
};
OT_OP_TEST("MatMul", 13, matmul_cases)

static const ot_op_case fused_matmul_cases[] = {
    {.name = "values",
     .in = {"f32[3,2]{1,4,2,5,3,6}", "f32[2,3]{1,0,1,0,1,1}"},
     .attrs = "transA = 1, transB = 1, alpha = 0.5",
     .out = {"f32[2,2]{2,2.5,5,5.5}"}},
    {.name = "A transposed",
     .in = {"f32[2,4,3]", "f32[2,4,5]"},
     .attrs = "transA = 1",
     .out = {"f32[2,3,5]"}},
    {.name = "B transposed",
     .in = {"f32[2,1,3,4]", "f32[5,2,4]"},
     .attrs = "transB = 1, alpha = 2.0",
     .out = {"f32[2,5,3,2]"}},
    {.name = "both transposed",
     .in = {"f32[2,4,3]", "f32[5,4]"},
     .attrs = "transA = 1, transB = 1",
     .out = {"f32[2,3,5]"}},
    {.name = "neither", .in = {"f32[2,3,4]", "f32[4,5]"}, .out = {"f32[2,3,5]"}},
    {.name = "batch axes moved",
     .in = {"f32[2,3,4]", "f32[4,5]"},
     .attrs = "transBatchA = 1",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.FusedMatMul", 1, fused_matmul_cases)
