// SPDX-License-Identifier: Apache-2.0
// One update of the training loop: its batches, a slice of all of them after the other, and the
// optimizer step.
#include <assert.h>
#include <string.h>

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
            return ot__error(
                OT_ERR_INVALID,
                "slices: %" PRId64 ", but input '%s' takes %" PRId64
                " rows and no other number, which cannot be cut; export with "
                "dynamic_axes or dynamic_shapes, or train in one process and one slice",
                l->n_slices, ot_session_input_name(l->session, OT_MODE_TRAIN, i), shape.dim[0]);
    }
    if (ot__batches_size(l->training) < l->n_slices)
        ot__log(OT_LOG_WARNING,
                "batches of %" PRId64 " rows have %" PRId64 " slices, of which some have no row",
                ot__batches_size(l->training), l->n_slices);
    return OT_OK;
}

// The slices of the rank that has most.
static int64_t most_slices(const ot__loop *l)
{
    const int64_t n_ranks = ot__loop_n_ranks(l);

    return (l->n_slices + n_ranks - 1) / n_ranks;
}

static ot_status make_steps(ot__loop *l)
{
    const int64_t n_ranks = ot__loop_n_ranks(l);

    if (l->comm == NULL)
        return OT_OK;
    l->steps_room = most_slices(l) * OT_MIN(l->trainer->accumulation, l->n_batches);
    l->all_steps = ot__alloc_zero((size_t)(l->steps_room * n_ranks), sizeof *l->steps);
    OT_TRY(ot__made(l->all_steps));
    l->steps = l->all_steps + l->steps_room * ot__loop_rank(l);
    return OT_OK;
}

// Unless they are said: those that the run has had, but of norms over all ranks, which are one for
// each rank and compute the same for any number of them.
static int64_t usual_slices(const ot__loop *l)
{
    const int64_t n_ranks = ot__loop_n_ranks(l);

    return ot__session_syncs_norms(l->session) ? n_ranks : OT_MAX(l->at.n_slices, n_ranks);
}

ot_status ot__loop_cut(ot__loop *l)
{
    const int64_t wanted = l->options->slices;

    l->n_slices = wanted > 0 ? wanted : usual_slices(l);
    if (l->n_slices < ot__loop_n_ranks(l))
        return ot__error(OT_ERR_INVALID,
                         "slices: %" PRId64 ", expected at least 1 for each of the %" PRId64
                         " processes",
                         l->n_slices, ot__loop_n_ranks(l));
    if (wanted > 0 && l->options->resume && wanted != l->at.n_slices)
        ot__log(OT_LOG_INFO,
                "slices: %" PRId64 ", the checkpoint was trained with %" PRId64
                ": dropout masks and batch statistics are others from here on",
                wanted, l->at.n_slices);
    l->at.n_slices = l->n_slices;
    l->first_slice = l->n_slices * ot__loop_rank(l) / ot__loop_n_ranks(l);
    l->last_slice = l->n_slices * (ot__loop_rank(l) + 1) / ot__loop_n_ranks(l);
    if (l->n_slices > 1) {
        OT_TRY(check_can_cut(l));
        OT_TRY(ot__loop_find_loss(l));
    }
    OT_TRY(make_steps(l));
    OT_TRY(ot__batches_set_slice(l->training, 0, l->n_slices));
    return ot__session_set_slices(l->session, (int)l->n_slices, (int)l->first_slice,
                                  (int)l->last_slice);
}

void ot__loop_uncut(ot__loop *l)
{
    ot__free(l->all_steps);
    ot__free(l->shares);
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

// A row of the batch that was read last, in which this slice has none: normalisations over all
// ranks are computed by all together.
static ot_status train_ghost(ot__loop *l, int64_t slice, int64_t epoch, int64_t batch, int64_t all)
{
    ot__metric_sums ignored = {0};
    ot_status st = ot__batches_set_slice(l->training, 0, all);

    OT_THEN(st, ot_batches_seek(l->training, epoch, batch));
    OT_THEN(st, ot_batches_next(l->training, l->inputs, l->n_inputs));
    OT_TRY(ot__batches_set_slice(l->training, slice, l->n_slices));
    OT_THEN(st, ot__session_weigh_ghost(l->session));
    l->loss_factor = 1;
    OT_THEN(st, ot__loop_batch(l, OT_MODE_TRAIN, &ignored));
    return st;
}

static ot_status skip_batch(ot__loop *l, int64_t slice, int64_t epoch, int64_t batch, int64_t all)
{
    return ot__session_syncs_norms(l->session) ? train_ghost(l, slice, epoch, batch, all)
                                               : ot__trainer_skip_step(l->trainer);
}

// Batch `i` of the update.
static ot_status train_batch(ot__loop *l, int64_t slice, int64_t i, bool *has_confirmed)
{
    ot__metric_sums *sums = l->comm != NULL ? &l->steps[l->n_steps++] : &l->at.sums;
    int64_t rows, all;

    OT_TRY(next_batch(l, &rows, &all));
    if (rows == 0)
        return skip_batch(l, slice, l->at.epoch, l->at.batch, all);
    OT_TRY(ot__session_weigh(l->session, ot__loop_weight(l, slice, i, rows, all)));
    l->loss_factor = ot__loop_loss_factor(l, slice, i, rows, all);
    OT_TRY(ot__loop_batch(l, OT_MODE_TRAIN, sums));
    l->are_finite = l->are_finite && l->is_finite;
    if (l->is_finite && !*has_confirmed && l->comm == NULL)
        OT_TRY(ot__save_confirmed(l));
    *has_confirmed = true; // only the first state is one to go on from
    return OT_OK;
}

static bool has_to_confirm(const ot__loop *l)
{
    return !l->is_confirmed || l->plan.checkpoint || l->plan.best;
}

// While the last step of an update runs sums over the ranks may begin, unless the state is saved
// then: that looks at gradients, too.
static bool overlaps(const ot__loop *l)
{
    return l->comm != NULL && ot__session_overlaps(l->session) && !has_to_confirm(l) &&
           ot__batches_size(l->training) >= l->n_slices;
}

static ot_status train_slice(ot__loop *l, int64_t slice, int64_t n_batches, bool *has_confirmed)
{
    const bool is_collective = overlaps(l) && slice == l->last_slice - 1;
    ot_status st = ot__batches_set_slice(l->training, slice, l->n_slices);

    OT_THEN(st, ot_batches_seek(l->training, l->at.epoch, l->at.batch));
    ot__trainer_begin_slice(l->trainer, (int)slice);
    for (int64_t i = 0; i < n_batches - 1; i++) {
        OT_THEN(st, train_batch(l, slice, i, has_confirmed));
        l->at.batch += st == OT_OK;
    }
    if (is_collective)
        ot__session_set_last(l->session);
    OT_THEN(st, train_batch(l, slice, n_batches - 1, has_confirmed));
    l->at.batch += st == OT_OK;
    OT_THEN(st, ot__session_end_slice(l->session));
    return st != OT_OK ? ot__session_fail_step(l->session, st, OT_MODE_TRAIN) : OT_OK;
}

// Steps that all ranks make together are as many on all: those of one that has fewer slices.
static ot_status join_slices(ot__loop *l, int64_t n_batches)
{
    const int64_t n = (most_slices(l) - (l->last_slice - l->first_slice)) * n_batches;

    for (int64_t i = 0; i < n && ot__session_joins_steps(l->session, OT_MODE_TRAIN); i++)
        OT_TRY(ot__session_join_step(l->session, OT_OK, OT_MODE_TRAIN));
    return OT_OK;
}

static int64_t batches_of_update(const ot__loop *l)
{
    return OT_MIN(l->trainer->accumulation, l->n_batches - l->at.batch);
}

// Others are in the last step, or will be, which all make together.
static ot_status fail_before_last(ot__loop *l, ot_status st)
{
    if (!overlaps(l))
        return st;
    ot__session_set_last(l->session);
    return ot__session_fail_step(l->session, st, OT_MODE_TRAIN);
}

static ot_status train_slices(ot__loop *l)
{
    const int64_t first = l->at.batch, n = batches_of_update(l);
    bool has_confirmed = false;

    l->are_finite = true;
    ot__session_owe_steps(l->session, OT_MODE_TRAIN, most_slices(l) * n);
    for (int64_t slice = l->first_slice; slice < l->last_slice; slice++) {
        ot_status st;

        l->at.batch = first;
        st = train_slice(l, slice, n, &has_confirmed);
        if (st != OT_OK)
            return slice < l->last_slice - 1 ? fail_before_last(l, st) : st;
    }
    return join_slices(l, n);
}

// Over several ranks a state is one to go on from when the losses of all of them are finite.
static ot_status confirm_together(ot__loop *l, ot_status st)
{
    if (l->comm == NULL || !has_to_confirm(l))
        return st;
    OT_TRY(ot__loop_agree_on_loss(l, st, &l->are_finite));
    return l->are_finite ? ot__save_confirmed(l) : OT_OK;
}

ot_status ot__loop_update(ot__loop *l)
{
    const int64_t n_updates = ot_session_step_count(l->session);
    ot_status st;

    OT_TRY(ot__loop_share(l, batches_of_update(l)));
    l->n_steps = 0;
    if (l->steps != NULL)
        memset(l->steps, 0, (size_t)l->steps_room * sizeof *l->steps);
    st = train_slices(l);
    if (l->comm == NULL)
        OT_TRY(st);
    st = confirm_together(l, st);
    OT_TRY(ot__trainer_update(l->trainer, st));
    OT_TRY(ot__loop_join_steps(l));
    l->n_skipped += ot_session_step_count(l->session) == n_updates;
    return OT_OK;
}

// The batch that was trained last is known to be readable; its last slice has rows.
static ot_status repeat_step(ot__loop *l)
{
    const bool is_epoch_begun = l->at.batch > 0;
    const int64_t epoch = l->at.epoch - !is_epoch_begun, slice = l->last_slice - 1;
    const int64_t batch = (is_epoch_begun ? l->at.batch : l->n_batches) - 1;
    ot__metric_sums sums = {0};
    int64_t rows, all;

    OT_TRY(ot__batches_set_slice(l->training, slice, l->n_slices));
    OT_TRY(ot_batches_seek(l->training, epoch, batch));
    OT_TRY(next_batch(l, &rows, &all));
    if (l->comm != NULL) // steps that are not of slices are those of all ranks
        ot__trainer_begin_slice(l->trainer, (int)slice);
    if (rows == 0)
        return skip_batch(l, slice, epoch, batch, all);
    return ot__loop_batch(l, OT_MODE_TRAIN, &sums);
}

ot_status ot__loop_repeat(ot__loop *l)
{
    ot_status st;

    ot__session_owe_steps(l->session, OT_MODE_TRAIN, 1);
    st = repeat_step(l);
    return st != OT_OK ? ot__session_fail_step(l->session, st, OT_MODE_TRAIN) : OT_OK;
}
