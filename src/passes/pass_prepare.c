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

static ot_status prepare(ot_model *model, ot_status (*check)(ot_model *))
{
    OT_TRY(ot__model_inline_functions(model));
    OT_TRY(ot__fuse_undo(model));
    OT_TRY(ot__graph_sort(model->graph));
    OT_TRY(ot__graph_verify(model->graph));
    OT_TRY(ot__fuse_sequence(model));
    OT_TRY(check(model));
    return ot__pass_infer(model);
}

ot_status ot__pass_prepare(ot_model *model)
{
    return prepare(model, ot__pass_check);
}

ot_status ot__pass_prepare_carrying(ot_model *model)
{
    return prepare(model, ot__pass_check_carrying);
}

ot_status ot_model_infer(ot_model *model)
{
    OT_TRY(OT_GIVEN(model));
    return ot__pass_prepare(model);
}
