// SPDX-License-Identifier: Apache-2.0
// LSTM as ONNX Runtime trains it: cell states and activated gates are kept for the gradient. In our
// own domain it has every direction and option.
#include "ops/recurrent/recurrent.h"

static const ot_port lstm_training_out[] = {{"HAll", "T", OT_PORT_OPTIONAL},
                                            {"HFinal", "T", OT_PORT_OPTIONAL},
                                            {"CFinal", "T", OT_PORT_OPTIONAL},
                                            {"CAll", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                            {"iofc", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                            {0}};
#define RECORD(of)                                                                                 \
    {                                                                                              \
        .domain = of, .name = "LSTMTraining", .since = 1, .inputs = ot__lstm_in,                   \
        .outputs = lstm_training_out, .attrs = ot__lstm_attrs_7, .types = "T: f32 f64",            \
        .infer = ot__recurrent_infer, .kernels = ot__recurrent_kernels,                            \
        .grad = ot__recurrent_training_grad                                                        \
    }
const ot_op_def ot__op_lstm_training[] = {RECORD("com.microsoft"), {0}};
const ot_op_def ot__op_lstm_training_general[] = {RECORD("ai.onnxtrain"), {0}};
