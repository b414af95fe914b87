// SPDX-License-Identifier: Apache-2.0
// What a session takes for inputs of given shapes: its state, and what the plan of a train step
// says.
#include "session/session_internal.h"

static size_t tensor_bytes(const ot_tensor *t)
{
    return t != NULL ? t->n_bytes : 0;
}

static void measure_state(const ot_session *session, ot__session_bytes *out)
{
    for (int i = 0; i < session->checkpoint->n_parameters; i++) {
        const ot__parameter *p = session->checkpoint->parameters[i];

        out->parameters += tensor_bytes(p->value);
        out->gradients += tensor_bytes(p->gradient);
        for (int k = 0; k < OT_SLOTS; k++)
            out->moments += tensor_bytes(p->slots[k]);
    }
    for (int i = 0; i < session->undo.n; i++) // two copies, to undo with
        out->parameters += 2 * tensor_bytes(session->undo.parameters[i]->value);
    out->gradients += ot__input_gradients_bytes(&session->training);
}

// Each once, whoever reads it.
static ot_status measure_constants(const ot_graph *graph, size_t *n_bytes)
{
    ot__numbers numbers = {0};
    bool *is_counted = NULL;
    ot_status st = ot__numbers_build(graph, &numbers);

    if (st == OT_OK) {
        is_counted = ot__alloc_zero((size_t)numbers.n_values + 1, sizeof *is_counted);
        st = ot__made(is_counted != NULL);
    }
    for (int n = 0; st == OT_OK && n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n]->n_inputs; i++) {
            const ot_value *value = graph->nodes[n]->inputs[i];

            if (value == NULL || value->constant == NULL || !ot__has_number(&numbers, value) ||
                is_counted[ot__value_number(&numbers, value)])
                continue;
            is_counted[ot__value_number(&numbers, value)] = true;
            *n_bytes += value->constant->n_bytes;
        }
    ot__free(is_counted);
    ot__numbers_deinit(&numbers);
    return st;
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

ot_status ot__session_measure(ot_session *session, const ot_shape *inputs, ot__session_bytes *out)
{
    ot__compiled_model *program = &session->training;
    const ot__plan *update = session->optimizer.plan;
    ot__plan *plan;
    size_t block;

    *out = (ot__session_bytes){0};
    OT_TRY(ot__session_check_values(session));
    for (int i = 0; i < program->n_user_inputs; i++)
        program->given.shapes[i] = inputs[i];
    OT_TRY(ot__session_find_plan(session, program, &plan));
    measure_state(session, out);
    OT_TRY(measure_constants(ot__session_step_model(session)->graph, &out->activations));
    measure_outputs(program, plan, &out->outputs);
    // All plans share a block, within which scratch and values lie where they fit.
    block = OT_MAX(ot__plan_bytes(plan), update != NULL ? ot__plan_bytes(update) : 0);
    out->scratch = OT_MIN(ot__plan_scratch_bytes(plan), block);
    out->activations += block - out->scratch;
    out->scratch += session->packing.buffer_bytes;
    return OT_OK;
}
