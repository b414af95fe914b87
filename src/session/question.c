// SPDX-License-Identifier: Apache-2.0
// What decides on shapes in a step of a session, computed before the step: of the parameters as
// they are then, with the step's random numbers, and without changing anything.
#include "session/ranks.h"

static const ot_node *find_reader(const ot_graph *graph, const ot_value *value)
{
    for (int n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
            if (graph->nodes[n]->inputs[i] == value)
                return graph->nodes[n];
    return NULL;
}

// Ranks may answer alone, and not at all, since their shapes are their own.
static ot_status check_alone(const ot_session *session, const ot__compiled_model *program,
                             const ot_graph *graph)
{
    if (session->ranks == NULL)
        return OT_OK;
    for (int n = 0; n < graph->n_nodes; n++)
        if ((graph->nodes[n]->op->flags & OT_OP_ORDERED) != 0)
            return ot__error(OT_ERR_UNSUPPORTED,
                             "%s: %s sums over ranks, and its values decide on shapes",
                             program->what, OT_LABEL(graph->nodes[n]));
    for (int i = 0; program->gathers && i < program->n_inputs; i++) {
        const ot_node *reader = find_reader(graph, graph->inputs[i]);

        if (program->inputs[i].role == OT_ROLE_PARAMETER && reader != NULL)
            return ot__error(OT_ERR_UNSUPPORTED,
                             "%s: values of %s decide on shapes, and its parameter '%s' is cut "
                             "over the ranks (zero): train with a lower stage",
                             program->what, OT_LABEL(reader), graph->inputs[i]->name);
    }
    return OT_OK;
}

ot_status ot__question_plan(void *owner, const ot__compiled_model *program, ot_graph *graph,
                            const ot__input_shapes *shapes, size_t *excess, ot__plan **plan)
{
    const ot_session *session = owner;
    ot__plan_options options;
    const ot_layout **layouts;
    ot_status st;

    OT_TRY(check_alone(session, program, graph));
    OT_TRY(ot__plan_budget(session, 0, &options));
    layouts = ot__packing_of_inputs(session, program, graph->n_inputs);
    OT_TRY(ot__made(layouts != NULL));
    options.borrow_block = false;
    options.input_layouts = layouts;
    options.excess = excess;
    st = ot__plan_create(graph, &options, shapes->lengths, shapes->sequences, plan);
    ot__free(layouts);
    return st;
}

// What the plan would change, such as running statistics, it changes in a copy.
static ot_status bind_copies(const ot_session *session, const ot__compiled_model *program,
                             ot__plan *question, ot_tensor **copies)
{
    for (int i = 0; i < program->n_inputs; i++) {
        const ot__input *input = &program->inputs[i];

        if (input->role != OT_ROLE_PARAMETER || !ot__plan_writes_input(question, i))
            continue;
        OT_TRY(ot_tensor_clone(ot__session_parameter(session, program, input), &copies[i]));
        ot__plan_bind_input(question, i, 0, copies[i]->data);
    }
    return OT_OK;
}

ot_status ot__question_answer(void *owner, const ot__compiled_model *program, ot__plan *question)
{
    ot_session *session = owner;
    const ot_step step = ot__session_present_step(session, program);
    ot_tensor **copies = ot__alloc_zero((size_t)program->n_inputs + 1, sizeof *copies);
    ot_status st = ot__made(copies != NULL);

    if (st == OT_OK) {
        ot__packing_enter(session);
        ot__session_bind_inputs(session, program, question, program->given.tensors);
        st = bind_copies(session, program, question, copies);
    }
    OT_THEN(st, ot__plan_run(question, &step));
    for (int i = 0; copies != NULL && i < program->n_inputs; i++)
        ot_tensor_destroy(copies[i]);
    ot__free(copies);
    return st;
}
