// SPDX-License-Identifier: Apache-2.0
// Casts of parameters leave the step: what they make becomes inputs of the graph, which whoever
// runs it makes anew when the parameters have changed.
#include "passes/passes.h"

static bool casts_input(const ot_node *node)
{
    const ot_value *x = node->n_inputs == 1 ? node->inputs[0] : NULL;

    return ot__match_cast(node) && x != NULL && x->is_input && x->constant == NULL &&
           x->dtype == OT_F32 && ot__dtype_is_narrow(node->outputs[0]->dtype) &&
           !node->outputs[0]->is_output;
}

static ot_status hoist(ot_graph *graph, const ot__numbers *numbers, const int *input_of,
                       ot__hoisted *out)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        ot_value *value = node->outputs[0];

        if (!casts_input(node) || input_of[ot__value_number(numbers, node->inputs[0])] < 0)
            continue;
        out->of[out->n++] = input_of[ot__value_number(numbers, node->inputs[0])];
        ot__node_detach(node);
        OT_TRY(ot__made(ot__graph_add_input(graph, value)));
    }
    ot__graph_drop_detached(graph);
    return OT_OK;
}

ot_status ot__pass_hoist(ot_model *model, const bool *is_parameter, ot__hoisted *out)
{
    ot_graph *graph = model->graph;
    ot__numbers numbers = {0};
    int *input_of = NULL;
    ot_status st = ot__numbers_build(graph, &numbers);

    *out = (ot__hoisted){.first = graph->n_inputs};
    out->of = ot__arena_alloc(model->arena, ((size_t)graph->n_nodes + 1) * sizeof *out->of);
    if (st == OT_OK)
        input_of = ot__alloc_zero((size_t)numbers.n_values + 1, sizeof *input_of);
    OT_THEN(st, ot__made(out->of != NULL && input_of != NULL));
    for (int v = 0; st == OT_OK && v < numbers.n_values; v++)
        input_of[v] = -1;
    for (int i = 0; st == OT_OK && i < graph->n_inputs; i++)
        if (is_parameter[i])
            input_of[ot__value_number(&numbers, graph->inputs[i])] = i;
    OT_THEN(st, hoist(graph, &numbers, input_of, out));
    ot__free(input_of);
    ot__numbers_deinit(&numbers);
    return st == OT_OK ? ot__pass_finished(model, "hoist") : st;
}

ot_status ot__hoisted_casts(ot_graph *graph, const ot__hoisted *hoisted, ot__casts *out)
{
    const size_t n = (size_t)hoisted->n + (size_t)graph->n_nodes + 1;

    *out = (ot__casts){.made = ot__arena_alloc(graph->model->arena, n * sizeof *out->made),
                       .of = ot__arena_alloc(graph->model->arena, n * sizeof *out->of)};
    OT_TRY(ot__made(out->made != NULL && out->of != NULL));
    for (int i = 0; i < hoisted->n; i++) {
        out->made[out->n] = graph->inputs[hoisted->first + i];
        out->of[out->n++] = graph->inputs[hoisted->of[i]];
    }
    for (int k = 0; k < graph->n_nodes; k++)
        if (casts_input(graph->nodes[k])) {
            out->made[out->n] = graph->nodes[k]->outputs[0];
            out->of[out->n++] = graph->nodes[k]->inputs[0];
        }
    return OT_OK;
}

static void drop_unread(ot_graph *graph, const ot__uses *uses, ot__hoisted *hoisted)
{
    int n = 0;

    for (int i = 0; i < hoisted->n; i++) {
        ot_value *value = graph->inputs[hoisted->first + i];

        if (ot__uses_count(uses, value) == 0) {
            value->is_input = false;
            continue;
        }
        graph->inputs[hoisted->first + n] = value;
        hoisted->of[n++] = hoisted->of[i];
    }
    hoisted->n = n;
    graph->n_inputs = hoisted->first + n;
    for (int k = 0; k < graph->n_nodes; k++)
        if (casts_input(graph->nodes[k]) && ot__uses_count(uses, graph->nodes[k]->outputs[0]) == 0)
            ot__node_detach(graph->nodes[k]);
    ot__graph_drop_detached(graph);
}

ot_status ot__hoisted_drop_unread(ot_graph *graph, ot__hoisted *hoisted)
{
    ot__uses uses;

    OT_TRY(ot__uses_build(graph, &uses));
    drop_unread(graph, &uses, hoisted);
    ot__uses_deinit(&uses);
    return OT_OK;
}
