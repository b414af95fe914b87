// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void quick_gelu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->quick_gelu_grad(y, x, n, attrs);
}

// dY * s * (1 + alpha * X * (1 - s)) with s = sigmoid(alpha * X)
static void quick_gelu_grad_expand(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 1), *one = ot_emit_constant(g, 1.0, x);
    ot_value *scaled = ot__emit_times(g, x, (double)ot_attr_float(ot_grad_node(g), "alpha"));
    ot_value *s = ot_emit1(g, "Sigmoid", scaled);
    ot_value *rest = ot_emit2(g, "Mul", scaled, ot_emit2(g, "Sub", one, s));
    ot_value *slope = ot_emit2(g, "Mul", s, ot_emit2(g, "Add", one, rest));

    ot_expand_set(g, 0, ot_emit2(g, "Mul", ot_grad_x(g, 0), slope));
}

static const ot_attr_spec quick_gelu_grad_attrs[] = {
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1.702F},
    {0},
};
static const ot_tile quick_gelu_grad_tile = {
    .f32 = quick_gelu_grad_f32, .f64 = ot__ref_quick_gelu_grad_f64, .attrs = {"alpha"}};
const ot_op_def ot__op_quick_gelu_grad[] = {
    {.domain = "com.microsoft",
     .name = "QuickGeluGrad",
     .since = 1,
     .inputs = ot__gradient_in_x,
     .outputs = ot__gradient_out,
     .attrs = quick_gelu_grad_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &quick_gelu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,
     .expand = quick_gelu_grad_expand},
    {0},
};
