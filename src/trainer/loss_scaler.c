// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "trainer/loss_scaler.h"

static const double step_factor = 2.0; // up and down

ot_status ot__scaler_read(const ot_loss_scaler *given, ot_loss_scaler *own)
{
    OT_TRY(OT_GIVEN(given));
    return OT_OPTIONS_READ(ot_loss_scaler, OT_LOSS_SCALER_INIT, given, own);
}

static void adapt(ot_loss_scaler *s, bool all_finite)
{
    if (!all_finite) {
        s->loss_scale = OT_MAX(s->min_loss_scale, s->loss_scale / step_factor);
        s->n_stable = 0;
    } else if (++s->n_stable >= s->up_scale_window) {
        s->loss_scale = OT_MIN(s->max_loss_scale, s->loss_scale * step_factor);
        s->n_stable = 0;
    }
}

static ot_status call_update(ot_loss_scaler *s, const ot_step_info *info)
{
    double scale = s->loss_scale;

    if (s->update(s->context, info, &scale) != 0)
        return ot__error(OT_ERR_INTERRUPTED, "the loss scaler's update function failed");
    if (!isfinite((float)scale) || !((float)scale > 0))
        return ot__error(OT_ERR_INVALID,
                         "the loss scaler's update function made the scale %g, expected a finite "
                         "f32 number above 0",
                         scale);
    s->loss_scale = scale;
    return OT_OK;
}

ot_status ot__scaler_update(ot_loss_scaler *scaler, const ot_step_info *info, ot_loss_scaler *own)
{
    ot_step_info own_info;

    OT_TRY(ot__scaler_read(scaler, own));
    OT_TRY(OT_GIVEN(info));
    OT_TRY(OT_OPTIONS_READ(ot_step_info, OT_STEP_INFO_INIT, info, &own_info));
    if (own->update)
        OT_TRY(call_update(own, &own_info));
    else if (own->automatic_update)
        adapt(own, own_info.all_finite);
    ot__options_write(scaler, own, sizeof *own);
    return OT_OK;
}

double ot_loss_scaler_update(ot_loss_scaler *scaler, const ot_step_info *info)
{
    ot_loss_scaler own;

    return ot__scaler_update(scaler, info, &own) == OT_OK ? own.loss_scale : 0.0;
}

void ot_loss_scaler_reset(ot_loss_scaler *scaler)
{
    ot_loss_scaler own;

    if (ot__scaler_read(scaler, &own) != OT_OK)
        return;
    own.loss_scale = own.initial_loss_scale;
    own.n_stable = 0;
    ot__options_write(scaler, &own, sizeof own);
}
