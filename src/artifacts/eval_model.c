// SPDX-License-Identifier: Apache-2.0
// The eval model: forward and loss, training mode off.
#include <string.h>

#include "artifacts/training_model.h"

enum { DROPOUT_TRAINING_INPUT = 2 };

static ot_status to_eval(ot_node *node)
{
    if (ot__is_batch_norm(node))
        return ot__batch_norm_to_inference(node);
    if (ot__is_dropout(node) && node->n_inputs > DROPOUT_TRAINING_INPUT)
        node->inputs[DROPOUT_TRAINING_INPUT] = NULL;
    return OT_OK;
}

ot_status ot__to_inference(ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        OT_TRY(to_eval(model->graph->nodes[n]));
    return OT_OK;
}

ot_status ot__eval_model(const ot_model *model, ot_model **out)
{
    ot_model *copy;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__model_clone(model, &copy));
    st = ot__graph_list_constants(copy->graph);
    OT_THEN(st, ot__to_inference(copy));
    OT_THEN(st, ot__pass_eval(copy));
    OT_THEN(st, ot__pass_prune(copy));
    if (st != OT_OK)
        ot__error_prefix(st, "eval model");
    return OT_HAND_OUT(st, out, copy, ot_model_destroy);
}
