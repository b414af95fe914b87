// SPDX-License-Identifier: Apache-2.0
// Y = (the sum of |X|^p over each window)^(1 / p); dX = for each element the sum of
// dY * sign(X) * (|X| / Y)^(p - 1) over the windows that it is in, 0 where Y is.
#include "ops/pool/pool.h"

#include <math.h>

enum { DY, X, Y }; // inputs of the gradient

static void lp_pool_infer(ot_infer *c)
{
    ot_shape y;

    if (ot__pool_infer(c, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static void lp_pool_grad_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *dy = ot_infer_shape(c, DY);
    ot_shape made = *x;
    ot__geometry g;

    if (!ot__pool_read(c, ot_infer_node(c), x, &g) || !ot__geometry_infer(c, &g, x, &made) ||
        !ot__infer_matches(c, DY, Y))
        return;
    if (!ot__shape_may_equal(&made, dy))
        ot_infer_fail(c, "dY has not the shape that the window makes of X");
    ot_infer_set(c, 0, ot_infer_dtype(c, DY), x);
}

#define TEMPLATE "ops/pool/lp_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"

static void lp_pool_rule(ot_grad *g)
{
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0), ot_grad_y(g, 0)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.LpPoolGrad", NULL, in, 3, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port lp_pool_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {"Y", "T", 0}, {0}};
static const ot_attr_spec lp_pool_attrs[] = {
    OT__STRING_ATTR("auto_pad", "NOTSET"),
    OT__FLAG_ATTR("ceil_mode", 0),
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "p",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_HAS_DEFAULT,
     .i = 2,
     .low = 1,
     .high = INFINITY},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel lp_pool_kernels[] = {OT__REF_KERNELS(ot__pool_prepare, lp_pool_run), {0}};
static const ot_kernel lp_pool_grad_kernels[] = {
    OT__REF_KERNELS(ot__pool_grad_prepare, lp_pool_grad_run), {0}};
const ot_op_def ot__op_lp_pool[] = {
    {.name = "LpPool",
     .since = 2,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = lp_pool_attrs,
     .types = "T: f32 f64",
     .infer = lp_pool_infer,
     .kernels = lp_pool_kernels,
     .grad = lp_pool_rule,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
const ot_op_def ot__op_lp_pool_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "LpPoolGrad",
     .since = 1,
     .inputs = lp_pool_grad_in,
     .outputs = ot__gradient_out,
     .attrs = lp_pool_attrs,
     .types = "T: f32 f64",
     .infer = lp_pool_grad_infer,
     .kernels = lp_pool_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__lp_pool_grad_expand,
     .by_image = {.in = 7, .out = 1}},
    {0},
};
