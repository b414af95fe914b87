// SPDX-License-Identifier: Apache-2.0
// Tile: the whole tensor repeated along each axis.
#include "op/expand.h"
#include "ops/move/move.h"

// Each axis of y is two of the copy: the repetition, which x does not move along, and the axis of
// x.
static void tile_strides(ot__strided *s, const ot_shape *x, const ot_shape *y)
{
    int64_t x_stride[OT_MAX_NDIM], y_stride[OT_MAX_NDIM];

    *s = (ot__strided){0};
    ot__shape_strides(x, x_stride);
    ot__shape_strides(y, y_stride);
    for (int k = 0; k < x->ndim; k++) {
        const int64_t n = x->dim[k] == 0 ? 0 : y->dim[k] / x->dim[k];

        ot__strided_add_axis(s, n, 0, y_stride[k] * x->dim[k]);
        ot__strided_add_axis(s, x->dim[k], x_stride[k], y_stride[k]);
    }
}

static void tile_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *list = ot_infer_shape(c, 1);
    int n, n_known;
    const int64_t *repeats = ot_infer_values(c, 1, &n);
    ot_shape y = {.ndim = x->ndim};
    ot__strided s;

    if (list->ndim != 1 || (ot_dim_is_number(list->dim[0]) && list->dim[0] != x->ndim)) {
        ot_infer_fail(c, "repeats must be a list of %d numbers", x->ndim);
        return;
    }
    if (repeats != NULL && !ot__infer_list_fits(c, 1, n, repeats))
        return;
    for (int k = 0; k < y.ndim; k++) {
        if (repeats != NULL && ot_dim_is_number(repeats[k]) && repeats[k] < 0) {
            ot_infer_fail(c, "axis %d is repeated %" PRId64 " times", k, repeats[k]);
            return;
        }
        y.dim[k] = repeats == NULL ? ot_dim_unknown() : ot_infer_mul(c, x->dim[k], repeats[k]);
        if (repeats != NULL && !ot__infer_extent(c, k, x->dim[k], repeats[k], y.dim[k]))
            return;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    if (ot_infer_values(c, 0, &n_known) != NULL && n_known > 0 && ot__shape_is_static(&y)) {
        tile_strides(&s, x, &y);
        ot__infer_moved(c, 0, &s);
    }
}

static ot_status tile_prep(ot_prep *p)
{
    const ot_shape *x = &ot_prep_in(p, 0)->shape, *y = &ot_prep_out(p, 0)->shape;
    ot__strided s;

    for (int k = 0; k < x->ndim; k++) // where the shape is only declared
        if (x->dim[k] == 0 ? y->dim[k] != 0 : y->dim[k] % x->dim[k] != 0)
            return ot_prep_fail(p, OT_ERR_INVALID,
                                "axis %d of size %" PRId64 " is not repeated to %" PRId64, k,
                                x->dim[k], y->dim[k]);
    tile_strides(&s, x, y);
    return ot__prep_strided(p, &s);
}

// dY as [r0, x0, r1, x1, ...]: a constant shape where repeats and X's shape are.
static ot_value *emit_split(ot_grad *g, ot_value *dy, ot_value *x, ot_value *repeats)
{
    const ot_shape *shape = ot_value_shape(x);
    int n;
    const int64_t *known = ot_value_known(repeats, &n);
    const int64_t one = 1, minus_one = -1;
    int64_t list[2 * OT_MAX_NDIM];
    ot_value *column, *flat, *pair[2], *in[2] = {dy, NULL};
    ot_node *node;

    if (known != NULL && ot__all_numbers(known, n) && ot__shape_is_static(shape)) {
        for (int k = 0; k < shape->ndim; k++) {
            list[2 * k] = known[k];
            list[2 * k + 1] = shape->dim[k];
        }
        return ot_emit2(g, "Reshape", dy, ot_emit_constant_i64(g, list, 2 * shape->ndim));
    }
    column = ot_emit_constant_i64(g, &one, 1);
    pair[0] = ot_emit2(g, "Unsqueeze", repeats, column);
    pair[1] = ot_emit2(g, "Unsqueeze", ot_emit_shape(g, x), column);
    flat = ot_emit_constant_i64(g, &minus_one, 1);
    in[1] = ot_emit2(g, "Reshape", ot__emit_concat(g, pair, 2, 1), flat);
    node = ot_emit(g, "Reshape", NULL, in, 2, 1);
    if (ot__model_opset(ot_grad_node(g)->graph->model, "") >= 14)
        ot_emit_int(g, node, "allowzero", 1); // an extent may turn out to be 0
    return ot_emit_output(g, node, 0);
}

// Nothing of X is in Y, or X has no elements.
static bool tiles_nothing(const ot_value *x, const ot_value *repeats)
{
    const ot_shape *shape = ot_value_shape(x);
    int n;
    const int64_t *known = ot_value_known(repeats, &n);

    for (int k = 0; k < shape->ndim; k++) {
        if (shape->dim[k] == 0 || (known != NULL && known[k] == 0))
            return true;
    }
    return false;
}

// dX = dY as [r0, x0, r1, x1, ...], summed over the repetitions.
static void tile_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0), *in[2];
    const int ndim = ot_value_shape(x)->ndim;
    int64_t axes[OT_MAX_NDIM];

    if (!ot__grad_has_rank(g))
        return;
    if (ndim == 0 || tiles_nothing(x, ot_grad_x(g, 1))) {
        ot_grad_set_dx(g, 0, ndim == 0 ? ot_emit1(g, "Identity", dy) : ot_emit_zeros_like(g, x));
        return;
    }
    if (2 * ndim > OT_MAX_NDIM)
        ot_grad_fail(g, "the gradient of repeating %d axes needs %d, at most %d are possible", ndim,
                     2 * ndim, OT_MAX_NDIM);
    for (int k = 0; k < ndim; k++)
        axes[k] = 2 * k;
    in[0] = emit_split(g, dy, x, ot_grad_x(g, 1));
    in[1] = ot_emit_constant_i64(g, axes, ndim);
    ot_grad_set_dx(g, 0, ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 0", in, 2, 1), 0));
}

static const ot_port tile_in[] = {{"input", "T", 0}, {"repeats", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_kernel tile_kernels[] = {OT__STRIDED_KERNELS(tile_prep, ot__run_strided), {0}};
const ot_op_def ot__op_tile[] = {
    {.name = "Tile",
     .since = 6,
     .inputs = tile_in,
     .outputs = ot__output_out,
     .types = "T: any string",
     .infer = tile_infer,
     .kernels = tile_kernels,
     .grad = tile_grad},
    {0},
};
