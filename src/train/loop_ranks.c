// SPDX-License-Identifier: Apache-2.0
// A run over several ranks: what all of them agree on, and metrics, which are sums over what each
// of them has seen, joined in the order that one process would see it in. One rank writes files.
#include "data/data.h"
#include "dist/dist.h"
#include "train/loop.h"

enum { STOP = 1, FAILED_TO_SAVE = 2 }; // of what any rank says

int64_t ot__loop_rank(const ot__loop *l)
{
    return l->comm != NULL ? ot_comm_rank(l->comm) : 0;
}

int64_t ot__loop_n_ranks(const ot__loop *l)
{
    return l->comm != NULL ? ot_comm_world_size(l->comm) : 1;
}

// ---- agreements ----

static ot_status agree_on_loop(ot__loop *l, ot_status st, const char *call,
                               const ot_agree_field *fields, int n_fields, uint64_t *all)
{
    ot_agreement a = OT_AGREEMENT_INIT;

    a.call = call;
    a.status = st;
    a.any = (l->wants_stop ? STOP : 0) | (l->has_failed ? FAILED_TO_SAVE : 0);
    a.all = *all;
    a.fields = fields;
    a.n_fields = st == OT_OK ? n_fields : 0;
    st = ot_comm_agree(l->comm, &a);
    if (st == OT_OK) {
        l->is_stopping = (a.any & STOP) != 0;
        l->has_failed = (a.any & FAILED_TO_SAVE) != 0;
        *all = a.all;
    }
    return st;
}

ot_status ot__loop_agree(ot__loop *l, ot_status st, const char *call)
{
    uint64_t all = 0;

    return l->comm != NULL ? agree_on_loop(l, st, call, NULL, 0, &all) : st;
}

ot_status ot__loop_agree_on_loss(ot__loop *l, ot_status st, bool *is_finite)
{
    uint64_t all = *is_finite;

    if (l->comm == NULL)
        return st;
    st = agree_on_loop(l, st, "loss", NULL, 0, &all);
    *is_finite = all != 0;
    return st;
}

// Rows of batches, and what the first and the last one have.
static ot_status identify_rows(ot_batches *batches, uint64_t *rows, uint64_t *id)
{
    *rows = *id = 0;
    if (batches == NULL)
        return OT_OK;
    *rows = (uint64_t)ot_batches_rows(batches);
    return ot__batches_id(batches, id);
}

static uint64_t batch_size_of(const ot_batches *batches)
{
    return batches != NULL ? (uint64_t)ot__batches_size(batches) : 0;
}

static uint64_t saves_of(const ot__loop *l)
{
    return (l->options->checkpoint_dir != NULL ? 1u : 0u) | (l->saves_directories ? 2u : 0u) |
           (l->job != NULL ? 4u : 0u);
}

ot_status ot__loop_join(ot__loop *l, ot_status st)
{
    const ot_train_options *o = l->options;
    uint64_t all = 0, rows[2] = {0}, ids[2] = {0}, sizes[2];

    if (l->comm == NULL)
        return st;
    OT_THEN(st, identify_rows(l->training, &rows[0], &ids[0]));
    OT_THEN(st, identify_rows(l->validation, &rows[1], &ids[1]));
    sizes[0] = batch_size_of(l->training);
    sizes[1] = batch_size_of(l->validation);
    {
        const ot_agree_field fields[] = {
            {"the number of training rows", rows[0]},
            {"the training rows", ids[0]},
            {"the number of validation rows", rows[1]},
            {"the validation rows", ids[1]},
            {"the batch size", sizes[0]},
            {"the batch size of the validation", sizes[1]},
            {"the number of batches", (uint64_t)l->n_batches},
            {"the batches a step", (uint64_t)l->trainer->accumulation},
            {"slices", (uint64_t)l->n_slices},
            {"epochs", (uint64_t)o->epochs},
            {"max_steps", (uint64_t)o->max_steps},
            {"save_every", (uint64_t)o->save_every},
            {"patience", (uint64_t)o->patience},
            {"keep_best", (uint64_t)(o->keep_best != 0)},
            {"which checkpoints are saved", saves_of(l)},
            {"the epoch that the run goes on with", (uint64_t)l->at.epoch},
            {"the batch that the run goes on with", (uint64_t)l->at.batch},
        };

        return agree_on_loop(l, st, "training", fields, (int)OT_COUNT(fields), &all);
    }
}

// ---- metrics ----

// `room` sums of every rank, one rank after the other.
static ot_status gather_sums(ot__loop *l, const ot__metric_sums *own, int64_t room,
                             ot__metric_sums **all)
{
    const size_t n = (size_t)room * (size_t)ot__loop_n_ranks(l);

    *all = ot__alloc_zero(n + 1, sizeof **all);
    OT_TRY(ot__loop_agree(l, ot__made(*all), "metrics"));
    return ot_comm_all_gather(l->comm, own, (size_t)room * sizeof *own, *all);
}

// After an update, which all ranks have made.
ot_status ot__loop_join_steps(ot__loop *l)
{
    if (l->comm == NULL)
        return OT_OK;
    OT_TRY(ot__comm_gather(l->comm, l->all_steps, (size_t)l->steps_room * sizeof *l->steps,
                           "metrics"));
    for (int64_t i = 0; i < l->steps_room * ot__loop_n_ranks(l); i++)
        ot__metrics_join(&l->at.sums, &l->all_steps[i]);
    return OT_OK;
}

// Batches rank, rank + n, ... of n ranks, each by itself; or all make a step together, the last of
// which some have no batch for.
static ot_status evaluate_own(ot__loop *l, ot_batches *batches, ot__metric_sums *own)
{
    const int64_t n_ranks = ot__loop_n_ranks(l), n = ot_batches_count(batches);
    ot_status st = OT_OK;

    ot__session_owe_steps(l->session, OT_MODE_EVAL, (n + n_ranks - 1) / n_ranks);
    for (int64_t first = 0; first < n && st == OT_OK; first += n_ranks) {
        const int64_t at = first + ot__loop_rank(l);

        if (at >= n) {
            st = ot__session_join_step(l->session, st, OT_MODE_EVAL);
            continue;
        }
        st = ot_batches_seek(batches, 0, at);
        OT_THEN(st, ot_batches_next(batches, l->inputs, l->n_inputs));
        OT_THEN(st, ot__loop_batch(l, OT_MODE_EVAL, &own[first / n_ranks]));
    }
    return st != OT_OK ? ot__session_fail_step(l->session, st, OT_MODE_EVAL) : OT_OK;
}

ot_status ot__loop_evaluate(ot__loop *l, ot_batches *batches, ot__metric_sums *sums)
{
    const int64_t n_ranks = ot__loop_n_ranks(l), n = ot_batches_count(batches);
    const int64_t room = (n + n_ranks - 1) / n_ranks;
    ot__metric_sums *own = ot__alloc_zero((size_t)room + 1, sizeof *own), *all = NULL;
    ot_status st = ot__made(own);

    OT_THEN(st, evaluate_own(l, batches, own));
    st = ot__loop_agree(l, st, "evaluation");
    OT_THEN(st, gather_sums(l, own, room, &all));
    for (int64_t at = 0; st == OT_OK && at < n; at++)
        ot__metrics_join(sums, &all[at % n_ranks * room + at / n_ranks]);
    ot__free(own);
    ot__free(all);
    return st;
}
