// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case node_gradient_cases[] = {
    // dA = dY * B', dB = A' * dY.
    {.name = "of a product",
     .in = {"f32[2,2]", "f32[2,2]{1,0,2,1}", "f32[2,2]{1,2,3,4}", "f32[2,2]{1,2,3,4}"},
     .attrs = "domain = \"\", op_type = \"MatMul\", n_inputs = 2, outputs = [1]",
     .out = {"f32[2,2]{5,11,11,25}", "f32[2,2]{7,10,3,4}"}},
    {.name = "of batches, the second alone",
     .in = {"f32[3,2,5]", "f32[3,2,4]", "f32[4,5]", "f32[3,2,5]"},
     .attrs = "domain = \"\", op_type = \"MatMul\", n_inputs = 2, outputs = [1]",
     .out = {"", "f32[4,5]"}},
    // Each element gets the gradient of its sum.
    {.name = "of a sum, with its attributes",
     .in = {"f32[3]", "f32[2,3]", "i64[1]{0} const", "f32[3]{1,2,3}"},
     .attrs = "domain = \"\", op_type = \"ReduceSum\", n_inputs = 2, outputs = [1], "
              "__forward_keepdims = 0",
     .out = {"f32[2,3]{1,2,3,1,2,3}"}},
    {.name = "of what was joined",
     .in = {"f32[2,3]", "f32[2,1]", "f32[2,2]", "f32[2,3]{1,2,3,4,5,6}"},
     .attrs = "domain = \"\", op_type = \"Concat\", n_inputs = 2, outputs = [1], "
              "__forward_axis = -1",
     .out = {"f32[2,1]{1,4}", "f32[2,2]{2,3,5,6}"}},
    // The largest of {1, 3, 2, 4} is the last; the rule asks for its place.
    {.name = "of a pool, whose places are found again",
     .in = {"f32[1,1,1,1]", "f32[1,1,2,2]{1,3,2,4}", "f32[1,1,1,1]{5}"},
     .attrs = "domain = \"\", op_type = \"MaxPool\", n_inputs = 1, outputs = [1], "
              "__forward_kernel_shape = [2, 2]",
     .out = {"f32[1,1,2,2]{0,0,0,5}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "of an operator of another domain",
     .in = {"f32[2,2]", "f32[2,2]{1,0,2,1}", "f32[2,2]{1,2,3,4}", "f32[2,2]{1,2,3,4}"},
     .attrs = "domain = \"com.microsoft\", op_type = \"FusedMatMul\", n_inputs = 2, outputs = [1], "
              "__forward_alpha = 2.0",
     .out = {"f32[2,2]{10,22,22,50}", "f32[2,2]{14,20,6,8}"}},
    {.name = "of an operator that does not exist",
     .in = {"f32[2]", "f32[2]", "f32[2]"},
     .attrs = "domain = \"\", op_type = \"Nothing\", n_inputs = 1, outputs = [1]",
     .out = {"f32[2]"},
     .error = OT_ERR_UNSUPPORTED},
    {.name = "of an operator without a gradient",
     .in = {"f32[2]", "f32[2]", "f32[2]"},
     .attrs = "domain = \"\", op_type = \"Shape\", n_inputs = 1, outputs = [1]",
     .out = {"f32[2]"},
     .error = OT_ERR_UNSUPPORTED},
    {.name = "of more inputs than there are",
     .in = {"f32[2]", "f32[2]", "f32[2]"},
     .attrs = "domain = \"\", op_type = \"Exp\", n_inputs = 2, outputs = [1]",
     .error = OT_ERR_INVALID},
    {.name = "of more outputs than there are gradients",
     .in = {"f32[2]", "f32[2]", "f32[2]"},
     .attrs = "domain = \"\", op_type = \"Exp\", n_inputs = 1, outputs = [1, 1]",
     .error = OT_ERR_INVALID},
    {.name = "of an input that is not given",
     .in = {"f32[2]", "", "f32[2]"},
     .attrs = "domain = \"\", op_type = \"Exp\", n_inputs = 1, outputs = [1]",
     .out = {"f32[2]"},
     .error = OT_ERR_INVALID},
    {.name = "no name", .in = {"f32[2]", "f32[2]", "f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.NodeGradient", 1, node_gradient_cases)
