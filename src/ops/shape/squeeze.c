// SPDX-License-Identifier: Apache-2.0
// Flatten, Squeeze and Unsqueeze: other axes for the same elements.
#include "ops/move/move.h"

static void flatten_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int64_t axis = ot_attr_int(ot_infer_node(c), "axis");
    ot_shape y = OT_SHAPE(1, 1);

    if (axis < 0)
        axis += x->ndim;
    if (axis < 0 || axis > x->ndim)
        ot_infer_fail(c, "axis %" PRId64 " is outside %d axes",
                      ot_attr_int(ot_infer_node(c), "axis"), x->ndim);
    for (int k = 0; k < x->ndim; k++)
        y.dim[k >= axis] = ot_infer_mul(c, y.dim[k >= axis], x->dim[k]);
    ot__infer_view(c, &y);
}

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
    ot__infer_view(c, &y);
}

static void unsqueeze_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *list = ot_infer_shape(c, 1);
    int n_axes = 0, from = 0;
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
    ot__infer_view(c, &y);
}

// dX = dY in X's shape.
static void flatten_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit_reshape_like(g, ot_grad_dy(g, 0), ot_grad_x(g, 0)));
}

// dX = dY with the axes that went.
static void squeeze_grad(ot_grad *g)
{
    if (ot_grad_x(g, 1) != NULL)
        ot_grad_set_dx(g, 0, ot_emit2(g, "Unsqueeze", ot_grad_dy(g, 0), ot_grad_x(g, 1)));
    else
        flatten_grad(g);
}

// dX = dY without the new axes.
static void unsqueeze_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit2(g, "Squeeze", ot_grad_dy(g, 0), ot_grad_x(g, 1)));
}

static void axes_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "axes", 1);
}

static const ot_port flatten_in[] = {{"input", "T", 0}, {0}};
static const ot_port flatten_out[] = {{"output", "T", 0}, {0}};
static const ot_port squeeze_in[] = {
    {"data", "T", 0}, {"axes", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_port squeeze_out[] = {{"squeezed", "T", 0}, {0}};
static const ot_port unsqueeze_in[] = {{"data", "T", 0}, {"axes", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port unsqueeze_out[] = {{"expanded", "T", 0}, {0}};
static const ot_attr_spec flatten_attrs[] = {OT__INT_ATTR("axis", 1), {0}};
static const ot_attr_spec squeeze_attrs_1[] = {{.name = "axes", .kind = OT_ATTRIBUTE_INTS}, {0}};
static const ot_attr_spec unsqueeze_attrs_1[] = {
    {.name = "axes", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED}, {0}};
#define VIEW(name_, symbol, since_)                                                                \
    .name = name_, .since = since_, .outputs = symbol##_out, .types = "T: any string",             \
    .infer = symbol##_infer, .flags = OT_OP_VIEW
#define RUNS(symbol) .inputs = symbol##_in, .kernels = ot__view_kernels, .grad = symbol##_grad
#define OLD(symbol) .inputs = ot__data_in, .attrs = symbol##_attrs_1, .upgrade = axes_upgrade
const ot_op_def ot__op_flatten[] = {
    {VIEW("Flatten", flatten, 1), RUNS(flatten), .attrs = flatten_attrs,
     .identity_when = ot__identity_of_shape},
    {0},
};
const ot_op_def ot__op_squeeze[] = {
    {VIEW("Squeeze", squeeze, 1), OLD(squeeze)},
    {VIEW("Squeeze", squeeze, 13), RUNS(squeeze)},
    {0},
};
const ot_op_def ot__op_unsqueeze[] = {
    {VIEW("Unsqueeze", unsqueeze, 1), OLD(unsqueeze)},
    {VIEW("Unsqueeze", unsqueeze, 13), RUNS(unsqueeze)},
    {0},
};
