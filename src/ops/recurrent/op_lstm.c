// SPDX-License-Identifier: Apache-2.0
// Long short-term memory over a sequence, as ONNX has it:
//   i, f = f(W x + R h + b + P c), g = g(W x + R h + b), c = f * c + i * g,
//   o = f(W x + R h + b + P c), h = o * h(c)
#include "ops/recurrent/recurrent.h"

#define RECORD(opset, attributes)                                                                  \
    {                                                                                              \
        .name = "LSTM", .since = opset, .inputs = ot__lstm_in, .outputs = ot__lstm_out,            \
        .attrs = attributes, .types = "T: f32 f64", .infer = ot__recurrent_infer,                  \
        .kernels = ot__recurrent_kernels, .grad = ot__recurrent_grad,                              \
        .train = ot__recurrent_train, .eval = ot__recurrent_steps_first                            \
    }
const ot_op_def ot__op_lstm[] = {
    RECORD(7, ot__lstm_attrs_7),
    RECORD(14, ot__lstm_attrs),
    {0},
};
