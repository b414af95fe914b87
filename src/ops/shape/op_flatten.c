// SPDX-License-Identifier: Apache-2.0
// Flatten: a matrix of the axes before `axis` and those from it on.
#include "ops/move/move.h"

static void flatten_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int64_t axis = ot_attr_int(ot_infer_node(c), "axis");
    ot_shape y = OT_SHAPE(1, 1);
    int n;
    const int64_t *known = ot_infer_values(c, 0, &n);

    if (axis < 0)
        axis += x->ndim;
    if (axis < 0 || axis > x->ndim) {
        ot_infer_fail(c, "axis %" PRId64 " is outside %d axes",
                      ot_attr_int(ot_infer_node(c), "axis"), x->ndim);
        return;
    }
    for (int k = 0; k < x->ndim; k++)
        y.dim[k >= axis] = ot_infer_mul(c, y.dim[k >= axis], x->dim[k]);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    if (known != NULL)
        ot_infer_set_values(c, 0, known, n);
}

// dX = dY in X's shape.
static void flatten_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit_reshape_like(g, ot_grad_dy(g, 0), ot_grad_x(g, 0)));
}

static const ot_port flatten_in[] = {{"input", "T", 0}, {0}};
static const ot_port flatten_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec flatten_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1}, {0}};
const ot_op_def ot__op_flatten[] = {
    {.name = "Flatten",
     .since = 1,
     .inputs = flatten_in,
     .outputs = flatten_out,
     .attrs = flatten_attrs,
     .types = "T: any string",
     .infer = flatten_infer,
     .kernels = ot__view_kernels,
     .grad = flatten_grad,
     .flags = OT_OP_VIEW,
     .identity_when = ot__identity_of_shape},
    {0},
};
