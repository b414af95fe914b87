// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and their gradients: finding them, and nodes of our own domain in their place.
#include "passes/fuse_layer.h"

enum { W = 1, R = 2 }; // inputs of the layers and of their gradients

static const ot__layer_kind layer_kinds[] = {
    {.plain = "LSTM",
     .layer = "LSTMTraining",
     .gradient = "LSTMGrad",
     .n_gates = 4,
     .kept = 4,
     .grad_p = 6,
     .indices = 8,
     .grad_indices = 13},
    {.plain = "GRU",
     .layer = "GRUTraining",
     .gradient = "GRUGrad",
     .n_gates = 3,
     .n_fixed = 1,
     .kept = 2,
     .indices = 6,
     .grad_indices = 10},
};

static bool is_own_or_theirs(const ot_node *node, const char *op_type)
{
    return ot__node_is(node, "com.microsoft", op_type) ||
           ot__node_is(node, "ai.onnxtrain", op_type);
}

const ot__layer_kind *ot__layer_kind_of(const ot_node *node)
{
    for (size_t i = 0; i < OT_COUNT(layer_kinds); i++)
        if (is_own_or_theirs(node, layer_kinds[i].layer) ||
            (ot__node_is(node, "", layer_kinds[i].plain) && ot_attr_int(node, "layout") == 0))
            return &layer_kinds[i];
    return NULL;
}

ot_node *ot__layer_gradient(const ot__fusing *f, const ot_node *layer, const ot__layer_kind *kind,
                            bool *none)
{
    const ot_value *kept = ot__layer_output(layer, kind->kept);
    ot_node *node;

    *none = kept == NULL || (ot__uses_count(&f->uses, kept) == 0 && !kept->is_output);
    node = *none ? NULL : ot__fuse_only_reader(f, kept);
    return is_own_or_theirs(node, kind->gradient) && node->n_inputs > R &&
                   node->inputs[W] == layer->inputs[W] && node->inputs[R] == layer->inputs[R]
               ? node
               : NULL;
}

ot_value *ot__layer_output(const ot_node *node, int i)
{
    return node != NULL && i < node->n_outputs ? node->outputs[i] : NULL;
}

ot__own_layer ot__own_layer_of(const ot_node *layer, const ot__layer_kind *kind)
{
    ot__own_layer own = {.op_type = kind->layer, .n_inputs = layer->n_inputs};

    for (int i = 0; i < layer->n_inputs; i++)
        own.inputs[i] = layer->inputs[i];
    return own;
}

ot__own_layer ot__own_gradient_of(const ot_node *back, const ot__layer_kind *kind)
{
    const bool lacks_p = kind->grad_p > 0 && ot__node_is(back, "com.microsoft", kind->gradient);
    ot__own_layer own = {.op_type = kind->gradient, .n_inputs = back->n_inputs + lacks_p};

    for (int i = 0; i < back->n_inputs; i++)
        own.inputs[lacks_p && i >= kind->grad_p ? i + 1 : i] = back->inputs[i];
    return own;
}

ot_node *ot__own_layer_replace(ot__builder *b, ot_node *node, const ot__own_layer *own)
{
    ot_node *made;

    ot__node_detach(node);
    made = ot__op_build(b, "ai.onnxtrain", own->op_type, node->name, own->inputs, own->n_inputs,
                        node->outputs, node->n_outputs);
    if (made != NULL)
        (void)ot__build_made(b, ot__node_copy_attrs(made, node));
    if (b->status == OT_OK)
        ot__node_remove_attr(made, "layout");
    return made;
}
