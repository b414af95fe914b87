// SPDX-License-Identifier: Apache-2.0
// The graph inside a node, put into the graph around it: a branch of If, one turn of Loop.
#include "graph/graph_internal.h"

static ot_status bind_body_inputs(ot__copy_scope *scope, ot_value *const *given)
{
    for (int i = 0; i < scope->from->n_inputs; i++)
        OT_TRY(ot__made(ot__map_put(&scope->renamed, scope->from->inputs[i]->name, given[i])));
    return OT_OK;
}

static ot_status copy_body(const ot__copier *copier, ot__copy_scope *scope, ot_value **made)
{
    const ot_graph *body = scope->from;

    for (int i = 0; i < body->n_initializers; i++) {
        ot_value *initializer = body->initializers[i], *copy;

        OT_TRY(ot__copy_value(copier, scope, initializer, &copy));
        if (!initializer->is_input)
            OT_TRY(ot__made(ot__graph_add_initializer(scope->to, copy, initializer->constant)));
    }
    for (int n = 0; n < body->n_nodes; n++) {
        ot_node *copy;

        OT_TRY(ot__copy_node(copier, scope, body->nodes[n], &copy));
    }
    for (int i = 0; i < body->n_outputs; i++)
        OT_TRY(ot__copy_value(copier, scope, body->outputs[i], &made[i]));
    return OT_OK;
}

ot_status ot__graph_inline_body(ot_graph *graph, const ot_graph *body, ot_value *const *given,
                                ot_value **made)
{
    const ot__copier copier = {.rename = true};
    ot__copy_scope scope = {.from = body, .to = graph};
    ot_status st = bind_body_inputs(&scope, given);

    OT_THEN(st, copy_body(&copier, &scope, made));
    ot__map_deinit(&scope.renamed);
    return st;
}
