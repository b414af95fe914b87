// SPDX-License-Identifier: Apache-2.0
// SGD with momentum, Nesterov's form and weight decay, as PyTorch's SGD with dampening 0.
#include "ops/optimizer/optimizer.h"

static const ot_port sgd_in[] = {
    {"lr", "f32", OT_PORT_F32},
    {"weights", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"gradients", "T", OT_PORT_SEQUENCE | OT_PORT_F32},
    {"momentums", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port sgd_out[] = {{"update_completed", "bool", 0}, {0}};
static const ot_attr_spec sgd_attrs[] = {
    {.name = "momentum", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {.name = "weight_decay", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT},
    {.name = "nesterov", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT},
    {0},
};
static const ot_kernel sgd_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__sgd_can_simd,
     .prepare = ot__sgd_momentum_prepare,
     .run = ot__sgd_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__sgd_momentum_prepare,
     .run = ot__sgd_run_ref},
    {0},
};
const ot_op_def ot__op_sgd_momentum_optimizer[] = {
    {.domain = "ai.onnxtrain",
     .name = "SGDMomentumOptimizer",
     .since = 1,
     .inputs = sgd_in,
     .outputs = sgd_out,
     .attrs = sgd_attrs,
     .types = "T: f32 f64",
     .infer = ot__optimizer_infer,
     .kernels = sgd_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
