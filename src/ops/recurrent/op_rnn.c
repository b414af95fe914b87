// SPDX-License-Identifier: Apache-2.0
// A plain recurrent layer over a sequence: h = f(W x + R h + b)
#include "ops/recurrent/recurrent.h"

#define RECORD(opset, attributes)                                                                  \
    {                                                                                              \
        .name = "RNN", .since = opset, .inputs = ot__gru_in, .outputs = ot__gru_out,               \
        .attrs = attributes, .types = "T: f32 f64", .infer = ot__recurrent_infer,                  \
        .kernels = ot__recurrent_kernels, .grad = ot__recurrent_grad,                              \
        .train = ot__recurrent_train, .eval = ot__recurrent_steps_first                            \
    }
const ot_op_def ot__op_rnn[] = {
    RECORD(7, ot__rnn_attrs_7),
    RECORD(14, ot__rnn_attrs),
    {0},
};
