// SPDX-License-Identifier: Apache-2.0
// What a session takes for inputs of given shapes: its state, and what the plan of a train step
// says.
#include <string.h>

#include "session/ranks.h"

size_t ot__parameter_bytes(const ot__parameter *p)
{
    size_t sum = p->value != NULL ? p->value->n_bytes : 0;

    sum += p->gradient != NULL ? p->gradient->n_bytes : 0;
    for (int k = 0; k < OT_SLOTS; k++)
        sum += p->slots[k] != NULL ? p->slots[k]->n_bytes : 0;
    return sum;
}

// The elements, and what a tensor takes besides.
static void add_tensor_bytes(const ot_tensor *t, size_t *elements, size_t *structure)
{
    if (t == NULL)
        return;
    *elements += t->n_bytes;
    *structure += ot__tensor_taken(t) - OT_MIN(ot__tensor_taken(t), t->n_bytes);
}

static ot_status measure_state(const ot_session *session, ot__session_bytes *out)
{
    for (int i = 0; i < session->checkpoint->n_parameters; i++) {
        const ot__parameter *p = session->checkpoint->parameters[i];

        out->structure += sizeof *p + strlen(p->name) + 1;
        if (ot__ranks_have(session, p))
            continue;
        add_tensor_bytes(p->value, &out->parameters, &out->structure);
        add_tensor_bytes(p->gradient, &out->gradients, &out->structure);
        for (int k = 0; k < OT_SLOTS; k++)
            add_tensor_bytes(p->slots[k], &out->moments, &out->structure);
    }
    for (int i = 0; i < session->undo.n; i++) // two copies, to undo with
        out->parameters += 2 * session->undo.parameters[i]->value->n_bytes;
    out->gradients += ot__input_gradients_bytes(&session->training) + ot__slices_bytes(session);
    out->derived = session->derived.n_bytes;
    return session->ranks != NULL ? ot__ranks_measure(session, out) : OT_OK;
}

// ---- graphs and plans ----

enum { MODELS_MAX = 4 + 3 * OT_PLAN_CACHE };
typedef struct models {
    const ot_model *items[MODELS_MAX];
    int n;
} models;

static void add_model_of(models *all, const ot_model *model)
{
    if (model != NULL)
        all->items[all->n++] = model;
}

// Its models; its plans and lists are counted here.
static void add_compiled(const ot__compiled_model *program, models *all, size_t *structure)
{
    add_model_of(all, program->model);
    *structure += ot__arena_taken(program->arena);
    for (int k = 0; k < OT_PLAN_CACHE; k++) {
        const ot__cached_plan *slot = &program->plans[k];

        add_model_of(all, slot->model);
        if (slot->plan != NULL)
            *structure += ot__plan_structure_bytes(slot->plan);
    }
}

static ot_status measure_structure(const ot_session *session, const ot_model *besides,
                                   ot__session_bytes *out)
{
    models all = {.n = 0};
    size_t structure, constants;

    add_compiled(&session->training, &all, &out->structure);
    add_compiled(&session->eval, &all, &out->structure);
    add_compiled(&session->optimizer.program, &all, &out->structure);
    add_model_of(&all, session->eval_source);
    add_model_of(&all, besides);
    OT_TRY(ot__models_measure(all.items, all.n, &structure, &constants));
    out->structure += structure;
    out->activations += constants;
    return OT_OK;
}

static void measure_outputs(const ot__compiled_model *program, const ot__plan *plan,
                            size_t *n_bytes)
{
    for (int i = 0; i < program->n_user_outputs; i++) {
        const ot_arg *y = ot__plan_output(plan, program->user_outputs[i]);
        size_t n = 0;

        if (ot__element_bytes(y->dtype, y->count, &n))
            *n_bytes += n;
    }
}

ot_status ot__session_measure(ot_session *session, const ot_shape *inputs, const ot_model *besides,
                              ot__session_bytes *out)
{
    ot__compiled_model *program = &session->training;
    const ot__plan *update = session->optimizer.plan;
    ot__plan *plan;
    size_t block, gradients;

    *out = (ot__session_bytes){0};
    OT_TRY(ot__session_check_values(session));
    ot__compiled_model_set_shapes(program, inputs);
    OT_TRY(ot__session_find_plan(session, program, &plan));
    OT_TRY(measure_state(session, out));
    OT_TRY(measure_structure(session, besides, out));
    measure_outputs(program, plan, &out->outputs);
    // All plans share a block, within which scratch and values lie where they fit.
    block = OT_MAX(ot__plan_bytes(plan), update != NULL ? ot__plan_bytes(update) : 0);
    if (session->ranks == NULL || session->ranks->comm != NULL) // else what has run is of another
        block = OT_MAX(block, session->block_bytes);
    out->scratch = OT_MIN(ot__plan_scratch_bytes(plan), block);
    gradients = OT_MIN(ot__plan_gradient_bytes(plan), block - out->scratch);
    out->gradients += gradients;
    out->activations += block - out->scratch - gradients;
    out->scratch += session->packing.buffer_bytes;
    return OT_OK;
}
