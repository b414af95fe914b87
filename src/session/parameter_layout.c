// SPDX-License-Identifier: Apache-2.0
// Packed layouts. A parameter, its gradient and its moments lie in one layout, which the kernels of
// the training model choose, from the first plan of that model on. Whoever looks at one of them
// from outside finds it row-major: it is unpacked where it is, and packed again before the next
// step.
#include "session/session_internal.h"

// ---- choosing ----

// The optimizer sees tensors as rows of elements whose order makes no difference.
static bool optimizer_takes_any_layout(const ot__optimizer *o)
{
    if (o->program.model == NULL)
        return true;
    for (int n = 0; n < o->program.model->graph->n_nodes; n++)
        if ((o->program.model->graph->nodes[n]->op->flags & OT_OP_ANY_LAYOUT) == 0)
            return false;
    return true;
}

static ot_status ask_layout(ot_session *session, ot_graph *graph, const ot__hoisted *hoisted)
{
    const ot__compiled_model *program = &session->training;
    const size_t n = (size_t)graph->n_inputs + 1;
    int *parameter_of = ot__alloc_zero(n, sizeof *parameter_of);
    int *buffer_of = ot__alloc_zero(n, sizeof *buffer_of);
    ot_status st = ot__made(parameter_of != NULL && buffer_of != NULL);

    for (int i = 0; st == OT_OK && i < program->n_inputs; i++) {
        const ot__input *input = &program->inputs[i];
        const int k = input->parameter == NULL ? -1 : input->parameter->number;

        parameter_of[i] = input->role == OT_ROLE_PARAMETER ? k : -1;
        buffer_of[i] = input->role == OT_ROLE_GRADIENT ? k : -1;
    }
    for (int i = 0; st == OT_OK && i < hoisted->n; i++) {
        // Nothing reads derived values or the gradients' buffers in a layout of the parameter's.
        parameter_of[hoisted->first + i] = buffer_of[hoisted->first + i] = -1;
        parameter_of[hoisted->of[i]] = -1;
    }
    OT_THEN(st, ot__plan_choose_layouts(graph, &session->plan_options, parameter_of, buffer_of,
                                        session->packing.layouts, session->n_parameters));
    ot__free(parameter_of);
    ot__free(buffer_of);
    return st;
}

static ot_status make_buffer(ot_session *session)
{
    ot__packing *packing = &session->packing;

    for (int i = 0; i < session->n_parameters; i++) {
        const ot_tensor *t = session->parameters[i]->value;

        if (packing->layouts[i] != NULL)
            packing->buffer_bytes =
                OT_MAX(packing->buffer_bytes, ot__layout_part_bytes(packing->layouts[i], &t->shape,
                                                                    ot_dtype_size(t->dtype)));
    }
    if (packing->buffer_bytes == 0)
        return OT_OK;
    packing->buffer = ot__alloc_aligned(packing->buffer_bytes);
    return ot__made(packing->buffer != NULL);
}

static void convert_parameter(const ot__packing *packing, ot_tensor *t, const ot_layout *to,
                              const ot_layout *from)
{
    if (t != NULL)
        ot__layout_convert_in_place(t->data, to, from, &t->shape, ot_dtype_size(t->dtype),
                                    packing->buffer);
}

static void move(const ot__packing *packing, ot__parameter *p, const ot_layout *to)
{
    if (p->layout == to)
        return;
    convert_parameter(packing, p->value, to, p->layout);
    convert_parameter(packing, p->gradient, to, p->layout);
    for (int k = 0; k < OT_SLOTS; k++)
        convert_parameter(packing, p->slots[k], to, p->layout);
    p->layout = to;
}

static void unpack_parameter(void *session, ot__parameter *parameter)
{
    move(&((ot_session *)session)->packing, parameter, NULL);
}

ot_status ot__packing_choose(ot_session *session, ot_graph *graph, const ot__hoisted *hoisted)
{
    ot__packing *packing = &session->packing;
    ot_status st = OT_OK;

    if (packing->is_chosen)
        return OT_OK;
    packing->layouts = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(const ot_layout *));
    OT_TRY(ot__made(packing->layouts != NULL));
    // A nominal checkpoint has no shapes yet.
    if (!session->checkpoint->is_nominal && optimizer_takes_any_layout(&session->optimizer))
        st = ask_layout(session, graph, hoisted);
    OT_THEN(st, make_buffer(session));
    if (st != OT_OK) {
        ot__free(packing->layouts);
        *packing = (ot__packing){0};
        return st;
    }
    packing->is_chosen = true;
    // Plans for evaluation that are there already know nothing of them, nor do questions.
    if (packing->buffer != NULL) {
        ot__compiled_model_drop_plans(&session->eval);
        ot__compiled_model_drop_questions(&session->training);
    }
    session->checkpoint->unpack = unpack_parameter;
    return OT_OK;
}

const ot_layout **ot__packing_of_inputs(const ot_session *session,
                                        const ot__compiled_model *program, int n)
{
    const ot_layout **layouts = ot__alloc_zero((size_t)n + 1, sizeof(const ot_layout *));

    for (int i = 0; layouts != NULL && session->packing.layouts != NULL && i < program->n_inputs;
         i++) {
        const ot__parameter *p = program->inputs[i].parameter;
        const int k = p == NULL ? -1 : p->number;

        if (k >= 0)
            layouts[i] = session->packing.layouts[k];
    }
    return layouts;
}

// ---- coming and going ----

void ot__packing_enter(ot_session *session)
{
    ot__ckpt_outdate(session->checkpoint);
    for (int i = 0; i < session->n_parameters && session->packing.layouts != NULL; i++)
        move(&session->packing, session->parameters[i], session->packing.layouts[i]);
}

ot_status ot__packing_give_up(ot_session *session)
{
    ot__packing_leave(session);
    ot__compiled_model_drop_plans(&session->training);
    ot__compiled_model_drop_plans(&session->eval);
    session->packing.layouts =
        ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(const ot_layout *));
    session->packing.is_chosen = session->packing.layouts != NULL;
    return ot__made(session->packing.is_chosen);
}

void ot__packing_leave(ot_session *session)
{
    ot__packing *packing = &session->packing;

    ot__ckpt_outdate(session->checkpoint);
    if (packing->layouts == NULL)
        return;
    for (int i = 0; i < session->n_parameters; i++)
        move(packing, session->parameters[i], NULL);
    session->checkpoint->unpack = NULL;
    ot__free_aligned(packing->buffer);
    ot__free(packing->layouts);
    *packing = (ot__packing){0};
}
