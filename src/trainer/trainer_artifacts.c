// SPDX-License-Identifier: Apache-2.0
// What options of a trainer ask of artifacts.
#include "artifacts/artifacts.h"
#include "trainer/options.h"
#include "trainer/trainer.h"

// Both lists; the caller frees it.
static ot_status list_frozen(const ot_artifacts_options *how, const ot_trainer_options *options,
                             const char ***out)
{
    const char **names = ot__alloc_zero(
        (size_t)how->n_frozen + (size_t)options->n_frozen_weights + 1, sizeof *names);
    int n = 0;

    *out = names;
    OT_TRY(ot__made(names));
    for (int i = 0; i < how->n_frozen; i++)
        names[n++] = how->frozen[i];
    for (int i = 0; i < options->n_frozen_weights; i++)
        names[n++] = options->frozen_weights[i];
    return OT_OK;
}

ot_status ot__trainer_artifacts(const ot_model *model, const ot_artifacts_options *how,
                                const ot_trainer_options *options, ot__optimizer_wiring wiring,
                                ot_artifacts **out)
{
    ot_artifacts_options own;
    ot_optimizer_options optimizer;
    const char **frozen = NULL;
    ot_status st = OT_OK;

    OT_TRY(OT_OPTIONS_READ(ot_artifacts_options, OT_ARTIFACTS_OPTIONS_INIT, how, &own));
    OT_TRY(OT_OPTIONS_READ(ot_optimizer_options, OT_OPTIMIZER_OPTIONS_INIT, own.optimizer,
                           &optimizer));
    if (options->average_decay > 0)
        optimizer.average_decay = options->average_decay;
    own.optimizer = &optimizer;
    if (options->n_frozen_weights > 0 && own.n_frozen >= 0) {
        st = list_frozen(&own, options, &frozen);
        own.frozen = frozen;
        own.n_frozen += options->n_frozen_weights;
    }
    if (ot__options_scale(options)) {
        own.loss_scale = 1;
        wiring.divides = true;
    }
    wiring.skips =
        options->skip_non_finite != 0 || ot__options_precision(options) != OT_PRECISION_F32;
    wiring.clips_none = options->grad_norm_clip == 0;
    OT_THEN(st, ot__artifacts_generate(model, &own, &wiring, out));
    ot__free(frozen);
    return st;
}

ot_status ot_trainer_generate_artifacts(const ot_model *model, const ot_artifacts_options *how,
                                        const ot_trainer_options *options, ot_artifacts **out)
{
    ot_trainer_options own;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    OT_TRY(ot__trainer_options_check(options, &own));
    return ot__trainer_artifacts(model, how, &own, (ot__optimizer_wiring){0}, out);
}
