// SPDX-License-Identifier: Apache-2.0
// What every model goes through first, and what every pass ends with.
#include "passes/passes.h"

static ot__pass_observer pass_observer; // set once, before anything is made

void ot__pass_set_observer(ot__pass_observer observer)
{
    pass_observer = observer;
}

ot_status ot__pass_finished(const ot_model *model, const char *pass)
{
#ifndef NDEBUG
    ot_status st = ot__graph_verify(model->graph);

    if (st != OT_OK)
        return ot__error_prefix(st, "after pass '%s'", pass);
#endif
    if (pass_observer)
        pass_observer(model, pass);
    return OT_OK;
}

static ot_status prepare_node(ot_model *model, ot_status (*check)(ot_model *))
{
    OT_TRY(ot__model_inline_functions(model));
    OT_TRY(ot__fuse_undo(model));
    OT_TRY(ot__graph_sort(model->graph));
    OT_TRY(ot__graph_verify(model->graph));
    OT_TRY(ot__fuse_control(model));
    OT_TRY(ot__fuse_sequence(model));
    OT_TRY(check(model));
    OT_TRY(ot__pass_infer(model));
    return ot__pass_finished(model, "prepare");
}

ot_status ot__pass_prepare(ot_model *model)
{
    if (model->is_prepared)
        return OT_OK;
    OT_TRY(prepare_node(model, ot__pass_check));
    model->is_prepared = true;
    return OT_OK;
}

ot_status ot__pass_prepare_carrying(ot_model *model)
{
    return model->is_prepared ? OT_OK : prepare_node(model, ot__pass_check_carrying);
}

static bool is_resolved(const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        if (!node->op || ot__op_is_foreign(node))
            return false;
        for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
            if (!is_resolved(s.graph))
                return false;
    }
    return true;
}

void ot__pass_mark_prepared(ot_model *model)
{
    model->is_prepared = is_resolved(model->graph);
}

ot_status ot_model_infer(ot_model *model)
{
    OT_TRY(OT_GIVEN(model));
    return ot__pass_prepare(model);
}
