// SPDX-License-Identifier: Apache-2.0
// Walking a graph forwards from values and backwards from a target.
#include "autodiff/reach.h"

bool ot__value_is_differentiable(const ot_value *value)
{
    return value->kind == OT_VALUE_TENSOR && ot__dtype_is_float(value->dtype);
}

bool ot__reach_waits(const ot_node *node)
{
    return node->op == ot__op_control;
}

// What such a node does with what it reads is not known.
static bool is_opaque(const ot_node *node)
{
    return ot__op_is_foreign(node) || ot__reach_waits(node);
}

// What an opaque node may hand a gradient through: anything that could hold numbers of a float
// type.
static bool may_be_differentiable(const ot_value *value)
{
    const bool is_typed = value->kind == OT_VALUE_TENSOR || value->kind == OT_VALUE_SEQUENCE;

    return !is_typed || value->dtype == OT_DTYPE_UNDEFINED || ot__dtype_is_float(value->dtype);
}

bool ot__edge_passes(const ot_node *node, int i_input)
{
    const ot_value *x = node->inputs[i_input];
    const ot_port *port;

    if (is_opaque(node))
        return x && may_be_differentiable(x);
    if (!x || !ot__value_is_differentiable(x) || (node->op->flags & OT_OP_NO_GRAD) != 0)
        return false;
    port = ot__op_input_port(node->op, i_input);
    return port && (port->flags & (OT_PORT_NO_GRAD | OT_PORT_STATE)) == 0;
}

bool ot__edge_trains(const ot_node *node, int i_input)
{
    const ot_port *port = ot__op_input_port(node->op, i_input);

    return ot__edge_passes(node, i_input) &&
           !(port != NULL && (port->flags & OT_PORT_STATISTIC) != 0);
}

bool ot__output_passes(const ot_node *node, int i_output)
{
    const ot_value *y = node->outputs[i_output];
    const ot_port *port;

    if (is_opaque(node))
        return y && may_be_differentiable(y);
    if (!y || !ot__value_is_differentiable(y))
        return false;
    port = ot__op_output_port(node->op, i_output);
    return port && (port->flags & OT_PORT_NO_GRAD) == 0;
}

typedef struct capture_list {
    const ot__reach *reach;
    void (*visit)(void *context, const ot_value *value);
    void *context;
} capture_list;

static void visit_capture(void *context, ot_value *value)
{
    const capture_list *list = context;

    if (ot__reach_knows(list->reach, value) && may_be_differentiable(value))
        list->visit(list->context, value);
}

void ot__reach_visit_captures(const ot__reach *reach, const ot_node *node,
                              void (*visit)(void *context, const ot_value *value), void *context)
{
    capture_list list = {reach, visit, context};

    if (is_opaque(node))
        ot__node_visit_captures(node, visit_capture, &list);
}

typedef struct capture_search {
    const ot__reach *reach;
    const ot_value *found;
} capture_search;

static void find_capture(void *context, const ot_value *value)
{
    capture_search *search = context;

    if (!search->found && search->reach->from[ot__reach_number(search->reach, value)])
        search->found = value;
}

const ot_value *ot__reach_find_capture(const ot__reach *reach, const ot_node *node)
{
    capture_search search = {reach, NULL};

    ot__reach_visit_captures(reach, node, find_capture, &search);
    return search.found;
}

static void note_going(void *context, const ot_value *value)
{
    ot__reach *reach = context;

    reach->to[ot__reach_number(reach, value)] = true;
}

static bool any_input_passes(const ot__reach *reach, const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && reach->from[ot__reach_number(reach, node->inputs[i])] &&
            reach->edge(node, i))
            return true;
    return ot__reach_find_capture(reach, node) != NULL;
}

bool ot__reach_goes_on(const ot__reach *reach, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && reach->to[ot__reach_number(reach, node->outputs[i])] &&
            ot__output_passes(node, i))
            return true;
    return false;
}

static void walk_forward(ot__reach *reach)
{
    for (int n = 0; n < reach->n_nodes; n++) {
        const ot_node *node = reach->graph->nodes[n];

        if (!any_input_passes(reach, node))
            continue;
        reach->is_active[n] = true;
        for (int i = 0; i < node->n_outputs; i++)
            if (ot__output_passes(node, i))
                reach->from[ot__reach_number(reach, node->outputs[i])] = true;
    }
}

static void walk_backward(ot__reach *reach)
{
    for (int n = reach->n_nodes - 1; n >= 0; n--) {
        const ot_node *node = reach->graph->nodes[n];

        if (!ot__reach_goes_on(reach, node)) {
            reach->is_active[n] = false;
            continue;
        }
        for (int i = 0; i < node->n_inputs; i++)
            if (reach->edge(node, i))
                reach->to[ot__reach_number(reach, node->inputs[i])] = true;
        ot__reach_visit_captures(reach, node, note_going, reach);
    }
}

static ot_status check_target(const ot__reach *reach)
{
    const ot_value *target = reach->target;

    if (!ot__reach_knows(reach, target) || !target->producer)
        return ot__error(OT_ERR_INVALID, "loss '%s' is computed by no operator", target->name);
    if (!ot__value_is_differentiable(target))
        return ot__error(OT_ERR_INVALID, "loss '%s' has element type %s, expected a float type",
                         target->name, ot_dtype_name(target->dtype));
    return OT_OK;
}

ot_status ot__reach_build(ot_graph *graph, const ot_value *target, ot_value *const *from,
                          int n_from, ot__edge_rule *edge, ot__reach *reach)
{
    size_t n_values;

    *reach = (ot__reach){.graph = graph, .target = target, .edge = edge};
    OT_TRY(ot__graph_sort(graph));
    OT_TRY(ot__uses_build(graph, &reach->uses));
    reach->n_nodes = graph->n_nodes;
    n_values = (size_t)reach->uses.numbers.n_values;
    reach->from = ot__alloc_zero(n_values, sizeof *reach->from);
    reach->to = ot__alloc_zero(n_values, sizeof *reach->to);
    reach->is_active = ot__alloc_zero((size_t)reach->n_nodes, sizeof *reach->is_active);
    OT_TRY(ot__made(reach->from && reach->to && reach->is_active));
    OT_TRY(check_target(reach));
    for (int i = 0; i < n_from; i++)
        if (ot__reach_knows(reach, from[i]) && ot__value_is_differentiable(from[i]))
            reach->from[ot__reach_number(reach, from[i])] = true;
    reach->to[ot__reach_number(reach, target)] = true;
    walk_forward(reach);
    walk_backward(reach);
    return OT_OK;
}

void ot__reach_deinit(ot__reach *reach)
{
    ot__uses_deinit(&reach->uses);
    ot__free(reach->from);
    ot__free(reach->to);
    ot__free(reach->is_active);
    *reach = (ot__reach){0};
}

bool ot__reach_wants(const ot__reach *reach, const ot_node *node, int i_input)
{
    const ot_value *x = i_input < node->n_inputs ? node->inputs[i_input] : NULL;

    return x && ot__has_node_number(&reach->uses.numbers, node) &&
           reach->is_active[ot__node_number(&reach->uses.numbers, node)] &&
           reach->from[ot__reach_number(reach, x)] && reach->edge(node, i_input);
}
