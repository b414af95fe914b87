// SPDX-License-Identifier: Apache-2.0
// GRU as ONNX Runtime trains it: activated gates are kept for the gradient. In our own domain it
// has every direction and option.
#include "ops/recurrent/recurrent.h"

static const ot_port gru_training_out[] = {{"HAll", "T", OT_PORT_OPTIONAL},
                                           {"HFinal", "T", OT_PORT_OPTIONAL},
                                           {"zrh", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                           {0}};
#define RECORD(of)                                                                                 \
    {                                                                                              \
        .domain = of, .name = "GRUTraining", .since = 1, .inputs = ot__gru_in,                     \
        .outputs = gru_training_out, .attrs = ot__gru_attrs_7, .types = "T: f32 f64",              \
        .infer = ot__recurrent_infer, .kernels = ot__recurrent_kernels,                            \
        .grad = ot__recurrent_training_grad                                                        \
    }
const ot_op_def ot__op_gru_training[] = {RECORD("com.microsoft"), {0}};
const ot_op_def ot__op_gru_training_general[] = {RECORD("ai.onnxtrain"), {0}};
