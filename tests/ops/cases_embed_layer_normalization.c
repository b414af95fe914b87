// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

#define TABLES "f32[5,4]", "f32[6,4]", "f32[2,4]", "f32[4]", "f32[4]"

static const ot_op_case embed_layer_normalization_cases[] = {
    RECORDED_EMBED_LAYER_NORMALIZATION,
    {.name = "no rows",
     .in = {"i32[0,3]", "i32[0,3]", TABLES},
     .out = {"f32[0,3,4]", "i32[0]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "a word that is not there",
     .in = {"i32[1,2]{0,5}", "i32[1,2]{0,1}", TABLES},
     .error = OT_ERR_INVALID},
    {.name = "a segment that is not there",
     .in = {"i32[1,2]{0,4}", "i32[1,2]{0,2}", TABLES},
     .error = OT_ERR_INVALID},
    {.name = "a position that is not there",
     .in = {"i32[1,2]{0,4}", "i32[1,2]{0,1}", TABLES, "", "i32[1,2]{0,6}"},
     .error = OT_ERR_INVALID},
    {.name = "more positions than rows",
     .in = {"i32[1,7]{0,0,0,0,0,0,0}", "i32[1,7]{0,0,0,0,0,0,0}", TABLES},
     .error = OT_ERR_INVALID},
    {.name = "segments without their table",
     .in = {"i32[1,2]{0,4}", "i32[1,2]{0,1}", "f32[5,4]", "f32[6,4]", "", "f32[4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "ids of three axes",
     .in = {"i32[1,2,1]{0,4}", "i32[1,2,1]{0,1}", TABLES},
     .error = OT_ERR_INVALID},
    {.name = "segments of another shape",
     .in = {"i32[1,2]{0,4}", "i32[1,1]{0}", TABLES},
     .error = OT_ERR_INVALID},
    {.name = "positions of two batches",
     .in = {"i32[3,2]{0,4,0,0,0,0}", "i32[3,2]{0,1,0,0,0,0}", TABLES, "", "i32[2,2]{0,0,0,0}"},
     .error = OT_ERR_INVALID},
    {.name = "rows of other sizes",
     .in = {"i32[1,2]{0,4}", "", "f32[5,4]", "f32[6,3]", "", "f32[4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "a table of one axis",
     .in = {"i32[1,2]{0,4}", "", "f32[5,4]", "f32[4]", "", "f32[4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "gamma of another size",
     .in = {"i32[1,2]{0,4}", "", "f32[5,4]", "f32[6,4]", "", "f32[3]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.EmbedLayerNormalization", 1, embed_layer_normalization_cases)
