// SPDX-License-Identifier: Apache-2.0
// Gradient rules of the Reduce* records, and the expansion of ReduceSum.
#include "op/expand.h"
#include "ops/reduce/reduce.h"

#include <string.h>

// The reduced axes as far as known; n == 0 with OT__GIVEN: none is.
static ot__given find_axes(ot_grad *g, ot__axes *axes)
{
    const int ndim = ot_value_shape(ot_grad_x(g, 0))->ndim;
    ot__given given;

    *axes = (ot__axes){0};
    if (!ot__grad_has_rank(g))
        return OT__FAILED;
    given = ot__grad_axes(g, "axes", ot_grad_input_count(g) > 1 ? 1 : -1, ndim, axes);
    if (given == OT__UNKNOWN || given == OT__FAILED || axes->n > 0 ||
        ot_attr_int(ot_grad_node(g), "noop_with_empty_axes") != 0)
        return given == OT__ABSENT ? OT__GIVEN : given;
    for (int k = 0; k < ndim; k++) {
        axes->axis[k] = k;
        axes->has[k] = true;
    }
    axes->n = ndim;
    return OT__GIVEN;
}

// `v`, which has Y's shape, with extents of 1 where Y lost axes, so that it broadcasts to X.
static ot_value *reduce_restore(ot_grad *g, ot_value *v)
{
    const int ndim = ot_value_shape(ot_grad_x(g, 0))->ndim;
    int64_t list[OT_MAX_NDIM];
    ot__axes axes;

    if (ot_attr_int(ot_grad_node(g), "keepdims") != 0)
        return v;
    if (find_axes(g, &axes) == OT__UNKNOWN) // an empty list leaves the scalar, which broadcasts
        return ot_emit2(g, "Unsqueeze", v, ot_grad_x(g, 1));
    if (axes.n == 0 || axes.n == ndim)
        return v;
    for (int k = 0; k < axes.n; k++)
        list[k] = axes.axis[k];
    return ot_emit2(g, "Unsqueeze", v, ot_emit_constant_i64(g, list, axes.n));
}

// The same operator with the node's axes and attributes, but keeping the axes.
static ot_value *reduce_again(ot_grad *g, const char *op, ot_value *x)
{
    ot_value *in[2] = {x, ot_grad_input_count(g) > 1 ? ot_grad_x(g, 1) : NULL};
    ot_node *node = ot_emit(g, op, NULL, in, in[1] == NULL ? 1 : 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_emit_int(g, node, "keepdims", 1);
    return ot_emit_output(g, node, 0);
}

// How many elements of X each element of Y stands for, a scalar of X's type.
static ot_value *reduce_count(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);
    const ot_shape *shape = ot_value_shape(x);
    const ot_dtype dtype = ot_value_dtype(x);
    ot__axes axes;
    double count = 1;
    ot_value *groups;
    bool is_known = find_axes(g, &axes) == OT__GIVEN;

    for (int k = 0; k < shape->ndim; k++) {
        if (axes.has[k] && ot_dim_is_number(shape->dim[k]))
            count *= (double)shape->dim[k];
        else if (axes.has[k])
            is_known = false;
    }
    if (is_known)
        return ot_emit_constant(g, count, x);
    groups = ot_emit_cast(g, ot_emit1(g, "Size", ot_grad_dy(g, 0)), dtype);
    return ot_emit2(g, "Div", ot_emit_cast(g, ot_emit1(g, "Size", x), dtype), groups);
}

// Sum of a mask of X's shape over the node's axes, which are kept.
static ot_value *reduce_count_where(ot_grad *g, ot_value *mask)
{
    ot_value *in[2] = {mask, NULL};
    int64_t list[OT_MAX_NDIM];
    ot__axes axes;
    const ot__given given = find_axes(g, &axes);

    if (given == OT__GIVEN && axes.n == 0)
        return mask; // nothing was reduced
    for (int k = 0; k < axes.n; k++)
        list[k] = axes.axis[k];
    in[1] = given == OT__GIVEN ? ot_emit_constant_i64(g, list, axes.n) : ot_grad_x(g, 1);
    return ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 1", in, 2, 1), 0);
}

// ---- rules ----

// dX = dY, the same for every element of the sum.
void ot__reduce_sum_grad(ot_grad *g)
{
    ot_value *dy = reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", dy, ot_emit_shape(g, ot_grad_x(g, 0))));
}

// dX = dY / n for every element of a mean of n.
void ot__reduce_mean_grad(ot_grad *g)
{
    ot_value *dy = reduce_restore(g, ot_grad_dy(g, 0));
    ot_value *shape = ot_emit_shape(g, ot_grad_x(g, 0));

    dy = ot_emit2(g, "Div", dy, reduce_count(g));
    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", dy, shape));
}

// Y = sum of |X|:  dX = sign(X) dY.
void ot__reduce_l1_grad(ot_grad *g)
{
    ot_value *dy = reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", ot_emit1(g, "Sign", ot_grad_x(g, 0)), dy));
}

// Y = sum of X^2:  dX = 2 X dY.
void ot__reduce_sum_square_grad(ot_grad *g)
{
    ot_value *dy = reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", ot_grad_x(g, 0), ot_emit2(g, "Add", dy, dy)));
}

// Y = sqrt(sum of X^2):  dX = X dY / Y, and 0 where Y is.
void ot__reduce_l2_grad(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *zero = ot_emit_constant(g, 0.0, y);
    ot_value *ratio = ot_emit2(g, "Div", ot_grad_dy(g, 0), y);

    ratio = ot_emit3(g, "Where", ot_emit2(g, "Equal", y, zero), zero, ratio);
    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", ot_grad_x(g, 0), reduce_restore(g, ratio)));
}

// Y = x1 x2 ...:  dx1 = dY x2 x3 .... Without dividing by an element that is 0: the product goes
// over those that are not, and counts where no other one is 0.
void ot__reduce_prod_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);
    ot_value *zero = ot_emit_constant(g, 0.0, x), *one = ot_emit_constant(g, 1.0, x);
    ot_value *is_zero = ot_emit2(g, "Equal", x, zero);
    ot_value *nonzero = ot_emit3(g, "Where", is_zero, one, x);
    ot_value *mask = ot_emit_cast(g, is_zero, ot_value_dtype(x));
    ot_value *n_zero = reduce_count_where(g, mask);
    ot_value *product = reduce_again(g, "ReduceProd", nonzero);
    ot_value *each = ot_emit2(g, "Mul", reduce_restore(g, ot_grad_dy(g, 0)), product);
    ot_value *dx = ot_emit2(g, "Div", each, nonzero);

    ot_grad_set_dx(g, 0, ot_emit3(g, "Where", ot_emit2(g, "Equal", n_zero, mask), dx, zero));
}

// Y = log(sum of X):  dX = dY / exp(Y), the same for every element that was summed.
void ot__reduce_log_sum_grad(ot_grad *g)
{
    ot_value *each = ot_emit2(g, "Div", ot_grad_dy(g, 0), ot_emit1(g, "Exp", ot_grad_y(g, 0)));
    ot_value *shape = ot_emit_shape(g, ot_grad_x(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", reduce_restore(g, each), shape));
}

// Y = log(sum of exp(X)):  dX = exp(X - Y) dY.
void ot__reduce_log_sum_exp_grad(ot_grad *g)
{
    ot_value *y = reduce_restore(g, ot_grad_y(g, 0));
    ot_value *dy = reduce_restore(g, ot_grad_dy(g, 0));
    ot_value *share = ot_emit1(g, "Exp", ot_emit2(g, "Sub", ot_grad_x(g, 0), y));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", share, dy));
}

// Y = max of X: dY goes to the elements equal to Y, in equal shares.
void ot__reduce_extreme_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);
    ot_value *is_it = ot_emit2(g, "Equal", x, reduce_restore(g, ot_grad_y(g, 0)));
    ot_value *mask = ot_emit_cast(g, is_it, ot_value_dtype(x));
    ot_value *count = reduce_count_where(g, mask);
    ot_value *share = ot_emit2(g, "Div", reduce_restore(g, ot_grad_dy(g, 0)), count);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", mask, share));
}

// ---- expansion of ReduceSum ----

// 1 in front of a list up to n elements.
static ot_value *fill_up(ot_grad *g, ot_value *list, int n)
{
    const int64_t ones[OT_MAX_NDIM] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int n_own = list == NULL ? n : (int)ot_value_shape(list)->dim[0];
    ot_value *parts[] = {NULL, list};

    if (n_own == n)
        return list;
    parts[0] = ot_emit_constant_i64(g, ones, n - n_own);
    return ot__emit_concat(g, parts, 2, 0);
}

// Pairs (extent to sum over, extent to keep), one of them 1, as extents of an array.
static ot_value *emit_pairs(ot_grad *g, ot_value *summed, ot_value *kept)
{
    const int64_t axis = 1, all = -1;
    ot_value *at = ot_emit_constant_i64(g, &axis, 1);
    ot_value *column = ot_emit2(g, "Unsqueeze", summed, at);
    ot_value *const columns[] = {column, ot_emit2(g, "Unsqueeze", kept, at)};

    return ot__emit_reshape(g, ot__emit_concat(g, columns, 2, 1), &all, 1);
}

// A sum that undoes broadcasting over axes that only the run knows: each axis is split into the
// part to sum over and the part to keep, so that the axes are always the same.
void ot__reduce_sum_expand(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *axes = ot_grad_x(g, 1), *own, *other, *one, *is_one, *kept;
    const ot_node *args = axes == NULL ? NULL : axes->producer;
    const int n = ot_value_shape(x)->ndim;
    int64_t summed[OT_MAX_NDIM];

    if (args == NULL || strcmp(args->op_type, "BroadcastGradientArgs") != 0 ||
        2 * n > OT_MAX_NDIM || ot_attr_int(ot_grad_node(g), "keepdims") == 0)
        return;
    own = args->inputs[axes->i_producer_output];
    other = args->inputs[1 - axes->i_producer_output];
    for (int k = 0; k < n; k++)
        summed[k] = INT64_C(2) * k;
    for (int i = 0; i < 2; i++)
        if (!ot_dim_is_number(ot_value_shape(args->inputs[i])->dim[0]) ||
            ot_value_shape(args->inputs[i])->dim[0] > n)
            return;
    own = fill_up(g, own, n);
    other = fill_up(g, other, n);
    one = own == NULL ? NULL : ot_emit_constant(g, 1.0, own);
    is_one = ot_emit2(g, "Equal", own, one);
    kept = ot_emit3(g, "Where", is_one, one, other);
    x = ot_emit2(g, "Reshape", x, emit_pairs(g, ot_emit3(g, "Where", is_one, other, one), kept));
    ot_expand_set(g, 0, ot__emit_sum(g, x, summed, n, false));
}
