// SPDX-License-Identifier: Apache-2.0
// Batch normalisations of a training graph whose statistics are those of the batches of all ranks:
// BatchNormInternal becomes SyncBatchNormalization, and BatchNormalizationGrad of what it saved
// SyncBatchNormalizationGrad.
#include "passes/passes.h"

enum { SCALE = 1, GRAD_SCALE = 2, GRAD_MEAN = 3 }; // inputs of BatchNormalization and its gradient
static const char sync_norm[] = "SyncBatchNormalization";
static const char sync_norm_grad[] = "SyncBatchNormalizationGrad";

static bool is_training(const ot_node *node)
{
    if (ot__node_is(node, "com.microsoft", "BatchNormInternal"))
        return ot_attr_int(node, "training_mode") != 0;
    if (!ot__node_is(node, "", "BatchNormalization"))
        return false;
    return node->op->since >= 14 ? ot_attr_int(node, "training_mode") != 0 : node->n_outputs > 1;
}

static ot_status become_sync(ot_model *model, ot_node *node, const char *op_type)
{
    node->domain = "ai.onnxtrain";
    node->op_type = op_type;
    OT_TRY(ot__model_set_opset(model, node->domain, 1));
    OT_TRY(ot__op_lookup(model, node, &node->op));
    return ot__op_infer(node);
}

static ot_status sync_node(ot_model *model, ot_node *node)
{
    if (is_training(node)) {
        if (node->domain[0] == '\0')
            return ot__error(OT_ERR_UNSUPPORTED,
                             "%s: it keeps no statistics of its batch for its gradient, so they "
                             "cannot be those of all ranks",
                             OT_LABEL(node));
        return become_sync(model, node, sync_norm);
    }
    if (!ot__node_is(node, "com.microsoft", "BatchNormalizationGrad"))
        return OT_OK;
    if (!ot__node_is(node->inputs[GRAD_MEAN]->producer, "ai.onnxtrain", sync_norm))
        return ot__error(OT_ERR_UNSUPPORTED,
                         "%s: its statistics '%s' are not those that a BatchNormInternal saved, so "
                         "they cannot be those of all ranks",
                         OT_LABEL(node), node->inputs[GRAD_MEAN]->name);
    return become_sync(model, node, sync_norm_grad);
}

ot_status ot__fuse_sync_norm(ot_model *model)
{
    for (int i = 0; i < model->graph->n_nodes; i++)
        OT_TRY(sync_node(model, model->graph->nodes[i]));
    return OT_OK;
}

// Two for a channel, and how many elements those are of.
static int64_t numbers_of_norm(const ot_value *scale)
{
    return scale->has_shape && scale->shape.ndim == 1 && ot__dim_is_number(scale->shape.dim[0])
               ? 2 * scale->shape.dim[0] + 1
               : 0;
}

void ot__count_sync_norms(const ot_graph *graph, int64_t *all, int64_t *most)
{
    *all = *most = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const ot_node *node = graph->nodes[i];
        const bool is_grad = ot__node_is(node, "ai.onnxtrain", sync_norm_grad);
        int64_t n;

        if (!is_grad && !ot__node_is(node, "ai.onnxtrain", sync_norm))
            continue;
        n = numbers_of_norm(node->inputs[is_grad ? GRAD_SCALE : SCALE]);
        *all += n;
        *most = OT_MAX(*most, n);
    }
}
