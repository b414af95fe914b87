// SPDX-License-Identifier: Apache-2.0
// The models of a session replaced by others of the same inputs and outputs: those of the same
// graph with other constants.
#include <string.h>

#include "session/session_internal.h"

static bool have_same_user_inputs(const ot__compiled_model *a, const ot__compiled_model *b)
{
    if (a->n_user_inputs != b->n_user_inputs)
        return false;
    for (int i = 0; i < a->n_user_inputs; i++)
        if (strcmp(ot__user_input(a, i)->name, ot__user_input(b, i)->name) != 0)
            return false;
    return true;
}

static bool have_same_user_outputs(const ot__compiled_model *a, const ot__compiled_model *b)
{
    if (a->n_user_outputs != b->n_user_outputs)
        return false;
    for (int i = 0; i < a->n_user_outputs; i++)
        if (strcmp(a->model->graph->outputs[a->user_outputs[i]]->name,
                   b->model->graph->outputs[b->user_outputs[i]]->name) != 0)
            return false;
    return true;
}

static bool has_input_as(const ot__compiled_model *program, const ot__input *input)
{
    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == input->role &&
            program->inputs[i].parameter == input->parameter)
            return true;
    return false;
}

// Parameters may come in another order.
static bool have_same_inputs(const ot__compiled_model *a, const ot__compiled_model *b)
{
    if (a->n_inputs != b->n_inputs)
        return false;
    for (int i = 0; i < a->n_inputs; i++)
        if (!has_input_as(b, &a->inputs[i]))
            return false;
    return true;
}

static ot_status check_ends(const ot__compiled_model *old, const ot__compiled_model *program)
{
    if (have_same_user_inputs(old, program) && have_same_user_outputs(old, program) &&
        have_same_inputs(old, program))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s: with other constants it has other inputs or outputs",
                     old->what);
}

static ot_status make_replacement(const ot_session *session, const ot__compiled_model *old,
                                  const ot_model *model, ot__compiled_model *program)
{
    ot_model *own;

    OT_TRY(ot__model_acquire(model, &own));
    OT_TRY(ot__compiled_model_create(program, old->what, own, old->change));
    program->narrow = old->narrow;
    program->may_recompute = old->may_recompute;
    program->recompute = old->recompute;
    OT_TRY(ot__compiled_model_sort(program, session->checkpoint));
    return check_ends(old, program);
}

struct ot__replacement {
    ot__compiled_model training, eval;
    ot_model *eval_source;
};

void ot__replacement_destroy(ot__replacement *r)
{
    if (r == NULL)
        return;
    ot__compiled_model_deinit(&r->training);
    ot__compiled_model_deinit(&r->eval);
    ot_model_destroy(r->eval_source);
    ot__free(r);
}

ot_status ot__replacement_make(const ot_session *session, const ot_model *training,
                               const ot_model *eval, ot__replacement **out)
{
    ot__replacement *r = ot__alloc_zero(1, sizeof *r);
    ot_status st;

    *out = NULL;
    OT_TRY(ot__made(r != NULL));
    st = make_replacement(session, &session->training, training, &r->training);
    OT_THEN(st, make_replacement(session, &session->eval, eval, &r->eval));
    OT_THEN(st, ot__model_acquire(eval, &r->eval_source));
    return OT_HAND_OUT(st, out, r, ot__replacement_destroy);
}

static void swap_programs(ot__compiled_model *a, ot__compiled_model *b)
{
    const ot__compiled_model kept = *a;

    *a = *b;
    *b = kept;
}

void ot__session_replace(ot_session *session, ot__replacement *r)
{
    ot_model *const old_source = session->eval_source;

    swap_programs(&session->training, &r->training);
    swap_programs(&session->eval, &r->eval);
    session->eval_source = r->eval_source;
    r->eval_source = old_source;
    ot__replacement_destroy(r);
}
