// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void quick_gelu_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->quick_gelu(y, x, n, attrs);
}

// Y = X * sigmoid(alpha * X)
static void quick_gelu_grad(ot_grad *g)
{
    ot_value *const inputs[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0)};
    ot_node *node = ot_emit(g, "com.microsoft.QuickGeluGrad", NULL, inputs, 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_attr_spec quick_gelu_attrs[] = {
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1.702F},
    {0},
};
static const ot_tile quick_gelu_tile = {
    .f32 = quick_gelu_f32, .f64 = ot__ref_quick_gelu_f64, .attrs = {"alpha"}};
const ot_op_def ot__op_quick_gelu[] = {
    {.domain = "com.microsoft",
     .name = "QuickGelu",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = quick_gelu_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &quick_gelu_tile,
     .grad = quick_gelu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
