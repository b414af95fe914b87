// SPDX-License-Identifier: Apache-2.0
// AdamW over sequences of parameters, gradients and moments, all in one pass. Update formulas:
// kernels/ref_optimizer.c.
#include "ops/optimizer/optimizer.h"

#include <math.h>

enum { LR, STEP, WEIGHTS, GRADIENTS, MOMENTS1, MOMENTS2, SIGNAL };
enum { BETA1, BETA2, EPSILON, DECAY, CORRECT, MODE }; // ot__pieces.numbers

static void adamw_infer(ot_infer *c)
{
    const int64_t mode = ot_attr_int(ot_infer_node(c), "adam_mode");
    const int64_t correct = ot_attr_int(ot_infer_node(c), "correct_bias");

    if (mode < 0 || mode > 1 || correct < 0 || correct > 1)
        ot_infer_fail(c, "adam_mode and correct_bias must be 0 or 1, got %" PRId64 " and %" PRId64,
                      mode, correct);
    else if (mode == 0 && correct == 0)
        ot_infer_fail(c, "adam_mode 0 needs correct_bias 1");
    else
        ot__optimizer_infer(c);
}

static ot_status adamw_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    ot__pieces *pieces = ot__pieces_make(p, WEIGHTS, 3);

    if (!pieces)
        return p->status;
    pieces->numbers[BETA1] = (double)ot_attr_float(node, "alpha");
    pieces->numbers[BETA2] = (double)ot_attr_float(node, "beta");
    pieces->numbers[EPSILON] = (double)ot_attr_float(node, "epsilon");
    pieces->numbers[DECAY] = (double)ot_attr_float(node, "weight_decay");
    pieces->numbers[CORRECT] = (double)ot_attr_int(node, "correct_bias");
    pieces->numbers[MODE] = (double)ot_attr_int(node, "adam_mode");
    return OT_OK;
}

// `update` serves f32; NULL: the reference.
static ot_status adamw_update(const ot_run *r,
                              void (*update)(float *, float *, float *, const float *, int64_t,
                                             const ot__adamw *))
{
    const ot__pieces *pieces = r->state;
    const double *number = pieces->numbers;
    const double step = ot__scalar_f64(r->in[r->in_first[STEP]]);
    const bool corrects = number[CORRECT] != 0;
    const ot__adamw p = {
        .lr = ot__scalar_f64(r->in[r->in_first[LR]]),
        .beta1 = number[BETA1],
        .beta2 = number[BETA2],
        .epsilon = number[EPSILON],
        .weight_decay = number[DECAY],
        .c1 = corrects ? 1 - pow(number[BETA1], step) : 1,
        .c2 = corrects ? 1 - pow(number[BETA2], step) : 1,
        .mode = (int)number[MODE],
    };
    const bool is_f32 = pieces->n_pieces > 0 && r->in[r->in_first[WEIGHTS]]->dtype == OT_F32;

    if (ot__update_is_off(r, SIGNAL)) {
        ot__optimizer_set_flag(r, false);
        return OT_OK;
    }
    if (corrects && step < 1)
        return ot__error(OT_ERR_INVALID, "step is %g, the first update is number 1", step);
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];
        void *w = ot__piece_data(r, WEIGHTS, piece), *m = ot__piece_data(r, MOMENTS1, piece);
        void *v = ot__piece_data(r, MOMENTS2, piece), *g = ot__piece_data(r, GRADIENTS, piece);

        if (update)
            update(w, m, v, g, piece->count, &p);
        else if (is_f32)
            ot__ref_adamw_f32(w, m, v, g, piece->count, &p);
        else
            ot__ref_adamw_f64(w, m, v, g, piece->count, &p);
    }
    ot__optimizer_set_flag(r, true);
    return OT_OK;
}

static ot_status adamw_run_ref(const ot_run *r)
{
    return adamw_update(r, NULL);
}

static ot_status adamw_run_simd(const ot_run *r)
{
    return adamw_update(r, ot__updates_best()->adamw);
}

static bool adamw_can_simd(const ot_prep *p)
{
    return ot__weights_are_f32(p, WEIGHTS);
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
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {.name = "beta", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.999f},
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-8f},
    {.name = "weight_decay", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.01f},
    {.name = "adam_mode", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {.name = "correct_bias", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1},
    {0},
};
static const ot_kernel adamw_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = adamw_can_simd,
     .prepare = adamw_prepare,
     .run = adamw_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = adamw_prepare,
     .run = adamw_run_ref},
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
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
