// SPDX-License-Identifier: Apache-2.0
// The optimizer model: what its inputs and outputs stand for, and its plan over sequences of
// parameters, gradients and slots that stay where they are in the checkpoint.
#include <string.h>

#include "session/ranks.h"

// In the model: as many as there are parameters.
#define DIM_PARAMETERS "n_params"
#define ATTR_NAMES "names"

// ---- inputs and outputs ----

// Numbers of one type, or sequences, whose type is that of the parameters.
static const struct {
    const char *name;
    ot_dtype dtype; // OT_DTYPE_UNDEFINED: a sequence
} role_rows[OT_ROLE_END] = {
    [OT_ROLE_LEARNING_RATE] = {"learning_rate", OT_F32},
    [OT_ROLE_STEP] = {"step", OT_I64},
    [OT_ROLE_DIVISOR] = {OT_INPUT_DIVISOR, OT_F32},
    [OT_ROLE_PARAMETERS] = {"params", OT_DTYPE_UNDEFINED},
    [OT_ROLE_GRADIENTS] = {OT_INPUT_GRADIENTS, OT_DTYPE_UNDEFINED},
    [OT_ROLE_SLOT + OT_SLOT_MOMENT1] = {"first_order_moments", OT_DTYPE_UNDEFINED},
    [OT_ROLE_SLOT + OT_SLOT_MOMENT2] = {"second_order_moments", OT_DTYPE_UNDEFINED},
    [OT_ROLE_SLOT + OT_SLOT_AVERAGE] = {"averages", OT_DTYPE_UNDEFINED},
};

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
    if (role_rows[role].dtype == OT_DTYPE_UNDEFINED)
        return value->kind == OT_VALUE_SEQUENCE;
    return value->kind == OT_VALUE_TENSOR && value->dtype == role_rows[role].dtype;
}

// OT_ROLE_END: none of the optimizer's.
static ot__input_role role_of(const ot_value *value)
{
    for (int role = OT_ROLE_LEARNING_RATE; role < OT_ROLE_END; role++)
        if (strcmp(value->name, role_rows[role].name) == 0)
            return (ot__input_role)role;
    return OT_ROLE_END;
}

static ot_status check_optimizer_inputs(const ot_graph *g)
{
    bool has[OT_ROLE_END + 1] = {false};

    for (int i = 0; i < g->n_inputs; i++) {
        const ot__input_role role = role_of(g->inputs[i]);

        if (role == OT_ROLE_END || !has_input_type(g->inputs[i], role))
            return wrong_inputs(g);
        has[role] = true;
    }
    if (!has[OT_ROLE_LEARNING_RATE] || !has[OT_ROLE_PARAMETERS] || !has[OT_ROLE_GRADIENTS] ||
        (has[OT_ROLE_SLOT + OT_SLOT_MOMENT2] && !has[OT_ROLE_SLOT + OT_SLOT_MOMENT1]))
        return wrong_inputs(g);
    return OT_OK;
}

static ot_status check_and_take_divisor(ot_model *model)
{
    OT_TRY(check_optimizer_inputs(model->graph));
    return ot__optimizer_take_divisor(model);
}

static void sort_optimizer_inputs(ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;
    bool has[OT_ROLE_END] = {false};

    for (int i = 0; i < g->n_inputs; i++) {
        o->program.inputs[i].role = role_of(g->inputs[i]);
        has[o->program.inputs[i].role] = true;
    }
    for (int k = 0; k < OT_SLOTS; k++)
        o->has_slot[k] = has[OT_ROLE_SLOT + k];
    o->takes_divisor = has[OT_ROLE_DIVISOR];
}

// -1: the model has none.
static int find_optimizer_output(const ot_graph *g, const char *name)
{
    for (int i = 0; i < g->n_outputs; i++)
        if (strcmp(g->outputs[i]->name, name) == 0)
            return i;
    return -1;
}

static bool takes_input(const ot_node *node, ot__input_role role)
{
    for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k] != NULL && node->inputs[k]->is_input &&
            strcmp(node->inputs[k]->name, role_rows[role].name) == 0)
            return true;
    return false;
}

// With none nothing would be trained; with two it would matter which of them is first.
static ot_status find_rule(ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;

    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->op->rule == NULL || !takes_input(g->nodes[i], OT_ROLE_PARAMETERS))
            continue;
        if (o->rule != NULL)
            return ot__error(OT_ERR_INVALID,
                             "optimizer model: %s and another %s before it update the "
                             "parameters, expected one",
                             OT_LABEL(g->nodes[i]), o->rule->op_type);
        o->rule = g->nodes[i];
    }
    if (o->rule != NULL)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "optimizer model: none of its %d nodes updates the parameters",
                     g->n_nodes);
}

// Clipping does.
static bool changes_gradients(const ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;

    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_inputs; k++) {
            const ot_value *x = g->nodes[i]->inputs[k];

            if (x != NULL && x->is_input && role_of(x) == OT_ROLE_GRADIENTS &&
                (ot__op_input_port(g->nodes[i]->op, k)->flags & OT_PORT_STATE) != 0)
                return true;
        }
    return false;
}

static const char *find_moments_user(const ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;

    for (int i = 0; i < g->n_nodes; i++)
        if (takes_input(g->nodes[i], OT_ROLE_SLOT + OT_SLOT_MOMENT1))
            return g->nodes[i]->op_type;
    return NULL;
}

// ---- numbers ----

static int64_t declared_numbers(const ot_value *value)
{
    return value->has_shape && value->shape.ndim == 1 ? value->shape.dim[0] : 1;
}

static bool is_one_each(const ot__optimizer *o, const ot_value *value, ot__input_role role)
{
    const char *symbol = ot__dim_name(o->program.model, declared_numbers(value));

    return role == OT_ROLE_STEP && symbol != NULL && strcmp(symbol, DIM_PARAMETERS) == 0;
}

// As many as the model declares; without a declaration, or with one that says nothing, one.
static int64_t count_numbers(const ot__optimizer *o, const ot_value *value, ot__input_role role)
{
    const int64_t declared = declared_numbers(value);

    if (is_one_each(o, value, role))
        return o->n_parameters;
    return role == OT_ROLE_LEARNING_RATE && declared > 1 && declared <= INT32_MAX ? declared : 1;
}

// A learning rate and a step are one number each where the model does not count them.
static ot_status make_numbers(ot__optimizer *o)
{
    const ot_graph *g = o->program.model->graph;
    const ot_shape one = OT_SHAPE(1);
    int64_t n_rates = 1, n_steps = 1;

    for (int i = 0; i < g->n_inputs; i++) {
        ot_value *value = g->inputs[i];
        ot__input *input = &o->program.inputs[i];

        if (value->kind != OT_VALUE_TENSOR)
            continue;
        o->counts_each = o->counts_each || is_one_each(o, value, input->role);
        input->n_numbers = count_numbers(o, value, input->role);
        n_rates = input->role == OT_ROLE_LEARNING_RATE ? input->n_numbers : n_rates;
        n_steps = input->role == OT_ROLE_STEP ? input->n_numbers : n_steps;
        if (input->n_numbers == 1 && !(value->has_shape && ot__shape_equal(&value->shape, &one)))
            ot__value_set(value, value->dtype, &one);
    }
    o->n_groups = (int)n_rates;
    o->n_steps = (int)n_steps;
    o->rates = ot__alloc_zero((size_t)n_rates, sizeof *o->rates);
    o->steps = ot__alloc_zero((size_t)n_steps, sizeof *o->steps);
    return ot__made(o->rates != NULL && o->steps != NULL);
}

// ---- the parameters ----

static ot_status list_trainable(ot_session *session)
{
    ot__optimizer *o = &session->optimizer;

    o->parameters = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof *o->parameters);
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

// A rule whose parameters differ in their numbers names them in the order of its sequences.
static ot_status check_rule_names(const ot__optimizer *o)
{
    const ot_attr *names = ot__node_attr(o->rule, ATTR_NAMES);

    if (names == NULL)
        return OT_OK;
    if (names->n != o->n_parameters)
        return ot__error(OT_ERR_INVALID, "optimizer model: %s names %d parameters, %d train",
                         OT_LABEL(o->rule), names->n, o->n_parameters);
    for (int k = 0; k < o->n_parameters; k++) {
        const char *name = o->parameters[k]->name;

        if (names->strings[k].size != strlen(name) ||
            memcmp(names->strings[k].data, name, strlen(name)) != 0)
            return ot__error(OT_ERR_INVALID,
                             "optimizer model: parameter %d of %s is '%.*s', expected '%s', in the "
                             "order of the training model",
                             k, OT_LABEL(o->rule), (int)names->strings[k].size,
                             (const char *)names->strings[k].data, name);
    }
    return OT_OK;
}

// ---- the plan ----

typedef struct grant {
    const ot_session *session;
    size_t n_bytes; // of slots that are still to come
} grant;

static ot_status plan_of_optimizer(void *owner, const ot__compiled_model *program, ot_graph *graph,
                                   const ot__input_shapes *shapes, size_t *excess, ot__plan **plan)
{
    const grant *g = owner;
    ot__plan_options options;

    (void)program;
    OT_TRY(ot__plan_budget(g->session, g->n_bytes, &options));
    options.excess = excess;
    return ot__plan_create(graph, &options, shapes->lengths, shapes->sequences, plan);
}

static ot_status make_plan(ot_session *session, size_t n_bytes)
{
    ot__optimizer *o = &session->optimizer;
    grant g = {session, n_bytes};
    ot_shape *shapes = ot__arena_alloc(o->program.arena, (size_t)o->n_parameters * sizeof *shapes);

    OT_TRY(ot__made(shapes != NULL));
    for (int k = 0; k < o->n_parameters; k++)
        OT_TRY(ot__ckpt_state_shape(session->checkpoint, o->parameters[k], &shapes[k]));
    o->program.entry_shapes = shapes;
    o->program.n_entries = o->n_parameters;
    return ot__compiled_model_plan(
        &o->program,
        &(ot__plan_owner){.owner = &g, .plan = plan_of_optimizer, .question = plan_of_optimizer},
        &o->plan);
}

// The slots that are missing, beside those that there are, and the plan.
static ot_status prepare(ot_session *session, ot__fresh_slots *fresh)
{
    OT_TRY(ot__session_check_values(session));
    OT_TRY(ot__slots_make(session, fresh));
    return make_plan(session, fresh->n_bytes);
}

ot_status ot__optimizer_ready(ot_session *session)
{
    ot__fresh_slots fresh = {0};
    ot_status st;

    if (session->optimizer.plan != NULL)
        return OT_OK;
    st = prepare(session, &fresh);
    OT_THEN(st, ot__slots_take(session, &fresh));
    ot__slots_deinit(&fresh);
    return st;
}

// With zero the first update makes them, which comes after the cut where steps are cut.
ot_status ot__session_make_slots(ot_session *session)
{
    return ot__session_has_optimizer(session) && ot__session_is_cut(session)
               ? ot__optimizer_ready(session)
               : OT_OK;
}

// ---- questions ----

// Whatever the model is fed.
static bool counts_together(const ot__optimizer *o)
{
    return !o->counts_each || o->rule->op->rule->has_one_counter;
}

ot__optimizer_info ot__session_optimizer(const ot_session *session)
{
    const ot__optimizer *o = &session->optimizer;
    ot__optimizer_info info = {0};
    bool counts;

    if (o->rule == NULL)
        return info;
    counts = o->rule->op->rule->needs_step;
    info.name = o->rule->op_type;
    info.keeps_moments = o->moments_of != NULL && ot__optimizer_keeps(o->moments_of);
    info.counts = info.keeps_moments && counts && counts_together(o);
    info.counts_each = info.keeps_moments && counts && !counts_together(o);
    return info;
}

// ---- life ----

static ot_status create(ot_session *session, ot_model *model)
{
    ot__optimizer *o = &session->optimizer;

    OT_TRY(
        ot__compiled_model_create(&o->program, "optimizer model", model, check_and_take_divisor));
    sort_optimizer_inputs(o);
    OT_TRY(find_rule(o));
    o->keeps_gradients = o->takes_divisor && !changes_gradients(o);
    o->moments_of = find_moments_user(o);
    for (int k = 0; k < OT_SLOTS; k++)
        o->uses_slot[k] =
            o->has_slot[k] &&
            (k == OT_SLOT_AVERAGE || takes_input(o->rule, (ot__input_role)(OT_ROLE_SLOT + k)));
    o->i_norm = find_optimizer_output(o->program.model->graph, "gradient_norm");
    o->i_finite = find_optimizer_output(o->program.model->graph, "gradients_finite");
    OT_TRY(list_trainable(session));
    OT_TRY(check_rule_names(o));
    OT_TRY(check_dtypes(o));
    OT_TRY(make_numbers(o));
    return ot__inside_settle(session);
}

// Else the first update does.
static bool is_ready_at_once(const ot_session *session)
{
    return session->optimizer.program.model != NULL && !session->checkpoint->is_nominal &&
           !ot__ranks_cut_later(session);
}

ot_status ot__optimizer_create(ot_session *session, ot_model *model)
{
    OT_TRY(create(session, model));
    return is_ready_at_once(session) ? ot__optimizer_ready(session) : OT_OK;
}

void ot__optimizer_deinit(ot__optimizer *optimizer)
{
    ot__compiled_model_deinit(&optimizer->program);
    ot__free(optimizer->parameters);
    ot__free(optimizer->rates);
    ot__free(optimizer->steps);
}

static ot_status compile(ot_session *session, const ot_model *optimizer)
{
    ot_model *model;

    if (optimizer == NULL)
        return OT_OK;
    OT_TRY(ot__model_acquire(optimizer, &model));
    return create(session, model);
}

// The layouts of parameters depend on the optimizer: they are chosen anew with the next plan.
static ot_status leave_plans(ot_session *session)
{
    OT_TRY(ot__ranks_forget_layouts(session));
    ot__packing_leave(session);
    ot__compiled_model_drop_plans(&session->training);
    ot__compiled_model_drop_plans(&session->eval);
    return OT_OK;
}

static ot_status replace_moments(ot_session *session, const ot__optimizer *old)
{
    ot__fresh_slots fresh = {0};
    ot_status st = OT_OK;

    if (old->moments_of != NULL && old->plan != NULL) // the next rule must know
        st = ot_checkpoint_set_string(session->checkpoint, OT_PROPERTY_OPTIMIZER, old->moments_of);
    if (is_ready_at_once(session))
        OT_THEN(st, prepare(session, &fresh));
    st = ot__ranks_agree(ot__session_comm(session), st, "set_optimizer", NULL, 0);
    if (st == OT_OK && session->optimizer.plan != NULL)
        st = ot__slots_take(session, &fresh);
    ot__slots_deinit(&fresh);
    return st;
}

static ot_status set_optimizer(ot_session *session, const ot_model *optimizer)
{
    ot__optimizer old = session->optimizer;
    ot_status st;

    session->optimizer = (ot__optimizer){.is_switch = old.program.model != NULL};
    st = ot__ranks_agree_on_optimizer(session, compile(session, optimizer));
    OT_THEN(st, leave_plans(session));
    OT_THEN(st, replace_moments(session, &old));
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
    OT_TRY(ot__session_enter_step(session));
    return ot__session_leave(session, set_optimizer(session, optimizer));
}
