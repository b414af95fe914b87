// SPDX-License-Identifier: Apache-2.0
// Y = Swish(A) * B, of two tensors of one shape.
#include "op/expand.h"

enum { A, B };

static void swiglu_infer(ot_infer *c)
{
    const ot_shape *a = ot_infer_shape(c, A), *b = ot_infer_shape(c, B);
    ot_shape y = *a;

    if (!ot__infer_matches(c, A, B))
        return;
    for (int k = 0; k < y.ndim; k++)
        if (!ot_dim_is_number(y.dim[k]) && ot_dim_is_number(b->dim[k]))
            y.dim[k] = b->dim[k];
    ot_infer_set(c, 0, ot_infer_dtype(c, A), &y);
}

static void swiglu_compose(ot_grad *g)
{
    ot_value *a = ot_grad_x(g, A);
    ot_node *gate = ot_emit(g, "Swish", NULL, &a, 1, 1);

    ot_emit_forward_attrs(g, gate);
    ot_expand_set(g, 0, ot_emit2(g, "Mul", ot_emit_output(g, gate, 0), ot_grad_x(g, B)));
}

static const ot_port swiglu_in[] = {{"A", "T", 0}, {"B", "T", 0}, {0}};
static const ot_attr_spec swiglu_attrs[] = {OT__FLOAT_ATTR("alpha", 1.0F), {0}};
const ot_op_def ot__op_swiglu[] = {
    {.name = "SwiGLU",
     .since = 28,
     .inputs = swiglu_in,
     .outputs = ot__unary_out,
     .attrs = swiglu_attrs,
     .types = "T: f32 f64",
     .infer = swiglu_infer,
     .train = swiglu_compose},
    {0},
};
