// SPDX-License-Identifier: Apache-2.0
// Values: those of BatchNormInternal's cases. Without other ranks that is what it does; with them:
// tests/unit/session/test_sync_norm.c.
#include "harness.h"

static const ot_op_case sync_batch_normalization_cases[] = {
    {.name = "as ONNX Runtime has it",
     .in = {"f32[4,1]{1,2,4,7}", "f32[1]{2}", "f32[1]{0.5}", "f32[1]{10}", "f32[1]{3}"},
     .attrs = "momentum = 0.9",
     .out = {"f32[4,1]{-1.68218,-0.809306,0.936435,3.55505}", "f32[1]{9.35}", "f32[1]{3.225}",
             "f32[1]{3.5}", "f32[1]{0.436435}"}},
    {.name = "images",
     .in = {"f32[2,3,2,2]{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4,2,3,2,-3}",
            "f32[3]{1,2,-0.5}", "f32[3]{0,1,-2}", "f32[3]{0.5,-1,2}", "f32[3]{1,4,0.25}"},
     .attrs = "momentum = 0.75",
     .out =
         {"f32[2,3,2,2]{0.2609976,1.513786,0.2609976,-1.826984,-1.294443,-0.6614935,3.136206,2."
          "503256,-1.491119,-1.970066,-2.209539,-1.491119,-0.1565986,-0.9917911,-0.1565986,1.09619,"
          "3.136206,-0.6614935,3.136206,-1.294443,-2.449013,-2.688486,-2.449013,-1.251645}",
          "f32[3]{0.46875,-0.84375,1.53125}", "f32[3]{2.183594,5.496094,1.277344}",
          "f32[3]{0.375,-0.375,0.125}", "f32[3]{0.4175962,0.316475,0.4789469}"}},
    {.name = "many channels",
     .in = {"f32[4,70,9,9]", "f32[70]", "f32[70]", "f32[70]", "f32[70] in 0.5..2"},
     .out = {"f32[4,70,9,9]"}},
    {.name = "another number of channels",
     .in = {"f32[2,2,2]", "f32[3]{1,2,-0.5}", "f32[3]{0,1,-2}", "f32[3]{0.5,-1,2}",
            "f32[3]{1,4,0.25}"},
     .error = OT_ERR_INVALID},
    {.name = "rows without spatial axes",
     .in = {"f32[40,5]", "f32[5]", "f32[5]", "f32[5]", "f32[5] in 0.5..2"},
     .out = {"f32[40,5]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.SyncBatchNormalization", 1, sync_batch_normalization_cases)
