// SPDX-License-Identifier: Apache-2.0
// Expand: axes of extent 1 repeated up to a given shape.
#include "ops/move/move.h"

static void expand_strides(ot__strided *s, const ot_shape *x, const ot_shape *y)
{
    int64_t x_stride[OT_MAX_NDIM], y_stride[OT_MAX_NDIM];

    *s = (ot__strided){0};
    ot__broadcast_strides(x, y, x_stride);
    ot__shape_strides(y, y_stride);
    for (int k = 0; k < y->ndim; k++)
        ot__strided_add_axis(s, y->dim[k], x_stride[k], y_stride[k]);
}

static void expand_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape target, y;
    ot__strided s;
    int n;

    if (!ot__infer_shape_input(c, 1, &target)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    if (!ot_infer_broadcast(c, x, &target, &y))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    if (ot_infer_values(c, 0, &n) != NULL && n > 0 && ot__shape_is_static(&y)) {
        expand_strides(&s, x, &y);
        ot__infer_moved(c, 0, &s);
    }
}

static ot_status expand_prep(ot_prep *p)
{
    ot__strided s;

    expand_strides(&s, &ot_prep_in(p, 0)->shape, &ot_prep_out(p, 0)->shape);
    return ot__prep_strided(p, &s);
}

// dX = dY summed over the axes that were repeated.
static void expand_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit_sum_to(g, ot_grad_dy(g, 0), ot_grad_x(g, 0)));
}

static const ot_port expand_in[] = {{"input", "T", 0}, {"shape", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_kernel expand_kernels[] = {OT__STRIDED_KERNELS(expand_prep, ot__run_strided), {0}};
const ot_op_def ot__op_expand[] = {
    {.name = "Expand",
     .since = 8,
     .inputs = expand_in,
     .outputs = ot__output_out,
     .types = "T: any string",
     .infer = expand_infer,
     .kernels = expand_kernels,
     .grad = expand_grad,
     .identity_when = ot__identity_of_shape},
    {0},
};
