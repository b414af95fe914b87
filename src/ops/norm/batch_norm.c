// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/batch_norm.h"
#include "ops/move/move.h"

#include <string.h>

// ---- inference and kernels ----

void ot__batch_norm_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, OT__BN_X);
    int64_t channels;
    const ot_dtype dtype = ot_infer_dtype(c, OT__BN_X);

    if (x->ndim < 2) {
        ot_infer_fail(c, "X has %d axes, expected at least 2", x->ndim);
        return;
    }
    channels = x->dim[1];
    for (int i = OT__BN_SCALE; i <= OT__BN_VAR; i++) {
        const ot_shape *v = ot_infer_shape(c, i);

        if (v->ndim != 1 ||
            (ot_dim_is_number(channels) && ot_dim_is_number(v->dim[0]) && v->dim[0] != channels)) {
            ot_infer_fail(c, "input %d must have one element a channel", i);
            return;
        }
        if (!ot_dim_is_number(channels))
            channels = v->dim[0];
    }
    ot_infer_set(c, OT__BN_Y, dtype, x);
    for (int i = OT__BN_RUNNING_MEAN; i <= OT__BN_SAVED_SPREAD; i++)
        ot_infer_set(c, i, dtype, &OT_SHAPE(channels));
}

void ot__channel_extents(const ot_shape *x, int64_t *n, int64_t *channels, int64_t *inner)
{
    *n = x->dim[0];
    *channels = x->dim[1];
    *inner = 1;
    for (int i = 2; i < x->ndim; i++)
        *inner *= x->dim[i];
}

ot__batch_norm *ot__batch_norm_prepare(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, OT__BN_X);
    ot__batch_norm *norm = ot_prep_state(p, sizeof(*norm));

    if (!norm)
        return NULL;
    ot__channel_extents(&x->shape, &norm->n, &norm->channels, &norm->inner);
    norm->epsilon = (double)ot_attr_float(ot_prep_node(p), "epsilon");
    norm->momentum = (double)ot_attr_float(ot_prep_node(p), "momentum");
    ot_prep_scratch(p, 2 * (size_t)norm->channels * ot_dtype_size(x->dtype)); // mean, variance
    return norm;
}

static void *output_of(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

// The memory of input i, or a copy of it in output `to` when that has other memory.
static void copy_out(const ot_run *r, int to, int i)
{
    void *out = output_of(r, to);

    if (out && out != r->in[i]->data && r->in[i]->count > 0)
        memcpy(out, r->in[i]->data, (size_t)r->in[i]->count * ot_dtype_size(r->in[i]->dtype));
}

static void blend(const ot__batch_norm *p, ot_dtype dtype, void *running, const void *batch)
{
    if (p->n * p->inner == 0) // an empty batch has no statistics
        return;
    if (dtype == OT_F32)
        ot__ref_running_f32(running, batch, p->momentum, p->channels);
    else
        ot__ref_running_f64(running, batch, p->momentum, p->channels);
}

// Running statistics: updated in the inputs and shown in the outputs, or only in the outputs.
static void update(const ot_run *r, const ot__batch_norm *p, int input, int output,
                   const void *batch)
{
    const ot_dtype dtype = r->in[OT__BN_X]->dtype;

    if (p->updates_inputs)
        blend(p, dtype, r->in[input]->data, batch);
    copy_out(r, output, input);
    if (!p->updates_inputs && output_of(r, output))
        blend(p, dtype, output_of(r, output), batch);
}

static void save(const ot_run *r, const ot__batch_norm *p, const void *mean, const void *var)
{
    const ot_dtype dtype = r->in[OT__BN_X]->dtype;
    const size_t n_bytes = (size_t)p->channels * ot_dtype_size(dtype);
    void *saved_mean = output_of(r, OT__BN_SAVED_MEAN), *spread = output_of(r, OT__BN_SAVED_SPREAD);

    if (saved_mean && n_bytes > 0)
        memcpy(saved_mean, mean, n_bytes);
    if (spread && n_bytes > 0 && !p->saves_inv_std)
        memcpy(spread, var, n_bytes);
    else if (spread && dtype == OT_F32)
        ot__ref_inv_std_f32(spread, var, p->epsilon, p->channels);
    else if (spread)
        ot__ref_inv_std_f64(spread, var, p->epsilon, p->channels);
}

void ot__batch_norm_finish(const ot_run *r, const void *mean, const void *var)
{
    const ot__batch_norm *p = r->state;

    save(r, p, mean, var);
    if (p->is_training) {
        update(r, p, OT__BN_MEAN, OT__BN_RUNNING_MEAN, mean);
        update(r, p, OT__BN_VAR, OT__BN_RUNNING_VAR, var);
    } else {
        copy_out(r, OT__BN_RUNNING_MEAN, OT__BN_MEAN);
        copy_out(r, OT__BN_RUNNING_VAR, OT__BN_VAR);
    }
}

ot_status ot__batch_norm_run(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const ot_dtype dtype = r->in[OT__BN_X]->dtype;
    const void *x = r->in[OT__BN_X]->data, *scale = r->in[OT__BN_SCALE]->data,
               *bias = r->in[OT__BN_BIAS]->data;
    void *batch_mean = r->scratch,
         *batch_var = (char *)r->scratch + (size_t)p->channels * ot_dtype_size(dtype);
    const void *mean = p->is_training ? batch_mean : r->in[OT__BN_MEAN]->data,
               *var = p->is_training ? batch_var : r->in[OT__BN_VAR]->data;

    if (p->is_training && dtype == OT_F32)
        ot__ref_channel_moments_f32(batch_mean, batch_var, x, p->n, p->channels, p->inner);
    else if (p->is_training)
        ot__ref_channel_moments_f64(batch_mean, batch_var, x, p->n, p->channels, p->inner);
    if (dtype == OT_F32)
        ot__ref_batch_norm_f32(r->out[OT__BN_Y]->data, x, scale, bias, mean, var, p->epsilon, p->n,
                               p->channels, p->inner);
    else
        ot__ref_batch_norm_f64(r->out[OT__BN_Y]->data, x, scale, bias, mean, var, p->epsilon, p->n,
                               p->channels, p->inner);
    ot__batch_norm_finish(r, mean, var);
    return OT_OK;
}

// ---- gradients ----

ot_value *ot__emit_channels(ot_grad *g, ot_value *v, const ot_value *x)
{
    int64_t axes[OT_MAX_NDIM];
    const int n = ot_value_shape(x)->ndim - 2;

    if (!ot__grad_knows_axes(g, x))
        return NULL;
    for (int i = 0; i < n; i++)
        axes[i] = i + 1;
    return n == 0 ? v : ot_emit2(g, "Unsqueeze", v, ot_emit_constant_i64(g, axes, n));
}

ot_value *ot__emit_channel_sum(ot_grad *g, ot_value *v, bool keep_axes)
{
    int64_t axes[OT_MAX_NDIM];
    int n = 0;
    ot_value *in[2] = {v, NULL};

    if (!v || !ot__grad_knows_axes(g, v))
        return NULL;
    for (int i = 0; i < ot_value_shape(v)->ndim; i++)
        if (i != 1)
            axes[n++] = i;
    in[1] = ot_emit_constant_i64(g, axes, n);
    return ot_emit_output(
        g, ot_emit(g, "ReduceSum", keep_axes ? "keepdims = 1" : "keepdims = 0", in, 2, 1), 0);
}

// Y = (X - mean) * inv * scale + B with inv = 1 / sqrt(var + epsilon), which does not depend on X:
// dX = dY * scale * inv, dscale = inv * sum(dY * (X - mean)), dB = sum(dY).
void ot__batch_norm_stored_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, OT__BN_X), *dy = ot_grad_dy(g, OT__BN_Y);
    ot_value *scale = ot_grad_x(g, OT__BN_SCALE), *var = ot_grad_x(g, OT__BN_VAR), *inv = NULL;
    const double epsilon = (double)ot_attr_float(ot_grad_node(g), "epsilon");

    if (!dy)
        return;
    if (ot_grad_wants(g, OT__BN_X) || ot_grad_wants(g, OT__BN_SCALE))
        inv = ot_emit1(
            g, "Reciprocal",
            ot_emit1(g, "Sqrt", ot_emit2(g, "Add", var, ot_emit_constant(g, epsilon, var))));
    if (ot_grad_wants(g, OT__BN_X))
        ot_grad_set_dx(
            g, OT__BN_X,
            ot_emit2(g, "Mul", dy, ot__emit_channels(g, ot_emit2(g, "Mul", scale, inv), x)));
    if (ot_grad_wants(g, OT__BN_SCALE)) {
        ot_value *mean = ot__emit_channels(g, ot_grad_x(g, OT__BN_MEAN), x);
        ot_value *product = ot_emit2(g, "Mul", dy, ot_emit2(g, "Sub", x, mean));
        ot_grad_set_dx(g, OT__BN_SCALE,
                       ot_emit2(g, "Mul", ot__emit_channel_sum(g, product, false), inv));
    }
    if (ot_grad_wants(g, OT__BN_BIAS))
        ot_grad_set_dx(g, OT__BN_BIAS, ot__emit_channel_sum(g, dy, false));
}

void ot__batch_norm_batch_grad(ot_grad *g, ot_value *mean, ot_value *inv_std)
{
    ot_value *const in[] = {ot_grad_dy(g, OT__BN_Y), ot_grad_x(g, OT__BN_X),
                            ot_grad_x(g, OT__BN_SCALE), mean, inv_std};
    ot_node *node;

    if (!in[0] || !mean || !inv_std)
        return;
    node = ot_emit(g, "com.microsoft.BatchNormalizationGrad", NULL, in, 5, 3);
    ot_emit_float(g, node, "epsilon", ot_attr_float(ot_grad_node(g), "epsilon"));
    for (int i = OT__BN_X; i <= OT__BN_BIAS; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
}
