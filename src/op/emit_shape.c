// SPDX-License-Identifier: Apache-2.0
// Emitting what depends on a value's shape: the shape itself, reshapes, and the sum that undoes
// broadcasting.
#include "op/expand.h"

ot_value *ot_emit_shape(ot_grad *g, ot_value *x)
{
    if (g->build.status != OT_OK || x == NULL)
        return NULL;
    if (x->has_shape && ot__shape_is_static(&x->shape))
        return ot_emit_constant_i64(g, x->shape.dim, x->shape.ndim);
    return ot_emit1(g, "Shape", x);
}

ot_value *ot_emit_zeros_like(ot_grad *g, ot_value *x)
{
    return ot__emit_zeros(g, ot_emit_shape(g, x), x);
}

typedef enum reshape_way { BY_CONSTANT, BY_SHAPE, EMPTY } reshape_way;

// Numbers and at most one other extent, which a Reshape finds by itself, make a constant target.
static reshape_way reshape_target(const ot_value *x, ot_shape *target)
{
    int n_open = 0, n_zero = 0;

    if (!x->has_shape)
        return BY_SHAPE;
    *target = x->shape;
    for (int k = 0; k < target->ndim; k++) {
        n_zero += target->dim[k] == 0;
        if (!ot__dim_is_number(target->dim[k])) {
            target->dim[k] = -1;
            n_open++;
        }
    }
    if (n_zero > 0) // Reshape takes 0 for "copy this dim size"
        return EMPTY;
    return n_open <= 1 ? BY_CONSTANT : BY_SHAPE;
}

ot_value *ot_emit_reshape_like(ot_grad *g, ot_value *v, ot_value *x)
{
    ot_shape target;
    reshape_way way;
    ot_value *y;

    if (g->build.status != OT_OK || v == NULL || x == NULL || ot__values_same_shape(v, x))
        return v;
    way = reshape_target(x, &target);
    if (way == EMPTY)
        return ot_emit_zeros_like(g, x);
    y = ot_emit2(g, "Reshape", v,
                 way == BY_CONSTANT ? ot_emit_constant_i64(g, target.dim, target.ndim)
                                    : ot_emit_shape(g, x));
    if (y != NULL && x->has_shape) // whatever Reshape finds is x's extent
        ot__value_set(y, y->dtype, &x->shape);
    return y;
}

// ---- summing over broadcast axes ----

// The axes of dy along which x was stretched; false when the extents do not prove which.
static bool static_axes(const ot_shape *x, const ot_shape *dy, int64_t *axes, int *n)
{
    const int extra = dy->ndim - x->ndim;

    *n = 0;
    if (extra < 0)
        return false;
    for (int k = 0; k < dy->ndim; k++) {
        const int64_t xd = k < extra ? 1 : x->dim[k - extra], yd = dy->dim[k];

        if (k >= extra && ot__dim_same(xd, yd))
            continue;
        // x's extent is 1 or dy's, so a 1 in dy or another number than 1 in x settles it.
        if (k >= extra && yd == 1)
            continue;
        if (!ot__dim_is_number(xd))
            return false;
        if (xd == 1)
            axes[(*n)++] = k;
    }
    return true;
}

static ot_value *reduce_static(ot_grad *g, ot_value *dy, ot_value *x, const int64_t *axes, int n)
{
    const int extra = dy->shape.ndim - x->shape.ndim;
    const bool keep = n > extra; // some axis of extent 1 stays
    ot_value *sum = ot__emit_sum(g, dy, axes, n, keep);

    // The leading axes come first in `axes`.
    return keep && extra > 0 ? ot_emit2(g, "Squeeze", sum, ot_emit_constant_i64(g, axes, extra))
                             : sum;
}

// Which axes to sum over is found at run time.
static ot_value *reduce_dynamic(ot_grad *g, ot_value *dy, ot_value *x)
{
    ot_value *x_shape = ot_emit_shape(g, x);
    ot_value *const shapes[] = {x_shape, ot_emit_shape(g, dy)};
    ot_value *axes =
        ot_emit_output(g, ot_emit(g, "com.microsoft.BroadcastGradientArgs", NULL, shapes, 2, 1), 0);
    ot_value *const inputs[] = {dy, axes};
    ot_value *sum = ot_emit_output(
        g, ot_emit(g, "ReduceSum", "keepdims = 1, noop_with_empty_axes = 1", inputs, 2, 1), 0);
    ot_value *y = ot_emit2(g, "Reshape", sum, x_shape);

    if (y != NULL && x->has_shape)
        ot__value_set(y, y->dtype, &x->shape);
    return y;
}

ot_value *ot_emit_sum_to(ot_grad *g, ot_value *dy, ot_value *x)
{
    int64_t axes[OT_MAX_NDIM];
    int n;

    if (g->build.status != OT_OK || dy == NULL || x == NULL)
        return NULL;
    if (!dy->has_shape || !x->has_shape || !static_axes(&x->shape, &dy->shape, axes, &n))
        return reduce_dynamic(g, dy, x);
    return n == 0 ? dy : reduce_static(g, dy, x, axes, n);
}
