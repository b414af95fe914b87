// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void leaky_relu_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->leaky_relu(y, x, n, attrs);
}

// Y = X where X >= 0, else alpha * X:  dX = dY or alpha * dY.  The sign of Y tells which, unless
// alpha <= 0.
static void leaky_relu_grad(ot_grad *g)
{
    ot_value *dy = ot_grad_dy(g, 0), *y = ot_grad_y(g, 0), *x = ot_grad_x(g, 0), *positive;
    const float alpha = ot_attr_float(ot_grad_node(g), "alpha");
    ot_value *const inputs[] = {dy, y};
    ot_node *node;

    if (alpha > 0.0F) {
        node = ot_emit(g, "com.microsoft.LeakyReluGrad", NULL, inputs, 2, 1);
        ot_emit_float(g, node, "alpha", alpha);
        ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
        return;
    }
    positive = ot_emit2(g, "Greater", x, ot_emit_constant(g, 0.0, x));
    ot_grad_set_dx(g, 0,
                   ot_emit3(g, "Where", positive, dy,
                            ot_emit2(g, "Mul", dy, ot_emit_constant(g, (double)alpha, x))));
}

static const ot_attr_spec leaky_relu_attrs[] = {
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.01F},
    {0},
};
static const ot_tile leaky_relu_tile = {
    .f32 = leaky_relu_f32, .f64 = ot__ref_leaky_relu_f64, .attrs = {"alpha"}, .rounds_once = true};
const ot_op_def ot__op_leaky_relu[] = {
    {.name = "LeakyRelu",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = leaky_relu_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &leaky_relu_tile,
     .grad = leaky_relu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
