// SPDX-License-Identifier: Apache-2.0
// The optimizer model: planned once over sequences of parameters, gradients and moments that stay
// where they are in the checkpoint.
#include <string.h>

#include "session/session_internal.h"

static const char *const role_names[OT_ROLE_END] = {
    [OT_ROLE_LEARNING_RATE] = "learning_rate", [OT_ROLE_STEP] = "step",
    [OT_ROLE_PARAMETERS] = "params",           [OT_ROLE_GRADIENTS] = "gradients",
    [OT_ROLE_MOMENT1] = "first_order_moments", [OT_ROLE_MOMENT2] = "second_order_moments",
};

// ---- the model's inputs ----

static ot_status wrong_inputs(const ot_graph *g)
{
    ot__buf names = {0};
    ot_status st;

    for (int i = 0; i < g->n_inputs; i++)
        ot__buf_printf(&names, "%s%s", i > 0 ? ", " : "", g->inputs[i]->name);
    st = ot__error(OT_ERR_INVALID,
                   "optimizer model: its inputs are [%s], expected [learning_rate, step, params, "
                   "gradients] and [first_order_moments [, second_order_moments]]",
                   names.data != NULL ? names.data : "");
    ot__buf_deinit(&names);
    return st;
}

static bool has_input_type(const ot_value *value, ot__input_role role)
{
    if (role == OT_ROLE_LEARNING_RATE)
        return value->kind == OT_VALUE_TENSOR && value->dtype == OT_F32;
    if (role == OT_ROLE_STEP)
        return value->kind == OT_VALUE_TENSOR && value->dtype == OT_I64;
    return value->kind == OT_VALUE_SEQUENCE;
}

// OT_ROLE_END: none of the optimizer's.
static ot__input_role role_of(const ot_value *value)
{
    for (int role = OT_ROLE_LEARNING_RATE; role < OT_ROLE_END; role++)
        if (strcmp(value->name, role_names[role]) == 0)
            return (ot__input_role)role;
    return OT_ROLE_END;
}

static ot_status sort_optimizer_inputs(ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;
    bool has[OT_ROLE_END + 1] = {false};

    for (int i = 0; i < g->n_inputs; i++) {
        const ot__input_role role = role_of(g->inputs[i]);

        if (role == OT_ROLE_END || !has_input_type(g->inputs[i], role))
            return wrong_inputs(g);
        has[role] = true;
        o->program.inputs[i].role = role;
    }
    if (!has[OT_ROLE_LEARNING_RATE] || !has[OT_ROLE_PARAMETERS] || !has[OT_ROLE_GRADIENTS] ||
        (has[OT_ROLE_MOMENT2] && !has[OT_ROLE_MOMENT1]))
        return wrong_inputs(g);
    o->n_moments = (int)has[OT_ROLE_MOMENT1] + (int)has[OT_ROLE_MOMENT2];
    return OT_OK;
}

// A learning rate and a step are one number each, whatever the model says of their shape.
static void set_shapes_of_numbers(const ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;
    const ot_shape one = OT_SHAPE(1);

    for (int i = 0; i < g->n_inputs; i++) {
        ot_value *value = g->inputs[i];

        if (value->kind == OT_VALUE_TENSOR &&
            !(value->has_shape && ot__shape_equal(&value->shape, &one)))
            ot__value_set(value, value->dtype, &one);
    }
}

// With none nothing would be trained; with two it would matter which of them is first.
static ot_status check_one_rule(const ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;
    const ot_node *rule = NULL;

    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_inputs; k++) {
            const ot_value *x = g->nodes[i]->inputs[k];

            if (x == NULL || !x->is_input || strcmp(x->name, role_names[OT_ROLE_PARAMETERS]) != 0 ||
                (ot__op_input_port(g->nodes[i]->op, k)->flags & OT_PORT_STATE) == 0)
                continue;
            if (rule != NULL)
                return ot__error(OT_ERR_INVALID,
                                 "optimizer model: %s and another %s before it update the "
                                 "parameters, expected one",
                                 OT_LABEL(g->nodes[i]), rule->op_type);
            rule = g->nodes[i];
        }
    if (rule != NULL)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "optimizer model: none of its %d nodes updates the parameters",
                     g->n_nodes);
}

static const char *find_moments_user(const ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;

    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_inputs; k++)
            for (int m = 0; m < g->n_inputs; m++)
                if (o->program.inputs[m].role == OT_ROLE_MOMENT1 &&
                    g->nodes[i]->inputs[k] == g->inputs[m])
                    return g->nodes[i]->op_type;
    return NULL;
}

// ---- the parameters ----

static ot_status list_trainable(ot_session *session)
{
    ot__optimizer *o = &session->optimizer;

    o->parameters = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(ot__parameter *));
    OT_TRY(ot__made(o->parameters != NULL));
    for (int i = 0; i < session->n_parameters; i++)
        if (session->parameters[i]->trainable)
            o->parameters[o->n_parameters++] = session->parameters[i];
    if (o->n_parameters == 0)
        return ot__error(OT_ERR_INVALID,
                         "the optimizer has nothing to train: no parameter is trainable");
    return OT_OK;
}

static ot_status check_dtypes(const ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;

    for (int i = 0; i < g->n_inputs; i++)
        for (int k = 0; k < o->n_parameters && g->inputs[i]->kind == OT_VALUE_SEQUENCE; k++)
            if (o->parameters[k]->value->dtype != g->inputs[i]->dtype)
                return ot__error(
                    OT_ERR_INVALID, "optimizer model: parameter '%s' is %s, but '%s' holds %s",
                    o->parameters[k]->name, ot_dtype_name(o->parameters[k]->value->dtype),
                    g->inputs[i]->name, ot_dtype_name(g->inputs[i]->dtype));
    return OT_OK;
}

// ---- the plan ----

static ot_tensor *optimizer_tensor(const ot__parameter *p, ot__input_role role)
{
    switch (role) {
    case OT_ROLE_PARAMETERS:
        return p->value;
    case OT_ROLE_GRADIENTS:
        return p->gradient;
    case OT_ROLE_MOMENT1:
        return p->moments[0];
    case OT_ROLE_MOMENT2:
        return p->moments[1];
    default:
        return NULL;
    }
}

typedef struct grant {
    const ot_session *session;
    size_t n_bytes; // of moments that are still to come
} grant;

static ot_status plan_of_optimizer(void *owner, const ot__compiled_model *program, ot_graph *graph,
                                   const ot__input_shapes *shapes, ot__plan **plan)
{
    const grant *g = owner;
    ot__plan_options options;

    (void)program;
    OT_TRY(ot__plan_budget(g->session, g->n_bytes, &options));
    return ot__plan_create(graph, &options, shapes->lengths, shapes->sequences, plan);
}

static ot_status make_plan(ot_session *session, size_t n_bytes)
{
    ot__optimizer *o = &session->optimizer;
    grant g = {session, n_bytes};
    ot_shape *shapes = ot__arena_alloc(o->program.arena, (size_t)o->n_parameters * sizeof *shapes);

    OT_TRY(ot__made(shapes != NULL));
    for (int k = 0; k < o->n_parameters; k++)
        shapes[k] = o->parameters[k]->value->shape;
    o->program.entry_shapes = shapes;
    o->program.n_entries = o->n_parameters;
    return ot__compiled_model_plan(&o->program, plan_of_optimizer, &g, &o->plan);
}

// Made when the parameters have values: at once, or for a nominal checkpoint with the first step.
// `is_switch`: moments of another rule make room.
static ot_status optimizer_ready(ot_session *session, bool is_switch)
{
    ot__optimizer *o = &session->optimizer;
    ot__fresh_moments fresh;
    ot_status st;

    if (o->plan != NULL)
        return OT_OK;
    OT_TRY(ot__session_check_values(session));
    st = ot__moments_make(session, is_switch, &fresh);
    OT_THEN(st, make_plan(session, fresh.n_bytes));
    OT_THEN(st, ot__moments_take(session, &fresh));
    ot__moments_deinit(&fresh);
    return st;
}

ot_status ot__optimizer_create(ot_session *session, ot_model *model, bool is_switch)
{
    ot__optimizer *o = &session->optimizer;

    OT_TRY(ot__compiled_model_create(&o->program, "optimizer model", model));
    OT_TRY(sort_optimizer_inputs(o));
    OT_TRY(check_one_rule(o));
    o->moments_of = find_moments_user(o);
    set_shapes_of_numbers(o);
    OT_TRY(list_trainable(session));
    OT_TRY(check_dtypes(o));
    return session->checkpoint->is_nominal ? OT_OK : optimizer_ready(session, is_switch);
}

void ot__optimizer_deinit(ot__optimizer *optimizer)
{
    ot__compiled_model_deinit(&optimizer->program);
    ot__free(optimizer->parameters);
}

static ot_status set_optimizer(ot_session *session, const ot_model *optimizer)
{
    ot__optimizer old = session->optimizer;
    ot_model *model = NULL;
    ot_status st = OT_OK;

    if (optimizer != NULL)
        OT_TRY(ot__model_acquire(optimizer, &model));
    // The layouts of parameters depend on the optimizer: they are chosen anew with the next plan.
    ot__packing_leave(session);
    ot__compiled_model_drop_plans(&session->training);
    ot__compiled_model_drop_plans(&session->eval);
    if (old.moments_of != NULL) // the next rule must know
        st = ot_checkpoint_set_string(session->checkpoint, OT_PROPERTY_OPTIMIZER, old.moments_of);
    if (st != OT_OK) {
        ot_model_destroy(model);
        return st;
    }
    session->optimizer = (ot__optimizer){0};
    if (model != NULL)
        st = ot__optimizer_create(session, model, old.program.model != NULL);
    if (st != OT_OK) {
        ot__optimizer_deinit(&session->optimizer);
        session->optimizer = old;
        return st;
    }
    ot__optimizer_deinit(&old);
    return OT_OK;
}

ot_status ot_session_set_optimizer(ot_session *session, const ot_model *optimizer)
{
    OT_TRY(OT_OPTIONAL(optimizer, "optimizer"));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, set_optimizer(session, optimizer));
}

static void bind_optimizer(ot__optimizer *o)
{
    for (int i = 0; i < o->program.model->graph->n_inputs; i++) {
        const ot__input_role role = o->program.inputs[i].role;

        if (role == OT_ROLE_LEARNING_RATE)
            ot__plan_bind_input(o->plan, i, 0, &o->learning_rate);
        else if (role == OT_ROLE_STEP)
            ot__plan_bind_input(o->plan, i, 0, &o->step);
        else
            for (int k = 0; k < o->n_parameters; k++)
                ot__plan_bind_input(o->plan, i, k, optimizer_tensor(o->parameters[k], role)->data);
    }
}

// The first output says whether the update was applied.
static bool was_applied(const ot__plan *plan)
{
    const ot_arg *flag = ot__plan_output(plan, 0);
    int64_t applied = 1;

    if (flag->count > 0)
        (void)ot__convert(&applied, OT_I64, flag->data, flag->dtype, 1);
    return applied != 0;
}

static ot_status optimizer_step(ot_session *session)
{
    ot__optimizer *o = &session->optimizer;
    const ot_step step = {.seed = session->seed, .counter = session->counter, .training = true};

    if (o->program.model == NULL)
        return ot__error(OT_ERR_STATE, "the session has no optimizer model");
    OT_TRY(optimizer_ready(session, false));
    OT_TRY(ot__session_lend_block(session, o->plan));
    o->learning_rate = (float)session->learning_rate;
    o->step = session->checkpoint->step + 1;
    ot__packing_enter(session); // sums over elements are the same whoever has looked at them
    bind_optimizer(o);
    OT_TRY(ot__plan_run(o->plan, &step));
    if (o->program.model->graph->n_outputs == 0 || was_applied(o->plan))
        session->checkpoint->step = o->step;
    return OT_OK;
}

ot_status ot_session_optimizer_step(ot_session *session)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, optimizer_step(session));
}
