// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void leaky_relu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->leaky_relu_grad(y, x, n, attrs);
}

// dY where Y > 0, else alpha * dY
static void leaky_relu_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, 0), *y = ot_grad_x(g, 1);
    ot_value *positive = ot_emit2(g, "Greater", y, ot_emit_constant(g, 0.0, y));

    ot_expand_set(g, 0,
                  ot_emit3(g, "Where", positive, dy,
                           ot__emit_times(g, dy, (double)ot_attr_float(ot_grad_node(g), "alpha"))));
}

static const ot_attr_spec leaky_relu_grad_attrs[] = {
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.01F},
    {0},
};
static const ot_tile leaky_relu_grad_tile = {.f32 = leaky_relu_grad_f32,
                                             .f64 = ot__ref_leaky_relu_grad_f64,
                                             .attrs = {"alpha"},
                                             .rounds_once = true};
const ot_op_def ot__op_leaky_relu_grad[] = {
    {.domain = "com.microsoft",
     .name = "LeakyReluGrad",
     .since = 1,
     .inputs = ot__gradient_in_y,
     .outputs = ot__gradient_out,
     .attrs = leaky_relu_grad_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &leaky_relu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,
     .expand = leaky_relu_grad_expand},
    {0},
};
