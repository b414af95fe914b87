// SPDX-License-Identifier: Apache-2.0
// The optimizer model: sequences of parameters, gradients and moments into one node.
#include <string.h>

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

static double hyper_of(const ot_op_def *op, const ot_optimizer_options *o, const ot_attr_spec *spec)
{
    double value = ot__hyper_fallback(op, spec);

    for (int i = 0; i < o->n_hyper; i++)
        if (strcmp(o->hyper[i].name, spec->name) == 0)
            value = o->hyper[i].value;
    return value;
}

// All hyper-parameters, in the order of the record.
static void set_hyper(ot_block *block, ot_node *node, const ot_optimizer_options *o)
{
    const ot_attr_spec *spec;

    for (int i = 0; node && (spec = ot__hyper_at(node->op, i)) != NULL; i++) {
        const double value = hyper_of(node->op, o, spec);

        if (spec->kind == OT_ATTRIBUTE_INT)
            ot__build_int(&block->build, node, spec->name, (int64_t)value);
        else
            ot__build_float(&block->build, node, spec->name, value);
    }
}

static ot_value *adamw_model(ot_block *block, const ot_optimizer_options *o,
                             const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr,        ends->step,    ends->params,
                          ends->gradients, ends->moment1, ends->moment2};
    ot_node *node = ot__block_maker(block, OT__MS, "AdamWOptimizer", "adamw.updated_flag", inputs,
                                    (int)OT_COUNT(inputs));

    set_hyper(block, node, o);
    return ot__block_settle(block, node);
}

// The shape stays undeclared: ONNX Runtime's own schema says scalar, its files [1].
static ot_value *sgd_model(ot_block *block, const ot_op_def *op, const ot_optimizer_options *o,
                           const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr, ends->params, ends->gradients, ends->moment1};
    ot_node *node = ot__block_maker(block, op->domain, op->name, "update_completed", inputs,
                                    (int)OT_COUNT(inputs) - (op->rule->n_slots == 0));
    ot_value *flag;

    set_hyper(block, node, o);
    flag = ot__block_settle(block, node);
    if (flag)
        flag->has_shape = false;
    return flag;
}

static ot_value *add_optimizer(ot_block *block, const ot_optimizer_options *o, ot_dtype dtype)
{
    const ot_op_def *op = ot__optimizer_find(o->name);
    const bool has_two = op->rule->n_slots == 2;
    optimizer_ends ends;

    ends.lr = optimizer_input(block, "learning_rate", OT_F32);
    ends.step = optimizer_input(block, "step", OT_I64);
    ends.params = add_sequence(block, "params", dtype);
    ends.gradients = add_sequence(block, "gradients", dtype);
    ends.moment1 = add_sequence(block, "first_order_moments", dtype);
    ends.moment2 = has_two ? add_sequence(block, "second_order_moments", dtype) : NULL;
    if (o->max_norm > 0.0)
        ends.gradients = clip(block, o->max_norm, ends.gradients);
    return has_two ? adamw_model(block, o, &ends) : sgd_model(block, op, o, &ends);
}

// ---- model ----

static ot_status check_hyper(const ot_op_def *op, const ot_hyper *hyper, int n)
{
    for (int i = 0; i < n; i++) {
        const ot_attr_spec *spec;
        ot_status st;

        OT_TRY(ot__hyper_lookup(op, hyper[i].name, &spec));
        st = ot__attr_check_bounds(spec, hyper[i].value);
        if (st != OT_OK)
            return ot__error_prefix(st, "%s", op->name);
    }
    return OT_OK;
}

static ot_status check_optimizer_options(const ot_optimizer_options *o)
{
    const double most = 1e30;
    const ot_op_def *op;

    if (o->name == NULL)
        return OT_OK;
    OT_TRY(ot__optimizer_lookup(o->name, &op));
    OT_TRY(check_hyper(op, o->hyper, o->n_hyper));
    if (!(o->max_norm >= 0 && o->max_norm < most))
        return ot__error(OT_ERR_INVALID, "max_norm is %g, expected at least 0 and below %g",
                         o->max_norm, most);
    if (!(o->lr >= 0 && o->lr < most))
        return ot__error(OT_ERR_INVALID, "lr is %g, expected at least 0 and below %g", o->lr, most);
    if (o->n_groups > 0 || o->average_decay != 0)
        return ot__error(OT_ERR_UNSUPPORTED, "groups of parameters and averages of them");
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
    if (options->name == NULL)
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
    if (own.name == NULL ||
        ot__optimizer_find(own.name) != ot__op_find(OT__MS, "AdamWOptimizer", 1)) {
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "its options are those of %s",
                                                own.name ? own.name : "no optimizer"));
        return NULL;
    }
    return adamw_model(block, &own, &ends);
}

ot_value *ot_block_sgd(ot_block *block, ot_value *lr, ot_value *params, ot_value *gradients)
{
    const optimizer_ends ends = {.lr = lr, .params = params, .gradients = gradients};

    if (!ot__block_enter(block, "sgd") || !ot__block_takes(block, lr) ||
        !ot__block_takes(block, params) || !ot__block_takes(block, gradients))
        return NULL;
    return sgd_model(block, ot__op_find(OT__MS, "SGDOptimizerV2", 1),
                     &(const ot_optimizer_options)OT_OPTIMIZER_OPTIONS_INIT, &ends);
}

ot_value *ot_block_optimizer(ot_block *block, const ot_optimizer_options *options, ot_dtype dtype)
{
    ot_optimizer_options own;
    ot_value *flag;

    if (!ot__block_enter(block, "optimizer") || !takes_options(block, options, &own))
        return NULL;
    if (own.name == NULL) {
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "none is asked for"));
        return NULL;
    }
    flag = add_optimizer(block, &own, dtype);
    if (block->build.status == OT_OK)
        ot__build_note(&block->build, ot__note_loadable(block->build.graph->model));
    return block->build.status == OT_OK ? flag : NULL;
}
