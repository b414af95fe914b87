// SPDX-License-Identifier: Apache-2.0
// The loss scale of steps in few bits: which one a step takes, and what an update makes of it.
#include <math.h>

#include "trainer/loss_scaler.h"
#include "trainer/options.h"
#include "trainer/trainer.h"

ot_precision ot__options_precision(const ot_trainer_options *options)
{
    if (options->precision == OT_PRECISION_F32 && options->mixed_precision != 0)
        return OT_PRECISION_F16;
    return options->precision;
}

bool ot__options_scale(const ot_trainer_options *options)
{
    return ot__options_precision(options) == OT_PRECISION_F16 || options->loss_scaler != NULL;
}

// ---- whose it is ----

// Artifacts that were made for f32 may not have what it takes.
static ot_status check_session(const ot_trainer *trainer)
{
    static const char *const names[] = {"f32", "bf16", "f16"};
    const ot_precision found = ot__session_precision(trainer->session);

    if (trainer->precision == OT_PRECISION_F32)
        return OT_OK;
    if (found != trainer->precision)
        return ot__error(OT_ERR_INVALID,
                         "the session computes in %s, expected %s as the options say: give "
                         "ot_session_options this precision",
                         names[found], names[trainer->precision]);
    if (trainer->scaler != NULL && !ot__session_takes_loss_scale(trainer->session))
        return ot__error(OT_ERR_INVALID,
                         "the training model has no input '%s', which a loss scale needs: make the "
                         "artifacts with ot_trainer_generate_artifacts() and these options",
                         OT_NAME_LOSS_SCALE);
    if (ot__session_has_optimizer(trainer->session) && !ot__session_skips(trainer->session))
        return ot__error(OT_ERR_INVALID,
                         "the optimizer model does not skip updates whose gradients are not "
                         "finite, which mixed precision needs: make the artifacts with "
                         "ot_trainer_generate_artifacts() and these options");
    return OT_OK;
}

ot_status ot__trainer_take_scaler(ot_trainer *trainer, const ot_trainer_options *options)
{
    trainer->precision = ot__options_precision(options);
    trainer->skips_not_finite = options->skip_non_finite != 0;
    trainer->scaler = options->loss_scaler;
    if (trainer->scaler == NULL && ot__options_scale(options)) {
        trainer->own_scaler = (ot_loss_scaler)OT_LOSS_SCALER_INIT;
        trainer->scaler = &trainer->own_scaler;
    }
    return check_session(trainer);
}

// ---- steps ----

// All micro-batches of an update have the same: somebody else may change a scaler that is shared.
ot_status ot__trainer_set_scale(ot_trainer *trainer)
{
    ot_loss_scaler scaler;

    if (trainer->scaler == NULL || trainer->n_accumulated > 0)
        return OT_OK;
    OT_TRY(ot__scaler_read(trainer->scaler, &scaler));
    OT_TRY(ot_session_set_loss_scale(trainer->session, scaler.loss_scale));
    trainer->info.loss_scale = scaler.loss_scale;
    return OT_OK;
}

// A function of the program is asked before the update, so that nothing has changed when it fails.
ot_status ot__trainer_ask_scaler(ot_trainer *trainer, ot_status *given, ot_loss_scaler *before)
{
    ot_step_info info = trainer->info;
    ot_loss_scaler after;
    bool is_finite;

    OT_THEN(*given, ot__scaler_read(trainer->scaler, before));
    OT_TRY(ot__session_sum_gradients(trainer->session, *given, trainer->n_accumulated, &is_finite));
    info.all_finite = is_finite;
    *given = ot__scaler_update(trainer->scaler, &info, &after);
    return OT_OK;
}

bool ot__trainer_asks_scaler(const ot_trainer *trainer)
{
    ot_loss_scaler scaler;

    return trainer->scaler != NULL && ot__scaler_read(trainer->scaler, &scaler) == OT_OK &&
           scaler.update != NULL;
}

void ot__trainer_unask_scaler(ot_trainer *trainer, const ot_loss_scaler *before)
{
    ot__options_write(trainer->scaler, before, sizeof *before);
}

void ot__trainer_adapt_scale(ot_trainer *trainer)
{
    ot_loss_scaler scaler;

    if (trainer->scaler != NULL && ot__scaler_read(trainer->scaler, &scaler) == OT_OK &&
        scaler.update == NULL)
        (void)ot__scaler_update(trainer->scaler, &trainer->info, &scaler); // the rule cannot fail
}

double ot__trainer_loss_scale(const ot_trainer *trainer)
{
    return trainer->scaler != NULL ? trainer->info.loss_scale : 0;
}

bool ot__trainer_may_skip(const ot_trainer *trainer)
{
    ot_loss_scaler scaler;

    if (trainer->precision == OT_PRECISION_F32 && trainer->scaler == NULL)
        return ot__session_skips(trainer->session);
    if (trainer->skips_not_finite)
        return true;
    return trainer->scaler != NULL && ot__scaler_read(trainer->scaler, &scaler) == OT_OK &&
           (scaler.update != NULL || scaler.automatic_update != 0) &&
           scaler.loss_scale > scaler.min_loss_scale;
}

// ---- where it stands ----

ot_status ot__loss_scale_check(double scale)
{
    if (isfinite((float)scale) && (float)scale > 0)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "the loss scale of the state is %g, expected a finite f32 number above 0",
                     scale);
}

ot__scale_position ot__trainer_scale_position(const ot_trainer *trainer)
{
    ot_loss_scaler scaler;

    if (trainer->scaler == NULL || ot__scaler_read(trainer->scaler, &scaler) != OT_OK)
        return (ot__scale_position){0};
    return (ot__scale_position){
        .is_there = true,
        .loss_scale = scaler.loss_scale,
        .n_stable = scaler.n_stable,
        .of_gradients = trainer->n_accumulated > 0 ? ot__session_loss_scale(trainer->session) : 0,
    };
}

// A scale that the program holds fast stays what the program says.
void ot__trainer_go_to_scale(ot_trainer *trainer, const ot__scale_position *at)
{
    ot_loss_scaler scaler;

    if (trainer->scaler == NULL || !at->is_there ||
        ot__scaler_read(trainer->scaler, &scaler) != OT_OK)
        return;
    if (scaler.update != NULL || scaler.automatic_update != 0) {
        scaler.loss_scale = at->loss_scale;
        scaler.n_stable = at->n_stable;
        ot__options_write(trainer->scaler, &scaler, sizeof scaler);
    }
    if (at->of_gradients > 0) // it has been checked
        (void)ot_session_set_loss_scale(trainer->session, at->of_gradients);
}
