// SPDX-License-Identifier: Apache-2.0
// Y = (X - mean) / sqrt(var + epsilon) * scale + B, by stored statistics or, in training mode, by
// the batch's, which are then blended into the running ones.
#include "ops/norm/batch_norm.h"

// Before opset 14 there was no attribute: more outputs than one meant training.
static bool is_training(const ot_node *node)
{
    if (node->op->since >= 14)
        return ot_attr_int(node, "training_mode") != 0;
    for (int i = 1; i < node->n_outputs; i++)
        if (node->outputs[i])
            return true;
    return false;
}

static ot_status batch_norm_prepare(ot_prep *p)
{
    ot__batch_norm *norm = ot__batch_norm_prepare(p);

    if (!norm)
        return OT_ERR_NO_MEMORY;
    norm->is_training = is_training(ot_prep_node(p));
    return OT_OK;
}

static ot_status batch_norm_prepare_simd(ot_prep *p)
{
    OT_TRY(batch_norm_prepare(p));
    return ot__batch_norm_prepare_simd(p, p->state);
}

static ot_value *emit_mean(ot_grad *g, ot_value *x, ot_value *count)
{
    return ot_emit2(g, "Div", ot__emit_channel_sum(g, x, true), count);
}

static ot_value *emit_flat(ot_grad *g, ot_value *v)
{
    return ot_emit2(g, "Reshape", v, ot_emit_constant_i64(g, &(int64_t){-1}, 1));
}

// The batch's statistics are not among the outputs, so the gradient computes them again.
static void batch_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, OT__BN_X), *scale = ot_grad_x(g, OT__BN_SCALE);
    const ot_dtype dtype = ot_value_dtype(x);
    const double epsilon = (double)ot_attr_float(ot_grad_node(g), "epsilon");
    ot_value *channels = ot_emit_cast(g, ot_emit1(g, "Size", scale), dtype);
    ot_value *count = ot_emit2(g, "Div", ot_emit_cast(g, ot_emit1(g, "Size", x), dtype), channels);
    ot_value *mean = emit_mean(g, x, count), *centred = ot_emit2(g, "Sub", x, mean);
    ot_value *var = emit_mean(g, ot_emit2(g, "Mul", centred, centred), count);
    ot_value *spread =
        ot_emit1(g, "Sqrt", ot_emit2(g, "Add", var, ot_emit_constant(g, epsilon, x)));
    ot_value *factor = emit_flat(g, ot_emit1(g, "Reciprocal", spread));

    ot__batch_norm_batch_grad(g, emit_flat(g, mean), factor);
}

static void batch_norm_grad(ot_grad *g)
{
    if (is_training(ot_grad_node(g)))
        batch_grad(g);
    else
        ot__batch_norm_stored_grad(g);
}

static void drop_spatial(ot_upgrade *u)
{
    if (ot_attr_int(ot_upgrade_node(u), "spatial") != 1)
        ot_upgrade_fail(u, "spatial is %" PRId64 ", expected 1",
                        ot_attr_int(ot_upgrade_node(u), "spatial"));
    ot_upgrade_remove_attr(u, "spatial");
}

static const ot_port batch_norm_in[] = {
    {"X", "T", 0},
    {"scale", "T", OT_PORT_SCALE | OT_PORT_F32},
    {"B", "T", OT_PORT_BIAS | OT_PORT_F32},
    {"input_mean", "T", OT_PORT_NO_GRAD | OT_PORT_STATISTIC | OT_PORT_F32},
    {"input_var", "T", OT_PORT_NO_GRAD | OT_PORT_STATISTIC | OT_PORT_F32},
    {0}};
static const ot_port batch_norm_out_7[] = {
    {"Y", "T", 0},
    {"mean", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {"var", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {"saved_mean", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {"saved_var", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {0}};
static const ot_port batch_norm_out[] = {
    {"Y", "T", 0},
    {"running_mean", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {"running_var", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {0}};
static const ot_attr_spec batch_norm_attrs_7[] = {
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f},
    {.name = "momentum", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {.name = "spatial", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1},
    {0},
};
static const ot_attr_spec batch_norm_attrs_9[] = {
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f},
    {.name = "momentum", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {0},
};
static const ot_attr_spec batch_norm_attrs[] = {
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f},
    {.name = "momentum", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {.name = "training_mode", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT},
    {0},
};
static const ot_kernel batch_norm_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__batch_norm_can_simd,
     .forms = ot__batch_norm_forms,
     .prepare = batch_norm_prepare_simd,
     .run = ot__batch_norm_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = batch_norm_prepare,
     .run = ot__batch_norm_run},
    {0},
};
const ot_op_def ot__op_batch_normalization[] = {
    {.name = "BatchNormalization",
     .since = 7,
     .inputs = batch_norm_in,
     .outputs = batch_norm_out_7,
     .attrs = batch_norm_attrs_7,
     .types = "T: f32 f64",
     .infer = ot__batch_norm_infer,
     .upgrade = drop_spatial},
    {.name = "BatchNormalization",
     .since = 9,
     .inputs = batch_norm_in,
     .outputs = batch_norm_out_7,
     .attrs = batch_norm_attrs_9,
     .types = "T: f32 f64",
     .infer = ot__batch_norm_infer,
     .kernels = batch_norm_kernels,
     .grad = batch_norm_grad},
    {.name = "BatchNormalization",
     .since = 14,
     .inputs = batch_norm_in,
     .outputs = batch_norm_out,
     .attrs = batch_norm_attrs,
     .types = "T: f32 f64",
     .infer = ot__batch_norm_infer,
     .kernels = batch_norm_kernels,
     .grad = batch_norm_grad},
    {0},
};
