// SPDX-License-Identifier: Apache-2.0
// Plans by the shapes of the inputs. A new set of shapes specialises and fuses a copy of the model;
// the plan used longest ago makes room.
#include <string.h>

#include "session/session_internal.h"

static bool shapes_equal(const ot_shape *a, const ot_shape *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!ot__shape_equal(&a[i], &b[i]))
            return false;
    return true;
}

static ot__cached_plan *oldest(ot__program *program)
{
    ot__cached_plan *found = &program->plans[0];

    for (int k = 0; k < OT_PLAN_CACHE; k++) {
        ot__cached_plan *slot = &program->plans[k];

        if (slot->plan == NULL)
            return slot;
        if (slot->last_used < found->last_used)
            found = slot;
    }
    return found;
}

// The shape of every graph input: the user's as given, the others as they are in the checkpoint.
static ot_shape *all_shapes(const ot__program *program, const ot_shape *user_shapes)
{
    ot_shape *shapes = ot__alloc_zero((size_t)program->n_inputs + 1, sizeof *shapes);
    int i_user = 0;

    for (int i = 0; shapes != NULL && i < program->n_inputs; i++) {
        switch (program->inputs[i].role) {
        case OT_ROLE_USER:
            shapes[i] = user_shapes[i_user++];
            break;
        case OT_ROLE_PARAMETER:
        case OT_ROLE_GRADIENT:
            shapes[i] = program->inputs[i].parameter->value->shape;
            break;
        case OT_ROLE_INPUT_GRADIENT:
            shapes[i] = user_shapes[program->inputs[i].i_user];
            break;
        case OT_ROLE_LAZY_RESET:
            shapes[i] = OT_SHAPE(1);
            break;
        case OT_ROLE_CONSTANT:
            shapes[i] = program->model->graph->inputs[i]->constant->shape;
            break;
        }
    }
    return shapes;
}

ot_status ot__plan_budget(const ot_session *session, size_t n_bytes, ot__plan_options *options)
{
    const size_t state = ot_session_state_bytes(session) + session->homes.buffer_bytes + n_bytes;

    *options = session->plan_options;
    options->memory_max = OT_MAX(ot__memory_left(session->block_bytes), (size_t)1);
    if (session->options.memory_max == 0)
        return OT_OK;
    if (state >= session->options.memory_max)
        return ot__error(OT_ERR_NO_MEMORY,
                         "parameters, gradients and moments need %zu bytes, %zu are allowed", state,
                         session->options.memory_max);
    options->memory_max = OT_MIN(options->memory_max, session->options.memory_max - state);
    return OT_OK;
}

// Evaluation must change nothing, and in training only parameters and gradients may change.
static ot_status check_written(const ot_session *session, const ot__program *program,
                               const ot__plan *plan)
{
    for (int i = 0; i < program->n_inputs; i++) {
        const ot__input_role role = program->inputs[i].role;

        if (role != OT_ROLE_CONSTANT && ot__plan_writes_input(plan, i) &&
            (program == &session->eval || (role != OT_ROLE_PARAMETER && role != OT_ROLE_GRADIENT &&
                                           role != OT_ROLE_INPUT_GRADIENT)))
            return ot__error(OT_ERR_UNSUPPORTED, "%s: would change its input '%s'", program->what,
                             program->model->graph->inputs[i]->name);
    }
    return OT_OK;
}

static ot_status make_plan(ot_session *session, const ot__program *program, ot_graph *graph,
                           ot__plan **plan)
{
    ot__plan_options options;
    const ot_form **forms;
    ot_status st;

    if (program == &session->training)
        OT_TRY(ot__homes_choose(session, graph));
    OT_TRY(ot__plan_budget(session, 0, &options));
    forms = ot__homes_of_inputs(session, program);
    if (forms == NULL)
        return OT_ERR_NO_MEMORY;
    options.input_forms = forms;
    st = ot__plan_create(graph, &options, NULL, NULL, plan);
    ot__free(forms);
    return st;
}

static ot_status build(ot_session *session, const ot__program *program, const ot_shape *user_shapes,
                       ot_model **model, ot__plan **plan)
{
    ot_shape *shapes = all_shapes(program, user_shapes);
    ot_status st = shapes == NULL ? OT_ERR_NO_MEMORY : ot__model_clone(program->model, model);

    if (st == OT_OK)
        st = ot__pass_specialize(*model, shapes, program->n_inputs);
    if (st == OT_OK)
        st = ot__pass_fuse(*model);
    if (st == OT_OK)
        st = ot__pass_recompute(*model);
    if (st == OT_OK)
        st = make_plan(session, program, (*model)->graph, plan);
    if (st == OT_OK)
        st = check_written(session, program, *plan);
    ot__free(shapes);
    return st;
}

ot_status ot__session_lend_block(ot_session *session, ot__plan *plan)
{
    const size_t n_bytes = OT_MAX(ot__plan_bytes(plan), (size_t)1);

    if (n_bytes > session->block_bytes) {
        void *block;

        // First the old one goes: both together might exceed what there is.
        ot__free_aligned(session->block);
        session->block = NULL;
        session->block_bytes = 0;
        block = ot__alloc_aligned(n_bytes);
        if (block == NULL)
            return OT_ERR_NO_MEMORY;
        session->block = block;
        session->block_bytes = n_bytes;
    }
    ot__plan_set_block(plan, session->block);
    session->plan_bytes = OT_MAX(session->plan_bytes, ot__plan_bytes(plan));
    return OT_OK;
}

ot_status ot__session_plan(ot_session *session, ot__program *program, const ot_shape *user_shapes,
                           ot__plan **out)
{
    ot__cached_plan *slot;
    ot_model *model = NULL;
    ot__plan *plan = NULL;
    ot_status st;

    *out = NULL;
    for (int k = 0; k < OT_PLAN_CACHE; k++) {
        slot = &program->plans[k];
        if (slot->plan != NULL && shapes_equal(slot->shapes, user_shapes, program->n_user_inputs)) {
            slot->last_used = ++program->clock;
            *out = slot->plan;
            return ot__session_lend_block(session, slot->plan);
        }
    }
    st = build(session, program, user_shapes, &model, &plan);
    if (st == OT_OK)
        st = ot__session_lend_block(session, plan);
    if (st != OT_OK) {
        ot__plan_destroy(plan);
        ot_model_destroy(model);
        return st;
    }
    slot = oldest(program);
    ot__plan_destroy(slot->plan);
    ot_model_destroy(slot->model);
    memcpy(slot->shapes, user_shapes, (size_t)program->n_user_inputs * sizeof *user_shapes);
    slot->model = model;
    slot->last_used = ++program->clock;
    *out = slot->plan = plan;
    return OT_OK;
}
