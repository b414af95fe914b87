// SPDX-License-Identifier: Apache-2.0
// The gradients of pools in ONNX's operators.
#include "op/expand.h"
#include "ops/conv/conv.h"
#include "ops/pool/pool.h"

// The extents of dX: batch and channels from dY, those of the image as the node knows them.
static ot_value *emit_image_shape(ot_grad *g, ot_value *dy, const ot_shape *x)
{
    ot_value *front = ot__emit_extents(g, dy, 0, 2);
    ot_value *parts[] = {front, ot_emit_constant_i64(g, x->dim + 2, x->ndim - 2)};

    return ot__emit_concat(g, parts, 2, 0);
}

// The indices count through the whole of X.
void ot__max_pool_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, 0), *indices = ot_grad_x(g, 1);
    const ot_value *x = ot_grad_node(g)->outputs[0];

    if (!ot__spatial_is_static(x))
        return;
    ot_expand_set(
        g, 0, ot__emit_scatter_flat(g, emit_image_shape(g, dy, ot_value_shape(x)), indices, dy));
}

// All images apart, (N, C, spatial...) as (N * C, 1, spatial...), so that one window serves.
static ot_value *emit_planes(ot_grad *g, ot_value *v)
{
    const int64_t apart[] = {-1, 1};
    ot_value *front = ot_emit_constant_i64(g, apart, 2);
    ot_value *parts[] = {front, ot__emit_extents(g, v, 2, ot_value_shape(v)->ndim)};

    return ot_emit2(g, "Reshape", v, ot__emit_concat(g, parts, 2, 0));
}

// How many elements of the image each window is over, less one place for all that are not counted:
// the mean of ones where the padding counts as zeros, times the window's volume.
static ot_value *emit_counts(ot_grad *g, const ot__geometry *window, ot_value *shape,
                             const ot_value *dy, int64_t volume)
{
    const int n = window->n_axes;
    const int64_t one_plane[] = {1, 1};
    ot_value *front = ot_emit_constant_i64(g, one_plane, 2);
    ot_value *parts[] = {front, ot__emit_part(g, shape, 2, 2 + n)};
    ot_value *zeros = ot__emit_zeros(g, ot__emit_concat(g, parts, 2, 0), dy), *ones;
    ot_node *node;

    if (!zeros)
        return NULL;
    ones = ot_emit2(g, "Add", zeros, ot_emit_constant(g, 1.0, dy));
    node = ot_emit(g, "AveragePool", "count_include_pad = 1", &ones, 1, 1);
    ot_emit_ints(g, node, "kernel_shape", window->kernel, n);
    ot_emit_ints(g, node, "strides", window->stride, n);
    ot__geometry_emit_pads(g, node, window);
    return ot__emit_times(g, ot_emit_output(g, node, 0), (double)volume);
}

// dX = for each element the sum of dY's shares of the windows that it is in. A window that reaches
// beyond the padding, as in ceil mode, has another count, and what is dilated is not in every
// opset.
void ot__average_pool_grad_expand(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    ot_value *dy = ot_grad_x(g, 0), *shape, *shares, *weights, *image, *dx;
    const ot_value *x = node->outputs[0];
    ot__geometry window;
    int64_t volume = 1;

    if (!x->has_shape || !ot__pool_read(NULL, node, ot_value_shape(x), &window) ||
        window.padding != OT__PAD_GIVEN || window.ceil_mode)
        return;
    for (int a = 0; a < window.n_axes; a++) {
        if (window.dilation[a] != 1)
            return;
        volume *= window.kernel[a];
    }
    if (ot_grad_input_count(g) < 2 && !ot__spatial_is_static(x))
        return;
    shape =
        ot_grad_input_count(g) > 1 ? ot_grad_x(g, 1) : emit_image_shape(g, dy, ot_value_shape(x));
    shares = ot_attr_int(node, "count_include_pad") != 0
                 ? ot__emit_times(g, dy, 1.0 / (double)volume)
                 : ot_emit2(g, "Div", dy, emit_counts(g, &window, shape, dy, volume));
    if (!shares)
        return;
    image = ot__emit_part(g, shape, 2, 2 + window.n_axes);
    weights = ot__pool_emit_window(g, &window, 1, 1.0, ot_value_dtype(dy));
    dx = ot__emit_spread(g, &window, 1, emit_planes(g, shares), weights, ot_value_shape(x), image);
    ot_expand_set(g, 0, ot_emit2(g, "Reshape", dx, shape));
}

// What is summed over the windows of an element, and what the sum is multiplied with.
static void emit_lp_parts(ot_grad *g, int64_t p, ot_value **share, ot_value **factor)
{
    ot_value *dy = ot_grad_x(g, 0), *x = ot_grad_x(g, 1), *y = ot_grad_x(g, 2);
    ot_value *zero = ot_emit_constant(g, 0.0, y), *power;

    *share = dy;
    *factor = p == 2 ? x : ot_emit1(g, "Sign", x);
    if (p == 1)
        return;
    power = p == 2 ? y : ot_emit2(g, "Pow", y, ot_emit_constant(g, (double)(p - 1), y));
    *share = ot_emit2(g, "Div", dy, power);
    *share = ot_emit3(g, "Where", ot_emit2(g, "Equal", y, zero), zero, *share);
    if (p == 2)
        return;
    power = ot_emit1(g, "Abs", x);
    power = ot_emit2(g, "Pow", power, ot_emit_constant(g, (double)(p - 1), x));
    *factor = ot_emit2(g, "Mul", *factor, power);
}

// dX = sign(X) |X|^(p - 1) * (the sum of dY / Y^(p - 1) over the windows that an element is in).
void ot__lp_pool_grad_expand(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    ot_value *x = ot_grad_x(g, 1), *shape, *share, *factor, *weights, *image, *sums;
    ot__geometry window;

    if (!ot_value_has_shape(x) || !ot__pool_read(NULL, node, ot_value_shape(x), &window))
        return;
    if (window.padding != OT__PAD_GIVEN || window.ceil_mode) {
        if (!ot__spatial_is_static(x))
            return;
        ot__geometry_settle(&window, ot_value_shape(x));
    }
    emit_lp_parts(g, ot_attr_int(node, "p"), &share, &factor);
    shape = ot_emit_shape(g, x);
    image = ot__emit_part(g, shape, 2, 2 + window.n_axes);
    weights = ot__pool_emit_window(g, &window, 1, 1.0, ot_value_dtype(x));
    sums = ot__emit_spread(g, &window, 1, emit_planes(g, share), weights, ot_value_shape(x), image);
    ot_expand_set(g, 0, ot_emit2(g, "Mul", factor, ot_emit2(g, "Reshape", sums, shape)));
}
