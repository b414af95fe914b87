// SPDX-License-Identifier: Apache-2.0
// Squeeze: without axes of extent 1.
#include "ops/move/move.h"

// Without a list, every axis of extent 1 goes. False when a symbol may be 1.
static bool all_of_extent_one(const ot_shape *x, ot__axes *axes)
{
    for (int k = 0; k < x->ndim; k++) {
        if (!ot_dim_is_number(x->dim[k]))
            return false;
        axes->has[k] = x->dim[k] == 1;
    }
    return true;
}

static void squeeze_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot__axes axes;
    const ot__given given = ot__infer_axes(c, "axes", 1, x->ndim, &axes);
    ot_shape y = {0};
    int n;
    const int64_t *known = ot_infer_values(c, 0, &n);

    if (given == OT__FAILED)
        return;
    if (given == OT__UNKNOWN || (given == OT__ABSENT && !all_of_extent_one(x, &axes))) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    for (int k = 0; k < x->ndim; k++) {
        if (!axes.has[k]) {
            y.dim[y.ndim++] = x->dim[k];
        } else if (ot_dim_is_number(x->dim[k]) && x->dim[k] != 1) {
            ot_infer_fail(c, "axis %d has size %" PRId64 ", expected 1", k, x->dim[k]);
            return;
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    if (known != NULL)
        ot_infer_set_values(c, 0, known, n);
}

// dX = dY in X's shape.
static void squeeze_grad(ot_grad *g)
{
    ot_value *axes = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0,
                   axes != NULL ? ot_emit2(g, "Unsqueeze", dy, axes)
                                : ot_emit_reshape_like(g, dy, ot_grad_x(g, 0)));
}

static void squeeze_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "axes", 1);
}

static const ot_port squeeze_in_1[] = {{"data", "T", 0}, {0}};
static const ot_port squeeze_in[] = {
    {"data", "T", 0}, {"axes", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_port squeeze_out[] = {{"squeezed", "T", 0}, {0}};
static const ot_attr_spec squeeze_attrs_1[] = {{.name = "axes", .kind = OT_ATTRIBUTE_INTS}, {0}};
const ot_op_def ot__op_squeeze[] = {
    {.name = "Squeeze",
     .since = 1,
     .inputs = squeeze_in_1,
     .outputs = squeeze_out,
     .attrs = squeeze_attrs_1,
     .types = "T: any string",
     .infer = squeeze_infer,
     .upgrade = squeeze_upgrade,
     .flags = OT_OP_VIEW},
    {.name = "Squeeze",
     .since = 13,
     .inputs = squeeze_in,
     .outputs = squeeze_out,
     .types = "T: any string",
     .infer = squeeze_infer,
     .kernels = ot__view_kernels,
     .grad = squeeze_grad,
     .flags = OT_OP_VIEW},
    {0},
};
