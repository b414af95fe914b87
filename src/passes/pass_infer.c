// SPDX-License-Identifier: Apache-2.0
// Types, shapes and known elements of every value.
#include "passes/passes.h"

ot_status ot__pass_infer(ot_model *model)
{
    const ot_graph *graph = model->graph;

    for (int n = 0; n < graph->n_nodes; n++)
        OT_TRY(ot__op_infer(graph->nodes[n]));
    return ot__pass_finished(model, "infer");
}
