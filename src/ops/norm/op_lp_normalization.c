// SPDX-License-Identifier: Apache-2.0
// Y = X / norm along an axis, and 0 where the norm is. There it is taken for infinite, so that no
// gradient passes: PyTorch's F.normalize has dY / eps, which no eps leaves undefined.
#include "op/expand.h"

#include <math.h>

static void lp_norm_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const int64_t p = ot_attr_int(node, "p");
    int axis;

    if (p != 1 && p != 2)
        ot_infer_fail(c, "p is %" PRId64 ", expected 1 or 2", p);
    if (ot_infer_axis(c, ot_attr_int(node, "axis"), ot_infer_shape(c, 0)->ndim, &axis))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

static void lp_norm_compose(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    const int64_t axis = ot_attr_int(node, "axis");
    ot_value *x = ot_grad_x(g, 0), *norm, *is_zero, *infinite;

    norm = ot__emit_reduce(g, ot_attr_int(node, "p") == 1 ? "ReduceL1" : "ReduceL2", x, &axis, 1);
    is_zero = ot_emit2(g, "Equal", norm, ot_emit_constant(g, 0.0, x));
    infinite = ot_emit_constant(g, INFINITY, x);
    ot_expand_set(g, 0, ot_emit2(g, "Div", x, ot_emit3(g, "Where", is_zero, infinite, norm)));
}

static const ot_attr_spec lp_norm_attrs[] = {OT__INT_ATTR("axis", -1), OT__INT_ATTR("p", 2), {0}};
const ot_op_def ot__op_lp_normalization[] = {
    {.name = "LpNormalization",
     .since = 1,
     .inputs = ot__input_in,
     .outputs = ot__output_out,
     .attrs = lp_norm_attrs,
     .types = "T: f32 f64",
     .infer = lp_norm_infer,
     .train = lp_norm_compose},
    {0},
};
