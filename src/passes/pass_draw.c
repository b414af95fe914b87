// SPDX-License-Identifier: Apache-2.0
// Values that nodes draw become initializers: a model written by hand states so what its parameters
// begin with.
#include <string.h>

#include "passes/passes.h"

// The tensor whose shape such a node takes; *is_drawn false: the shape follows only at run time, or
// what is drawn depends on elements, so that it is noise and no initial value.
static const ot_tensor *drawn_like(const ot_node *node, bool *is_drawn)
{
    const ot_op_def *op = ot__node_record(node);
    const ot_value *x = node->n_inputs > 0 ? node->inputs[0] : NULL;
    const ot_tensor *like = x && !x->constant ? ot__match_constant(x->producer)
                            : x               ? x->constant
                                              : NULL;

    *is_drawn = op && (op->flags & OT_OP_RANDOM) != 0 && node->n_outputs == 1 && node->outputs[0] &&
                !node->outputs[0]->is_output &&
                (node->n_inputs == 0 || (like && (op->flags & OT_OP_SHAPE_ONLY) != 0));
    return like;
}

// By one thread: how many there may be is said by sessions, and there is none yet.
static ot_status draw_once(const ot_node *node, uint64_t seed, const ot_tensor *like,
                           ot_tensor **out)
{
    const ot_step step = {.seed = seed};
    const int n_threads = ot__parallel_max();
    ot_status st;

    ot__parallel_set(1);
    st = ot__op_eval_in_step(node, &step, &like, node->n_inputs, out, 1);
    ot__parallel_set(n_threads);
    return st;
}

// The node is detached where values take its place.
static ot_status draw_node(ot_graph *graph, ot_node *node, uint64_t seed)
{
    ot_value *value = node->n_outputs > 0 ? node->outputs[0] : NULL;
    ot_tensor *drawn = NULL, *kept;
    bool is_drawn;
    const ot_tensor *like = drawn_like(node, &is_drawn);

    if (!is_drawn)
        return OT_OK;
    node->op = ot__node_record(node);
    OT_TRY(ot__op_check_node(node));
    OT_TRY(draw_once(node, seed, like, &drawn));
    kept = ot__model_tensor_new(graph->model, drawn->dtype, &drawn->shape);
    if (kept)
        memcpy(kept->data, drawn->data, drawn->n_bytes);
    ot_tensor_destroy(drawn);
    OT_TRY(ot__made(kept));
    ot__node_detach(node);
    return ot__made(ot__graph_add_initializer(graph, value, kept));
}

ot_status ot__pass_draw(ot_model *model, uint64_t seed)
{
    ot_graph *graph = model->graph;
    ot_status st = OT_OK;

    for (int n = 0; st == OT_OK && n < graph->n_nodes; n++)
        st = draw_node(graph, graph->nodes[n], seed);
    ot__graph_drop_detached(graph);
    return st;
}
