// SPDX-License-Identifier: Apache-2.0
// Micro-batches that come again, a slice of each at a time: they are counted once.
#include "trainer/trainer.h"

void ot__trainer_uncount_steps(ot_trainer *trainer)
{
    trainer->info.step -= trainer->n_accumulated;
    trainer->phase -= trainer->n_accumulated;
    trainer->n_accumulated = 0;
}

void ot__trainer_begin_slice(ot_trainer *trainer, int slice)
{
    ot__trainer_uncount_steps(trainer);
    ot__session_begin_slice(trainer->session, slice);
}

void ot__trainer_count_step(ot_trainer *trainer)
{
    trainer->info.step++;
    trainer->phase++;
    trainer->n_accumulated++;
}

void ot__trainer_go_back(ot_trainer *trainer)
{
    ot__session_exchange_steps(trainer->session);
    trainer->info.step -= trainer->n_accumulated;
}

void ot__trainer_go_forth(ot_trainer *trainer)
{
    ot__session_exchange_steps(trainer->session);
    trainer->info.step += trainer->n_accumulated;
}

ot_status ot__trainer_skip_step(ot_trainer *trainer)
{
    OT_TRY(ot__session_skip_step(trainer->session, OT_OK));
    ot__trainer_count_step(trainer);
    return OT_OK;
}
