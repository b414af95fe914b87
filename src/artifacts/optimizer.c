// SPDX-License-Identifier: Apache-2.0
// The optimizer model: sequences of parameters, gradients and moments into one node.
#include "artifacts/block.h"

// ---- inputs ----

static ot_value *optimizer_input(ot_block *block, const char *name, ot_dtype dtype)
{
    ot_value *value = ot__block_input(block, name);

    if (value)
        ot__value_set(value, dtype, &OT_SHAPE(1));
    return value;
}

static ot_value *add_sequence(ot_block *block, const char *name, ot_dtype dtype)
{
    ot_value *value = ot__block_input(block, name);

    if (value) {
        ot__value_set(value, dtype, NULL);
        value->kind = OT_VALUE_SEQUENCE;
    }
    return value;
}

// ---- nodes ----

static ot_value *clip(ot_block *block, double max_norm, ot_value *gradients)
{
    ot_node *node = ot__block_maker(block, "com.microsoft", "InplaceClipGradNorm",
                                    "clip_grad_norm_output", &gradients, 1);

    ot__build_float(&block->build, node, "max_norm", max_norm);
    return ot__block_settle(block, node);
}

typedef struct optimizer_ends {
    ot_value *lr, *step, *params, *gradients, *moment1, *moment2;
} optimizer_ends;

static ot_value *adamw_model(ot_block *block, const ot_optimizer_options *o,
                             const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr,        ends->step,    ends->params,
                          ends->gradients, ends->moment1, ends->moment2};
    ot_node *node = ot__block_maker(block, "com.microsoft", "AdamWOptimizer", "adamw.updated_flag",
                                    inputs, (int)OT_COUNT(inputs));

    ot__build_float(&block->build, node, "alpha", o->beta1);
    ot__build_float(&block->build, node, "beta", o->beta2);
    ot__build_float(&block->build, node, "epsilon", o->epsilon);
    ot__build_float(&block->build, node, "weight_decay", o->weight_decay);
    ot__build_int(&block->build, node, "correct_bias", o->correct_bias);
    ot__build_int(&block->build, node, "adam_mode", o->adam_mode);
    return ot__block_settle(block, node);
}

// The shape stays undeclared: ONNX Runtime's own schema says scalar, its files [1].
static ot_value *settle_without_shape(ot_block *block, ot_node *node)
{
    ot_value *flag = ot__block_settle(block, node);

    if (flag)
        flag->has_shape = false;
    return flag;
}

static ot_value *sgd_model(ot_block *block, const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr, ends->params, ends->gradients};

    return settle_without_shape(block,
                                ot__block_maker(block, "com.microsoft", "SGDOptimizerV2",
                                                "update_completed", inputs, (int)OT_COUNT(inputs)));
}

static ot_value *sgd_momentum(ot_block *block, const ot_optimizer_options *o,
                              const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr, ends->params, ends->gradients, ends->moment1};
    ot_node *node = ot__block_maker(block, "ai.onnxtrain", "SGDMomentumOptimizer",
                                    "update_completed", inputs, (int)OT_COUNT(inputs));

    ot__build_float(&block->build, node, "momentum", o->momentum);
    ot__build_float(&block->build, node, "weight_decay", o->weight_decay);
    ot__build_int(&block->build, node, "nesterov", o->nesterov);
    return settle_without_shape(block, node);
}

static ot_value *add_optimizer(ot_block *block, const ot_optimizer_options *o, ot_dtype dtype)
{
    const bool is_adamw = o->optimizer == OT_OPTIMIZER_ADAMW;
    optimizer_ends ends;

    ends.lr = optimizer_input(block, "learning_rate", OT_F32);
    ends.step = optimizer_input(block, "step", OT_I64);
    ends.params = add_sequence(block, "params", dtype);
    ends.gradients = add_sequence(block, "gradients", dtype);
    ends.moment1 = add_sequence(block, "first_order_moments", dtype);
    ends.moment2 = is_adamw ? add_sequence(block, "second_order_moments", dtype) : NULL;
    if (o->max_norm > 0.0)
        ends.gradients = clip(block, o->max_norm, ends.gradients);
    if (is_adamw)
        return adamw_model(block, o, &ends);
    return o->optimizer == OT_OPTIMIZER_SGD ? sgd_model(block, &ends)
                                            : sgd_momentum(block, o, &ends);
}

// ---- model ----

static ot_status check_optimizer_options(const ot_optimizer_options *o)
{
    const struct {
        const char *name;
        double value, low, high; // low <= value < high
    } ranges[] = {
        {"beta1", o->beta1, 0.0, 1.0},        {"beta2", o->beta2, 0.0, 1.0},
        {"epsilon", o->epsilon, 0.0, 1e30},   {"weight_decay", o->weight_decay, 0.0, 1e30},
        {"momentum", o->momentum, 0.0, 1e30}, {"max_norm", o->max_norm, 0.0, 1e30}};

    if ((unsigned)o->optimizer > OT_OPTIMIZER_SGD_MOMENTUM)
        return ot__error(OT_ERR_INVALID,
                         "unknown optimizer %d (known: none, adamw, sgd, sgd-momentum)",
                         (int)o->optimizer);
    for (size_t i = 0; i < OT_COUNT(ranges); i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value < ranges[i].high))
            return ot__error(OT_ERR_INVALID, "%s is %g, expected at least %g and below %g",
                             ranges[i].name, ranges[i].value, ranges[i].low, ranges[i].high);
    if (o->adam_mode != 0 && o->adam_mode != 1)
        return ot__error(OT_ERR_INVALID, "adam_mode is %d, expected 0 or 1", o->adam_mode);
    if (o->correct_bias != 0 && o->correct_bias != 1)
        return ot__error(OT_ERR_INVALID, "correct_bias is %d, expected 0 or 1", o->correct_bias);
    if (o->optimizer == OT_OPTIMIZER_ADAMW && o->adam_mode == 0 && o->correct_bias == 0)
        return ot__error(OT_ERR_INVALID, "adam_mode 0 is defined with bias correction only");
    return OT_OK;
}

static ot_status build_optimizer(ot_model *model, const ot_optimizer_options *options,
                                 ot_dtype dtype, int64_t opset)
{
    ot_block block = {.build = {.graph = model->graph}};
    ot_value *flag;

    OT_TRY(ot__block_describe(model, opset));
    flag = add_optimizer(&block, options, dtype);
    OT_TRY(block.build.status);
    OT_TRY(ot__made(ot__graph_add_output(model->graph, flag)));
    return ot__note_loadable(model);
}

ot_status ot__optimizer_model(const ot_optimizer_options *options, ot_dtype dtype, int64_t opset,
                              ot_model **out)
{
    ot_model *model;
    ot_status st;

    *out = NULL;
    OT_TRY(check_optimizer_options(options));
    if (options->optimizer == OT_OPTIMIZER_NONE)
        return OT_OK;
    OT_TRY(ot__model_create(&model));
    st = build_optimizer(model, options, dtype, opset);
    return OT_HAND_OUT(st, out, model, ot_model_destroy);
}

// ---- public ----

static ot_status optimizer_options(const ot_optimizer_options *given, ot_optimizer_options *own)
{
    if (!given)
        return ot__error(OT_ERR_INVALID, "its options are NULL");
    OT_TRY(OT_OPTIONS_READ(ot_optimizer_options, OT_OPTIMIZER_OPTIONS_INIT, given, own));
    return check_optimizer_options(own);
}

static bool takes_options(ot_block *block, const ot_optimizer_options *given,
                          ot_optimizer_options *own)
{
    if (block->build.status == OT_OK)
        ot__build_note(&block->build, optimizer_options(given, own));
    return block->build.status == OT_OK;
}

ot_value *ot_block_clip_grad_norm(ot_block *block, ot_value *gradients, double max_norm)
{
    if (!ot__block_enter(block, "clip grad norm") || !ot__block_takes(block, gradients))
        return NULL;
    return clip(block, max_norm, gradients);
}

ot_value *ot_block_adamw(ot_block *block, ot_value *lr, ot_value *step, ot_value *params,
                         ot_value *gradients, ot_value *moments1, ot_value *moments2,
                         const ot_optimizer_options *options)
{
    const optimizer_ends ends = {lr, step, params, gradients, moments1, moments2};
    ot_optimizer_options own;

    if (!ot__block_enter(block, "adamw") || !ot__block_takes(block, lr) ||
        !ot__block_takes(block, step) || !ot__block_takes(block, params) ||
        !ot__block_takes(block, gradients) || !ot__block_takes(block, moments1) ||
        !ot__block_takes(block, moments2) || !takes_options(block, options, &own))
        return NULL;
    return adamw_model(block, &own, &ends);
}

ot_value *ot_block_sgd(ot_block *block, ot_value *lr, ot_value *params, ot_value *gradients)
{
    const optimizer_ends ends = {.lr = lr, .params = params, .gradients = gradients};

    if (!ot__block_enter(block, "sgd") || !ot__block_takes(block, lr) ||
        !ot__block_takes(block, params) || !ot__block_takes(block, gradients))
        return NULL;
    return sgd_model(block, &ends);
}

ot_value *ot_block_optimizer(ot_block *block, const ot_optimizer_options *options, ot_dtype dtype)
{
    ot_optimizer_options own;
    ot_value *flag;

    if (!ot__block_enter(block, "optimizer") || !takes_options(block, options, &own))
        return NULL;
    if (own.optimizer == OT_OPTIMIZER_NONE) {
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "none is asked for"));
        return NULL;
    }
    flag = add_optimizer(block, &own, dtype);
    if (block->build.status == OT_OK)
        ot__build_note(&block->build, ot__note_loadable(block->build.graph->model));
    return block->build.status == OT_OK ? flag : NULL;
}
