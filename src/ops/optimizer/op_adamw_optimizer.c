// SPDX-License-Identifier: Apache-2.0
// AdamW over sequences of parameters, gradients and moments, all in one pass. Update formulas:
// kernels/ref_optimizer.c.
#include "ops/optimizer/optimizer.h"

#include <math.h>

enum { LR, STEP, WEIGHTS, GRADIENTS, MOMENTS1, MOMENTS2, SIGNAL };
enum { BETA1, BETA2, EPSILON, DECAY, CORRECT, MODE }; // ot__pieces.numbers

static void adamw_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (ot_attr_int(node, "adam_mode") == 0 && ot_attr_int(node, "correct_bias") == 0)
        ot_infer_fail(c, "adam_mode 0 needs correct_bias 1");
    else
        ot__optimizer_infer(c);
}

static ot_status adamw_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    ot__pieces *pieces = ot__pieces_make(p, WEIGHTS, 3);

    OT_TRY(p->status);
    pieces->numbers[BETA1] = (double)ot_attr_float(node, "alpha");
    pieces->numbers[BETA2] = (double)ot_attr_float(node, "beta");
    pieces->numbers[EPSILON] = (double)ot_attr_float(node, "epsilon");
    pieces->numbers[DECAY] = (double)ot_attr_float(node, "weight_decay");
    pieces->numbers[CORRECT] = (double)ot_attr_int(node, "correct_bias");
    pieces->numbers[MODE] = (double)ot_attr_int(node, "adam_mode");
    return OT_OK;
}

#define TEMPLATE "ops/optimizer/adamw.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_status adamw_run_simd(const ot_run *r)
{
    return adamw_update_f32(r, ot__updates_best()->adamw);
}

static const ot_port adamw_in[] = {
    {"lr", "f32", OT_PORT_F32},
    {"step", "i64", 0},
    {"weights", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"gradients", "T", OT_PORT_SEQUENCE | OT_PORT_F32},
    {"momentums_1", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"momentums_2", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port adamw_out[] = {{"updated_flag", "bool", 0}, {0}};
static const ot_attr_spec adamw_attrs[] = {
    OT__FLOAT_IN("alpha", 0.9f, 0, 1),
    OT__FLOAT_IN("beta", 0.999f, 0, 1),
    OT__FLOAT_IN("epsilon", 1e-8f, 0, 1e30),
    OT__FLOAT_IN("weight_decay", 0.01f, 0, 1e30),
    OT__FLAG_ATTR("correct_bias", 1),
    OT__FLAG_ATTR("adam_mode", 0),
    {0},
};
// ONNX Runtime's artifacts have these numbers.
static const ot_hyper adamw_artifacts[] = {
    {"epsilon", 1e-6}, {"weight_decay", 0}, {"adam_mode", 1}, {0}};
static const ot_update_rule adamw_rule = {
    .state = "adam", .n_slots = 2, .artifacts = adamw_artifacts};
static const ot_kernel adamw_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, adamw_prepare, adamw_run_simd),
    OT__REF_KERNELS(adamw_prepare, adamw_run_ref),
    {0},
};
const ot_op_def ot__op_adamw_optimizer[] = {
    {.domain = "com.microsoft",
     .name = "AdamWOptimizer",
     .since = 1,
     .inputs = adamw_in,
     .outputs = adamw_out,
     .attrs = adamw_attrs,
     .types = "T: f32 f64",
     .infer = adamw_infer,
     .kernels = adamw_kernels,
     .rule = &adamw_rule,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
