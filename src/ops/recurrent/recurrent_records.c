// SPDX-License-Identifier: Apache-2.0
// The records of recurrent layers over a sequence, as ONNX has them:
//   RNN   h = f(W x + R h + b)
//   GRU   z, r = f(W x + R h + b), n = g(W x + b + R (r * h) + b') or, with linear_before_reset,
//         g(W x + b + r * (R h + b')), h = (1 - z) * n + z * h
//   LSTM  i, f = f(W x + R h + b + P c), g = g(W x + R h + b), c = f * c + i * g,
//         o = f(W x + R h + b + P c), h = o * h(c)
// and as ONNX Runtime trains them: GRUTraining and LSTMTraining keep activated gates and cell
// states for GRUGrad and LSTMGrad. In our own domain these have every direction and option, and
// `indices` (steps, batch): the rows of a table X (rows, inputs) that the steps read, as a Gather
// before the layer would take them. dX is then the table's.
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
// indices_layout 1: indices are (batch, steps).
#define GENERAL_ATTRS RECURRENT_ATTRS_7, GATE_ORDER, OT__INT_ATTR("indices_layout", 0)
static const ot_attr_spec gru_attrs_general[] = {
    GENERAL_ATTRS, OT__INT_ATTR("linear_before_reset", 0), {0}};
static const ot_attr_spec lstm_attrs_general[] = {
    GENERAL_ATTRS, OT__INT_ATTR("input_forget", 0), {0}};
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
#define INDICES                                                                                    \
    {                                                                                              \
        "indices", "I", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD                                         \
    }
static const ot_port gru_in[] = {LAYER_IN, {0}};
static const ot_port gru_general_in[] = {LAYER_IN, INDICES, {0}};
static const ot_port gru_out[] = {OPTIONAL("Y", 0), OPTIONAL("Y_h", 0), {0}};
static const ot_port gru_training_out[] = {
    OPTIONAL("HAll", 0), OPTIONAL("HFinal", 0), OPTIONAL("zrh", OT_PORT_NO_GRAD), {0}};
static const ot_port lstm_in[] = {
    LAYER_IN, OPTIONAL("initial_c", 0), OPTIONAL("P", OT_PORT_WEIGHT), {0}};
static const ot_port lstm_general_in[] = {
    LAYER_IN, OPTIONAL("initial_c", 0), OPTIONAL("P", OT_PORT_WEIGHT), INDICES, {0}};
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
#define GRU_GRAD_IN                                                                                \
    PORT("X"), PORT("W"), PORT("R"), OPTIONAL("B", 0), LENGTHS, OPTIONAL("H0", 0), PORT("HAll"),   \
        PORT("zrh"), GRADIENTS
static const ot_port gru_grad_in[] = {GRU_GRAD_IN, {0}};
static const ot_port gru_grad_general_in[] = {GRU_GRAD_IN, INDICES, {0}};
static const ot_port gru_grad_out[] = {GRU_GRAD_OUT, {0}};
#define LSTM_STATES PORT("X"), PORT("W"), PORT("R"), LENGTHS, OPTIONAL("H0", 0), OPTIONAL("C0", 0)
#define LSTM_KEPT PORT("HAll"), PORT("CAll"), PORT("iofc"), GRADIENTS, OPTIONAL("dCFinal", 0)
static const ot_port lstm_grad_in[] = {LSTM_STATES, LSTM_KEPT, {0}};
static const ot_port lstm_grad_general_in[] = {
    LSTM_STATES, OPTIONAL("P", 0), LSTM_KEPT, INDICES, {0}};
static const ot_port lstm_grad_out[] = {GRU_GRAD_OUT, OPTIONAL("dC0", 0), OPTIONAL("dP", 0), {0}};

// ---- records ----

#define TYPES "T: f32 f64"
#define TYPES_GENERAL TYPES "; I: i32 i64"
#define RECORD(domain_, name_, since_, types_, in, out, attributes, kernels_, ...)                 \
    {                                                                                              \
        .domain = domain_, .name = name_, .since = since_, .inputs = in, .outputs = out,           \
        .attrs = attributes, .types = types_, .infer = ot__recurrent_infer, .kernels = kernels_,   \
        __VA_ARGS__                                                                                \
    }
#define LAYER_RULES                                                                                \
    .grad = ot__recurrent_grad, .train = ot__recurrent_train, .eval = ot__recurrent_steps_first
#define LAYER(symbol, name, in, out, attributes)                                                   \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        RECORD(NULL, name, 7, TYPES, in, out, attributes##_7, ot__recurrent_kernels, LAYER_RULES), \
        RECORD(NULL, name, 14, TYPES, in, out, attributes, ot__recurrent_kernels, LAYER_RULES),    \
        {0}};
#define TRAINING(symbol, domain, types, name, in, out, attributes)                                 \
    const ot_op_def ot__op_##symbol[] = {RECORD(domain, name, 1, types, in, out, attributes,       \
                                                ot__recurrent_kernels,                             \
                                                .grad = ot__recurrent_training_grad),              \
                                         {0}};
#define GRADIENT(symbol, domain, types, name, in, out, attributes)                                 \
    const ot_op_def ot__op_##symbol[] = {RECORD(domain, name, 1, types, in, out, attributes,       \
                                                ot__recurrent_grad_kernels,                        \
                                                .flags = OT_OP_NO_GRAD),                           \
                                         {0}};
#define OWN "ai.onnxtrain"
LAYER(rnn, "RNN", gru_in, gru_out, rnn_attrs)
LAYER(gru, "GRU", gru_in, gru_out, gru_attrs)
LAYER(lstm, "LSTM", lstm_in, lstm_out, lstm_attrs)
TRAINING(gru_training, OT__MS, TYPES, "GRUTraining", gru_in, gru_training_out, gru_attrs_7)
TRAINING(gru_training_general, OWN, TYPES_GENERAL, "GRUTraining", gru_general_in, gru_training_out,
         gru_attrs_general)
TRAINING(lstm_training, OT__MS, TYPES, "LSTMTraining", lstm_in, lstm_training_out, lstm_attrs_7)
TRAINING(lstm_training_general, OWN, TYPES_GENERAL, "LSTMTraining", lstm_general_in,
         lstm_training_out, lstm_attrs_general)
GRADIENT(rnn_grad, OWN, TYPES, "RNNGrad", rnn_grad_in, gru_grad_out, rnn_attrs_7)
GRADIENT(gru_grad, OT__MS, TYPES, "GRUGrad", gru_grad_in, gru_grad_out, gru_attrs_7)
GRADIENT(gru_grad_general, OWN, TYPES_GENERAL, "GRUGrad", gru_grad_general_in, gru_grad_out,
         gru_attrs_general)
GRADIENT(lstm_grad, OT__MS, TYPES, "LSTMGrad", lstm_grad_in, lstm_grad_out, lstm_attrs_7)
GRADIENT(lstm_grad_general, OWN, TYPES_GENERAL, "LSTMGrad", lstm_grad_general_in, lstm_grad_out,
         lstm_attrs_general)
