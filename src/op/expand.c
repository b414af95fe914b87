// SPDX-License-Identifier: Apache-2.0
// Writing a node in other operators: those that ONNX has, or those that have a gradient.
#include "op/expand.h"

#include <string.h>

enum { SCATTER_ADDS_SINCE = 16, REDUCE_AXES_SINCE = 18 }; // opsets

bool ot_expand_wants(const ot_grad *g, int output)
{
    return g->build.status == OT_OK && output < g->node->n_outputs &&
           g->node->outputs[output] != NULL;
}

static bool is_emitted(const ot_grad *g, const ot_value *value)
{
    for (int n = g->first_node; n < g->build.graph->n_nodes; n++)
        if (g->build.graph->nodes[n] == value->producer)
            return true;
    return false;
}

// The output, with its name and its readers, becomes that of the node that makes `value`.
void ot_expand_set(ot_grad *g, int output, ot_value *value)
{
    ot_value *y;

    if (value == NULL || !ot_expand_wants(g, output))
        return;
    if (!is_emitted(g, value))
        value = ot_emit1(g, "Identity", value);
    if (value == NULL)
        return;
    y = g->node->outputs[output];
    for (int n = g->first_node; n < g->build.graph->n_nodes; n++) {
        const ot_node *reader = g->build.graph->nodes[n];

        for (int i = 0; i < reader->n_inputs; i++)
            if (reader->inputs[i] == value)
                reader->inputs[i] = y;
    }
    y->producer = value->producer;
    y->i_producer_output = value->i_producer_output;
    y->producer->outputs[y->i_producer_output] = y;
    ot__graph_forget_value(g->build.graph, value);
    g->node->outputs[output] = NULL;
}

const char *ot__node_prefix(const ot_node *node)
{
    for (int i = 0; node->name[0] == '\0' && i < node->n_outputs; i++)
        if (node->outputs[i] != NULL)
            return ot__arena_printf(node->graph->model->arena, "%s_%s", node->op_type,
                                    node->outputs[i]->name);
    return node->name[0] != '\0' ? node->name : node->op_type;
}

ot_status ot__rewrite_node(ot_node *node, void (*rewrite)(ot_grad *g))
{
    ot_grad g = {.build = {.graph = node->graph}, .node = node, .first_node = node->graph->n_nodes};
    char label[160];
    int n_left = 0, n_given = 0;

    if (rewrite == NULL)
        return OT_OK;
    g.prefix = ot__node_prefix(node);
    OT_TRY(ot__made(g.prefix));
    for (int i = 0; i < node->n_outputs; i++)
        n_given += node->outputs[i] != NULL;
    rewrite(&g);
    OT_TRY(g.build.status);
    for (int i = 0; i < node->n_outputs; i++)
        n_left += node->outputs[i] != NULL;
    if (n_left > 0 && n_left < n_given)
        return ot__error(OT_ERR_INTERNAL, "%s: its expansion gives %d of %d outputs",
                         ot__node_label(node, label, sizeof(label)), n_given - n_left, n_given);
    return OT_OK;
}

ot_status ot__op_recompute(ot_node *node, ot_value **y)
{
    ot_graph *graph = node->graph;
    ot_grad g = {.build = {.graph = graph},
                 .node = node,
                 .first_node = graph->n_nodes,
                 .prefix = ot__node_prefix(node)};
    char label[160];

    *y = NULL;
    if (node->op->recompute == NULL)
        return OT_OK;
    OT_TRY(ot__made(g.prefix));
    *y = node->op->recompute(&g);
    OT_TRY(g.build.status);
    if (*y == NULL)
        return OT_OK;
    if (graph->n_nodes != g.first_node + 1 || (*y)->producer != graph->nodes[g.first_node])
        return ot__error(OT_ERR_INTERNAL, "%s: is made again by %d nodes, expected 1",
                         ot__node_label(node, label, sizeof(label)), graph->n_nodes - g.first_node);
    (*y)->producer->name = node->name;
    return ot__graph_rename_value(graph, *y, node->outputs[0]->name) ? OT_OK : OT_ERR_NO_MEMORY;
}

// ---- what expansions are made of ----

ot_value *ot__emit_times(ot_grad *g, ot_value *v, double number)
{
    return number == 1.0 ? v : ot_emit2(g, "Mul", v, ot_emit_constant(g, number, v));
}

ot_value *ot__emit_transpose(ot_grad *g, ot_value *v, const int64_t *perm, int n)
{
    ot_node *node = v == NULL ? NULL : ot_emit(g, "Transpose", NULL, &v, 1, 1);

    ot_emit_ints(g, node, "perm", perm, n);
    return ot_emit_output(g, node, 0);
}

ot_value *ot__emit_sum(ot_grad *g, ot_value *v, const int64_t *axes, int n, bool keep_axes)
{
    ot_value *const in[] = {v, ot_emit_constant_i64(g, axes, n)};

    if (v == NULL || in[1] == NULL)
        return NULL;
    return ot_emit_output(
        g, ot_emit(g, "ReduceSum", keep_axes ? "keepdims = 1" : "keepdims = 0", in, 2, 1), 0);
}

ot_value *ot__emit_reduce(ot_grad *g, const char *op, ot_value *v, const int64_t *axes, int n)
{
    const bool are_input = ot__model_opset(g->build.graph->model, "") >= REDUCE_AXES_SINCE;
    ot_value *const in[] = {v, are_input ? ot_emit_constant_i64(g, axes, n) : NULL};
    ot_node *node = v == NULL ? NULL : ot_emit(g, op, "keepdims = 1", in, are_input ? 2 : 1, 1);

    if (!are_input)
        ot_emit_ints(g, node, "axes", axes, n);
    return ot_emit_output(g, node, 0);
}

ot_value *ot__emit_reshape(ot_grad *g, ot_value *v, const int64_t *dims, int n)
{
    return ot_emit2(g, "Reshape", v, ot_emit_constant_i64(g, dims, n));
}

ot_value *ot__emit_concat(ot_grad *g, ot_value *const *parts, int n, int64_t axis)
{
    ot_node *node;

    for (int i = 0; i < n; i++)
        if (parts[i] == NULL)
            return NULL;
    node = ot_emit(g, "Concat", NULL, parts, n, 1);
    ot_emit_int(g, node, "axis", axis);
    return ot_emit_output(g, node, 0);
}

ot_value *ot__emit_part(ot_grad *g, ot_value *list, int64_t first, int64_t last)
{
    ot_value *end = ot_emit_constant_i64(g, &last, 1);

    return ot_emit3(g, "Slice", list, ot_emit_constant_i64(g, &first, 1), end);
}

ot_value *ot__emit_extents(ot_grad *g, ot_value *v, int first, int last)
{
    bool are_known = v != NULL && v->has_shape;

    for (int k = first; are_known && k < last; k++)
        are_known = ot__dim_is_number(v->shape.dim[k]);
    if (are_known)
        return ot_emit_constant_i64(g, v->shape.dim + first, last - first);
    return ot__emit_part(g, ot_emit1(g, "Shape", v), first, last);
}

ot_value *ot__emit_at(ot_grad *g, ot_value *list, int64_t index)
{
    ot_value *at = ot__emit_tensor(g, OT_I64, &OT_SHAPE_SCALAR);

    if (at == NULL)
        return NULL;
    memcpy(at->constant->data, &index, sizeof(index));
    return ot_emit2(g, "Gather", list, at);
}

ot_value *ot__emit_count_up(ot_grad *g, ot_value *limit)
{
    ot_value *step = ot_emit_constant(g, 1.0, limit);

    return ot_emit3(g, "Range", ot_emit_constant(g, 0.0, limit), limit, step);
}

ot_value *ot__emit_zeros(ot_grad *g, ot_value *shape, const ot_value *like)
{
    ot_node *node = shape == NULL ? NULL : ot_emit(g, "ConstantOfShape", NULL, &shape, 1, 1);

    if (node == NULL)
        return NULL;
    ot__build_number(&g->build, node, "value", like->dtype, 0.0);
    return ot_emit_output(g, node, 0);
}

static void need_opset(ot_grad *g, int64_t version)
{
    if (ot__model_opset(g->build.graph->model, "") < version)
        ot__build_note(&g->build, ot__model_set_opset(g->build.graph->model, "", version));
}

ot_value *ot__emit_scatter_add(ot_grad *g, const char *op, int64_t axis, ot_value *data,
                               ot_value *indices, ot_value *updates)
{
    ot_value *const in[] = {data, indices, updates};
    ot_node *node;

    if (data == NULL || indices == NULL || updates == NULL)
        return NULL;
    need_opset(g, SCATTER_ADDS_SINCE);
    node = ot_emit(g, op, "reduction = \"add\"", in, 3, 1);
    if (axis != 0)
        ot_emit_int(g, node, "axis", axis);
    return ot_emit_output(g, node, 0);
}

ot_value *ot__emit_scatter_flat(ot_grad *g, ot_value *shape, ot_value *positions, ot_value *updates)
{
    const int64_t all = -1;
    ot_value *zeros = updates == NULL ? NULL : ot__emit_zeros(g, shape, updates);
    ot_value *sum;

    updates = ot__emit_reshape(g, updates, &all, 1);
    positions = ot__emit_reshape(g, positions, &all, 1);
    zeros = ot__emit_reshape(g, zeros, &all, 1);
    sum = ot__emit_scatter_add(g, "ScatterElements", 0, zeros, positions, updates);
    return ot_emit2(g, "Reshape", sum, shape);
}
