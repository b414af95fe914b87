// SPDX-License-Identifier: Apache-2.0
// PadAndUnflatten: X's rows where `indices` says, zeros elsewhere; the first axis, then, as two of
// the given extents.
#include "ops/move/move.h"

static void unflatten_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *indices = ot_infer_shape(c, 1);
    ot_shape y = *x;
    int n;
    const int64_t *dims = ot_infer_values(c, 2, &n);

    if (x->ndim < 1 || x->ndim >= OT_MAX_NDIM || indices->ndim != 1 ||
        (ot_dim_is_number(x->dim[0]) && ot_dim_is_number(indices->dim[0]) &&
         x->dim[0] != indices->dim[0])) {
        ot_infer_fail(c, "indices must have one number for each row of the input");
        return;
    }
    if (ot_infer_shape(c, 2)->ndim != 1 || (dims != NULL && n != 2)) {
        ot_infer_fail(c, "unflatten_dims must have two numbers");
        return;
    }
    y.ndim = x->ndim + 1;
    for (int k = 0; k < 2; k++)
        y.dim[k] = dims != NULL ? dims[k] : ot_dim_unknown();
    for (int k = 1; k < x->ndim; k++)
        y.dim[k + 1] = x->dim[k];
    for (int k = 0; k < 2; k++)
        if (ot_dim_is_number(y.dim[k]) && y.dim[k] < 0) {
            ot_infer_fail(c, "unflatten_dims has %" PRId64, y.dim[k]);
            return;
        }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_status unflatten_run(const ot_run *r)
{
    const ot_arg *y = r->out[0], *dims = r->in[2];
    const uint64_t zero = 0;

    if (dims->count != 2 || ot__arg_int(dims, 0) != y->shape.dim[0] ||
        ot__arg_int(dims, 1) != y->shape.dim[1])
        return ot__error(OT_ERR_INVALID, "unflatten_dims differs from the planned dim sizes");
    ot__ref_fill(y->data, &zero, y->count, ot_dtype_size(y->dtype));
    return ot__run_rows(y, r->in[0], r->in[1], OT__PART_TO_WHOLE);
}

// dX = the rows of dY that X's rows went to.
static void unflatten_grad(ot_grad *g)
{
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 1)};

    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(
            g, 0,
            ot_emit_output(g, ot_emit(g, "com.microsoft.FlattenAndUnpad", NULL, in, 2, 2), 0));
}

static const ot_port unflatten_in[] = {{"input", "T", 0},
                                       {"indices", "I", OT_PORT_NO_GRAD},
                                       {"unflatten_dims", "I", OT_PORT_NO_GRAD},
                                       {0}};
static const ot_port unflatten_out[] = {{"output", "T", 0}, {0}};
static const ot_kernel unflatten_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = unflatten_run},
    {0},
};
const ot_op_def ot__op_pad_and_unflatten[] = {
    {.domain = OT__MS,
     .name = "PadAndUnflatten",
     .since = 1,
     .inputs = unflatten_in,
     .outputs = unflatten_out,
     .types = "T: f32 f64 i32 i64; I: i64 i32",
     .infer = unflatten_infer,
     .kernels = unflatten_kernels,
     .grad = unflatten_grad},
    {0},
};
