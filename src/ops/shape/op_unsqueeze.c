// SPDX-License-Identifier: Apache-2.0
// Unsqueeze: with new axes of extent 1.
#include "ops/move/move.h"

static void unsqueeze_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *list = ot_infer_shape(c, 1);
    int n_axes = 0, n, from = 0;
    const int64_t *known = ot_infer_values(c, 0, &n);
    ot_shape y = {0};
    ot__axes axes;
    ot__given given;

    if (ot_attr_given(ot_infer_node(c), "axes"))
        ot_attr_ints(ot_infer_node(c), "axes", &n_axes);
    else if (list->ndim == 1 && ot_dim_is_number(list->dim[0]))
        n_axes = (int)OT_MIN(list->dim[0], OT_MAX_NDIM + 1);
    else if (list->ndim == 0)
        n_axes = 1; // a scalar, as some exporters write
    else
        n_axes = -1;
    if (n_axes < 0) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    if (x->ndim + n_axes > OT_MAX_NDIM) {
        ot_infer_fail(c, "%d axes and %d new ones, at most %d are possible", x->ndim, n_axes,
                      OT_MAX_NDIM);
        return;
    }
    y.ndim = x->ndim + n_axes;
    given = ot__infer_axes(c, "axes", 1, y.ndim, &axes);
    if (given == OT__FAILED)
        return;
    for (int k = 0; k < y.ndim; k++)
        y.dim[k] = given == OT__UNKNOWN ? ot_dim_unknown() : axes.has[k] ? 1 : x->dim[from++];
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    if (known != NULL)
        ot_infer_set_values(c, 0, known, n);
}

// dX = dY without those axes.
static void unsqueeze_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit2(g, "Squeeze", ot_grad_dy(g, 0), ot_grad_x(g, 1)));
}

static void unsqueeze_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "axes", 1);
}

static const ot_port unsqueeze_in_1[] = {{"data", "T", 0}, {0}};
static const ot_port unsqueeze_in[] = {{"data", "T", 0}, {"axes", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port unsqueeze_out[] = {{"expanded", "T", 0}, {0}};
static const ot_attr_spec unsqueeze_attrs_1[] = {
    {.name = "axes", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED}, {0}};
const ot_op_def ot__op_unsqueeze[] = {
    {.name = "Unsqueeze",
     .since = 1,
     .inputs = unsqueeze_in_1,
     .outputs = unsqueeze_out,
     .attrs = unsqueeze_attrs_1,
     .types = "T: any string",
     .infer = unsqueeze_infer,
     .upgrade = unsqueeze_upgrade,
     .flags = OT_OP_VIEW},
    {.name = "Unsqueeze",
     .since = 13,
     .inputs = unsqueeze_in,
     .outputs = unsqueeze_out,
     .types = "T: any string",
     .infer = unsqueeze_infer,
     .kernels = ot__view_kernels,
     .grad = unsqueeze_grad,
     .flags = OT_OP_VIEW},
    {0},
};
