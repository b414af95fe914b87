// SPDX-License-Identifier: Apache-2.0
// Sessions over models that are there, over artifacts as files, and over bytes of files.
#include "session/session_internal.h"

static ot_status acquire_models(const ot_model *training, const ot_model *eval,
                                const ot_model *optimizer, ot__models *m)
{
    ot_status st = ot__model_acquire(training, &m->training);

    OT_THEN(st, eval != NULL ? ot__model_acquire(eval, &m->eval) : OT_OK);
    OT_THEN(st, optimizer != NULL ? ot__model_acquire(optimizer, &m->optimizer) : OT_OK);
    return st;
}

ot_status ot_session_create(const ot_model *training, const ot_model *eval,
                            const ot_model *optimizer, ot_checkpoint *checkpoint,
                            const ot_session_options *options, ot_session **out)
{
    ot__models m = {0};

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(training));
    OT_TRY(OT_OPTIONAL(eval, "eval"));
    OT_TRY(OT_OPTIONAL(optimizer, "optimizer"));
    return ot__session_create(&m, acquire_models(training, eval, optimizer, &m), checkpoint,
                              options, out);
}

ot_status ot__session_create_for_trainer(ot_artifacts *artifacts, const ot_session_options *options,
                                         ot_session **out)
{
    ot__models m = {.without_gradients = true};
    const ot_status st =
        acquire_models(ot_artifacts_training_model(artifacts), ot_artifacts_eval_model(artifacts),
                       ot_artifacts_optimizer_model(artifacts), &m);

    return ot__session_create(&m, st, ot_artifacts_checkpoint(artifacts), options, out);
}

ot_status ot_session_create_from_artifacts(ot_artifacts *artifacts,
                                           const ot_session_options *options, ot_session **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(artifacts));
    return ot_session_create(
        ot_artifacts_training_model(artifacts), ot_artifacts_eval_model(artifacts),
        ot_artifacts_optimizer_model(artifacts), ot_artifacts_checkpoint(artifacts), options, out);
}

ot_status ot_session_load(const char *training, const char *eval, const char *optimizer,
                          ot_checkpoint *checkpoint, const ot_session_options *options,
                          ot_session **out)
{
    ot__models m = {0};
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(training));
    OT_TRY(OT_GIVEN(checkpoint));
    st = ot_model_load(training, NULL, &m.training);
    OT_THEN(st, eval != NULL ? ot_model_load(eval, NULL, &m.eval) : OT_OK);
    OT_THEN(st, optimizer != NULL ? ot_model_load(optimizer, NULL, &m.optimizer) : OT_OK);
    return ot__session_create(&m, st, checkpoint, options, out);
}

static ot_status read_artifacts(const char *what, const ot_bytes *bytes, ot_model **out)
{
    if (bytes == NULL || bytes->n_bytes == 0)
        return OT_OK;
    return ot__error_prefix(ot_model_load_buffer(bytes->data, bytes->n_bytes, NULL, out), "%s",
                            what);
}

ot_status ot_session_load_buffers(const ot_bytes *training, const ot_bytes *eval,
                                  const ot_bytes *optimizer, ot_checkpoint *checkpoint,
                                  const ot_session_options *options, ot_session **out)
{
    ot__models m = {0};
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(training));
    OT_TRY(OT_GIVEN(checkpoint));
    if (training->n_bytes == 0)
        return ot__error(OT_ERR_INVALID, "the training model has 0 bytes, expected a model");
    st = read_artifacts("training model", training, &m.training);
    OT_THEN(st, read_artifacts("eval model", eval, &m.eval));
    OT_THEN(st, read_artifacts("optimizer model", optimizer, &m.optimizer));
    return ot__session_create(&m, st, checkpoint, options, out);
}
