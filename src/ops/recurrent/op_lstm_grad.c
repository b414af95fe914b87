// SPDX-License-Identifier: Apache-2.0
// The gradient of LSTMTraining as ONNX Runtime trains it; in our own domain with every direction
// and option, and so with the peepholes.
#include "ops/recurrent/recurrent.h"

#define STATES                                                                                     \
    {"X", "T", 0}, {"W", "T", 0}, {"R", "T", 0}, {"SL", "i32", OT_PORT_OPTIONAL},                  \
        {"H0", "T", OT_PORT_OPTIONAL},                                                             \
    {                                                                                              \
        "C0", "T", OT_PORT_OPTIONAL                                                                \
    }
#define KEPT                                                                                       \
    {"HAll", "T", 0}, {"CAll", "T", 0}, {"iofc", "T", 0}, {"dHAll", "T", OT_PORT_OPTIONAL},        \
        {"dHFinal", "T", OT_PORT_OPTIONAL},                                                        \
    {                                                                                              \
        "dCFinal", "T", OT_PORT_OPTIONAL                                                           \
    }
static const ot_port lstm_grad_in[] = {STATES, KEPT, {0}};
static const ot_port lstm_grad_general_in[] = {STATES, {"P", "T", OT_PORT_OPTIONAL}, KEPT, {0}};
static const ot_port lstm_grad_out[] = {
    {"dX", "T", OT_PORT_OPTIONAL},  {"dW", "T", OT_PORT_OPTIONAL},
    {"dR", "T", OT_PORT_OPTIONAL},  {"dB", "T", OT_PORT_OPTIONAL},
    {"dH0", "T", OT_PORT_OPTIONAL}, {"dC0", "T", OT_PORT_OPTIONAL},
    {"dP", "T", OT_PORT_OPTIONAL},  {0}};
#define RECORD(of, ports)                                                                          \
    {                                                                                              \
        .domain = of, .name = "LSTMGrad", .since = 1, .inputs = ports, .outputs = lstm_grad_out,   \
        .attrs = ot__lstm_attrs_7, .types = "T: f32 f64", .infer = ot__recurrent_infer,            \
        .kernels = ot__recurrent_grad_kernels, .flags = OT_OP_NO_GRAD                              \
    }
const ot_op_def ot__op_lstm_grad[] = {RECORD("com.microsoft", lstm_grad_in), {0}};
const ot_op_def ot__op_lstm_grad_general[] = {RECORD("ai.onnxtrain", lstm_grad_general_in), {0}};
