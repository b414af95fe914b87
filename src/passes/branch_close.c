// SPDX-License-Identifier: Apache-2.0
// An If again, of both branches in a graph: what leads to one branch alone is computed in a graph
// of the node.
#include "passes/branch.h"

typedef struct closing {
    ot__branch then, otherwise;
    ot_node *node;  // the If
    ot_node **ends; // BranchOutputs, in the order of its outputs
    int n_ends;
} closing;

static ot_status list_ends(closing *c)
{
    const ot_graph *graph = c->then.graph;

    c->ends = ot__alloc_zero((size_t)graph->n_nodes + 1, sizeof(ot_node *));
    OT_TRY(ot__made(c->ends != NULL));
    for (int n = 0; n < graph->n_nodes; n++)
        if (ot__branch_ends(&c->then, graph->nodes[n]))
            c->ends[c->n_ends++] = graph->nodes[n];
    return OT_OK;
}

// An output of its own for each: a value from outside, or one that is one already, is copied.
static ot_status add_body_output(ot_graph *body, ot_value *x, const ot_value *y)
{
    const bool is_own = x->producer != NULL && x->producer->graph == body && !x->is_output;

    if (!is_own) {
        ot_value *copy = ot__graph_new_value(body, y->name);

        OT_TRY(ot__made(copy != NULL));
        ot__value_set(copy, x->dtype, x->has_shape ? &x->shape : NULL);
        OT_TRY(ot__made(ot__graph_add_node(body, "", "Identity", copy->name, &x, 1, &copy, 1) !=
                        NULL));
        x = copy;
    }
    return ot__made(ot__graph_add_output(body, x));
}

static ot_status close_body(const closing *c, const ot__branch *b, int n_nodes, const char *name)
{
    ot_graph *body = ot__graph_create(b->graph->model, b->graph, name);
    ot_attr *attr = ot__node_add_attr(c->node, name, OT_ATTR_GRAPH);

    OT_TRY(ot__made(body != NULL && attr != NULL));
    attr->g = body;
    for (int n = 0; n < n_nodes; n++)
        if (b->is_inside[n])
            OT_TRY(ot__node_move(b->graph->nodes[n], body));
    for (int i = 0; i < c->n_ends; i++)
        OT_TRY(add_body_output(body, c->ends[i]->inputs[b->port], c->node->outputs[i]));
    return OT_OK;
}

static ot_status add_if(closing *c)
{
    ot_graph *graph = c->then.graph;
    ot_value **y = ot__alloc_zero((size_t)c->n_ends + 1, sizeof(ot_value *));

    OT_TRY(ot__made(y != NULL));
    for (int i = 0; i < c->n_ends; i++) {
        y[i] = c->ends[i]->outputs[0];
        ot__node_detach(c->ends[i]);
    }
    c->node =
        ot__graph_add_node(graph, "", "If", c->ends[0]->name, &c->then.condition, 1, y, c->n_ends);
    ot__free(y);
    return ot__made(c->node != NULL);
}

static ot_status close_condition(ot_graph *graph, ot_value *condition)
{
    closing c = {.then = {.graph = graph, .condition = condition, .port = OT_BRANCH_THEN},
                 .otherwise = {.graph = graph, .condition = condition, .port = OT_BRANCH_ELSE}};
    const int n_nodes = graph->n_nodes;
    ot_status st = list_ends(&c);

    OT_THEN(st, ot__branch_find(&c.then));
    OT_THEN(st, ot__branch_find(&c.otherwise));
    OT_THEN(st, add_if(&c));
    OT_THEN(st, close_body(&c, &c.then, n_nodes, "then_branch"));
    OT_THEN(st, close_body(&c, &c.otherwise, n_nodes, "else_branch"));
    ot__branch_deinit(&c.then);
    ot__branch_deinit(&c.otherwise);
    ot__free(c.ends);
    OT_TRY(st);
    ot__graph_drop_detached(graph);
    return ot__graph_sort(graph);
}

ot_status ot__branches_close(ot_model *model)
{
    ot_value **conditions;
    ot_status st = OT_OK;
    int n;

    if (!ot__has_branches(model->graph))
        return OT_OK;
    OT_TRY(ot__branch_conditions(model->graph, &conditions, &n));
    for (int i = n - 1; i >= 0 && st == OT_OK; i--) // from the inside
        st = close_condition(model->graph, conditions[i]);
    ot__free(conditions);
    OT_TRY(st);
    ot__pass_drop_imports(model, "ai.onnxtrain");
    model->is_prepared = false;
    return ot__pass_finished(model, "close");
}
