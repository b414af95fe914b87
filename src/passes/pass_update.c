// SPDX-License-Identifier: Apache-2.0
// The update inside the backward pass: for each accumulator of a training graph stands what the
// optimizer makes of that parameter alone, right behind the gradient, which nobody keeps. The
// order of the nodes is the plan's: readers of a parameter run before the node that changes it.
#include <assert.h>
#include <string.h>

#include "passes/passes.h"

#define UPDATE_DOMAIN "ai.onnxtrain"
enum { BUFFER, VALUE, DONE = 0 }; // inputs and output of an accumulator
#define ATTR_GROUP "group"        // of optimizers: numbers and names of their tensors in order
#define ATTR_NAMES "names"

// ---- which graphs ----

// A port of a flag that decides about the update; -1: there is none that is free.
static int find_signal_port(const ot_node *node)
{
    const ot_port *ports = node->op->inputs;

    for (int k = 0; ports[k].name != NULL; k++)
        if (strcmp(ports[k].type, "bool") == 0 && (ports[k].flags & OT_PORT_OPTIONAL) != 0)
            return k >= node->n_inputs || node->inputs[k] == NULL ? k : -1;
    return -1;
}

static bool is_of_node(const ot_value *value)
{
    return value->producer != NULL && value->i_producer_output == 0;
}

// Each node by itself for every tensor, of what the graph is given and what nodes before it make.
bool ot__update_is_tensorwise(const ot_graph *update)
{
    for (int i = 0; i < update->n_nodes; i++) {
        const ot_node *node = update->nodes[i];

        if ((node->op->flags & OT_OP_TENSORWISE) == 0 ||
            (node->op->rule != NULL && find_signal_port(node) < 0))
            return false;
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NULL && !is_of_node(node->inputs[k]) &&
                (!node->inputs[k]->is_input || node->inputs[k]->constant != NULL))
                return false;
    }
    return true;
}

bool ot__is_only_sum(const ot_node *node, int i_input)
{
    if ((node->op->flags & OT_OP_ACCUMULATE) == 0 || i_input != BUFFER || node->n_inputs <= VALUE ||
        node->inputs[VALUE] == NULL || node->inputs[VALUE]->dtype != node->inputs[BUFFER]->dtype)
        return false;
    for (int i = DONE + 1; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL)
            return false;
    return node->n_outputs > DONE && node->outputs[DONE] != NULL;
}

// ---- nodes of one tensor ----

typedef struct joining {
    ot__builder b;
    const ot__update_ends *ends;
    ot_value *start;      // may the update begin
    const ot_node **sums; // the accumulator of each tensor
    ot_value **made;      // per node of the optimizer's: its output, for the tensor at hand
} joining;

static ot_value *input_of_tensor(const joining *j, const ot_value *x, int tensor)
{
    const ot__update_ends *ends = j->ends;

    for (int i = 0; i < ends->update->n_nodes; i++)
        if (x->producer == ends->update->nodes[i])
            return j->made[i];
    for (int i = 0; i < ends->update->n_inputs; i++)
        if (x == ends->update->inputs[i]) {
            ot_value *value = ends->values[i * ends->n + tensor];

            return value != NULL ? value : j->sums[tensor]->inputs[VALUE];
        }
    return NULL;
}

static void copy_attrs_of_tensor(joining *j, ot_node *to, const ot_node *from, int tensor)
{
    const ot_attr *group = ot__node_attr(from, ATTR_GROUP);

    if (!ot__build_made(&j->b, ot__node_copy_attrs(to, from)))
        return;
    ot__node_remove_attr(to, ATTR_NAMES);
    if (group != NULL && group->n > tensor)
        ot__build_ints(&j->b, to, ATTR_GROUP, &group->ints[tensor], 1);
}

static void add_node_of_tensor(joining *j, int i_node, int tensor)
{
    const ot_node *from = j->ends->update->nodes[i_node];
    const int signal = from->op->rule != NULL ? find_signal_port(from) : -1;
    const int n = OT_MAX(from->n_inputs, signal + 1);
    ot_value **inputs = ot__arena_alloc(j->b.graph->model->arena, ((size_t)n + 1) * sizeof *inputs);
    ot_value *done = signal >= 0 ? j->sums[tensor]->outputs[DONE]
                                 : ot__build_value(&j->b, from->outputs[0]->name);
    ot_node *node;

    if (!ot__build_made(&j->b, inputs != NULL))
        return;
    for (int i = 0; i < from->n_inputs; i++)
        if (from->inputs[i] != NULL)
            inputs[i] = input_of_tensor(j, from->inputs[i], tensor);
    if (signal >= 0)
        inputs[signal] = j->start;
    node = ot__op_build(&j->b, from->domain, from->op_type, "", inputs, n, &done, 1);
    if (node == NULL)
        return;
    ot__value_set(done, OT_BOOL, &OT_SHAPE(1));
    copy_attrs_of_tensor(j, node, from, tensor);
    j->made[i_node] = done;
}

// ---- the graph ----

static void add_start(joining *j)
{
    const ot__update_ends *ends = j->ends;
    ot_graph *graph = j->b.graph;
    ot_value **outputs =
        ot__arena_alloc(graph->model->arena, ((size_t)ends->n_outputs + 1) * sizeof *outputs);
    ot_node *node;

    if (!ot__build_made(&j->b, outputs != NULL))
        return;
    for (int i = 0; i < ends->n_outputs; i++)
        outputs[i] = graph->outputs[ends->outputs[i]];
    j->start = ot__build_value(&j->b, "may_update");
    node = ot__op_build(&j->b, UPDATE_DOMAIN, "UpdateStart", "", outputs, ends->n_outputs,
                        &j->start, 1);
    ot__op_settle(&j->b, node);
}

// The accumulators, and of each node whose it is: -1: it is none.
static ot_status find_sums(joining *j, int *tensor_of)
{
    const ot__update_ends *ends = j->ends;
    ot__uses uses = {0};
    ot_status st = ot__uses_build(j->b.graph, &uses);

    for (int k = 0; k < j->b.graph->n_nodes; k++)
        tensor_of[k] = -1;
    for (int t = 0; st == OT_OK && t < ends->n; t++) {
        assert(ot__uses_count(&uses, ends->buffers[t]) == 1);
        j->sums[t] = uses.use[ot__uses_first(&uses, ends->buffers[t])].node;
        tensor_of[ot__node_number(&uses.numbers, j->sums[t])] = t;
    }
    ot__uses_deinit(&uses);
    return st;
}

// Updates in the order in which gradients are made.
static ot_status join_updates(joining *j, int *tensor_of)
{
    ot_graph *graph = j->b.graph;
    const int n_before = graph->n_nodes;
    int n = 0;

    OT_TRY(find_sums(j, tensor_of));
    add_start(j);
    for (int k = 0; k < n_before; k++)
        for (int i = 0; tensor_of[k] >= 0 && i < j->ends->update->n_nodes; i++)
            if (j->b.status == OT_OK)
                add_node_of_tensor(j, i, tensor_of[k]);
    for (int k = 0; k < graph->n_nodes; k++)
        if (k >= n_before || tensor_of[k] < 0)
            graph->nodes[n++] = graph->nodes[k];
    graph->n_nodes = n;
    return j->b.status;
}

ot_status ot__pass_update(ot_graph *graph, const ot__update_ends *ends)
{
    joining j = {.b = {.graph = graph}, .ends = ends};
    ot__arena *arena = graph->model->arena;
    int *tensor_of = ot__arena_alloc(arena, ((size_t)graph->n_nodes + 1) * sizeof *tensor_of);

    j.sums = ot__arena_alloc(arena, ((size_t)ends->n + 1) * sizeof(ot_node *));
    j.made = ot__arena_alloc(arena, ((size_t)ends->update->n_nodes + 1) * sizeof(ot_value *));
    OT_TRY(ot__made(tensor_of != NULL && j.sums != NULL && j.made != NULL));
    return join_updates(&j, tensor_of);
}
