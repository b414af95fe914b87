// SPDX-License-Identifier: Apache-2.0
// Y = (X - mean) / sqrt(var + epsilon) * scale + B by the statistics of each image's channels.
#include "ops/norm/batch_norm.h"
#include "ops/pool/pool.h"

enum { X, SCALE, BIAS };

static void norm_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X);

    if (x->ndim < 3) {
        ot_infer_fail(c, "X has %d axes, expected at least 3", x->ndim);
        return;
    }
    for (int i = SCALE; i <= BIAS; i++) {
        const ot_shape *v = ot_infer_shape(c, i);

        if (v->ndim != 1 || (ot_dim_is_number(v->dim[0]) && ot_dim_is_number(x->dim[1]) &&
                             v->dim[0] != x->dim[1])) {
            ot_infer_fail(c, "input %d must have one element a channel", i);
            return;
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, X), x);
}

typedef struct instance_norm {
    int64_t n, channels, inner;
    double epsilon;
} instance_norm;

static ot_status norm_prepare(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, X);
    instance_norm *norm = ot_prep_state(p, sizeof(*norm));

    if (!norm)
        return OT_ERR_NO_MEMORY;
    ot__channel_extents(&x->shape, &norm->n, &norm->channels, &norm->inner);
    norm->epsilon = (double)ot_attr_float(ot_prep_node(p), "epsilon");
    ot_prep_scratch(p, 2 * (size_t)norm->channels * ot_dtype_size(x->dtype)); // mean, variance
    return OT_OK;
}

// An image is a batch of one.
static ot_status norm_run(const ot_run *r)
{
    const instance_norm *p = r->state;
    const void *scale = r->in[SCALE]->data, *bias = r->in[BIAS]->data;

    for (int64_t i = 0; i < p->n; i++) {
        const int64_t at = i * p->channels * p->inner;

        if (r->in[X]->dtype == OT_F32) {
            const float *x = (const float *)r->in[X]->data + at;
            float *mean = r->scratch, *var = mean + p->channels;
            ot__ref_channel_moments_f32(mean, var, x, 1, p->channels, p->inner);
            ot__ref_batch_norm_f32((float *)r->out[0]->data + at, x, scale, bias, mean, var,
                                   p->epsilon, 1, p->channels, p->inner);
        } else {
            const double *x = (const double *)r->in[X]->data + at;
            double *mean = r->scratch, *var = mean + p->channels;
            ot__ref_channel_moments_f64(mean, var, x, 1, p->channels, p->inner);
            ot__ref_batch_norm_f64((double *)r->out[0]->data + at, x, scale, bias, mean, var,
                                   p->epsilon, 1, p->channels, p->inner);
        }
    }
    return OT_OK;
}

static ot_value *emit_plane_sum(ot_grad *g, ot_value *v, ot_value *axes)
{
    ot_value *const in[] = {v, axes};

    return ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 1", in, 2, 1), 0);
}

// xh = (X - mean) / sqrt(var + epsilon): dB = sum dY, dscale = sum dY * xh, and with b = dY * scale
// dX = (b - mean(b) - xh * mean(b * xh)) / sqrt(var + epsilon).
static void norm_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, X), *dy = ot_grad_dy(g, 0);
    const double epsilon = (double)ot_attr_float(ot_grad_node(g), "epsilon");
    ot_value *axes, *sum, *count, *centred, *squares, *shift, *inv, *xh;

    if (!dy)
        return;
    axes = ot__emit_spatial_axes(g, x);
    sum = emit_plane_sum(g, x, axes);
    count = ot__emit_plane_elements(g, x, sum);
    centred = ot_emit2(g, "Sub", x, ot_emit2(g, "Div", sum, count));
    squares = emit_plane_sum(g, ot_emit2(g, "Mul", centred, centred), axes);
    shift = ot_emit_constant(g, epsilon, x);
    inv = ot_emit1(
        g, "Reciprocal",
        ot_emit1(g, "Sqrt", ot_emit2(g, "Add", ot_emit2(g, "Div", squares, count), shift)));
    xh = ot_emit2(g, "Mul", centred, inv);
    if (ot_grad_wants(g, X)) {
        ot_value *b = ot_emit2(g, "Mul", dy, ot__emit_channels(g, ot_grad_x(g, SCALE), x));
        ot_value *mean = ot_emit2(g, "Div", emit_plane_sum(g, b, axes), count);
        ot_value *product = emit_plane_sum(g, ot_emit2(g, "Mul", b, xh), axes);
        ot_value *along = ot_emit2(g, "Mul", xh, ot_emit2(g, "Div", product, count));
        ot_grad_set_dx(
            g, X, ot_emit2(g, "Mul", inv, ot_emit2(g, "Sub", ot_emit2(g, "Sub", b, mean), along)));
    }
    if (ot_grad_wants(g, SCALE))
        ot_grad_set_dx(g, SCALE, ot__emit_channel_sum(g, ot_emit2(g, "Mul", dy, xh), false));
    if (ot_grad_wants(g, BIAS))
        ot_grad_set_dx(g, BIAS, ot__emit_channel_sum(g, dy, false));
}

static const ot_port norm_in[] = {{"input", "T", 0},
                                  {"scale", "T", OT_PORT_SCALE | OT_PORT_F32},
                                  {"B", "T", OT_PORT_BIAS | OT_PORT_F32},
                                  {0}};
static const ot_port norm_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec norm_attrs[] = {
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f}, {0}};
static const ot_kernel norm_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = norm_prepare,
     .run = norm_run},
    {0},
};
const ot_op_def ot__op_instance_normalization[] = {
    {.name = "InstanceNormalization",
     .since = 6,
     .inputs = norm_in,
     .outputs = norm_out,
     .attrs = norm_attrs,
     .types = "T: f32 f64",
     .infer = norm_infer,
     .kernels = norm_kernels,
     .grad = norm_grad},
    {0},
};
