// SPDX-License-Identifier: Apache-2.0
// The optimizer model: sequences of parameters, gradients and moments into one node.
#include "artifacts/optimizer.h"

// ---- inputs ----

static ot_value *optimizer_input(ot_block *block, const char *name, ot_dtype dtype, int64_t n)
{
    ot_value *value = ot__block_input(block, name);

    if (value)
        ot__value_set(value, dtype, &OT_SHAPE(n));
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
    ot_value *lr, *step, *divisor, *params, *gradients, *moment1, *moment2, *averages, *norm,
        *finite;
} optimizer_ends;

static ot_value *adamw_model(ot_block *block, const ot__optimizer_plan *plan,
                             const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr,        ends->step,    ends->params,
                          ends->gradients, ends->moment1, ends->moment2};
    ot_node *node = ot__block_maker(block, OT__MS, "AdamWOptimizer", "adamw.updated_flag", inputs,
                                    (int)OT_COUNT(inputs));

    ot__optimizer_set_attrs(block, node, plan);
    return ot__block_settle(block, node);
}

// The shape stays undeclared: ONNX Runtime's own schema says scalar, its files [1].
static ot_value *sgd_model(ot_block *block, const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr, ends->params, ends->gradients};
    ot_value *flag =
        ot__block_settle(block, ot__block_maker(block, OT__MS, "SGDOptimizerV2", "update_completed",
                                                inputs, (int)OT_COUNT(inputs)));

    if (flag)
        flag->has_shape = false;
    return flag;
}

static void norm_node(ot_block *block, const ot__optimizer_plan *plan, optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->gradients, ends->divisor};
    ot_value *outputs[2];
    ot_node *node;

    outputs[0] = ot__build_value(&block->build, "gradient_norm");
    outputs[1] = plan->wiring.skips ? ot__build_value(&block->build, "gradients_finite") : NULL;
    node = ot__block_node(block, "ai.onnxtrain", "GradientNorm", inputs, ends->divisor ? 2 : 1,
                          outputs, plan->wiring.skips ? 2 : 1);
    ends->norm = ot__block_settle(block, node);
    ends->finite = outputs[1];
}

// Any optimizer of ours; inputs that it lacks are left out.
static ot_value *own_model(ot_block *block, const ot__optimizer_plan *plan,
                           const optimizer_ends *ends)
{
    ot_value *moment1 = plan->n_slots > 0 ? ends->moment1 : NULL;
    const bool clips = ends->norm && (plan->options->max_norm > 0 || plan->clips_groups);
    ot_value *inputs[] = {ends->lr,    ends->step,    ends->params,  ends->gradients,
                          moment1,     ends->moment2, ends->divisor, clips ? ends->norm : NULL,
                          ends->finite};
    int n = (int)OT_COUNT(inputs);
    ot_node *node;

    while (n > 0 && !inputs[n - 1])
        n--;
    node = ot__block_maker(block, plan->op->domain, plan->op->name, "updated", inputs, n);
    ot__optimizer_set_attrs(block, node, plan);
    return ot__block_settle(block, node);
}

static void average_node(ot_block *block, double decay, ot_value *params, ot_value *averages,
                         ot_value *flag)
{
    ot_value *inputs[] = {params, averages, flag};
    ot_node *node = ot__block_maker(block, "ai.onnxtrain", "ParameterAverage", "averaged", inputs,
                                    (int)OT_COUNT(inputs));

    ot__build_float(&block->build, node, "decay", decay);
    ot__block_settle(block, node);
}

// ---- the whole ----

static optimizer_ends add_inputs(ot_block *block, const ot__optimizer_plan *plan, ot_dtype dtype)
{
    const ot__optimizer_wiring *w = &plan->wiring;
    const int64_t n_steps =
        w->counts_apart ? ot__dim_symbol(block->build.graph->model, "n_params") : 1;
    optimizer_ends ends = {0};

    ends.lr = optimizer_input(block, "learning_rate", OT_F32, plan->n_groups);
    ends.step = optimizer_input(block, "step", OT_I64, n_steps);
    if (w->divides)
        ends.divisor = optimizer_input(block, "gradient_divisor", OT_F32, 1);
    ends.params = add_sequence(block, "params", dtype);
    ends.gradients = add_sequence(block, "gradients", dtype);
    // Files keep moments, also for an optimizer that has none.
    ends.moment1 = add_sequence(block, "first_order_moments", dtype);
    if (plan->n_slots > 1)
        ends.moment2 = add_sequence(block, "second_order_moments", dtype);
    if (plan->options->average_decay > 0)
        ends.averages = add_sequence(block, "averages", dtype);
    return ends;
}

// The flag; *norm and *finite are NULL where there is none.
static ot_value *add_optimizer(ot_block *block, const ot__optimizer_plan *plan, ot_dtype dtype,
                               optimizer_ends *ends)
{
    const ot_optimizer_options *o = plan->options;
    ot_value *flag;

    *ends = add_inputs(block, plan, dtype);
    if (plan->has_norm)
        norm_node(block, plan, ends);
    else if (o->max_norm > 0.0)
        ends->gradients = clip(block, o->max_norm, ends->gradients);
    if (!plan->op->rule->general)
        flag = own_model(block, plan, ends);
    else
        flag = plan->n_slots == 0 ? sgd_model(block, ends) : adamw_model(block, plan, ends);
    if (ends->averages)
        average_node(block, o->average_decay, ends->params, ends->averages, flag);
    return flag;
}

static ot_status build_optimizer(ot_model *model, const ot__optimizer_plan *plan, ot_dtype dtype,
                                 int64_t opset)
{
    ot_block block = {.build = {.graph = model->graph}};
    optimizer_ends ends;
    ot_value *flag;

    OT_TRY(ot__block_describe(model, opset));
    flag = add_optimizer(&block, plan, dtype, &ends);
    ot__build_output(&block.build, flag);
    if (ends.norm)
        ot__build_output(&block.build, ends.norm);
    if (ends.finite)
        ot__build_output(&block.build, ends.finite);
    OT_TRY(block.build.status);
    return ot__note_loadable(model);
}

ot_status ot__optimizer_model(const ot_optimizer_options *options,
                              const ot__optimizer_wiring *wiring, ot_dtype dtype, int64_t opset,
                              ot_model **out)
{
    ot__optimizer_plan plan;
    ot_model *model;
    ot_status st;

    *out = NULL;
    if (options->name == NULL)
        return OT_OK;
    OT_TRY(ot__optimizer_plan_make(options, wiring, &plan));
    OT_TRY(ot__model_create(&model));
    st = build_optimizer(model, &plan, dtype, opset);
    return OT_HAND_OUT(st, out, model, ot_model_destroy);
}

// ---- public ----

// The options of a block's own, as a plan; NULL after an error.
static bool takes_options(ot_block *block, const ot_optimizer_options *given,
                          ot_optimizer_options *own, ot__optimizer_plan *plan)
{
    ot_status st = given ? OT_OK : ot__error(OT_ERR_INVALID, "its options are NULL");

    OT_THEN(st, OT_OPTIONS_READ(ot_optimizer_options, OT_OPTIMIZER_OPTIONS_INIT, given, own));
    if (st == OT_OK && !own->name)
        st = ot__error(OT_ERR_INVALID, "none is asked for");
    OT_THEN(st, ot__optimizer_plan_make(own, NULL, plan));
    return ot__build_note(&block->build, st);
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
    const optimizer_ends ends = {.lr = lr,
                                 .step = step,
                                 .params = params,
                                 .gradients = gradients,
                                 .moment1 = moments1,
                                 .moment2 = moments2};
    ot_optimizer_options own;
    ot__optimizer_plan plan;

    if (!ot__block_enter(block, "adamw") || !ot__block_takes(block, lr) ||
        !ot__block_takes(block, step) || !ot__block_takes(block, params) ||
        !ot__block_takes(block, gradients) || !ot__block_takes(block, moments1) ||
        !ot__block_takes(block, moments2) || !takes_options(block, options, &own, &plan))
        return NULL;
    if (plan.op != ot__op_find(OT__MS, "AdamWOptimizer", 1)) {
        ot__build_note(&block->build,
                       ot__error(OT_ERR_INVALID, "its options are those of %s", own.name));
        return NULL;
    }
    return adamw_model(block, &plan, &ends);
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
    ot__optimizer_plan plan;
    optimizer_ends ends;
    ot_value *flag;

    if (!ot__block_enter(block, "optimizer") || !takes_options(block, options, &own, &plan))
        return NULL;
    flag = add_optimizer(block, &plan, dtype, &ends);
    if (block->build.status == OT_OK)
        ot__build_note(&block->build, ot__note_loadable(block->build.graph->model));
    return block->build.status == OT_OK ? flag : NULL;
}
