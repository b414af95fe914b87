// SPDX-License-Identifier: Apache-2.0
// The learning rate over a run: how many optimizer steps it has.
#include "train/loop.h"

static int64_t count_updates(const ot_train_options *options, int64_t n_batches,
                             int64_t accumulation)
{
    const int64_t of_epoch = (n_batches - 1) / accumulation + 1;
    const int64_t of_epochs =
        of_epoch > INT64_MAX / options->epochs ? INT64_MAX : of_epoch * options->epochs;

    return options->max_steps > 0 ? OT_MIN(of_epochs, options->max_steps) : of_epochs;
}

ot_status ot__loop_set_schedule(ot__loop *l)
{
    ot_schedule own;

    if (!l->options->schedule)
        return OT_OK;
    OT_TRY(ot__schedule_read(l->options->schedule, &own));
    if (own.total_steps == 0)
        own.total_steps = count_updates(l->options, l->n_batches, l->trainer->accumulation);
    return ot_trainer_set_schedule(l->trainer, &own);
}
