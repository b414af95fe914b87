// SPDX-License-Identifier: Apache-2.0
// The structure of a graph: what every pass may rely on.
#include <string.h>

#include "graph/graph_internal.h"

typedef struct scope {
    const ot_graph *graph;
    ot__map defined; // name -> value
    struct scope *outer;
} scope;

static const char *graph_name(const ot_graph *graph)
{
    return graph->name[0] ? graph->name : graph->parent ? "subgraph" : "main";
}

static ot_status define(scope *s, const ot_value *value, const char *what)
{
    const ot_value *other = ot__map_get(&s->defined, value->name);

    if (ot__graph_find(s->graph, value->name) != value)
        return ot__error(OT_ERR_INTERNAL, "%s '%s' does not belong to graph '%s'", what,
                         value->name, graph_name(s->graph));
    if (other)
        return ot__error(OT_ERR_FORMAT, "%s '%s' of graph '%s' is defined twice", what, value->name,
                         graph_name(s->graph));
    return ot__made(ot__map_put(&s->defined, value->name, (void *)(uintptr_t)value));
}

static ot_status verify_inputs(scope *s)
{
    const ot_graph *graph = s->graph;

    for (int i = 0; i < graph->n_inputs; i++)
        OT_TRY(define(s, graph->inputs[i], "input"));
    for (int i = 0; i < graph->n_initializers; i++) {
        const ot_value *value = graph->initializers[i];

        if (!value->constant)
            return ot__error(OT_ERR_INTERNAL, "initializer '%s' has no elements", value->name);
        if (!value->is_input)
            OT_TRY(define(s, value, "initializer"));
    }
    return OT_OK;
}

static bool is_defined(const scope *s, const ot_value *value)
{
    for (; s; s = s->outer) {
        const ot_value *found = ot__map_get(&s->defined, value->name);

        if (found)
            return found == value;
        // A folded value needs no producer.
        if (value->constant && !value->producer && ot__graph_find(s->graph, value->name) == value)
            return true;
    }
    return false;
}

static ot_status undefined_input(const scope *s, const ot_node *node, int i_input)
{
    const ot_value *value = node->inputs[i_input];
    const char *label = OT_LABEL(node);
    const ot_node *on_cycle = NULL;

    if (!value->producer)
        return ot__error(OT_ERR_FORMAT, "%s: input %d, '%s', is not defined", label, i_input,
                         value->name);
    for (; s && !on_cycle; s = s->outer)
        on_cycle = ot__graph_find_cycle((ot_graph *)(uintptr_t)s->graph);
    if (on_cycle)
        return ot__error(OT_ERR_FORMAT, "%s depends on its own output", OT_LABEL(on_cycle));
    return ot__error(OT_ERR_FORMAT, "%s: input %d, '%s', is used before %s defines it", label,
                     i_input, value->name, OT_LABEL(value->producer));
}

static ot_status verify_graph(const ot_graph *graph, scope *outer);

static ot_status verify_node(const ot_node *node, scope *s)
{
    if (node->graph != s->graph)
        return ot__error(OT_ERR_INTERNAL, "%s belongs to another graph", OT_LABEL(node));
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && !is_defined(s, node->inputs[i]))
            return undefined_input(s, node, i);
    for (ot__subgraphs inner = {.node = node}; ot__next_subgraph(&inner);)
        OT_TRY(verify_graph(inner.graph, s));
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *value = node->outputs[i];

        if (!value)
            continue;
        OT_TRY(define(s, value, "value"));
        if (value->producer != node || value->i_producer_output != i)
            return ot__error(OT_ERR_INTERNAL, "'%s' does not know %s as its producer", value->name,
                             OT_LABEL(node));
    }
    return OT_OK;
}

// Of a subgraph or function; a model may give one value several times, as ONNX Runtime's do.
static ot_status check_listed_once(const ot_graph *graph)
{
    ot__map seen = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < graph->n_outputs && st == OT_OK; i++) {
        const ot_value *value = graph->outputs[i];

        if (ot__map_get(&seen, value->name))
            st = ot__error(OT_ERR_FORMAT, "output '%s' of graph '%s' is listed twice", value->name,
                           graph_name(graph));
        else if (!ot__map_put(&seen, value->name, (void *)(uintptr_t)value))
            st = OT_ERR_NO_MEMORY;
    }
    ot__map_deinit(&seen);
    return st;
}

static ot_status verify_outputs(const scope *s)
{
    const ot_graph *graph = s->graph;

    for (int i = 0; i < graph->n_outputs; i++)
        if (!is_defined(s, graph->outputs[i]))
            return ot__error(OT_ERR_FORMAT, "output '%s' of graph '%s' is not defined",
                             graph->outputs[i]->name, graph_name(graph));
    return s->outer ? check_listed_once(graph) : OT_OK;
}

static ot_status verify_contents(scope *s)
{
    OT_TRY(verify_inputs(s));
    for (int n = 0; n < s->graph->n_nodes; n++)
        OT_TRY(verify_node(s->graph->nodes[n], s));
    return verify_outputs(s);
}

static ot_status verify_graph(const ot_graph *graph, scope *outer)
{
    scope s = {.graph = graph, .outer = outer};
    ot_status st = verify_contents(&s);

    ot__map_deinit(&s.defined);
    return st;
}

ot_status ot__graph_verify(const ot_graph *graph)
{
    return verify_graph(graph, NULL);
}

ot_status ot__model_verify(const ot_model *model)
{
    for (int i = 0; i < model->n_functions; i++) {
        const ot_graph *body = model->functions[i]->body;
        ot_status st = ot__graph_verify(body);

        OT_THEN(st, check_listed_once(body));
        if (st != OT_OK)
            return ot__error_prefix(st, "function '%s'", model->functions[i]->name);
    }
    return ot__graph_verify(model->graph);
}
