// SPDX-License-Identifier: Apache-2.0
// Reductions: what their gradient rules share.
#include "ops/reduce/reduction.h"

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

ot_value *ot__reduce_restore(ot_grad *g, ot_value *v)
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

ot_value *ot__reduce_again(ot_grad *g, const char *op, ot_value *x)
{
    ot_value *in[2] = {x, ot_grad_input_count(g) > 1 ? ot_grad_x(g, 1) : NULL};
    ot_node *node = ot_emit(g, op, NULL, in, in[1] == NULL ? 1 : 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_emit_int(g, node, "keepdims", 1);
    return ot_emit_output(g, node, 0);
}

ot_value *ot__reduce_count(ot_grad *g)
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

ot_value *ot__reduce_count_where(ot_grad *g, ot_value *mask)
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

// Y = max of X: dY goes to the elements equal to Y, in equal shares.
void ot__reduce_extreme_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);
    ot_value *is_it = ot_emit2(g, "Equal", x, ot__reduce_restore(g, ot_grad_y(g, 0)));
    ot_value *mask = ot_emit_cast(g, is_it, ot_value_dtype(x));
    ot_value *count = ot__reduce_count_where(g, mask);
    ot_value *share = ot_emit2(g, "Div", ot__reduce_restore(g, ot_grad_dy(g, 0)), count);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", mask, share));
}
