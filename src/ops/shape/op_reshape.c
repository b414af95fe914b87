// SPDX-License-Identifier: Apache-2.0
// Reshape: the same elements under another shape.
#include "ops/move/move.h"

// Extents that 0 takes over from the input stand on both sides: what is left decides the extent for
// -1.
typedef struct reshape_sides {
    int64_t x, y; // products of the other extents
    int inferred; // axis of -1, or -1
} reshape_sides;

static bool read_target(ot_infer *c, const int64_t *target, ot_shape *y, bool *is_copied,
                        int *inferred)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    const bool allow_zero = ot_attr_int(ot_infer_node(c), "allowzero") != 0;

    for (int k = 0; k < y->ndim; k++) {
        y->dim[k] = target[k];
        if (target[k] == 0 && !allow_zero) {
            if (k >= x->ndim)
                return ot__refuse(c, "shape copies axis %d, data has %d axes", k, x->ndim);
            y->dim[k] = x->dim[k];
            is_copied[k] = true;
        } else if (target[k] == -1 && *inferred < 0) {
            *inferred = k;
        } else if (ot_dim_is_number(target[k]) && target[k] < 0) {
            return ot__refuse(c, "shape has %" PRId64 " at axis %d, expected a size%s", target[k],
                              k, target[k] == -1 ? " (-1 stands once)" : "");
        }
    }
    return true;
}

static reshape_sides multiply_sides(ot_infer *c, const ot_shape *x, const ot_shape *y,
                                    const bool *is_copied, int inferred)
{
    reshape_sides sides = {1, 1, inferred};

    for (int k = 0; k < x->ndim; k++) {
        if (k >= y->ndim || !is_copied[k])
            sides.x = ot_infer_mul(c, sides.x, x->dim[k]);
    }
    for (int k = 0; k < y->ndim; k++) {
        if (!is_copied[k] && k != inferred)
            sides.y = ot_infer_mul(c, sides.y, y->dim[k]);
    }
    return sides;
}

static void settle_inferred(ot_infer *c, const reshape_sides *sides, ot_shape *y)
{
    const bool numbers = ot_dim_is_number(sides->x) && ot_dim_is_number(sides->y);

    if (sides->inferred < 0) {
        if (numbers && sides->x != sides->y)
            ot_infer_fail(c, "shape has room for %" PRId64 " elements, data for %" PRId64, sides->y,
                          sides->x);
        return;
    }
    if (sides->y == 0 || (numbers && sides->x % sides->y != 0)) {
        ot_infer_fail(c, "%" PRId64 " elements cannot be divided by %" PRId64, sides->x, sides->y);
        return;
    }
    y->dim[sides->inferred] = ot_infer_div(c, sides->x, sides->y);
}

static void reshape_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *list = ot_infer_shape(c, 1);
    bool is_copied[OT_MAX_NDIM] = {false};
    int n, inferred = -1;
    const int64_t *target = ot_infer_values(c, 1, &n);
    ot_shape y = {0};
    reshape_sides sides;

    if (list->ndim != 1 || (ot_dim_is_number(list->dim[0]) && list->dim[0] > OT_MAX_NDIM)) {
        ot_infer_fail(c, "shape must be a list of at most %d dim sizes", OT_MAX_NDIM);
        return;
    }
    if (!ot_dim_is_number(list->dim[0])) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    y.ndim = (int)list->dim[0];
    for (int k = 0; target == NULL && k < y.ndim; k++)
        y.dim[k] = ot_dim_unknown();
    if (target != NULL) {
        if (!read_target(c, target, &y, is_copied, &inferred))
            return;
        sides = multiply_sides(c, x, &y, is_copied, inferred);
        if (inferred >= 0)
            y.dim[inferred] = ot_dim_unknown();
        settle_inferred(c, &sides, &y);
    }
    ot__infer_view(c, &y);
}

// dX = dY in X's shape.
static void reshape_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit_reshape_like(g, ot_grad_dy(g, 0), ot_grad_x(g, 0)));
}

static const ot_port reshape_in[] = {{"data", "T", 0}, {"shape", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port reshape_out[] = {{"reshaped", "T", 0}, {0}};
static const ot_attr_spec reshape_attrs[] = {OT__INT_ATTR("allowzero", 0), {0}};
#define RESHAPE                                                                                    \
    .name = "Reshape", .inputs = reshape_in, .outputs = reshape_out, .types = "T: any string",     \
    .infer = reshape_infer, .kernels = ot__view_kernels, .grad = reshape_grad,                     \
    .flags = OT_OP_VIEW, .identity_when = ot__identity_of_shape
const ot_op_def ot__op_reshape[] = {
    {RESHAPE, .since = 5},
    {RESHAPE, .since = 14, .attrs = reshape_attrs},
    {0},
};
