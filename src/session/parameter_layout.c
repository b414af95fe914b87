// SPDX-License-Identifier: Apache-2.0
// Home forms. A parameter, its gradient and its moments lie in one form, which the kernels of the
// training model choose, from the first plan of that model on. Whoever looks at one of them from
// outside finds it row-major: it is unpacked where it is, and packed again before the next step.
#include "session/session_internal.h"

// ---- choosing ----

// The optimizer sees tensors as rows of elements whose order makes no difference.
static bool optimizer_takes_any_form(const ot__optimizer *o)
{
    if (o->program.model == NULL)
        return true;
    for (int n = 0; n < o->program.model->graph->n_nodes; n++)
        if ((o->program.model->graph->nodes[n]->op->flags & OT_OP_ANY_LAYOUT) == 0)
            return false;
    return true;
}

static ot_status ask_layout(ot_session *session, ot_graph *graph)
{
    const ot__program *program = &session->training;
    const size_t n = (size_t)program->n_inputs + 1;
    int *parameter_of = ot__alloc_zero(n, sizeof *parameter_of);
    int *buffer_of = ot__alloc_zero(n, sizeof *buffer_of);
    ot_status st = OT_ERR_NO_MEMORY;

    if (parameter_of == NULL || buffer_of == NULL)
        goto done;
    for (int i = 0; i < program->n_inputs; i++) {
        const ot__input *input = &program->inputs[i];
        const int k = input->parameter == NULL ? -1 : input->parameter->number;

        parameter_of[i] = input->role == OT_ROLE_PARAMETER ? k : -1;
        buffer_of[i] = input->role == OT_ROLE_GRADIENT ? k : -1;
    }
    st = ot__plan_choose_forms(graph, &session->plan_options, parameter_of, buffer_of,
                               session->homes.forms, session->n_parameters);
done:
    ot__free(parameter_of);
    ot__free(buffer_of);
    return st;
}

static ot_status make_buffer(ot_session *session)
{
    ot__homes *homes = &session->homes;

    for (int i = 0; i < session->n_parameters; i++) {
        const ot_tensor *t = session->parameters[i]->value;

        if (homes->forms[i] != NULL)
            homes->buffer_bytes =
                OT_MAX(homes->buffer_bytes,
                       ot__form_part_bytes(homes->forms[i], &t->shape, ot_dtype_size(t->dtype)));
    }
    if (homes->buffer_bytes == 0)
        return OT_OK;
    homes->buffer = ot__alloc_aligned(homes->buffer_bytes);
    return ot__made(homes->buffer != NULL);
}

static void convert_parameter(const ot__homes *homes, ot_tensor *t, const ot_form *to,
                              const ot_form *from)
{
    if (t != NULL)
        ot__form_convert_in_place(t->data, to, from, &t->shape, ot_dtype_size(t->dtype),
                                  homes->buffer);
}

static void move(const ot__homes *homes, ot__parameter *p, const ot_form *to)
{
    if (p->form == to)
        return;
    convert_parameter(homes, p->value, to, p->form);
    convert_parameter(homes, p->gradient, to, p->form);
    for (int k = 0; k < OT_MAX_MOMENTS; k++)
        convert_parameter(homes, p->moments[k], to, p->form);
    p->form = to;
}

static void unpack_parameter(void *session, ot__parameter *parameter)
{
    move(&((ot_session *)session)->homes, parameter, NULL);
}

ot_status ot__homes_choose(ot_session *session, ot_graph *graph)
{
    ot__homes *homes = &session->homes;
    ot_status st = OT_OK;

    if (homes->is_chosen)
        return OT_OK;
    homes->forms = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(const ot_form *));
    OT_TRY(ot__made(homes->forms != NULL));
    // A nominal checkpoint has no shapes yet.
    if (!session->checkpoint->is_nominal && optimizer_takes_any_form(&session->optimizer))
        st = ask_layout(session, graph);
    OT_THEN(st, make_buffer(session));
    if (st != OT_OK) {
        ot__free(homes->forms);
        *homes = (ot__homes){0};
        return st;
    }
    homes->is_chosen = true;
    // Plans for evaluation that are there already know nothing of them.
    if (homes->buffer != NULL)
        ot__program_drop_plans(&session->eval);
    session->checkpoint->unpack = unpack_parameter;
    return OT_OK;
}

const ot_form **ot__homes_of_inputs(const ot_session *session, const ot__program *program)
{
    const ot_form **forms = ot__alloc_zero((size_t)program->n_inputs + 1, sizeof(const ot_form *));

    for (int i = 0; forms != NULL && session->homes.forms != NULL && i < program->n_inputs; i++) {
        const ot__parameter *p = program->inputs[i].parameter;
        const int k = p == NULL ? -1 : p->number;

        if (k >= 0)
            forms[i] = session->homes.forms[k];
    }
    return forms;
}

// ---- coming and going ----

void ot__homes_enter(ot_session *session)
{
    for (int i = 0; i < session->n_parameters && session->homes.forms != NULL; i++)
        move(&session->homes, session->parameters[i], session->homes.forms[i]);
}

void ot__homes_leave(ot_session *session)
{
    ot__homes *homes = &session->homes;

    if (homes->forms == NULL)
        return;
    for (int i = 0; i < session->n_parameters; i++)
        move(homes, session->parameters[i], NULL);
    session->checkpoint->unpack = NULL;
    ot__free_aligned(homes->buffer);
    ot__free(homes->forms);
    *homes = (ot__homes){0};
}
