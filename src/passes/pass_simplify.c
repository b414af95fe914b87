// SPDX-License-Identifier: Apache-2.0
// Nodes that hand on an input unchanged: gone.
#include <string.h>

#include "passes/passes.h"

static bool same_shape(const ot_value *a, const ot_value *b)
{
    if (!a->has_shape || !b->has_shape || a->shape.ndim != b->shape.ndim)
        return false;
    for (int k = 0; k < a->shape.ndim; k++)
        if (!ot__dim_same(a->shape.dim[k], b->shape.dim[k]))
            return false;
    return true;
}

static bool is_identity(const ot_node *node)
{
    (void)node;
    return true;
}

static bool cast_keeps_type(const ot_node *node)
{
    return node->inputs[0]->dtype == node->outputs[0]->dtype;
}

static bool keeps_shape(const ot_node *node)
{
    return same_shape(node->inputs[0], node->outputs[0]);
}

static bool is_constant_zero(const ot_value *value)
{
    return value->constant && ot_tensor_count(value->constant) == 1 &&
           ot__tensor_get_f64(value->constant, 0) == 0.0;
}

static bool dropout_drops_nothing(const ot_node *node)
{
    const ot_value *ratio = node->n_inputs > 1 ? node->inputs[1] : NULL;
    const ot_value *training = node->n_inputs > 2 ? node->inputs[2] : NULL;

    return !training || is_constant_zero(training) || (ratio && is_constant_zero(ratio));
}

// Output 0 is input 0 when the test says so.
static const struct {
    const char *op_type;
    bool (*is_void)(const ot_node *node);
} void_operators[] = {
    {"Identity", is_identity},     {"Cast", cast_keeps_type},
    {"CastLike", cast_keeps_type}, {"Dropout", dropout_drops_nothing},
    {"Reshape", keeps_shape},      {"Flatten", keeps_shape},
    {"Expand", keeps_shape},
};

static bool is_void(const ot_node *node)
{
    if (node->domain[0] != '\0' || node->n_inputs < 1 || node->n_outputs < 1 || !node->inputs[0] ||
        !node->outputs[0])
        return false;
    for (size_t i = 0; i < OT_COUNT(void_operators); i++)
        if (strcmp(node->op_type, void_operators[i].op_type) == 0)
            return void_operators[i].is_void(node);
    return false;
}

static bool is_captured(const ot__uses *uses, const ot_value *value)
{
    for (int u = uses->first[value->index]; u < uses->first[value->index + 1]; u++)
        if (uses->use[u].i_input < 0)
            return true;
    return false;
}

static bool can_go(const ot__uses *uses, const ot_node *node)
{
    if (!is_void(node) || node->outputs[0]->is_output || is_captured(uses, node->outputs[0]))
        return false;
    for (int i = 1; i < node->n_outputs; i++)
        if (node->outputs[i] &&
            (node->outputs[i]->is_output || ot__uses_count(uses, node->outputs[i]) > 0))
            return false;
    return true;
}

static void drop_outputs(ot_graph *graph, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i])
            continue;
        node->outputs[i]->producer = NULL;
        ot__graph_forget_value(graph, node->outputs[i]);
    }
}

ot_status ot__pass_simplify(ot_model *model)
{
    ot_graph *graph = model->graph;
    ot__uses uses;
    ot_value **stands_for;
    int kept = 0;

    OT_TRY(ot__uses_build(graph, &uses));
    stands_for = ot__alloc_zero((size_t)uses.n_values, sizeof *stands_for);
    if (!stands_for) {
        ot__uses_deinit(&uses);
        return OT_ERR_NO_MEMORY;
    }
    for (int n = 0; n < graph->n_nodes; n++) { // in order, so that chains resolve as they come
        ot_node *node = graph->nodes[n];

        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] && stands_for[node->inputs[i]->index])
                node->inputs[i] = stands_for[node->inputs[i]->index];
        if (can_go(&uses, node)) {
            stands_for[node->outputs[0]->index] = node->inputs[0];
            drop_outputs(graph, node);
        } else {
            graph->nodes[kept++] = node;
        }
    }
    graph->n_nodes = kept;
    ot__free(stands_for);
    ot__uses_deinit(&uses);
    return ot__pass_finished(model, "simplify");
}
