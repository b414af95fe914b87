// SPDX-License-Identifier: Apache-2.0
// SliceGrad: the gradient of a slice, put back where it was taken from.
#include "op/expand.h"
#include "ops/move/move.h"

static void slice_grad_infer(ot_infer *c)
{
    ot_shape x;

    if (ot__infer_shape_input(c, 1, &x))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &x);
    else
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
}

static ot_status slice_grad_run(const ot_run *r)
{
    const ot_arg *dy = r->in[0], *dx = r->out[0];
    const uint64_t zero = 0;
    ot__slice slices[OT_MAX_NDIM];
    int64_t x_strides[OT_MAX_NDIM], y_strides[OT_MAX_NDIM];
    ot__strided s = {.size = ot_dtype_size(dx->dtype)};

    OT_TRY(ot__run_slices(&dx->shape, r->in[2], r->in[3], r->n_in > 4 ? r->in[4] : NULL,
                          r->n_in > 5 ? r->in[5] : NULL, slices));
    ot__slices_strides(&dx->shape, slices, &s.y_offset, x_strides);
    ot__shape_strides(&dy->shape, y_strides);
    for (int k = 0; k < dx->shape.ndim; k++) {
        if (dy->shape.ndim != dx->shape.ndim || slices[k].count != dy->shape.dim[k])
            return ot__error(OT_ERR_INVALID,
                             "axis %d has %" PRId64 " elements, dY has another shape", k,
                             slices[k].count);
        ot__strided_add_axis(&s, slices[k].count, y_strides[k], x_strides[k]);
    }
    ot__strided_simplify(&s);
    ot__ref_fill(dx->data, &zero, dx->count, s.size);
    ot__ref_strided_copy(dx->data, dy->data, &s);
    return OT_OK;
}

static const ot_port slice_grad_in[] = {
    {"dY", "T", 0},
    {"shape", "i64", 0},
    {"starts", "I", 0},
    {"ends", "I", 0},
    {"axes", "I", OT_PORT_OPTIONAL},
    {"steps", "I", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port slice_grad_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel slice_grad_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = slice_grad_run},
    {0},
};
const ot_op_def ot__op_slice_grad[] = {
    {.domain = OT__MS,
     .name = "SliceGrad",
     .since = 1,
     .inputs = slice_grad_in,
     .outputs = slice_grad_out,
     .types = "T: f32 f64; I: i32 i64",
     .infer = slice_grad_infer,
     .kernels = slice_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__slice_grad_expand},
    {0},
};
