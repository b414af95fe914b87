// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX Runtime's optimiser makes of several, as .ort files and optimised models have
// them, become these again: they have gradients, and our own fusions find them.
#include <string.h>

#include "passes/passes.h"

static const char activation_prefix[] = "activation_";

static void refuse_undo(ot__builder *b, const ot_node *node, const char *what)
{
    ot__build_note(b,
                   ot__error(OT_ERR_UNSUPPORTED, "%s: %s is not supported", OT_LABEL(node), what));
}

// ---- building what comes behind ----

// `node` makes a new value, which is returned; what it made is for a node that comes behind.
static ot_value *cut_output(ot__builder *b, ot_node *node)
{
    ot_value *cut = ot__build_value(b, ot__build_name(b, "%s_unfused", node->outputs[0]->name));

    if (cut) {
        node->outputs[0] = cut;
        cut->producer = node;
        cut->i_producer_output = 0;
    }
    return cut;
}

static ot_node *add_behind(ot__builder *b, const char *op_type, const ot_node *of,
                           ot_value *const *inputs, int n_inputs, ot_value *y)
{
    const char *name = ot__build_name(b, "%s/%s", of->name, op_type);

    return ot__build_node(b, "", op_type, name, inputs, n_inputs, &y, 1);
}

static ot_value *new_bound(ot__builder *b, const char *name, float bound)
{
    ot_value *value = ot__build_initializer(b, name, OT_F32, &OT_SHAPE_SCALAR);

    if (value)
        memcpy(value->constant->data, &bound, sizeof bound);
    return value;
}

// ---- activations ----

static void add_bounds(ot__builder *b, ot_node *clip, const float *bounds)
{
    ot_value *ends[] = {clip->inputs[0], new_bound(b, "clip_min", bounds[0]), NULL};

    ends[2] = new_bound(b, "clip_max", bounds[1]);
    clip->inputs = ot__arena_memdup(b->graph->model->arena, ends, sizeof ends);
    clip->n_inputs = (int)OT_COUNT(ends);
    ot__build_made(b, clip->inputs != NULL);
}

// FusedConv lists the activation's attributes, or Clip's bounds, without names.
static void set_params(ot__builder *b, ot_node *activation, const ot_attr *params)
{
    static const struct {
        const char *op_type, *names[2];
    } known[] = {{"LeakyRelu", {"alpha"}}, {"HardSigmoid", {"alpha", "beta"}}};

    if (params->kind != OT_ATTR_FLOATS) {
        refuse_undo(b, activation, "activation_params that are not floats");
        return;
    }
    if (strcmp(activation->op_type, "Clip") == 0 && params->n == 2) {
        add_bounds(b, activation, params->floats);
        return;
    }
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        if (strcmp(known[i].op_type, activation->op_type) != 0)
            continue;
        for (int k = 0; k < OT_MIN(params->n, 2) && known[i].names[k]; k++)
            ot__build_float(b, activation, known[i].names[k], (double)params->floats[k]);
        return;
    }
    if (params->n != 0)
        refuse_undo(b, activation, "an activation with parameters");
}

// FusedGemm has them under names of their own: activation_alpha.
static void move_attrs(ot__builder *b, ot_node *from, ot_node *activation)
{
    for (int a = from->n_attrs - 1; a >= 0 && b->status == OT_OK; a--) {
        const ot_attr *attr = from->attrs[a];
        const char *name = attr->name;

        if (!ot__starts_with(name, activation_prefix))
            continue;
        if (strcmp(name, "activation_params") == 0)
            set_params(b, activation, attr);
        else if (attr->kind != OT_ATTR_FLOAT)
            refuse_undo(b, from, name);
        else
            ot__build_float(b, activation, name + sizeof activation_prefix - 1, (double)attr->f);
        ot__node_remove_attr(from, name);
    }
}

static void take_activation_off(ot__builder *b, ot_node *node)
{
    const ot_attr *attr = ot__node_attr(node, "activation");

    if (attr && attr->kind == OT_ATTR_STRING && attr->s.size > 0) {
        ot_value *y = node->outputs[0], *x = cut_output(b, node);
        ot_node *activation = add_behind(b, (const char *)attr->s.data, node, &x, 1, y);

        ot__node_remove_attr(node, "activation");
        move_attrs(b, node, activation);
    } else {
        ot__node_remove_attr(node, "activation");
    }
}

// ---- the operators ----

static void become(ot_node *node, const char *op_type)
{
    node->op_type = op_type;
    node->domain = "";
}

static void unfuse_gemm(ot__builder *b, ot_node *node)
{
    take_activation_off(b, node);
    become(node, "Gemm");
}

// Y = f(Conv(X, W, B) + Z)
static void unfuse_conv(ot__builder *b, ot_node *node)
{
    take_activation_off(b, node);
    if (node->n_inputs > 3 && node->inputs[3]) {
        ot_value *y = node->outputs[0];
        ot_value *ends[2] = {cut_output(b, node), node->inputs[3]};

        add_behind(b, "Add", node, ends, 2, y);
    }
    node->n_inputs = OT_MIN(node->n_inputs, 3);
    become(node, "Conv");
}

// Y = LayerNormalization(X + skip + bias); the fourth output is the sum.
static void unfuse_skip_layer_norm(ot__builder *b, ot_node *node)
{
    const double default_epsilon = 1e-12; // unlike that of LayerNormalization
    ot_value *sum = node->n_outputs > 3 ? node->outputs[3] : NULL;
    ot_value *ends[2] = {node->inputs[0], node->inputs[1]};
    ot_value *bias = node->n_inputs > 4 ? node->inputs[4] : NULL;

    for (int i = 0; i < (bias ? 2 : 1); i++) {
        const bool is_last = i == (bias ? 1 : 0);
        ot_value *y = is_last && sum ? sum : ot__build_value(b, "skip_sum");

        add_behind(b, "Add", node, ends, 2, y);
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
    if (!ot__node_attr(node, "epsilon"))
        ot__build_float(b, node, "epsilon", default_epsilon);
    become(node, "LayerNormalization");
}

static const struct {
    const char *op_type;
    int n_inputs; // at least, all given
    void (*unfuse)(ot__builder *b, ot_node *node);
} fused[] = {
    {"FusedGemm", 2, unfuse_gemm},
    {"FusedConv", 2, unfuse_conv},
    {"SkipLayerNormalization", 3, unfuse_skip_layer_norm},
};

static ot_status unfuse(ot_node *node, bool *changed)
{
    ot__builder b = {.graph = node->graph};

    for (size_t i = 0; i < OT_COUNT(fused); i++) {
        bool is_whole = node->n_outputs > 0 && node->outputs[0] != NULL;

        if (!ot__node_is(node, "com.microsoft", fused[i].op_type))
            continue;
        for (int k = 0; k < fused[i].n_inputs; k++)
            is_whole = is_whole && k < node->n_inputs && node->inputs[k];
        if (!is_whole)
            return ot__error(OT_ERR_INVALID, "%s lacks inputs or outputs", OT_LABEL(node));
        *changed = true;
        fused[i].unfuse(&b, node);
        return b.status;
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
