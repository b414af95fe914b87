// SPDX-License-Identifier: Apache-2.0
// The gradient of RNN, whose outputs are all that it needs.
#include "ops/recurrent/recurrent.h"

static const ot_port rnn_grad_in[] = {{"X", "T", 0},
                                      {"W", "T", 0},
                                      {"R", "T", 0},
                                      {"SL", "i32", OT_PORT_OPTIONAL},
                                      {"H0", "T", OT_PORT_OPTIONAL},
                                      {"HAll", "T", 0},
                                      {"dHAll", "T", OT_PORT_OPTIONAL},
                                      {"dHFinal", "T", OT_PORT_OPTIONAL},
                                      {0}};
static const ot_port rnn_grad_out[] = {
    {"dX", "T", OT_PORT_OPTIONAL}, {"dW", "T", OT_PORT_OPTIONAL},  {"dR", "T", OT_PORT_OPTIONAL},
    {"dB", "T", OT_PORT_OPTIONAL}, {"dH0", "T", OT_PORT_OPTIONAL}, {0}};
const ot_op_def ot__op_rnn_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "RNNGrad",
     .since = 1,
     .inputs = rnn_grad_in,
     .outputs = rnn_grad_out,
     .attrs = ot__rnn_attrs_7,
     .types = "T: f32 f64",
     .infer = ot__recurrent_infer,
     .kernels = ot__recurrent_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
