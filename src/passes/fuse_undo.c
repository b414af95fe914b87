// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX Runtime's optimiser makes of several, as .ort files and optimised models have
// them, become these again: they have gradients, and our own fusions find them.
#include <string.h>

#include "passes/passes.h"

static const char activation_prefix[] = "activation_";

static bool is_fused(const ot_node *node, const char *op_type)
{
    return strcmp(node->domain, "com.microsoft") == 0 && strcmp(node->op_type, op_type) == 0;
}

static ot_status unsupported(const ot_node *node, const char *what)
{
    char label[160];

    return ot__error(OT_ERR_UNSUPPORTED, "%s: %s is not supported",
                     ot__node_label(node, label, sizeof label), what);
}

// ---- building what comes behind ----

// `node` makes a new value; *out is the one it made, which the caller's next node makes.
static ot_status cut_output(ot_node *node, ot_value **out, ot_value **cut)
{
    ot_graph *graph = node->graph;
    char *name;

    *out = node->outputs[0];
    name = ot__arena_printf(graph->model->arena, "%s_unfused", (*out)->name);
    *cut = name ? ot__graph_new_value(graph, name) : NULL;
    if (!*cut)
        return OT_ERR_NO_MEMORY;
    node->outputs[0] = *cut;
    (*cut)->producer = node;
    (*cut)->i_producer_output = 0;
    return OT_OK;
}

static ot_node *append(ot_graph *graph, const char *op_type, const char *of, ot_value *const *in,
                       int n_in, ot_value *out)
{
    char *name = ot__arena_printf(graph->model->arena, "%s/%s", of, op_type);

    return name ? ot__graph_add_node(graph, "", op_type, name, in, n_in, &out, 1) : NULL;
}

static ot_value *new_f32(ot_graph *graph, const char *base, float number)
{
    ot_tensor *tensor = ot__model_tensor_new(graph->model, OT_F32, &OT_SHAPE_SCALAR);
    ot_value *value = tensor ? ot__graph_new_value(graph, base) : NULL;

    if (!value || !ot__graph_add_initializer(graph, value, tensor))
        return NULL;
    memcpy(tensor->data, &number, sizeof number);
    return value;
}

// ---- activations ----

// FusedConv lists the activation's attributes, or Clip's bounds, without names.
static ot_status set_params(ot_node *activation, const ot_attr *params)
{
    static const struct {
        const char *op_type, *names[2];
    } known[] = {{"LeakyRelu", {"alpha"}}, {"HardSigmoid", {"alpha", "beta"}}};
    ot_value *ends[3] = {activation->inputs[0]};

    if (params->kind != OT_ATTR_FLOATS)
        return unsupported(activation, "activation_params that are not floats");
    if (strcmp(activation->op_type, "Clip") == 0 && params->n == 2) {
        ends[1] = new_f32(activation->graph, "clip_min", params->floats[0]);
        ends[2] = new_f32(activation->graph, "clip_max", params->floats[1]);
        activation->inputs = ot__arena_memdup(activation->graph->model->arena, ends, sizeof ends);
        activation->n_inputs = 3;
        return ends[1] && ends[2] && activation->inputs ? OT_OK : OT_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        if (strcmp(known[i].op_type, activation->op_type) != 0)
            continue;
        for (int k = 0; k < OT_MIN(params->n, 2) && known[i].names[k]; k++)
            if (!ot__node_set_float(activation, known[i].names[k], params->floats[k]))
                return OT_ERR_NO_MEMORY;
        return OT_OK;
    }
    return params->n == 0 ? OT_OK : unsupported(activation, "an activation with parameters");
}

// FusedGemm has them under names of their own: activation_alpha.
static ot_status move_attrs(ot_node *from, ot_node *activation)
{
    for (int a = from->n_attrs - 1; a >= 0; a--) {
        const ot_attr *attr = from->attrs[a];
        const char *name = attr->name;

        if (!ot__starts_with(name, activation_prefix))
            continue;
        if (strcmp(name, "activation_params") == 0)
            OT_TRY(set_params(activation, attr));
        else if (attr->kind != OT_ATTR_FLOAT)
            return unsupported(from, name);
        else if (!ot__node_set_float(activation, name + sizeof activation_prefix - 1, attr->f))
            return OT_ERR_NO_MEMORY;
        ot__node_remove_attr(from, name);
    }
    return OT_OK;
}

static ot_status take_activation_off(ot_node *node)
{
    const ot_attr *attr = ot__node_attr(node, "activation");
    ot_value *y, *x;
    ot_node *activation;

    if (!attr || attr->kind != OT_ATTR_STRING || attr->s.size == 0) {
        ot__node_remove_attr(node, "activation");
        return OT_OK;
    }
    OT_TRY(cut_output(node, &y, &x));
    activation = append(node->graph, (const char *)attr->s.data, node->name, &x, 1, y);
    if (!activation)
        return OT_ERR_NO_MEMORY;
    ot__node_remove_attr(node, "activation");
    return move_attrs(node, activation);
}

// ---- the operators ----

static ot_status become(ot_node *node, const char *op_type)
{
    node->op_type = op_type;
    node->domain = "";
    return OT_OK;
}

static ot_status unfuse_gemm(ot_node *node)
{
    OT_TRY(take_activation_off(node));
    return become(node, "Gemm");
}

// Y = f(Conv(X, W, B) + Z)
static ot_status unfuse_conv(ot_node *node)
{
    ot_value *y, *ends[2];

    OT_TRY(take_activation_off(node));
    if (node->n_inputs > 3 && node->inputs[3]) {
        ends[1] = node->inputs[3];
        OT_TRY(cut_output(node, &y, &ends[0]));
        if (!append(node->graph, "Add", node->name, ends, 2, y))
            return OT_ERR_NO_MEMORY;
    }
    node->n_inputs = OT_MIN(node->n_inputs, 3);
    return become(node, "Conv");
}

// Y = LayerNormalization(X + skip + bias); the fourth output is the sum.
static ot_status unfuse_skip_layer_norm(ot_node *node)
{
    const float default_epsilon = 1e-12f; // unlike that of LayerNormalization
    ot_graph *graph = node->graph;
    ot_value *sum = node->n_outputs > 3 ? node->outputs[3] : NULL;
    ot_value *ends[2] = {node->inputs[0], node->inputs[1]}, *bias = NULL;

    if (node->n_inputs > 4)
        bias = node->inputs[4];
    for (int i = 0; i < (bias ? 2 : 1); i++) {
        const bool is_last = i == (bias ? 1 : 0);
        ot_value *y = is_last && sum ? sum : ot__graph_new_value(graph, "skip_sum");

        if (!y || !append(graph, "Add", node->name, ends, 2, y))
            return OT_ERR_NO_MEMORY;
        ends[0] = y;
        ends[1] = bias;
    }
    node->inputs[0] = ends[0];
    node->inputs[1] = node->inputs[2];
    node->inputs[2] = node->n_inputs > 3 ? node->inputs[3] : NULL;
    node->n_inputs = node->inputs[2] ? 3 : 2;
    node->n_outputs = OT_MIN(node->n_outputs, 3);
    while (node->n_outputs > 1 && !node->outputs[node->n_outputs - 1])
        node->n_outputs--;
    if (!ot__node_attr(node, "epsilon") && !ot__node_set_float(node, "epsilon", default_epsilon))
        return OT_ERR_NO_MEMORY;
    return become(node, "LayerNormalization");
}

static const struct {
    const char *op_type;
    int n_inputs; // at least, all given
    ot_status (*unfuse)(ot_node *node);
} fused[] = {
    {"FusedGemm", 2, unfuse_gemm},
    {"FusedConv", 2, unfuse_conv},
    {"SkipLayerNormalization", 3, unfuse_skip_layer_norm},
};

static ot_status unfuse(ot_node *node, bool *changed)
{
    char label[160];

    for (size_t i = 0; i < OT_COUNT(fused); i++) {
        bool is_whole = node->n_outputs > 0 && node->outputs[0] != NULL;

        if (!is_fused(node, fused[i].op_type))
            continue;
        for (int k = 0; k < fused[i].n_inputs; k++)
            is_whole = is_whole && k < node->n_inputs && node->inputs[k];
        if (!is_whole)
            return ot__error(OT_ERR_INVALID, "%s lacks inputs or outputs",
                             ot__node_label(node, label, sizeof label));
        *changed = true;
        return fused[i].unfuse(node);
    }
    return OT_OK;
}

ot_status ot__fuse_undo(ot_model *model)
{
    const int n_nodes = model->graph->n_nodes; // those that come behind are plain
    bool changed = false;

    for (int n = 0; n < n_nodes; n++)
        OT_TRY(unfuse(model->graph->nodes[n], &changed));
    if (!changed)
        return OT_OK;
    OT_TRY(ot__graph_sort(model->graph));
    return ot__pass_finished(model, "unfuse");
}
