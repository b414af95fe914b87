// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case matmul_integer_cases[] = {
    RECORDED_MAT_MUL_INTEGER,
    {.name = "zero points of rows", // rows (1, 2) - 1 and (3, 4) - 2, columns less 1 and 2
     .in = {"u8[2,2]{1,2,3,4}", "i8[2,2]{5,-6,7,8}", "u8[2]{1,2}", "i8[2]{1,2}"},
     .out = {"i32[2,2]{6,6,16,4}"}},
    {.name = "zero points of the rows of each batch",
     .in = {"u8[2,1,2]{1,2,3,4}", "i8[2,1]{5,-6}", "u8[2,1,1]{1,2}"},
     .out = {"i32[2,1,1]{-6,-7}"}},
    {.name = "zero points of rows that batches share",
     .in = {"u8[2,2,1]{1,2,3,4}", "i8[1,1]{5}", "u8[2]{1,2}"},
     .out = {"i32[2,2,1]{0,0,10,10}"}},
    {.name = "zero points of the columns of each batch",
     .in = {"u8[1,2]{1,2}", "i8[2,2,1]{5,-6,7,8}", "", "i8[2,1,1]{1,2}"},
     .out = {"i32[2,1,1]{-10,17}"}},
    {.name = "zero points of rows of matrices that several products read",
     .in = {"u8[2,1,1,2]{1,2,3,4}", "i8[3,2,1]{5,-6,7,8,1,1}", "u8[2,1,1,1]{1,2}"},
     .out = {"i32[2,3,1,1]{-6,8,1,-7,23,3}"}},
    {.name = "vectors",
     .in = {"u8[3]{1,2,3}", "u8[3]{4,5,6}", "u8[]{1}", "u8[1]{4}"},
     .out = {"i32[]{5}"}},
    {.name = "nothing is summed", .in = {"u8[2,0]", "i8[0,3]"}, .out = {"i32[2,3]{0,0,0,0,0,0}"}},
    {.name = "no rows", .in = {"u8[0,2]", "i8[2,3]"}, .out = {"i32[0,3]"}},
    {.name = "large", .in = {"u8[37,130]", "i8[130,517]", "u8[37]", "i8[517]"}},
    {.name = "inner dimensions differ", .in = {"u8[2,3]", "u8[2,3]"}, .error = OT_ERR_INVALID},
    {.name = "more zero points than rows",
     .in = {"u8[2,3]", "u8[3,4]", "u8[3]"},
     .error = OT_ERR_INVALID},
    {.name = "more zero points than columns",
     .in = {"u8[2,3]", "u8[3,4]", "", "u8[2]"},
     .error = OT_ERR_INVALID},
    {.name = "zero points of elements",
     .in = {"u8[2,3]", "u8[3,4]", "u8[2,3]"},
     .error = OT_ERR_INVALID},
    {.name = "a zero point of another type",
     .in = {"u8[2,3]", "u8[3,4]", "i8[]"},
     .error = OT_ERR_INVALID},
    {.name = "integers of 32 bits", .in = {"i32[2,3]", "i32[3,4]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("MatMulInteger", 10, matmul_integer_cases)
