// SPDX-License-Identifier: Apache-2.0
// Scales and zero points: for a whole tensor, along an axis, or for blocks along it.
#include "ops/quantize/quantize.h"

static int64_t block_size(const ot_node *node)
{
    return ot_attr_int(node, "block_size");
}

// One scale for all: a scalar, or what old exporters write for one.
bool ot__quantize_is_single(const ot_shape *scale)
{
    return scale->ndim == 0 || (scale->ndim == 1 && scale->dim[0] == 1);
}

static bool check_blocks(ot_infer *c, const ot_shape *x, const ot_shape *scale, int axis)
{
    const int64_t block = block_size(ot_infer_node(c));

    if (scale->ndim != x->ndim) {
        ot_infer_fail(c, "the scales of blocks have %d axes, expected %d", scale->ndim, x->ndim);
        return false;
    }
    for (int k = 0; k < x->ndim; k++) {
        int64_t expected = x->dim[k];

        if (!ot_dim_is_number(scale->dim[k]) || !ot_dim_is_number(expected))
            continue;
        if (k == axis)
            expected = expected / block + (expected % block != 0);
        if (scale->dim[k] != expected) {
            ot_infer_fail(c, "there are %" PRId64 " scales along axis %d, expected %" PRId64,
                          scale->dim[k], k, expected);
            return false;
        }
    }
    return true;
}

static bool check_axis(ot_infer *c, const ot_shape *x, const ot_shape *scale, int axis)
{
    if (scale->ndim != 1) {
        ot_infer_fail(c, "the scale has %d axes, expected 0 or 1", scale->ndim);
        return false;
    }
    if (ot_dim_is_number(scale->dim[0]) && ot_dim_is_number(x->dim[axis]) &&
        scale->dim[0] != x->dim[axis]) {
        ot_infer_fail(c, "there are %" PRId64 " scales for %" PRId64 " elements of axis %d",
                      scale->dim[0], x->dim[axis], axis);
        return false;
    }
    return true;
}

bool ot__quantize_check(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, OT__Q_X), *scale = ot_infer_shape(c, OT__Q_SCALE);
    const int64_t block = block_size(ot_infer_node(c));
    int axis;

    if (block < 0) {
        ot_infer_fail(c, "block_size is %" PRId64 ", expected 0 or more", block);
        return false;
    }
    if (ot_infer_has(c, OT__Q_ZERO_POINT)) {
        const ot_shape *zero = ot_infer_shape(c, OT__Q_ZERO_POINT);

        if ((!ot__quantize_is_single(zero) || !ot__quantize_is_single(scale)) &&
            !ot__infer_matches(c, OT__Q_SCALE, OT__Q_ZERO_POINT))
            return false;
    }
    if (ot__quantize_is_single(scale) && block == 0)
        return true;
    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), x->ndim, &axis))
        return false;
    return block > 0 ? check_blocks(c, x, scale, axis) : check_axis(c, x, scale, axis);
}

ot_status ot__quantize_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_arg *x = ot_prep_in(p, OT__Q_X), *scale = ot_prep_in(p, OT__Q_SCALE);
    ot__quantization *q = ot_prep_state(p, sizeof *q);
    int axis = 0;

    if (q == NULL)
        return OT_ERR_NO_MEMORY;
    *q = (ot__quantization){
        .outer = 1,
        .axis = x->count,
        .inner = 1,
        .per_tensor = ot__quantize_is_single(&scale->shape) && block_size(node) == 0,
        .saturates = !ot_attr_given(node, "saturate") || ot_attr_int(node, "saturate") != 0};
    if (q->per_tensor)
        return OT_OK;
    (void)ot__axis_normalize(ot_attr_int(node, "axis"), x->shape.ndim, &axis);
    for (int k = 0; k < axis; k++)
        q->outer *= x->shape.dim[k];
    for (int k = axis + 1; k < x->shape.ndim; k++)
        q->inner *= x->shape.dim[k];
    q->axis = x->shape.dim[axis];
    q->block = block_size(node);
    q->blocks = q->block > 0 ? scale->shape.dim[axis] : 0;
    return OT_OK;
}

ot__quantized_data ot__quantize_data(const ot_run *r)
{
    const ot_arg *zero = r->n_in > OT__Q_ZERO_POINT ? r->in[OT__Q_ZERO_POINT] : NULL;

    return (ot__quantized_data){.y = r->out[0]->data,
                                .y_dtype = r->out[0]->dtype,
                                .x = r->in[OT__Q_X]->data,
                                .x_dtype = r->in[OT__Q_X]->dtype,
                                .scale = r->in[OT__Q_SCALE]->data,
                                .scale_dtype = r->in[OT__Q_SCALE]->dtype,
                                .zero_point = zero != NULL ? zero->data : NULL,
                                .zero_point_dtype =
                                    zero != NULL ? zero->dtype : OT_DTYPE_UNDEFINED};
}
