// SPDX-License-Identifier: Apache-2.0
// Which values an exported model gives when none are named.
//
// A user input is a target when no parameter is read anywhere behind it: labels meet the network
// only in the loss. The outputs that depend on no target are what the network says. An eval model
// has often none, only the loss; then it is the values that enter the loss.
#include <string.h>

#include "session/session_internal.h"

typedef struct survey {
    const ot__compiled_model *program;
    ot_model *model; // a copy of the program's, which others may have too, for its numbers
    ot__uses uses;
    bool *is_parameter, *feeds_parameter, *has_target, *has_data;
    bool *is_derived; // from a frontier value, reading no parameter on the way
    bool *is_frontier;
} survey;

static ot_status survey_init(survey *s, const ot__compiled_model *program)
{
    bool **const flags[] = {&s->is_parameter, &s->feeds_parameter, &s->has_target,
                            &s->has_data,     &s->is_derived,      &s->is_frontier};

    *s = (survey){.program = program};
    OT_TRY(ot__model_clone(program->model, &s->model));
    OT_TRY(ot__uses_build(s->model->graph, &s->uses));
    for (size_t i = 0; i < OT_COUNT(flags); i++) {
        *flags[i] = ot__arena_alloc(s->model->arena, (size_t)s->uses.numbers.n_values + 1);
        OT_TRY(ot__made(*flags[i] != NULL));
    }
    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_PARAMETER)
            s->is_parameter[ot__value_number(&s->uses.numbers, s->model->graph->inputs[i])] = true;
    return OT_OK;
}

static void survey_deinit(survey *s)
{
    ot__uses_deinit(&s->uses);
    ot_model_destroy(s->model);
}

static bool any(const survey *s, const bool *flags, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        if (values[i] != NULL && flags[ot__value_number(&s->uses.numbers, values[i])])
            return true;
    return false;
}

static void set(const survey *s, bool *flags, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        if (values[i] != NULL)
            flags[ot__value_number(&s->uses.numbers, values[i])] = true;
}

static void find_targets(survey *s)
{
    const ot_graph *g = s->model->graph;

    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const ot_node *node = g->nodes[k];

        if (any(s, s->is_parameter, node->inputs, node->n_inputs) ||
            any(s, s->feeds_parameter, node->outputs, node->n_outputs))
            set(s, s->feeds_parameter, node->inputs, node->n_inputs);
    }
    for (int i = 0; i < s->program->n_user_inputs; i++) {
        const int v = ot__value_number(&s->uses.numbers, g->inputs[s->program->user_inputs[i]]);

        s->has_target[v] = !s->feeds_parameter[v];
        s->has_data[v] = s->feeds_parameter[v];
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const ot_node *node = g->nodes[k];

        if (any(s, s->has_target, node->inputs, node->n_inputs))
            set(s, s->has_target, node->outputs, node->n_outputs);
        if (any(s, s->has_data, node->inputs, node->n_inputs))
            set(s, s->has_data, node->outputs, node->n_outputs);
    }
}

static bool is_result(const survey *s, const ot_value *value)
{
    return s->has_data[ot__value_number(&s->uses.numbers, value)] &&
           !s->has_target[ot__value_number(&s->uses.numbers, value)] && value->producer != NULL;
}

// Values read by a node that reads targets too, but not those that only prepare such a value for
// the loss, as a logarithm of the scores does.
static void find_frontier(survey *s)
{
    const ot_graph *g = s->model->graph;

    for (int k = 0; k < g->n_nodes; k++) {
        const ot_node *node = g->nodes[k];

        if (!any(s, s->has_target, node->inputs, node->n_inputs))
            continue;
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] != NULL && is_result(s, node->inputs[i]))
                s->is_frontier[ot__value_number(&s->uses.numbers, node->inputs[i])] = true;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const ot_node *node = g->nodes[k];

        if (any(s, s->is_parameter, node->inputs, node->n_inputs))
            continue;
        if (any(s, s->is_frontier, node->inputs, node->n_inputs) ||
            any(s, s->is_derived, node->inputs, node->n_inputs))
            set(s, s->is_derived, node->outputs, node->n_outputs);
    }
}

// The name, of the program's model.
static const char *export_name(const survey *s, const ot_value *value)
{
    return ot__graph_find(s->program->model->graph, value->name)->name;
}

static int list_outputs(const survey *s, const char **names)
{
    const ot_graph *g = s->model->graph;
    int n = 0;

    for (int i = 0; i < s->program->n_user_outputs; i++) {
        const ot_value *value = g->outputs[s->program->user_outputs[i]];

        if (is_result(s, value))
            names[n++] = export_name(s, value);
    }
    return n;
}

static int list_frontier(const survey *s, const char **names)
{
    int n = 0;

    for (int v = 0; v < s->uses.numbers.n_values; v++)
        if (s->is_frontier[v] && !s->is_derived[v])
            names[n++] = export_name(s, s->uses.numbers.values[v]);
    return n;
}

ot_status ot__export_outputs(const ot__compiled_model *program, const char ***names, int *n_names)
{
    survey s;
    ot_status st = survey_init(&s, program);

    *names = NULL;
    *n_names = 0;
    if (st == OT_OK) {
        *names = ot__alloc_zero((size_t)s.uses.numbers.n_values + 1, sizeof(char *));
        st = ot__made(*names != NULL);
    }
    if (st == OT_OK) {
        find_targets(&s);
        *n_names = list_outputs(&s, *names);
        if (*n_names == 0) {
            find_frontier(&s);
            *n_names = list_frontier(&s, *names);
        }
        if (*n_names == 0)
            st = ot__error(OT_ERR_INVALID,
                           "every value of the eval model depends on a target: name the outputs");
    }
    survey_deinit(&s);
    return st;
}
