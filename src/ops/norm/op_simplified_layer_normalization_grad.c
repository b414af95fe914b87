// SPDX-License-Identifier: Apache-2.0
// Gradients of SimplifiedLayerNormalization.
#include "op/expand.h"
#include "ops/norm/layer_norm.h"

static const ot_port norm_grad_in[] = {{"dY", "T", 0},
                                       {"X", "T", 0},
                                       {"scale", "T", OT_PORT_F32},
                                       {"inv_std_var", "T", OT_PORT_F32},
                                       {0}};
static const ot_port norm_grad_out[] = {
    {"X_grad", "T", OT_PORT_OPTIONAL}, {"scale_grad", "T", OT_PORT_OPTIONAL | OT_PORT_F32}, {0}};
const ot_op_def ot__op_simplified_layer_normalization_grad[] = {
    {.domain = "com.microsoft",
     .name = "SimplifiedLayerNormalizationGrad",
     .since = 1,
     .inputs = norm_grad_in,
     .outputs = norm_grad_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64",
     .infer = ot__layer_norm_grad_infer,
     .kernels = ot__layer_norm_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__layer_norm_grad_expand},
    {0},
};
