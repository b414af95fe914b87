// SPDX-License-Identifier: Apache-2.0
// FlattenAndUnpad: the rows that `indices` names, of X with its first two axes as one; and the
// extents of these.
#include "ops/move/move.h"

static void flatten_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *indices = ot_infer_shape(c, 1);
    ot_shape y = *x;

    if (x->ndim < 2 || indices->ndim != 1) {
        ot_infer_fail(c, "input has %d axes, expected 2 or more; indices %d, expected 1", x->ndim,
                      indices->ndim);
        return;
    }
    y.ndim = x->ndim - 1;
    y.dim[0] = indices->dim[0];
    for (int k = 1; k < y.ndim; k++)
        y.dim[k] = x->dim[k + 1];
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    ot_infer_set(c, 1, ot_infer_dtype(c, 1), &OT_SHAPE(2));
    ot_infer_set_values(c, 1, x->dim, 2);
}

static ot_status flatten_run(const ot_run *r)
{
    const ot_arg *x = r->in[0];

    OT_TRY(ot__run_rows(r->out[0], x, r->in[1], OT__WHOLE_TO_PART));
    if (r->n_out > 1 && r->out[1] != NULL)
        ot__convert(r->out[1]->data, r->out[1]->dtype, x->shape.dim, OT_I64, 2);
    return OT_OK;
}

// dX = dY's rows where they came from, zeros elsewhere.
static void flatten_grad(ot_grad *g)
{
    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0,
                       ot_emit3(g, "com.microsoft.PadAndUnflatten", ot_grad_dy(g, 0),
                                ot_grad_x(g, 1), ot_grad_y(g, 1)));
}

static const ot_port flatten_in[] = {{"input", "T", 0}, {"indices", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port flatten_out[] = {
    {"output", "T", 0}, {"unflatten_dims", "I", OT_PORT_NO_GRAD | OT_PORT_OPTIONAL}, {0}};
static const ot_kernel flatten_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = flatten_run},
    {0},
};
const ot_op_def ot__op_flatten_and_unpad[] = {
    {.domain = OT__MS,
     .name = "FlattenAndUnpad",
     .since = 1,
     .inputs = flatten_in,
     .outputs = flatten_out,
     .types = "T: f32 f64 i32 i64; I: i64 i32",
     .infer = flatten_infer,
     .kernels = flatten_kernels,
     .grad = flatten_grad},
    {0},
};
