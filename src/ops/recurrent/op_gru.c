// SPDX-License-Identifier: Apache-2.0
// Gated recurrent units over a sequence, as ONNX has them:
//   z, r = f(W x + R h + b), n = g(W x + b + R (r * h) + b') or, with linear_before_reset,
//   g(W x + b + r * (R h + b')), h = (1 - z) * n + z * h
#include "ops/recurrent/recurrent.h"

#define RECORD(opset, attributes)                                                                  \
    {                                                                                              \
        .name = "GRU", .since = opset, .inputs = ot__gru_in, .outputs = ot__gru_out,               \
        .attrs = attributes, .types = "T: f32 f64", .infer = ot__recurrent_infer,                  \
        .kernels = ot__recurrent_kernels, .grad = ot__recurrent_grad,                              \
        .train = ot__recurrent_train, .eval = ot__recurrent_steps_first                            \
    }
const ot_op_def ot__op_gru[] = {
    RECORD(7, ot__gru_attrs_7),
    RECORD(14, ot__gru_attrs),
    {0},
};
