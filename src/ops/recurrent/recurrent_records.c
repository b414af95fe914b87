// SPDX-License-Identifier: Apache-2.0
// The records of recurrent layers over a sequence, as ONNX has them:
//   RNN   h = f(W x + R h + b)
//   GRU   z, r = f(W x + R h + b), n = g(W x + b + R (r * h) + b') or, with linear_before_reset,
//         g(W x + b + r * (R h + b')), h = (1 - z) * n + z * h
//   LSTM  i, f = f(W x + R h + b + P c), g = g(W x + R h + b), c = f * c + i * g,
//         o = f(W x + R h + b + P c), h = o * h(c)
// and as ONNX Runtime trains them: GRUTraining and LSTMTraining keep activated gates and cell
// states for GRUGrad and LSTMGrad. In our own domain these have every direction and option.
#include "ops/recurrent/recurrent.h"

// ---- attributes ----

#define RECURRENT_ATTRS_7                                                                          \
    {.name = "activation_alpha", .kind = OT_ATTRIBUTE_FLOATS},                                     \
        {.name = "activation_beta", .kind = OT_ATTRIBUTE_FLOATS},                                  \
        {.name = "activations", .kind = OT_ATTRIBUTE_STRINGS},                                     \
        {.name = "clip", .kind = OT_ATTRIBUTE_FLOAT}, OT__STRING_ATTR("direction", "forward"),     \
    {                                                                                              \
        .name = "hidden_size", .kind = OT_ATTRIBUTE_INT                                            \
    }
static const ot_attr_spec rnn_attrs_7[] = {RECURRENT_ATTRS_7, {0}};
static const ot_attr_spec rnn_attrs[] = {RECURRENT_ATTRS_7, OT__INT_ATTR("layout", 0), {0}};
static const ot_attr_spec gru_attrs_7[] = {
    RECURRENT_ATTRS_7, OT__INT_ATTR("linear_before_reset", 0), {0}};
static const ot_attr_spec gru_attrs[] = {
    RECURRENT_ATTRS_7, OT__INT_ATTR("layout", 0), OT__INT_ATTR("linear_before_reset", 0), {0}};
static const ot_attr_spec lstm_attrs_7[] = {
    RECURRENT_ATTRS_7, OT__INT_ATTR("input_forget", 0), {0}};
// Our own records: the place in W and R of each gate of ONNX's order.
#define GATE_ORDER                                                                                 \
    {                                                                                              \
        .name = "gate_order", .kind = OT_ATTRIBUTE_INTS                                            \
    }
static const ot_attr_spec gru_attrs_own[] = {
    RECURRENT_ATTRS_7, GATE_ORDER, OT__INT_ATTR("linear_before_reset", 0), {0}};
static const ot_attr_spec lstm_attrs_own[] = {
    RECURRENT_ATTRS_7, GATE_ORDER, OT__INT_ATTR("input_forget", 0), {0}};
static const ot_attr_spec lstm_attrs[] = {
    RECURRENT_ATTRS_7, OT__INT_ATTR("input_forget", 0), OT__INT_ATTR("layout", 0), {0}};

// ---- ports; recurrent_attrs.c knows their names ----

#define PORT(name)                                                                                 \
    {                                                                                              \
        name, "T", 0                                                                               \
    }
#define OPTIONAL(name, more_flags)                                                                 \
    {                                                                                              \
        name, "T", OT_PORT_OPTIONAL | (more_flags)                                                 \
    }
#define LAYER_IN                                                                                   \
    PORT("X"), {"W", "T", OT_PORT_WEIGHT}, {"R", "T", OT_PORT_WEIGHT},                             \
        OPTIONAL("B", OT_PORT_BIAS), {"sequence_lens", "i32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, \
        OPTIONAL("initial_h", 0)
static const ot_port gru_in[] = {LAYER_IN, {0}};
static const ot_port gru_out[] = {OPTIONAL("Y", 0), OPTIONAL("Y_h", 0), {0}};
static const ot_port gru_training_out[] = {
    OPTIONAL("HAll", 0), OPTIONAL("HFinal", 0), OPTIONAL("zrh", OT_PORT_NO_GRAD), {0}};
static const ot_port lstm_in[] = {
    LAYER_IN, OPTIONAL("initial_c", 0), OPTIONAL("P", OT_PORT_WEIGHT), {0}};
static const ot_port lstm_out[] = {OPTIONAL("Y", 0), OPTIONAL("Y_h", 0), OPTIONAL("Y_c", 0), {0}};
static const ot_port lstm_training_out[] = {OPTIONAL("HAll", 0),
                                            OPTIONAL("HFinal", 0),
                                            OPTIONAL("CFinal", 0),
                                            OPTIONAL("CAll", OT_PORT_NO_GRAD),
                                            OPTIONAL("iofc", OT_PORT_NO_GRAD),
                                            {0}};

#define LENGTHS                                                                                    \
    {                                                                                              \
        "SL", "i32", OT_PORT_OPTIONAL                                                              \
    }
#define GRADIENTS OPTIONAL("dHAll", 0), OPTIONAL("dHFinal", 0)
#define GRU_GRAD_OUT                                                                               \
    OPTIONAL("dX", 0), OPTIONAL("dW", 0), OPTIONAL("dR", 0), OPTIONAL("dB", 0), OPTIONAL("dH0", 0)
static const ot_port rnn_grad_in[] = {PORT("X"),         PORT("W"),    PORT("R"), LENGTHS,
                                      OPTIONAL("H0", 0), PORT("HAll"), GRADIENTS, {0}};
static const ot_port gru_grad_in[] = {
    PORT("X"),         PORT("W"),    PORT("R"),   OPTIONAL("B", 0), LENGTHS,
    OPTIONAL("H0", 0), PORT("HAll"), PORT("zrh"), GRADIENTS,        {0}};
static const ot_port gru_grad_out[] = {GRU_GRAD_OUT, {0}};
#define LSTM_STATES PORT("X"), PORT("W"), PORT("R"), LENGTHS, OPTIONAL("H0", 0), OPTIONAL("C0", 0)
#define LSTM_KEPT PORT("HAll"), PORT("CAll"), PORT("iofc"), GRADIENTS, OPTIONAL("dCFinal", 0)
static const ot_port lstm_grad_in[] = {LSTM_STATES, LSTM_KEPT, {0}};
static const ot_port lstm_grad_general_in[] = {LSTM_STATES, OPTIONAL("P", 0), LSTM_KEPT, {0}};
static const ot_port lstm_grad_out[] = {GRU_GRAD_OUT, OPTIONAL("dC0", 0), OPTIONAL("dP", 0), {0}};

// ---- records ----

#define RECORD(domain_, name_, since_, in, out, attributes, kernels_, ...)                         \
    {                                                                                              \
        .domain = domain_, .name = name_, .since = since_, .inputs = in, .outputs = out,           \
        .attrs = attributes, .types = "T: f32 f64", .infer = ot__recurrent_infer,                  \
        .kernels = kernels_, __VA_ARGS__                                                           \
    }
#define LAYER_RULES                                                                                \
    .grad = ot__recurrent_grad, .train = ot__recurrent_train, .eval = ot__recurrent_steps_first
#define LAYER(symbol, name, in, out, attributes)                                                   \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        RECORD(NULL, name, 7, in, out, attributes##_7, ot__recurrent_kernels, LAYER_RULES),        \
        RECORD(NULL, name, 14, in, out, attributes, ot__recurrent_kernels, LAYER_RULES),           \
        {0}};
#define TRAINING(symbol, domain, name, in, out, attributes)                                        \
    const ot_op_def ot__op_##symbol[] = {RECORD(domain, name, 1, in, out, attributes,              \
                                                ot__recurrent_kernels,                             \
                                                .grad = ot__recurrent_training_grad),              \
                                         {0}};
#define GRADIENT(symbol, domain, name, in, out, attributes)                                        \
    const ot_op_def ot__op_##symbol[] = {RECORD(domain, name, 1, in, out, attributes,              \
                                                ot__recurrent_grad_kernels,                        \
                                                .flags = OT_OP_NO_GRAD),                           \
                                         {0}};
#define OWN "ai.onnxtrain"
LAYER(rnn, "RNN", gru_in, gru_out, rnn_attrs)
LAYER(gru, "GRU", gru_in, gru_out, gru_attrs)
LAYER(lstm, "LSTM", lstm_in, lstm_out, lstm_attrs)
TRAINING(gru_training, OT__MS, "GRUTraining", gru_in, gru_training_out, gru_attrs_7)
TRAINING(gru_training_general, OWN, "GRUTraining", gru_in, gru_training_out, gru_attrs_own)
TRAINING(lstm_training, OT__MS, "LSTMTraining", lstm_in, lstm_training_out, lstm_attrs_7)
TRAINING(lstm_training_general, OWN, "LSTMTraining", lstm_in, lstm_training_out, lstm_attrs_own)
GRADIENT(rnn_grad, OWN, "RNNGrad", rnn_grad_in, gru_grad_out, rnn_attrs_7)
GRADIENT(gru_grad, OT__MS, "GRUGrad", gru_grad_in, gru_grad_out, gru_attrs_7)
GRADIENT(gru_grad_general, OWN, "GRUGrad", gru_grad_in, gru_grad_out, gru_attrs_own)
GRADIENT(lstm_grad, OT__MS, "LSTMGrad", lstm_grad_in, lstm_grad_out, lstm_attrs_7)
GRADIENT(lstm_grad_general, OWN, "LSTMGrad", lstm_grad_general_in, lstm_grad_out, lstm_attrs_own)
