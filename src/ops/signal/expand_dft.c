// SPDX-License-Identifier: Apache-2.0
// The gradient of DFT in ONNX's operators, where sizes are numbers.
#include "ops/signal/signal.h"

enum { AXIS_IS_INPUT_SINCE = 20 }; // opset

static ot_value *emit_int(ot_grad *g, int64_t number)
{
    ot_value *v = ot__emit_tensor(g, OT_I64, &OT_SHAPE_SCALAR);

    if (v != NULL)
        *(int64_t *)v->constant->data = number;
    return v;
}

ot_value *ot__emit_dft(ot_grad *g, ot_value *x, ot_value *length, int64_t axis, bool is_inverse,
                       bool is_onesided)
{
    const bool is_input = ot__model_opset(g->build.graph->model, "") >= AXIS_IS_INPUT_SINCE;
    ot_value *const in[] = {x, length, is_input ? emit_int(g, axis) : NULL};
    ot_node *node = x == NULL ? NULL : ot_emit(g, "DFT", NULL, in, is_input ? 3 : 2, 1);

    if (!is_input)
        ot_emit_int(g, node, "axis", axis);
    ot_emit_int(g, node, "inverse", is_inverse);
    ot_emit_int(g, node, "onesided", is_onesided);
    return ot_emit_output(g, node, 0);
}

ot_value *ot__emit_slice(ot_grad *g, ot_value *x, int64_t axis, int64_t first, int64_t last)
{
    const int64_t numbers[] = {first, last, axis};
    ot_value *in[4] = {x};

    for (int i = 1; i < 4; i++)
        in[i] = ot_emit_constant_i64(g, &numbers[i - 1], 1);
    for (int i = 0; i < 4; i++)
        if (in[i] == NULL)
            return NULL;
    return ot_emit_output(g, ot_emit(g, "Slice", NULL, in, 4, 1), 0);
}

// x with `wanted` of the `size` elements that it has along the axis: cut, or with zeros behind.
static ot_value *emit_fitted(ot_grad *g, ot_value *x, int axis, int ndim, int64_t size,
                             int64_t wanted)
{
    int64_t pads[2 * OT_MAX_NDIM] = {0};

    if (wanted <= size)
        return wanted == size ? x : ot__emit_slice(g, x, axis, 0, wanted);
    pads[ndim + axis] = wanted - size;
    return ot_emit2(g, "Pad", x, ot_emit_constant_i64(g, pads, 2 * ndim));
}

// How often each point of half a spectrum counts, divided by n, along an axis before others.
static ot_value *emit_point_counts(ot_grad *g, int64_t n, int n_behind, const ot_value *like)
{
    ot_shape shape = {.ndim = n_behind + 1, .dim = {n / 2 + 1}};
    ot_value *counts;

    for (int k = 1; k < shape.ndim; k++)
        shape.dim[k] = 1;
    counts = ot__emit_tensor(g, ot_value_dtype(like), &shape);
    for (int64_t k = 0; counts != NULL && k <= n / 2; k++) {
        const double count = (k > 0 && 2 * k != n ? 2 : 1) / (double)n;
        char *to = (char *)counts->constant->data;

        (void)ot__convert(to + (size_t)k * ot_dtype_size(counts->dtype), counts->dtype, &count,
                          OT_F64, 1);
    }
    return counts;
}

// The length that the forward transform has; 0: it is not known.
static int64_t read_expanded_length(const ot_value *given, int64_t points, int64_t made,
                                    bool makes_half)
{
    int n;
    const int64_t *known = ot_value_known(given, &n);

    if (!makes_half)
        return ot_dim_is_number(made) ? made : 0;
    if (given == NULL)
        return points;
    return known != NULL && n == 1 && ot_dim_is_number(known[0]) ? known[0] : 0;
}

static bool read_expanded_axis(ot_grad *g, int ndim, int *axis)
{
    const ot_node *node = ot_grad_node(g);
    ot_value *given = ot_grad_x(g, 3);
    int n = 0;
    const int64_t *known = ot_value_known(given, &n);
    int64_t at = -2;

    if (ot_attr_given(node, "axis"))
        at = ot_attr_int(node, "axis");
    else if (given != NULL && (known == NULL || n != 1))
        return false;
    else if (given != NULL)
        at = known[0];
    return ot__axis_normalize(at, ndim, axis) && *axis < ndim - 1;
}

void ot__dft_grad_expand(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    const bool is_inverse = ot_attr_int(node, "inverse") != 0;
    const bool is_onesided = ot_attr_int(node, "onesided") != 0;
    ot_value *dy = ot_grad_x(g, 0), *dx;
    int n_known, axis, ndim;
    const int64_t *dims = ot_value_known(ot_grad_x(g, 1), &n_known);
    int64_t n;

    if (!ot_value_has_shape(dy) || dims == NULL || ot_value_shape(dy)->ndim != n_known)
        return;
    ndim = n_known;
    if (!read_expanded_axis(g, ndim, &axis) || !ot_dim_is_number(dims[axis]) ||
        !ot_dim_is_number(dims[ndim - 1]))
        return;
    n = read_expanded_length(ot_grad_x(g, 2), dims[axis], ot_value_shape(dy)->dim[axis],
                             is_onesided && !is_inverse);
    if (n < 1)
        return;
    dx = ot__emit_dft(g, dy, emit_int(g, n), axis, !is_inverse, is_onesided && is_inverse);
    if (is_onesided && is_inverse)
        dx = ot_emit2(g, "Mul", dx, emit_point_counts(g, n, ndim - axis - 1, dy));
    else
        dx = ot__emit_times(g, dx, is_inverse ? 1 / (double)n : (double)n);
    dx = emit_fitted(g, dx, axis, ndim, is_onesided && is_inverse ? n / 2 + 1 : n, dims[axis]);
    ot_expand_set(g, 0, dims[ndim - 1] == 1 ? ot__emit_slice(g, dx, ndim - 1, 0, 1) : dx);
}
