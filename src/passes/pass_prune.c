// SPDX-License-Identifier: Apache-2.0
// Nodes and constants that nothing needs.
#include "passes/passes.h"

ot_status ot__pass_prune(ot_model *model)
{
    OT_TRY(ot__graph_prune(model->graph, ot__op_writes_state));
    return ot__pass_finished(model, "prune");
}
