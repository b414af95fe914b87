// SPDX-License-Identifier: Apache-2.0
// Running statistics are parameters that a train step changes while it runs. A failed step puts
// them back, and a state can be saved as it was before its last step.
#include <string.h>

#include "session/session_internal.h"

static ot_status add_undo(ot__undo *undo, ot__parameter *p)
{
    const int i = undo->n;

    if (p->is_undone)
        return OT_OK;
    p->is_undone = true;
    undo->parameters[undo->n++] = p;
    undo->copies[i] = ot__alloc(p->value->n_bytes);
    undo->first_copies[i] = ot__alloc(p->value->n_bytes);
    return ot__made(undo->copies[i] != NULL && undo->first_copies[i] != NULL);
}

ot_status ot__undo_create(ot_session *session)
{
    const ot_graph *g = session->training.model->graph;
    ot__undo *undo = &session->undo;
    const size_t n = (size_t)session->n_parameters + 1;

    undo->parameters = ot__alloc_zero(n, sizeof(ot__parameter *));
    undo->copies = ot__alloc_zero(n, sizeof(void *));
    undo->first_copies = ot__alloc_zero(n, sizeof(void *));
    OT_TRY(
        ot__made(undo->parameters != NULL && undo->copies != NULL && undo->first_copies != NULL));
    for (int k = 0; k < g->n_nodes; k++) {
        const ot_node *node = g->nodes[k];

        for (int i = 0; i < node->n_inputs; i++) {
            ot__parameter *p;

            if (node->inputs[i] == NULL || !node->inputs[i]->is_input ||
                (ot__op_input_port(node->op, i)->flags & OT_PORT_STATE) == 0)
                continue;
            p = ot__ckpt_find(session->checkpoint, node->inputs[i]->name);
            if (p != NULL)
                OT_TRY(add_undo(undo, p));
        }
    }
    return OT_OK;
}

// The values into the copies, or back.
static void copy_undo(const ot__undo *undo, void *const *copies, bool is_back)
{
    for (int i = 0; i < undo->n; i++) {
        const ot_tensor *value = undo->parameters[i]->value;

        if (value->n_bytes > 0)
            memcpy(is_back ? value->data : copies[i], is_back ? copies[i] : value->data,
                   value->n_bytes);
    }
}

void ot__undo_keep(ot_session *session)
{
    ot__undo *undo = &session->undo;

    copy_undo(undo, undo->copies, false);
    if (session->overwrite_gradients && !session->slices.is_under_way)
        ot__undo_keep_first(session);
}

void ot__undo_keep_first(ot_session *session)
{
    ot__undo *undo = &session->undo;

    copy_undo(undo, undo->first_copies, false);
    undo->first_counter = session->counter;
    undo->is_first_row_major = session->packing.layouts == NULL;
}

void ot__undo_resume(ot_session *session, int64_t n)
{
    ot__undo *undo = &session->undo;

    copy_undo(undo, undo->first_copies, false);
    undo->first_counter = session->counter - (uint64_t)n;
    undo->is_first_row_major = true;
    session->overwrite_gradients = false;
}

void ot__undo_restore(const ot__undo *undo)
{
    copy_undo(undo, undo->copies, true);
}

static void exchange_bytes(uint8_t *a, uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t x = a[i];

        a[i] = b[i];
        b[i] = x;
    }
}

static void swap_undo(const ot__undo *undo, void *const *copies)
{
    for (int i = 0; i < undo->n; i++)
        exchange_bytes(undo->parameters[i]->value->data, copies[i],
                       undo->parameters[i]->value->n_bytes);
}

// The copies are in the layouts that the step has met.
static void swap_last(ot_session *session)
{
    ot__packing_enter(session);
    swap_undo(&session->undo, session->undo.copies);
}

// Statistics lie as the copies before the first step do.
static void enter_as_first(ot_session *session)
{
    const ot__undo *undo = &session->undo;

    ot__packing_enter(session);
    for (int i = 0; i < undo->n && undo->is_first_row_major; i++)
        ot__ckpt_unpack(session->checkpoint, undo->parameters[i]);
}

void ot__session_exchange_steps(ot_session *session)
{
    ot__undo *undo = &session->undo;
    const uint64_t counter = session->counter;

    enter_as_first(session);
    swap_undo(undo, undo->first_copies);
    session->counter = undo->first_counter;
    undo->first_counter = counter;
}

void ot__session_step_back(ot_session *session)
{
    swap_last(session);
    session->counter--;
}

void ot__session_step_forth(ot_session *session)
{
    swap_last(session);
    session->counter++;
}

void ot__undo_rewind(ot_session *session)
{
    enter_as_first(session);
    copy_undo(&session->undo, session->undo.first_copies, true);
    session->counter = session->undo.first_counter;
}

void ot__session_drop_steps(ot_session *session)
{
    if (session->overwrite_gradients && !session->slices.is_under_way)
        return; // there has been none
    ot__undo_rewind(session);
    ot__session_reset_gradients(session);
}

void ot__undo_deinit(ot__undo *undo)
{
    for (int i = 0; i < undo->n; i++) {
        undo->parameters[i]->is_undone = false;
        ot__free(undo->copies[i]);
        ot__free(undo->first_copies[i]);
    }
    ot__free(undo->copies);
    ot__free(undo->first_copies);
    ot__free(undo->parameters);
    *undo = (ot__undo){0};
}
