// SPDX-License-Identifier: Apache-2.0
// Y = (X - mean) / sqrt(var + epsilon) * scale + B by the statistics of each image's channels.
#include "ops/norm/batch_norm.h"
#include "ops/pool/pool.h"

enum { X, SCALE, BIAS };

static void instance_norm_infer(ot_infer *c)
{
    int64_t channels;

    if (ot__infer_channels(c, X, 3, SCALE, BIAS, &channels))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), ot_infer_shape(c, X));
}

static ot_status instance_norm_prepare(ot_prep *p)
{
    enum { VECTORS = 2 }; // mean, variance
    const ot_arg *x = ot_prep_in(p, X);

    ot_prep_scratch(p, VECTORS * (size_t)x->shape.dim[1] * ot_dtype_size(x->dtype));
    return ot__batch_norm_state(p, X);
}

#define TEMPLATE "ops/norm/instance_norm.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_value *emit_plane_sum(ot_grad *g, ot_value *v, ot_value *axes)
{
    ot_value *const in[] = {v, axes};

    return ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 1", in, 2, 1), 0);
}

// xh = (X - mean) / sqrt(var + epsilon): dB = sum dY, dscale = sum dY * xh, and with b = dY * scale
// dX = (b - mean(b) - xh * mean(b * xh)) / sqrt(var + epsilon).
static void instance_norm_grad(ot_grad *g)
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

static const ot_port instance_norm_in[] = {{"input", "T", 0},
                                           {"scale", "T", OT_PORT_SCALE | OT_PORT_F32},
                                           {"B", "T", OT_PORT_BIAS | OT_PORT_F32},
                                           {0}};
static const ot_kernel instance_norm_kernels[] = {
    OT__REF_KERNELS(instance_norm_prepare, instance_norm_run), {0}};
const ot_op_def ot__op_instance_normalization[] = {
    {.name = "InstanceNormalization",
     .since = 6,
     .inputs = instance_norm_in,
     .outputs = ot__output_out,
     .attrs = ot__epsilon_attrs,
     .types = "T: f32 f64",
     .infer = instance_norm_infer,
     .kernels = instance_norm_kernels,
     .grad = instance_norm_grad},
    {0},
};
