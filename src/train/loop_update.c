// SPDX-License-Identifier: Apache-2.0
// One update of the training loop: its batches, a slice of all of them after the other, and the
// optimizer step.
#include <assert.h>

#include "data/data.h"
#include "train/loop.h"

// ---- how many slices ----

static ot_status check_can_cut(const ot__loop *l)
{
    ot_dtype dtype;
    ot_shape shape;

    for (int i = 0; i < l->n_inputs; i++) {
        OT_TRY(ot_session_input_info(l->session, OT_MODE_TRAIN, i, &dtype, &shape));
        if (shape.ndim > 0 && shape.dim[0] > 0)
            return ot__error(OT_ERR_INVALID,
                             "slices: %" PRId64 ", but input '%s' takes %" PRId64
                             " rows and no other number, which cannot be cut",
                             l->n_slices, ot_session_input_name(l->session, OT_MODE_TRAIN, i),
                             shape.dim[0]);
    }
    if (ot__batches_size(l->training) < l->n_slices)
        ot__log(OT_LOG_WARNING,
                "batches of %" PRId64 " rows have %" PRId64 " slices, of which some have no row",
                ot__batches_size(l->training), l->n_slices);
    return OT_OK;
}

ot_status ot__loop_cut(ot__loop *l)
{
    const int64_t wanted = l->options->slices;

    l->n_slices = wanted > 0 ? wanted : l->at.n_slices;
    if (wanted > 0 && l->options->resume && wanted != l->at.n_slices)
        ot__log(OT_LOG_INFO,
                "slices: %" PRId64 ", the checkpoint was trained with %" PRId64
                ": dropout masks and batch statistics are others from here on",
                wanted, l->at.n_slices);
    l->at.n_slices = l->n_slices;
    if (l->n_slices > 1)
        OT_TRY(check_can_cut(l));
    OT_TRY(ot__batches_set_slice(l->training, 0, l->n_slices));
    return ot__session_set_slices(l->session, (int)l->n_slices, 0, (int)l->n_slices);
}

void ot__loop_uncut(ot__loop *l)
{
    if (l->n_slices <= 1)
        return;
    (void)ot__batches_set_slice(l->training, 0, 1);
    (void)ot__session_set_slices(l->session, 1, 0, 1);
}

// ---- batches ----

// The slice of the next batch; *rows of its *all, 0: none.
static ot_status next_batch(ot__loop *l, int64_t *rows, int64_t *all)
{
    OT_TRY(ot_batches_next(l->training, l->inputs, l->n_inputs));
    assert(l->inputs[0]); // there are as many as were counted
    *rows = ot_tensor_shape(l->inputs[0])->dim[0];
    *all = ot_batches_batch_rows(l->training);
    return OT_OK;
}

static ot_status train_batch(ot__loop *l, bool *has_confirmed)
{
    int64_t rows, all;

    OT_TRY(next_batch(l, &rows, &all));
    if (rows == 0) {
        ot__trainer_skip_step(l->trainer);
        return OT_OK;
    }
    OT_TRY(ot__session_weigh(l->session, (double)(rows * l->n_slices) / (double)all));
    OT_TRY(ot__loop_batch(l, OT_MODE_TRAIN, &l->at.sums));
    if (l->is_finite && !*has_confirmed)
        OT_TRY(ot__save_confirmed(l));
    *has_confirmed = true; // only the first state is one to go on from
    return OT_OK;
}

static ot_status train_slice(ot__loop *l, int64_t slice, int64_t n_batches, bool *has_confirmed)
{
    OT_TRY(ot__batches_set_slice(l->training, slice, l->n_slices));
    OT_TRY(ot_batches_seek(l->training, l->at.epoch, l->at.batch));
    ot__trainer_begin_slice(l->trainer, (int)slice);
    for (int64_t i = 0; i < n_batches; i++, l->at.batch++)
        OT_TRY(train_batch(l, has_confirmed));
    return ot__session_end_slice(l->session);
}

ot_status ot__loop_update(ot__loop *l)
{
    const int64_t n_updates = ot_session_step_count(l->session), first = l->at.batch;
    const int64_t n = OT_MIN(l->trainer->accumulation, l->n_batches - first);
    bool has_confirmed = false;

    for (int64_t slice = 0; slice < l->n_slices; slice++) {
        l->at.batch = first;
        OT_TRY(train_slice(l, slice, n, &has_confirmed));
    }
    OT_TRY(ot__trainer_update(l->trainer));
    l->n_skipped += ot_session_step_count(l->session) == n_updates;
    return OT_OK;
}

// The batch that was trained last is known to be readable; its last slice has rows.
ot_status ot__loop_repeat(ot__loop *l)
{
    const bool is_epoch_begun = l->at.batch > 0;
    ot__metric_sums sums = {0};

    OT_TRY(ot__batches_set_slice(l->training, l->n_slices - 1, l->n_slices));
    OT_TRY(ot_batches_seek(l->training, l->at.epoch - !is_epoch_begun,
                           (is_epoch_begun ? l->at.batch : l->n_batches) - 1));
    OT_TRY(ot_batches_next(l->training, l->inputs, l->n_inputs));
    return ot__loop_batch(l, OT_MODE_TRAIN, &sums);
}
