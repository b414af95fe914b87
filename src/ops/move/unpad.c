// SPDX-License-Identifier: Apache-2.0
// FlattenAndUnpad: the rows that `indices` names, of X with its first two axes as one; and the
// extents of these. PadAndUnflatten: X's rows where `indices` says, zeros elsewhere; the first
// axis, then, as two of the given extents.
#include "ops/move/move.h"

#include <string.h>

// Row i of one is row indices[i] of the other, whose first two axes count as one; no index may be
// negative.
static ot_status copy_rows(const ot_arg *to, const ot_arg *from, const ot_arg *indices,
                           ot__parts_way way)
{
    const ot_arg *whole = way == OT__PART_TO_WHOLE ? to : from;
    const ot_arg *part = way == OT__PART_TO_WHOLE ? from : to;
    const int64_t extent = whole->shape.dim[0] * whole->shape.dim[1];
    const size_t row = (size_t)(part->count / OT_MAX(indices->count, 1)) * ot_dtype_size(to->dtype);

    if (part->shape.dim[0] != indices->count)
        return ot__error(OT_ERR_INVALID, "%" PRId64 " indices for %" PRId64 " rows", indices->count,
                         part->shape.dim[0]);
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t at = ot__arg_int(indices, i);
        const size_t to_row = (size_t)(way == OT__PART_TO_WHOLE ? at : i);
        const size_t from_row = (size_t)(way == OT__PART_TO_WHOLE ? i : at);

        if (at < 0 || at >= extent)
            return ot__index_error(indices, i, extent);
        memcpy((char *)to->data + to_row * row, (const char *)from->data + from_row * row, row);
    }
    return OT_OK;
}

// ---- FlattenAndUnpad ----

static void unpad_infer(ot_infer *c)
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

static ot_status unpad_run(const ot_run *r)
{
    const ot_arg *x = r->in[0];

    OT_TRY(copy_rows(r->out[0], x, r->in[1], OT__WHOLE_TO_PART));
    if (r->n_out > 1 && r->out[1] != NULL)
        ot__convert(r->out[1]->data, r->out[1]->dtype, x->shape.dim, OT_I64, 2);
    return OT_OK;
}

// dX = dY's rows where they came from, zeros elsewhere.
static void unpad_grad(ot_grad *g)
{
    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0,
                       ot_emit3(g, "com.microsoft.PadAndUnflatten", ot_grad_dy(g, 0),
                                ot_grad_x(g, 1), ot_grad_y(g, 1)));
}

static const ot_port unpad_in[] = {{"input", "T", 0}, {"indices", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port unpad_out[] = {
    {"output", "T", 0}, {"unflatten_dims", "I", OT_PORT_NO_GRAD | OT_PORT_OPTIONAL}, {0}};
static const ot_kernel unpad_kernels[] = {OT__REF_KERNEL(NULL, NULL, unpad_run), {0}};
const ot_op_def ot__op_flatten_and_unpad[] = {
    {.domain = OT__MS,
     .name = "FlattenAndUnpad",
     .since = 1,
     .inputs = unpad_in,
     .outputs = unpad_out,
     .types = "T: f32 f64 i32 i64; I: i64 i32",
     .infer = unpad_infer,
     .kernels = unpad_kernels,
     .grad = unpad_grad},
    {0},
};

// ---- PadAndUnflatten ----

static void pad_rows_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *indices = ot_infer_shape(c, 1);
    ot_shape y = *x;
    int n;
    const int64_t *dims = ot_infer_values(c, 2, &n);

    if (x->ndim < 1 || x->ndim >= OT_MAX_NDIM || indices->ndim != 1 ||
        ot__dim_differs(x->dim[0], indices->dim[0])) {
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
        if (ot_dim_is_number(y.dim[k]) && y.dim[k] < 0)
            ot_infer_fail(c, "unflatten_dims has %" PRId64, y.dim[k]);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_status pad_rows_run(const ot_run *r)
{
    const ot_arg *y = r->out[0], *dims = r->in[2];
    const uint64_t zero = 0;

    if (dims->count != 2 || ot__arg_int(dims, 0) != y->shape.dim[0] ||
        ot__arg_int(dims, 1) != y->shape.dim[1])
        return ot__error(OT_ERR_INVALID, "unflatten_dims differs from the planned dim sizes");
    ot__ref_fill(y->data, &zero, y->count, ot_dtype_size(y->dtype));
    return copy_rows(y, r->in[0], r->in[1], OT__PART_TO_WHOLE);
}

// dX = the rows of dY that X's rows went to.
static void pad_rows_grad(ot_grad *g)
{
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 1)};

    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(
            g, 0,
            ot_emit_output(g, ot_emit(g, "com.microsoft.FlattenAndUnpad", NULL, in, 2, 2), 0));
}

static const ot_port pad_rows_in[] = {{"input", "T", 0},
                                      {"indices", "I", OT_PORT_NO_GRAD},
                                      {"unflatten_dims", "I", OT_PORT_NO_GRAD},
                                      {0}};
static const ot_kernel pad_rows_kernels[] = {OT__REF_KERNEL(NULL, NULL, pad_rows_run), {0}};
const ot_op_def ot__op_pad_and_unflatten[] = {
    {.domain = OT__MS,
     .name = "PadAndUnflatten",
     .since = 1,
     .inputs = pad_rows_in,
     .outputs = ot__output_out,
     .types = "T: f32 f64 i32 i64; I: i64 i32",
     .infer = pad_rows_infer,
     .kernels = pad_rows_kernels,
     .grad = pad_rows_grad},
    {0},
};
