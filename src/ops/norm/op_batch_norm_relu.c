// SPDX-License-Identifier: Apache-2.0
// BatchNormInternal, an optional sum with Z, and Relu: what lies between them is never stored.
#include "ops/norm/batch_norm.h"

static ot_status prepare_ref(ot_prep *p)
{
    ot__batch_norm *norm = ot__batch_norm_prepare(p);

    if (!norm)
        return OT_ERR_NO_MEMORY;
    norm->is_training = norm->updates_inputs = norm->saves_inv_std = norm->relu = true;
    return OT_OK;
}

static ot_status prepare_simd(ot_prep *p)
{
    OT_TRY(prepare_ref(p));
    return ot__batch_norm_prepare_simd(p, p->state);
}

static ot_status run_ref(const ot_run *r)
{
    const ot_arg *y = r->out[OT__BN_Y], *z = r->n_in > OT__BN_Z ? r->in[OT__BN_Z] : NULL;

    OT_TRY(ot__batch_norm_run(r));
    if (z == NULL && r->n_out > OT__BN_SAVED_SPREAD && r->out[OT__BN_SAVED_MEAN] != NULL &&
        r->out[OT__BN_SAVED_SPREAD] != NULL && y->count > 0) {
        ot__batch_norm_relu_saved(y, r->in, r->out[OT__BN_SAVED_MEAN], r->out[OT__BN_SAVED_SPREAD]);
        return OT_OK;
    }
    for (int64_t i = 0; i < y->count; i++)
        if (y->dtype == OT_F32) {
            float *at = (float *)y->data + i;
            const float v = z ? *at + ((const float *)z->data)[i] : *at;

            *at = v < 0 ? 0 : v;
        } else {
            double *at = (double *)y->data + i;
            const double v = z ? *at + ((const double *)z->data)[i] : *at;

            *at = v < 0 ? 0 : v;
        }
    return OT_OK;
}

static void infer(ot_infer *c)
{
    if (ot_infer_has(c, OT__BN_Z) &&
        !ot__shape_equal(ot_infer_shape(c, OT__BN_Z), ot_infer_shape(c, OT__BN_X)))
        ot_infer_fail(c, "X and Z have different shapes");
    else
        ot__batch_norm_infer(c);
}

// Y = Relu((X - mean) * inv_std * scale + B), with what it saved of X.
static ot_value *recompute(ot_grad *g)
{
    ot_value *in[] = {ot_grad_x(g, OT__BN_X), ot_grad_x(g, OT__BN_SCALE), ot_grad_x(g, OT__BN_BIAS),
                      NULL, NULL};

    if (ot_grad_x(g, OT__BN_Z) != NULL || !ot_expand_wants(g, OT__BN_SAVED_MEAN) ||
        !ot_expand_wants(g, OT__BN_SAVED_SPREAD))
        return NULL;
    in[3] = ot_grad_y(g, OT__BN_SAVED_MEAN);
    in[4] = ot_grad_y(g, OT__BN_SAVED_SPREAD);
    return ot_emit_output(
        g, ot_emit(g, "ai.onnxtrain.BatchNormReluAgain", NULL, in, (int)OT_COUNT(in), 1), 0);
}

enum { STATE = OT_PORT_STATE | OT_PORT_NO_GRAD, KEPT = OT_PORT_OPTIONAL | OT_PORT_NO_GRAD };
static const ot_port batch_norm_relu_in[] = {{"X", "T", 0},
                                             {"scale", "T", OT_PORT_F32},
                                             {"B", "T", OT_PORT_F32},
                                             {"input_mean", "T", STATE | OT_PORT_F32},
                                             {"input_var", "T", STATE | OT_PORT_F32},
                                             {"Z", "T", OT_PORT_OPTIONAL},
                                             {0}};
static const ot_port batch_norm_relu_out[] = {
    {"Y", "T", 0},
    {"running_mean", "T", OT_PORT_OPTIONAL | STATE | OT_PORT_F32},
    {"running_var", "T", OT_PORT_OPTIONAL | STATE | OT_PORT_F32},
    {"saved_mean", "T", KEPT | OT_PORT_F32},
    {"saved_inv_std", "T", KEPT | OT_PORT_F32},
    {0}};
static const ot_attr_spec batch_norm_relu_attrs[] = {
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f},
    {.name = "momentum", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {0},
};
static const ot_kernel batch_norm_relu_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__batch_norm_can_simd,
     .forms = ot__batch_norm_forms,
     .prepare = prepare_simd,
     .run = ot__batch_norm_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = prepare_ref,
     .run = run_ref},
    {0},
};
const ot_op_def ot__op_batch_norm_relu[] = {
    {.domain = "ai.onnxtrain",
     .name = "BatchNormRelu",
     .since = 1,
     .inputs = batch_norm_relu_in,
     .outputs = batch_norm_relu_out,
     .attrs = batch_norm_relu_attrs,
     .types = "T: f32 f64",
     .infer = infer,
     .kernels = batch_norm_relu_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL,
     .recompute = recompute},
    {0},
};
