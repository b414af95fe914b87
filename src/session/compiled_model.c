// SPDX-License-Identifier: Apache-2.0
// A program: one model, prepared once, and what is made of it.
#include "session/session_internal.h"

// Whoever else has it sees it as it is.
static ot_status unshare_model(ot__compiled_model *program)
{
    ot_model *copy;

    if (!program->model->is_final)
        return OT_OK;
    OT_TRY(ot__model_clone(program->model, &copy));
    ot_model_destroy(program->model);
    program->model = copy;
    return OT_OK;
}

static ot_status prepare_compiled(ot__compiled_model *program)
{
    ot_status st;

    if (program->model->is_prepared && program->model->is_final)
        return OT_OK;
    OT_TRY(unshare_model(program));
    OT_TRY(ot__model_align_constants(program->model));
    st = ot__pass_prepare(program->model);
    return st == OT_OK || program->what == NULL ? st : ot__error_prefix(st, "%s", program->what);
}

static ot_status change_compiled(ot__compiled_model *program)
{
    if (program->change == NULL)
        return OT_OK;
    OT_TRY(unshare_model(program));
    return program->change(program->model);
}

static ot_status make_lists(ot__compiled_model *program)
{
    const ot_graph *g = program->model->graph;
    const size_t n = (size_t)g->n_inputs + 1;

    program->arena = ot__arena_create();
    OT_TRY(ot__made(program->arena != NULL));
    program->inputs = ot__arena_alloc(program->arena, n * sizeof *program->inputs);
    program->user_inputs = ot__arena_alloc(program->arena, n * sizeof(int));
    program->given.lengths = ot__alloc_zero(n, sizeof(int));
    OT_TRY(ot__made(program->inputs != NULL && program->user_inputs != NULL &&
                    program->given.lengths != NULL));
    program->n_inputs = g->n_inputs;
    return OT_OK;
}

ot_status ot__compiled_model_create(ot__compiled_model *program, const char *what, ot_model *model,
                                    ot__model_change *change)
{
    *program = (ot__compiled_model){.what = what, .model = model, .change = change};
    OT_TRY(prepare_compiled(program));
    OT_TRY(change_compiled(program));
    return make_lists(program);
}

void ot__cached_plan_deinit(ot__cached_plan *slot)
{
    ot__plan_destroy(slot->plan);
    ot_model_destroy(slot->model);
    ot__given_deinit(&slot->given);
    *slot = (ot__cached_plan){0};
}

void ot__compiled_model_drop_questions(ot__compiled_model *program)
{
    for (int k = 0; k < OT_QUESTION_CACHE; k++)
        ot__cached_plan_deinit(&program->questions[k]);
}

void ot__compiled_model_drop_plans(ot__compiled_model *program)
{
    for (int k = 0; k < OT_PLAN_CACHE; k++)
        ot__cached_plan_deinit(&program->plans[k]);
    ot__compiled_model_drop_questions(program);
    program->paused = NULL;
}

void ot__compiled_model_deinit(ot__compiled_model *program)
{
    ot__compiled_model_drop_plans(program);
    ot__input_gradients_deinit(program);
    ot__given_deinit(&program->given);
    ot__arena_destroy(program->arena);
    ot_model_destroy(program->model);
    *program = (ot__compiled_model){.what = program->what};
}

ot_status ot__compiled_model_reserve(ot__compiled_model *program, int n_shapes)
{
    ot__given *given = &program->given;
    ot_shape *shapes;
    const ot_tensor **tensors;

    if (n_shapes < given->capacity)
        return OT_OK;
    shapes = ot__alloc_zero((size_t)n_shapes + 1, sizeof *shapes);
    tensors = ot__alloc_zero((size_t)n_shapes + 1, sizeof *tensors);
    if (shapes == NULL || tensors == NULL) {
        ot__free(shapes);
        ot__free(tensors);
        return OT_ERR_NO_MEMORY;
    }
    ot__free(given->shapes);
    ot__free(given->tensors);
    given->shapes = shapes;
    given->tensors = tensors;
    given->capacity = n_shapes + 1;
    return OT_OK;
}

void ot__compiled_model_set_shapes(ot__compiled_model *program, const ot_shape *shapes)
{
    for (int i = 0; i < program->n_user_inputs; i++)
        program->given.shapes[i] = shapes[i];
    program->given.has_tensors = false;
}
