// SPDX-License-Identifier: Apache-2.0
// CenterCropPad: the middle of a tensor, or a tensor in the middle of zeros, axis by axis. Where
// the rest is odd, the side at the end has the greater part of it.
#include "ops/move/move.h"

enum { INPUT, SHAPE }; // inputs

// The axes that the shape is for.
static ot__given infer_cropped_axes(ot_infer *c, int ndim, ot__axes *axes)
{
    const ot__given given = ot__infer_axes(c, "axes", -1, ndim, axes);

    if (given == OT__ABSENT) {
        axes->n = ndim;
        for (int k = 0; k < ndim; k++)
            axes->axis[k] = k;
    }
    return given;
}

static void center_crop_pad_infer(ot_infer *c)
{
    const ot_shape *list = ot_infer_shape(c, SHAPE);
    ot_shape y = *ot_infer_shape(c, INPUT);
    int n;
    const int64_t *known = ot_infer_values(c, SHAPE, &n);
    ot__axes axes;

    if (infer_cropped_axes(c, y.ndim, &axes) == OT__FAILED)
        return;
    if (list->ndim != 1 || (ot_dim_is_number(list->dim[0]) && list->dim[0] != axes.n)) {
        ot_infer_fail(c, "shape must be a list of %d numbers, one for each axis", axes.n);
        return;
    }
    if (known != NULL && !ot__infer_list_fits(c, SHAPE, n, known))
        return;
    for (int i = 0; i < axes.n; i++) {
        const int64_t size = known != NULL ? known[i] : ot_dim_unknown();

        if (ot_dim_is_number(size) && size < 0) {
            ot_infer_fail(c, "shape is %" PRId64 " for axis %d, expected 0 or more", size,
                          axes.axis[i]);
            return;
        }
        y.dim[axes.axis[i]] = size;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, INPUT), &y);
}

typedef struct crop_state {
    ot__strided copy; // of what both have
    bool pads;
    int n, axis[OT_MAX_NDIM]; // of the shape's numbers
} crop_state;

static ot_status center_crop_pad_prep(ot_prep *p)
{
    const ot_shape *x = &ot_prep_in(p, INPUT)->shape, *y = &ot_prep_out(p, 0)->shape;
    crop_state *state = ot_prep_state(p, sizeof(*state));
    int64_t x_stride[OT_MAX_NDIM], y_stride[OT_MAX_NDIM];
    ot__axes axes;

    OT_TRY(ot__made(state));
    if (ot__prep_axes(p, "axes", -1, x->ndim, &axes) == OT__FAILED)
        return p->status;
    state->n = ot_attr_given(ot_prep_node(p), "axes") ? axes.n : x->ndim;
    ot__shape_strides(x, x_stride);
    ot__shape_strides(y, y_stride);
    for (int k = 0; k < x->ndim; k++) {
        const int64_t cut = x->dim[k] - y->dim[k];

        state->axis[k] = ot_attr_given(ot_prep_node(p), "axes") ? axes.axis[k] : k;
        state->pads = state->pads || cut < 0;
        ot__strided_add_axis(&state->copy, OT_MIN(x->dim[k], y->dim[k]), x_stride[k], y_stride[k]);
        state->copy.x_offset += OT_MAX(cut, 0) / 2 * x_stride[k];
        state->copy.y_offset += OT_MAX(-cut, 0) / 2 * y_stride[k];
    }
    ot__strided_simplify(&state->copy);
    return ot__prep_element_size(p, ot_prep_in(p, INPUT), &state->copy.size);
}

static ot_status center_crop_pad_run(const ot_run *r, ot__strided_function copy)
{
    const crop_state *state = r->state;
    const ot_arg *shape = r->in[SHAPE], *y = r->out[0];
    const uint64_t zero[2] = {0};

    if (shape->count != state->n)
        return ot__error(OT_ERR_INVALID, "shape has %" PRId64 " numbers for %d axes", shape->count,
                         state->n);
    for (int i = 0; i < state->n; i++)
        OT_TRY(ot__check_planned(ot__arg_int(shape, i), "elements along an axis are wanted",
                                 y->shape.dim[state->axis[i]]));
    if (state->pads)
        ot__ref_fill(y->data, zero, y->count, state->copy.size);
    copy(y->data, r->in[INPUT]->data, &state->copy);
    return OT_OK;
}

static ot_status center_crop_pad_run_simd(const ot_run *r)
{
    return center_crop_pad_run(r, ot__simd_strided_copy);
}

static ot_status center_crop_pad_run_ref(const ot_run *r)
{
    return center_crop_pad_run(r, ot__ref_strided_copy);
}

// dX = dY, whose middle it is or in the middle of which it is, in X's shape: what was cropped gets
// zeros, and halves are rounded alike both ways.
static void center_crop_pad_grad(ot_grad *g)
{
    ot_value *shape = ot_emit_shape(g, ot_grad_x(g, INPUT));

    ot_grad_set_dx(g, INPUT, ot_emit2(g, "CenterCropPad", ot_grad_dy(g, 0), shape));
}

static const ot_port center_crop_pad_in[] = {
    {"input_data", "T", 0}, {"shape", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port center_crop_pad_out[] = {{"output_data", "T", 0}, {0}};
static const ot_attr_spec center_crop_pad_attrs[] = {{.name = "axes", .kind = OT_ATTRIBUTE_INTS},
                                                     {0}};
static const ot_kernel center_crop_pad_kernels[] = {
    OT__STRIDED_KERNELS(center_crop_pad_prep, center_crop_pad_run), {0}};
const ot_op_def ot__op_center_crop_pad[] = {
    {.name = "CenterCropPad",
     .since = 18,
     .inputs = center_crop_pad_in,
     .outputs = center_crop_pad_out,
     .attrs = center_crop_pad_attrs,
     .types = "T: any; I: i32 i64",
     .infer = center_crop_pad_infer,
     .kernels = center_crop_pad_kernels,
     .grad = center_crop_pad_grad},
    {0},
};
