// SPDX-License-Identifier: Apache-2.0
// A model put right before training: every step in its turn.
#include "artifacts/prepare.h"

#include "artifacts/open_batch.h"
#include "passes/passes.h"

static ot_status prepare_options(const ot_prepare_options *given, ot_prepare_options *out)
{
    OT_TRY(OT_OPTIONS_READ(ot_prepare_options, OT_PREPARE_OPTIONS_INIT, given, out));
    OT_TRY(OT_GIVEN_MANY(out->shared, out->n_shared));
    for (int i = 0; i < out->n_shared; i++)
        if (!out->shared[i])
            return ot__error(OT_ERR_INVALID, "prepare options: shared name %d is NULL", i);
    return OT_OK;
}

// Every step but the batch, on a model of the caller's that nothing has prepared.
static ot_status prepare_steps(ot_model *model, const ot_prepare_options *options,
                               ot_findings *findings)
{
    // Names and readers inside functions, and those of fused operators, tell nothing yet.
    OT_TRY(ot__model_inline_functions(model));
    OT_TRY(ot__graph_sort(model->graph));
    OT_TRY(ot__fuse_undo(model));
    OT_TRY(ot__prepare_sharing(model, options, findings));
    return ot__pass_finished(model, "prepare_training");
}

// Last, on a copy: its trial may fail.
static ot_status prepare_open_batch(ot_model **model, ot_findings *findings)
{
    ot_model *opened = NULL;
    ot__buf line = {0};
    ot_status st = ot__open_batch(*model, &opened, &line);

    if (st == OT_OK && line.data)
        st = ot__findings_add(findings, OT_FINDING_BATCH, opened != NULL,
                              ot_model_input_name(*model, 0), line.data);
    ot__buf_deinit(&line);
    if (opened && st == OT_OK) {
        ot_model_destroy(*model);
        *model = opened;
        opened = NULL;
    }
    ot_model_destroy(opened);
    return st;
}

static ot_status prepare_copy(const ot_model *model, const ot_prepare_options *options,
                              ot_model **out, ot_findings *findings)
{
    ot_model *copy;
    ot_status st;

    OT_TRY(ot__model_clone(model, &copy));
    st = prepare_steps(copy, options, findings);
    OT_THEN(st, prepare_open_batch(&copy, findings));
    return OT_HAND_OUT(st, out, copy, ot_model_destroy);
}

ot_status ot_model_prepare_training(const ot_model *model, const ot_prepare_options *options,
                                    ot_model **out, ot_findings **findings)
{
    ot_prepare_options taken;
    ot_findings *found;
    ot_status st;

    if (findings)
        *findings = NULL;
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    OT_TRY(prepare_options(options, &taken));
    OT_TRY(ot__findings_create(&found));
    st = prepare_copy(model, &taken, out, found);
    if (st == OT_OK && findings) {
        *findings = found;
        found = NULL;
    }
    ot_findings_destroy(found);
    return st;
}
