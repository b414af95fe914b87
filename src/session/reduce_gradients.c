// SPDX-License-Identifier: Apache-2.0
// Gradients and running statistics of all ranks become one: sums of gradients begin while a train
// step runs, or with the update, which waits for them.
#include "session/ranks.h"

#include <string.h>

// ---- gradients ----

static ot_status start_bucket(ot__bucket *b)
{
    void *memory = b->parameters[0]->gradient->data;

    if (b->is_started)
        return OT_OK;
    OT_TRY(ot__reduce_start(b->reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, &memory));
    b->is_started = true;
    return OT_OK;
}

ot_status ot__ranks_reduce_start(void *context, int64_t bucket)
{
    struct ot__ranks *ranks = context;

    return ranks->is_last ? start_bucket(&ranks->buckets[bucket]) : OT_OK;
}

// Those that a step has begun end, whatever became of it.
static ot_status await_gradients(struct ot__ranks *ranks)
{
    ot_status st = OT_OK;

    for (int k = 0; k < ranks->n_buckets; k++) {
        if (ranks->buckets[k].is_started)
            OT_THEN(st, ot__reduce_wait(ranks->buckets[k].reduce));
        ranks->buckets[k].is_started = false;
    }
    return st;
}

static ot_status reduce_gradients(struct ot__ranks *ranks)
{
    if (ranks->is_reduced)
        return OT_OK;
    for (int k = 0; k < ranks->n_buckets; k++)
        OT_TRY(start_bucket(&ranks->buckets[k]));
    OT_TRY(await_gradients(ranks));
    ranks->is_reduced = true;
    return OT_OK;
}

// ---- running statistics ----

// The values into the memory of their sums, or times `factor` back.
static void copy_statistics(ot_session *session, int k, double factor, bool is_back)
{
    const ot__bucket *b = &session->ranks->statistics[k];
    char *at = session->ranks->sums[k];

    for (int i = 0; i < session->undo.n; i++) {
        const ot_tensor *value = session->undo.parameters[i]->value;
        const int64_t count = ot_tensor_count(value);

        if (value->dtype != b->dtype || count == 0)
            continue;
        if (!is_back)
            memcpy(at, value->data, value->n_bytes);
        for (int64_t n = 0; is_back && n < count; n++)
            if (b->dtype == OT_F32)
                ((float *)value->data)[n] = ((const float *)(void *)at)[n] * (float)factor;
            else
                ((double *)value->data)[n] = ((const double *)(void *)at)[n] * factor;
        at += ot__align_up(value->n_bytes);
    }
}

// Every rank has made its own of what all had at the beginning of the update: the mean is taken.
static ot_status average_statistics(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    const double factor = 1.0 / ot_comm_world_size(ranks->comm);

    for (int k = 0; k < ranks->n_statistics; k++) {
        copy_statistics(session, k, factor, false);
        OT_TRY(ot__reduce_start(ranks->statistics[k].reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER,
                                &ranks->sums[k]));
    }
    for (int k = 0; k < ranks->n_statistics; k++) {
        OT_TRY(ot__reduce_wait(ranks->statistics[k].reduce));
        copy_statistics(session, k, factor, true);
    }
    return OT_OK;
}

ot_status ot__ranks_reduce(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;

    if (ranks->is_reduced)
        return OT_OK;
    OT_TRY(reduce_gradients(ranks));
    return average_statistics(session);
}

// ---- steps ----

// Of sums that a further step adds to, one rank keeps all: the sum over the ranks is what it was.
static ot_status keep_own(ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;

    for (int i = 0; i < ranks->n_parameters && ot_comm_rank(ranks->comm) > 0; i++)
        memset(ranks->parameters[i]->gradient->data, 0, ranks->parameters[i]->gradient->n_bytes);
    return ranks->is_mean
               ? ot__session_scale_parameter_gradients(session, ot_comm_world_size(ranks->comm))
               : OT_OK;
}

ot_status ot__ranks_begin_step(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    ot_status st = OT_OK;

    if (ranks->is_reduced && !session->overwrite_gradients)
        st = keep_own(session);
    ranks->is_reduced = ranks->is_mean = false;
    return st;
}

ot_status ot__ranks_end_step(ot_session *session, ot_status st)
{
    struct ot__ranks *ranks = session->ranks;

    ranks->is_last = false;
    st = ot__ranks_agree(ranks->comm, st, "train step", NULL, 0);
    if (st == OT_OK)
        return OT_OK;
    (void)await_gradients(ranks);
    return st;
}
