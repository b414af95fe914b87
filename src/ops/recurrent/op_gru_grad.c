// SPDX-License-Identifier: Apache-2.0
// The gradient of GRUTraining as ONNX Runtime trains it; in our own domain with every direction and
// option.
#include "ops/recurrent/recurrent.h"

static const ot_port gru_grad_in[] = {{"X", "T", 0},
                                      {"W", "T", 0},
                                      {"R", "T", 0},
                                      {"B", "T", OT_PORT_OPTIONAL},
                                      {"SL", "i32", OT_PORT_OPTIONAL},
                                      {"H0", "T", OT_PORT_OPTIONAL},
                                      {"HAll", "T", 0},
                                      {"zrh", "T", 0},
                                      {"dHAll", "T", OT_PORT_OPTIONAL},
                                      {"dHFinal", "T", OT_PORT_OPTIONAL},
                                      {0}};
static const ot_port gru_grad_out[] = {
    {"dX", "T", OT_PORT_OPTIONAL}, {"dW", "T", OT_PORT_OPTIONAL},  {"dR", "T", OT_PORT_OPTIONAL},
    {"dB", "T", OT_PORT_OPTIONAL}, {"dH0", "T", OT_PORT_OPTIONAL}, {0}};
#define RECORD(of)                                                                                 \
    {                                                                                              \
        .domain = of, .name = "GRUGrad", .since = 1, .inputs = gru_grad_in,                        \
        .outputs = gru_grad_out, .attrs = ot__gru_attrs_7, .types = "T: f32 f64",                  \
        .infer = ot__recurrent_infer, .kernels = ot__recurrent_grad_kernels,                       \
        .flags = OT_OP_NO_GRAD                                                                     \
    }
const ot_op_def ot__op_gru_grad[] = {RECORD("com.microsoft"), {0}};
const ot_op_def ot__op_gru_grad_general[] = {RECORD("ai.onnxtrain"), {0}};
