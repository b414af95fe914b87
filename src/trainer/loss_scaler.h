// SPDX-License-Identifier: Apache-2.0
// Loss scalers, which may be structs of an earlier version.
#ifndef OT_TRAINER_LOSS_SCALER_H
#define OT_TRAINER_LOSS_SCALER_H

#include "base/base.h"
#include "onnxtrain/loss_scaler.h"

ot_status ot__scaler_read(const ot_loss_scaler *given, ot_loss_scaler *own);
// The rule after an update, applied or skipped; on failure nothing changes. *own is the scaler
// afterwards.
ot_status ot__scaler_update(ot_loss_scaler *scaler, const ot_step_info *info, ot_loss_scaler *own);

#endif
