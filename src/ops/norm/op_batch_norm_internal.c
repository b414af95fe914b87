// SPDX-License-Identifier: Apache-2.0
// BatchNormalization as ONNX Runtime trains it: running statistics are updated in place, and the
// batch's are kept for the gradient.
#include "ops/norm/batch_norm.h"

static bool is_training(const ot_node *node)
{
    return ot_attr_int(node, "training_mode") != 0;
}

static ot_status internal_prepare(ot_prep *p)
{
    ot__batch_norm *norm = ot__batch_norm_prepare(p);

    if (!norm)
        return OT_ERR_NO_MEMORY;
    norm->is_training = is_training(ot_prep_node(p));
    norm->updates_inputs = norm->saves_inv_std = true;
    return OT_OK;
}

static ot_status internal_prepare_simd(ot_prep *p)
{
    OT_TRY(internal_prepare(p));
    return ot__batch_norm_prepare_simd(p, p->state);
}

static void internal_grad(ot_grad *g)
{
    if (is_training(ot_grad_node(g))) {
        ot_value *spread = ot_grad_y(g, OT__BN_SAVED_SPREAD);

        ot__batch_norm_batch_grad(g, ot_grad_y(g, OT__BN_SAVED_MEAN), spread);
    } else {
        ot__batch_norm_stored_grad(g);
    }
}

enum { STATE = OT_PORT_STATE | OT_PORT_NO_GRAD, KEPT = OT_PORT_OPTIONAL | OT_PORT_NO_GRAD };
static const ot_port internal_in[] = {{"X", "T", 0},
                                      {"scale", "T", OT_PORT_SCALE | OT_PORT_F32},
                                      {"B", "T", OT_PORT_BIAS | OT_PORT_F32},
                                      {"input_mean", "T", STATE | OT_PORT_STATISTIC | OT_PORT_F32},
                                      {"input_var", "T", STATE | OT_PORT_STATISTIC | OT_PORT_F32},
                                      {0}};
static const ot_port internal_out[] = {
    {"Y", "T", 0},
    {"running_mean", "T", OT_PORT_OPTIONAL | STATE | OT_PORT_F32},
    {"running_var", "T", OT_PORT_OPTIONAL | STATE | OT_PORT_F32},
    {"saved_mean", "T", KEPT | OT_PORT_F32},
    {"saved_inv_std", "T", KEPT | OT_PORT_F32},
    {0}};
static const ot_attr_spec internal_attrs[] = {
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f},
    {.name = "momentum", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {.name = "training_mode", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1},
    {0},
};
static const ot_kernel internal_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__batch_norm_can_simd,
     .forms = ot__batch_norm_forms,
     .prepare = internal_prepare_simd,
     .run = ot__batch_norm_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = internal_prepare,
     .run = ot__batch_norm_run},
    {0},
};
const ot_op_def ot__op_batch_norm_internal[] = {
    {.domain = "com.microsoft",
     .name = "BatchNormInternal",
     .since = 1,
     .inputs = internal_in,
     .outputs = internal_out,
     .attrs = internal_attrs,
     .types = "T: f32 f64",
     .infer = ot__batch_norm_infer,
     .kernels = internal_kernels,
     .grad = internal_grad},
    {0},
};
