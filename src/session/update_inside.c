// SPDX-License-Identifier: Apache-2.0
// The update inside the backward pass: a train step whose plan has the optimizer in the place of
// the accumulators, so that a gradient lives until it is used and no longer. Such a step runs in
// two halves: until what it gives out is there, which changes no parameter, and the rest with the
// update. Trainers ask for it; which steps can be so is said in docs/trainer.md.
#include <math.h>
#include <string.h>

#include "session/ranks.h"

// ---- which steps ----

// Every gradient of a parameter is made once, for its accumulator alone.
static ot_status count_sums(const ot_session *session, ot__map *buffers, int *counts)
{
    const ot__compiled_model *program = &session->training;
    const ot_graph *g = program->model->graph;

    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_GRADIENT)
            OT_TRY(ot__made(ot__map_put(buffers, g->inputs[i]->name,
                                        &counts[program->inputs[i].parameter->number])));
    for (int n = 0; n < g->n_nodes; n++)
        for (int i = 0; i < g->nodes[n]->n_inputs; i++) {
            const ot_value *x = g->nodes[n]->inputs[i];
            int *count = x != NULL && x->is_input ? ot__map_get(buffers, x->name) : NULL;

            if (count != NULL)
                *count += ot__is_only_sum(g->nodes[n], i) && !x->is_output ? 1 : 2;
        }
    return OT_OK;
}

static bool has_input_gradients(const ot__compiled_model *program)
{
    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_INPUT_GRADIENT)
            return true;
    return false;
}

ot_status ot__inside_settle(ot_session *session)
{
    ot__optimizer *o = &session->optimizer;
    ot__map buffers = {0};
    int *counts;
    ot_status st;

    o->fits_inside = false;
    if (has_input_gradients(&session->training) ||
        !ot__update_is_tensorwise(o->program.model->graph))
        return OT_OK;
    counts = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof *counts);
    st = ot__made(counts != NULL);
    OT_THEN(st, count_sums(session, &buffers, counts));
    o->fits_inside = st == OT_OK;
    for (int k = 0; k < o->n_parameters && o->fits_inside; k++)
        o->fits_inside = counts[o->parameters[k]->number] == 1;
    ot__map_deinit(&buffers);
    ot__free(counts);
    return st;
}

static bool may_be_inside(const ot_session *session)
{
    const ot__optimizer *o = &session->optimizer;

    return session->wants_inside && o->program.model != NULL && o->fits_inside &&
           session->ranks == NULL && session->slices.count <= 1 &&
           (session->overwrite_gradients || session->is_paused) &&
           session->training.narrow == OT_DTYPE_UNDEFINED &&
           (o->takes_divisor || !(fabs((double)session->loss_scale - 1) > 0));
}

// ---- gradients that are not kept ----

static bool has_gradients(const ot_session *session)
{
    for (int i = 0; i < session->n_parameters; i++)
        if (session->parameters[i]->trainable && session->parameters[i]->gradient == NULL)
            return false;
    return true;
}

ot_status ot__session_keep_gradients(ot_session *session)
{
    if (has_gradients(session) || ot__ranks_cut_gradients(session))
        return OT_OK;
    return ot__session_make_gradients(session);
}

ot_status ot__session_need_gradients(ot_session *session)
{
    if (has_gradients(session) || !session->has_trainer)
        return ot__session_keep_gradients(session);
    return ot__error(OT_ERR_STATE, "the session keeps no gradients: updates of its trainer use "
                                   "them inside the backward pass");
}

static void drop_gradients(ot_session *session)
{
    for (int i = 0; i < session->n_parameters; i++) {
        ot_tensor_destroy(session->parameters[i]->gradient);
        session->parameters[i]->gradient = NULL;
    }
}

void ot__session_ask_inside(ot_session *session, bool wants)
{
    session->wants_inside = wants;
    if (may_be_inside(session))
        drop_gradients(session);
}

ot_status ot__inside_prepare(ot_session *session)
{
    session->training.is_inside = may_be_inside(session);
    return session->training.is_inside ? ot__optimizer_ready(session)
                                       : ot__session_keep_gradients(session);
}

// ---- inputs of the plan: those of the optimizer that its nodes read ----

static bool reads_input(const ot_graph *update, const ot_value *input)
{
    for (int n = 0; n < update->n_nodes; n++)
        for (int i = 0; i < update->nodes[n]->n_inputs; i++)
            if (update->nodes[n]->inputs[i] == input)
                return true;
    return false;
}

// What the plan has of input i of the optimizer: none, one for all parameters, or one each.
static int count_own_inputs(const ot__optimizer *o, int i)
{
    const ot__input_role role = o->program.inputs[i].role;

    if (role == OT_ROLE_PARAMETERS || role == OT_ROLE_GRADIENTS ||
        !reads_input(o->program.model->graph, o->program.model->graph->inputs[i]))
        return 0;
    return role >= OT_ROLE_SLOT ? o->n_parameters : role == OT_ROLE_STEP ? o->n_steps : 1;
}

static ot_value *add_own_input(ot__builder *b, const ot__optimizer *o, int i, int k)
{
    const ot_value *like = o->program.model->graph->inputs[i];
    const bool is_slot = o->program.inputs[i].role >= OT_ROLE_SLOT;
    const int64_t n =
        o->program.inputs[i].role == OT_ROLE_STEP ? 1 : o->program.inputs[i].n_numbers;
    ot_value *value = ot__build_value(b, like->name);

    if (value == NULL)
        return NULL;
    ot__value_set(value, like->dtype,
                  is_slot ? ot__parameter_shape(o->parameters[k]) : &OT_SHAPE(n));
    ot__build_input(b, value);
    return value;
}

// Where the parameters and the buffers of their gradients are among the inputs.
static void find_inputs(const ot_session *session, const ot_graph *graph, ot_value **values,
                        ot_value **buffers)
{
    const ot__compiled_model *program = &session->training;

    for (int i = 0; i < program->n_inputs; i++) {
        if (program->inputs[i].role == OT_ROLE_PARAMETER)
            values[program->inputs[i].parameter->number] = graph->inputs[i];
        if (program->inputs[i].role == OT_ROLE_GRADIENT)
            buffers[program->inputs[i].parameter->number] = graph->inputs[i];
    }
}

static ot_status fill_ends(const ot_session *session, ot_graph *graph, ot_value **values,
                           ot_value **buffers)
{
    const ot__optimizer *o = &session->optimizer;
    const size_t n = (size_t)session->n_parameters + 1;
    ot_value **of = ot__arena_alloc(graph->model->arena, n * sizeof *of);
    ot_value **sums = ot__arena_alloc(graph->model->arena, n * sizeof *sums);
    ot__builder b = {.graph = graph};

    OT_TRY(ot__made(of != NULL && sums != NULL));
    find_inputs(session, graph, of, sums);
    for (int i = 0; i < o->program.n_inputs; i++) {
        const int n_own = count_own_inputs(o, i);

        for (int k = 0; k < o->n_parameters; k++) {
            ot_value **value = &values[i * o->n_parameters + k];

            if (o->program.inputs[i].role == OT_ROLE_PARAMETERS)
                *value = of[o->parameters[k]->number];
            else if (k < n_own)
                *value = add_own_input(&b, o, i, k);
            else if (n_own == 1)
                *value = values[i * o->n_parameters];
        }
    }
    for (int k = 0; k < o->n_parameters; k++)
        buffers[k] = sums[o->parameters[k]->number];
    return b.status;
}

ot_status ot__inside_add(ot_session *session, ot_graph *graph)
{
    const ot__optimizer *o = &session->optimizer;
    const size_t n = (size_t)o->n_parameters;
    ot__arena *arena = graph->model->arena;
    ot_value **values =
        ot__arena_alloc(arena, ((size_t)o->program.n_inputs * n + 1) * sizeof *values);
    ot_value **buffers = ot__arena_alloc(arena, (n + 1) * sizeof *buffers);

    if (!session->training.is_inside)
        return OT_OK;
    OT_TRY(ot__made(values != NULL && buffers != NULL));
    OT_TRY(fill_ends(session, graph, values, buffers));
    return ot__pass_update(graph, &(ot__update_ends){
                                      .update = o->program.model->graph,
                                      .n = o->n_parameters,
                                      .values = values,
                                      .buffers = buffers,
                                      .outputs = session->training.user_outputs,
                                      .n_outputs = session->training.n_user_outputs,
                                  });
}

// Of input k of those that belong to input i of the optimizer.
static const void *own_data(const ot__optimizer *o, int i, int k)
{
    switch (o->program.inputs[i].role) {
    case OT_ROLE_LEARNING_RATE:
        return o->rates;
    case OT_ROLE_DIVISOR:
        return &o->divisor;
    case OT_ROLE_STEP:
        return &o->steps[k];
    default:
        return o->parameters[k]->slots[o->program.inputs[i].role - OT_ROLE_SLOT]->data;
    }
}

static int first_own_input(const ot__hoisted *hoisted)
{
    return hoisted->first + hoisted->n;
}

void ot__inside_lay(const ot_session *session, const ot__hoisted *hoisted,
                    const ot_layout **layouts)
{
    const ot__optimizer *o = &session->optimizer;
    int at = first_own_input(hoisted);

    for (int i = 0; session->training.is_inside && i < o->program.n_inputs; i++)
        for (int k = 0, n = count_own_inputs(o, i); k < n; k++, at++)
            if (o->program.inputs[i].role >= OT_ROLE_SLOT && session->packing.layouts != NULL)
                layouts[at] = session->packing.layouts[o->parameters[k]->number];
}

static void bind_inside(const ot_session *session, ot__plan *plan)
{
    const ot__optimizer *o = &session->optimizer;
    int at = first_own_input(ot__compiled_model_hoisted(&session->training, plan));

    for (int i = 0; i < o->program.n_inputs; i++)
        for (int k = 0, n = count_own_inputs(o, i); k < n; k++)
            ot__plan_bind_input(plan, at++, 0, own_data(o, i, k));
}

// ---- the two halves ----

ot_status ot__inside_begin(ot_session *session, ot__plan *plan, const ot_step *step)
{
    if (!session->training.is_inside)
        return ot__plan_run(plan, step);
    bind_inside(session, plan);
    OT_TRY(ot__plan_begin(plan, step));
    session->training.paused = plan;
    session->is_paused = true;
    return OT_OK;
}

void ot__inside_end(ot_session *session)
{
    session->is_paused = false;
    session->training.paused = NULL;
    ot__free_aligned(session->guest_block);
    session->guest_block = NULL;
}

// Nothing in the second half fails for what it computes with: what could has run before.
ot_status ot__inside_finish(ot_session *session)
{
    ot__plan *plan = session->training.paused;
    ot_status st;

    ot__inside_end(session);
    if (plan == NULL)
        return ot__error(OT_ERR_STATE, "the train step that the update belongs to is gone: the "
                                       "session's models have been replaced since");
    st = ot__plan_finish(plan);
    session->is_half_updated = st != OT_OK;
    return st;
}
