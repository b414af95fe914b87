// SPDX-License-Identifier: Apache-2.0
// The gradient of a node whose rule must know how many axes a value has, where only the inputs of a
// step tell: a node NodeGradient stands for what the rule will write then. It reads what the node
// reads and the gradients of what it makes, and has its attributes, behind OT__FORWARD_ATTR.
#include <string.h>

#include "op/grad.h"

// Of the first output that has one.
static ot_value *first_gradient(ot_grad *g)
{
    for (int k = 0; k < g->node->n_outputs; k++) {
        ot_value *dy = ot_grad_dy(g, k);

        if (dy != NULL)
            return dy;
    }
    return NULL;
}

// All gradients are of one type, which the first of those that arrive tells; what the node changes
// or draws must not be done twice, since the rule may read what a copy of the node makes.
static bool can_be_deferred(const ot_grad *g, const ot_value *dy)
{
    if (dy == NULL || !ot__op_is_deterministic(g->node) ||
        ot__next_subgraph(&(ot__subgraphs){.node = g->node}))
        return false;
    for (int i = 0; i < g->node->n_inputs; i++)
        if (ot_grad_wants(g, i) && g->node->inputs[i]->dtype != dy->dtype)
            return false;
    return true;
}

static void describe_forward(ot_grad *g, ot_node *late)
{
    ot__arena *arena = g->build.graph->model->arena;
    const ot_node *node = g->node;
    int64_t *given = ot__arena_alloc(arena, ((size_t)node->n_outputs + 1) * sizeof *given);

    if (late == NULL ||
        !ot__build_made(&g->build, given != NULL && ot__node_copy_attrs(late, node)))
        return;
    for (int i = 0; i < late->n_attrs; i++) {
        late->attrs[i]->name = ot__arena_printf(arena, OT__FORWARD_ATTR "%s", late->attrs[i]->name);
        if (!ot__build_made(&g->build, late->attrs[i]->name != NULL))
            return;
    }
    for (int k = 0; k < node->n_outputs; k++)
        given[k] = node->outputs[k] != NULL;
    ot_emit_string(g, late, "domain", node->domain);
    ot_emit_string(g, late, "op_type", node->op_type);
    ot_emit_int(g, late, "n_inputs", node->n_inputs);
    ot_emit_ints(g, late, "outputs", given, node->n_outputs);
}

static ot_node *emit_late(ot_grad *g, ot_value *first)
{
    const ot_node *node = g->node;
    const int n_x = node->n_inputs, n = n_x + node->n_outputs + 1;
    ot_value **in = ot__arena_alloc(g->build.graph->model->arena, (size_t)n * sizeof(ot_value *));
    ot_node *late;

    if (!ot__build_made(&g->build, in != NULL))
        return NULL;
    in[0] = first;
    for (int i = 0; i < n_x; i++)
        in[1 + i] = node->inputs[i];
    for (int k = 0; k < node->n_outputs; k++)
        in[1 + n_x + k] = ot_grad_dy(g, k);
    late = ot_emit(g, "ai.onnxtrain.NodeGradient", NULL, in, n, n_x);
    describe_forward(g, late);
    for (int i = 0; late != NULL && i < n_x; i++)
        if (!ot_grad_wants(g, i))
            ot_emit_omit_output(g, late, i);
    return late;
}

// A gradient has the shape of its value.
static ot_value *late_output(ot_grad *g, ot_node *late, int i)
{
    const ot_value *x = g->node->inputs[i];
    ot_value *dx = ot_emit_output(g, late, i);

    if (dx != NULL)
        ot__value_set(dx, x->dtype, x->has_shape ? &x->shape : NULL);
    return dx;
}

ot_status ot__grad_defer(ot_grad *g, bool *is_deferred)
{
    ot_value *first = first_gradient(g);
    ot_node *late;

    *is_deferred = can_be_deferred(g, first);
    if (!*is_deferred)
        return OT_OK;
    late = emit_late(g, first);
    for (int i = 0; i < g->node->n_inputs; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, late_output(g, late, i));
    return g->build.status;
}
