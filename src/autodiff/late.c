// SPDX-License-Identifier: Apache-2.0
// The gradients that a Backward stands for, once the turns of all loops stand in the graph.
#include "autodiff/autodiff.h"
#include "passes/passes.h"

static ot_node *find_backward(const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (ot__is_backward(graph->nodes[n]))
            return graph->nodes[n];
    return NULL;
}

// A file may have anything there.
static ot_status check_backward(const ot_node *node)
{
    const int n_from = node->n_inputs - OT_BACKWARD_FROM;
    bool fits = n_from > 0 && node->n_outputs <= n_from && node->inputs[OT_BACKWARD_OF] != NULL;

    for (int i = 0; fits && i < node->n_outputs; i++)
        fits = node->outputs[i] == NULL || node->inputs[OT_BACKWARD_FROM + i] != NULL;
    return fits ? OT_OK
                : ot__error(OT_ERR_INVALID,
                            "%s: expected a loss, its gradient, values, and a gradient for each",
                            OT_LABEL(node));
}

// What readers of the Backward go on with.
static ot_status replace_output(ot_graph *graph, ot_value *y, ot_value *dx)
{
    ot__builder b = {.graph = graph};

    if (dx != NULL) {
        ot__op_settle(&b, ot__op_build(&b, "", "Identity", "", &dx, 1, &y, 1));
        return b.status;
    }
    y->constant = ot__model_tensor_new(graph->model, y->dtype, &y->shape); // zeros
    return ot__made(y->constant);
}

// Of the outputs that are given.
typedef struct late_gradients {
    ot_graph *graph;
    ot_value *target, *seed;
    ot_value **outputs, **from, **dx; // dx NULL: the target does not come from it
    int n;
} late_gradients;

static ot_status late_init(late_gradients *l, const ot_node *node)
{
    ot__arena *arena = node->graph->model->arena;
    const size_t n = (size_t)node->n_outputs + 1;

    *l = (late_gradients){.graph = node->graph,
                          .target = node->inputs[OT_BACKWARD_OF],
                          .seed = node->inputs[OT_BACKWARD_SEED]};
    l->outputs = ot__arena_alloc(arena, n * sizeof *l->outputs);
    l->from = ot__arena_alloc(arena, n * sizeof *l->from);
    l->dx = ot__arena_alloc(arena, n * sizeof *l->dx);
    OT_TRY(ot__made(l->outputs && l->from && l->dx));
    for (int i = 0; i < node->n_outputs; i++) {
        if (node->outputs[i] == NULL)
            continue;
        l->outputs[l->n] = node->outputs[i];
        l->from[l->n++] = node->inputs[OT_BACKWARD_FROM + i];
    }
    return OT_OK;
}

static ot_status late_build(late_gradients *l)
{
    ot__arena *arena = l->graph->model->arena;
    ot__path_status *paths = ot__arena_alloc(arena, (size_t)(l->n + 1) * sizeof *paths);
    ot_value **wanted = ot__arena_alloc(arena, (size_t)(l->n + 1) * sizeof *wanted);
    ot_value **grads = ot__arena_alloc(arena, (size_t)(l->n + 1) * sizeof *grads);
    int n = 0;

    OT_TRY(ot__made(paths && wanted && grads));
    OT_TRY(ot__autodiff_paths(l->graph, l->target, l->from, l->n, ot__edge_passes, paths, NULL));
    for (int i = 0; i < l->n; i++)
        if (paths[i] == OT_PATH_OK || paths[i] == OT_PATH_UNSUPPORTED)
            wanted[n++] = l->from[i];
    if (n > 0)
        OT_TRY(ot__autodiff_build(l->graph, l->target, l->seed, wanted, n, grads));
    for (int i = 0, k = 0; i < l->n; i++)
        if (k < n && wanted[k] == l->from[i])
            l->dx[i] = grads[k++];
    return OT_OK;
}

static ot_status write_late(ot_node *node)
{
    late_gradients l;

    OT_TRY(check_backward(node));
    OT_TRY(late_init(&l, node));
    OT_TRY(late_build(&l));
    ot__node_detach(node);
    for (int i = 0; i < l.n; i++)
        OT_TRY(replace_output(l.graph, l.outputs[i], l.dx[i]));
    ot__graph_drop_detached(l.graph);
    return ot__graph_sort(l.graph);
}

ot_status ot__autodiff_late(ot_model *model, bool *changed)
{
    ot_node *node = find_backward(model->graph);

    *changed = node != NULL;
    if (node == NULL)
        return OT_OK;
    OT_TRY(ot__pass_train(model)); // what the turns have brought
    OT_TRY(write_late(node));
    return ot__pass_finished(model, "late_gradients");
}
