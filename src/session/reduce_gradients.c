// SPDX-License-Identifier: Apache-2.0
// Gradients and running statistics of all ranks become one: sums of gradients begin while a train
// step runs, or with the update, which waits for them.
#include "session/ranks.h"

#include <string.h>

// ---- gradients ----

// Contributions: of sums that wait, if there are slices, and what parameters have. The sum of a
// share is its rank's, or goes to all.
static ot_status start_bucket(const struct ot__ranks *ranks, ot__bucket *b,
                              const ot__gradient_set *waiting, int n_waiting)
{
    const int phases = OT_REDUCE_SCATTER | (ranks->zero == 0 ? OT_REDUCE_GATHER : 0);
    void *buffers[OT_TREE_COVER_MAX + 1];

    if (b->is_started || b->reduce == NULL)
        return OT_OK;
    for (int k = 0; k < n_waiting; k++)
        buffers[k] = waiting[k].gradients[b->parameters[0]->number];
    buffers[n_waiting] = b->parameters[0]->gradient->data;
    OT_TRY(ot__reduce_start(b->reduce, phases, buffers));
    b->is_started = true;
    return OT_OK;
}

static int count_sums_that_wait(const ot_session *session)
{
    return session->slices.is_under_way ? session->slices.n_waiting : 0;
}

// Of slices, this is the last one, and those before it wait.
static ot_status start_early(ot_session *session, ot__bucket *b)
{
    int n_waiting = 0;

    if (b->is_started || b->reduce == NULL)
        return OT_OK;
    if (session->slices.is_under_way)
        n_waiting = ot__slices_join_early(session, b->parameters, b->n_parameters);
    return start_bucket(session->ranks, b, session->slices.sets, n_waiting);
}

ot_status ot__ranks_reduce_start(void *context, int64_t bucket)
{
    ot_session *session = context;
    struct ot__ranks *ranks = session->ranks;

    // All ranks start them in the same order, also those that do it later.
    ranks->buckets[bucket].is_complete = ranks->starts;
    for (int k = 0; k < ranks->n_buckets && ranks->buckets[k].is_complete; k++)
        OT_TRY(start_early(session, &ranks->buckets[k]));
    return OT_OK;
}

// Those that a step has begun end, whatever became of it.
static ot_status await_gradients(struct ot__ranks *ranks)
{
    ot_status st = OT_OK;

    for (int k = 0; k < ranks->n_buckets; k++) {
        if (ranks->buckets[k].is_started)
            OT_THEN(st, ot__reduce_wait(ranks->buckets[k].reduce));
        ranks->buckets[k].is_started = ranks->buckets[k].is_complete = false;
    }
    return st;
}

// The sums are where the first contribution was.
static void take_sums(const struct ot__ranks *ranks, const ot__gradient_set *first)
{
    for (int i = 0; i < ranks->n_parameters; i++) {
        const ot__parameter *p = ranks->parameters[i];

        if (p->gradient->n_bytes > 0)
            memcpy(p->gradient->data, first->gradients[p->number], p->gradient->n_bytes);
    }
}

static ot_status reduce_gradients(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    const int n_waiting = count_sums_that_wait(session);

    for (int k = 0; k < ranks->n_buckets && !ranks->cuts_gradients; k++)
        OT_TRY(start_bucket(ranks, &ranks->buckets[k], session->slices.sets, n_waiting));
    OT_TRY(await_gradients(ranks));
    if (n_waiting > 0 && !ranks->cuts_gradients)
        take_sums(ranks, &session->slices.sets[0]);
    ranks->is_reduced = true;
    ranks->has_begun = false;
    return OT_OK;
}

// ---- running statistics ----

// The values into the memory of their sums, or back from where these are.
static void copy_statistics(ot_session *session, const ot__bucket *b, char *at, bool is_back)
{
    for (int i = 0; i < session->undo.n; i++) {
        const ot_tensor *value = session->undo.parameters[i]->value;

        if (value->dtype != b->dtype)
            continue;
        if (value->n_bytes > 0)
            memcpy(is_back ? value->data : at, is_back ? at : value->data, value->n_bytes);
        at += ot__align_up(value->n_bytes);
    }
}

// Where a sum that waits has those of an element type.
static void *find_statistics(const ot_session *session, const ot__gradient_set *waiting,
                             ot_dtype dtype)
{
    int i = 0;

    while (session->undo.parameters[i]->value->dtype != dtype)
        i++;
    return waiting->statistics[i];
}

static ot_status start_statistics(ot_session *session, int k, void **sums)
{
    const struct ot__ranks *ranks = session->ranks;
    const ot__bucket *b = &ranks->statistics[k];
    const int n_waiting = count_sums_that_wait(session);
    void *buffers[OT_TREE_COVER_MAX + 1];

    for (int i = 0; i < n_waiting; i++)
        buffers[i] = find_statistics(session, &session->slices.sets[i], b->dtype);
    copy_statistics(session, b, ranks->sums[k], false);
    buffers[n_waiting] = ranks->sums[k];
    *sums = buffers[0];
    return ot__reduce_start(b->reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, buffers);
}

// How often running statistics were made of what all ranks had at the beginning of the update.
static ot_status count_statistics(const ot_session *session, int64_t *n)
{
    ot_comm *comm = session->ranks->comm;

    *n = ot_comm_world_size(comm);
    if (!session->slices.is_under_way)
        return OT_OK;
    *n = session->slices.n_run;
    return ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, n, 1);
}

// The mean is taken.
static ot_status average_statistics(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    void *sums[OT_COUNT(ranks->statistics)];
    int64_t n;

    if (ranks->n_statistics == 0)
        return OT_OK;
    for (int k = 0; k < ranks->n_statistics; k++)
        OT_TRY(start_statistics(session, k, &sums[k]));
    for (int k = 0; k < ranks->n_statistics; k++) {
        OT_TRY(ot__reduce_wait(ranks->statistics[k].reduce));
        copy_statistics(session, &ranks->statistics[k], sums[k], true);
    }
    OT_TRY(count_statistics(session, &n));
    ot__slices_divide_statistics(session, n);
    return OT_OK;
}

ot_status ot__ranks_reduce(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    const int n_slices = session->slices.is_under_way ? session->slices.count : ranks->n_ranks;

    if (ranks->is_reduced)
        return OT_OK;
    if (ranks->n_slices != n_slices)
        OT_TRY(ot__buckets_set_slices(session, n_slices));
    OT_TRY(reduce_gradients(session));
    return average_statistics(session);
}

// ---- steps ----

// Of sums that a further step adds to, every rank keeps its share: the sum over the ranks is what
// it was.
static ot_status keep_own(ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;
    const int rank = ranks->rank;

    for (int k = 0; k < ranks->n_buckets && !ranks->cuts_gradients; k++) {
        const ot__bucket *b = &ranks->buckets[k];
        const size_t element = ot_dtype_size(b->dtype);
        char *memory = b->parameters[0]->gradient->data;

        memset(memory, 0, (size_t)b->starts[rank] * element);
        memset(memory + (size_t)b->starts[rank + 1] * element, 0,
               (size_t)(b->n_elements - b->starts[rank + 1]) * element);
    }
    return ranks->is_mean ? ot__session_scale_parameter_gradients(session, ranks->n_ranks) : OT_OK;
}

ot_status ot__ranks_begin_step(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    ot_status st = OT_OK;

    if (ranks->is_reduced && !session->overwrite_gradients) {
        ot__packing_enter(session); // shares are parts of buckets in the layouts of their sums
        st = keep_own(session);
    }
    ranks->is_reduced = ranks->is_mean = false;
    return st;
}

ot_status ot__ranks_end_step(ot_session *session, ot_status st)
{
    struct ot__ranks *ranks = session->ranks;

    ranks->has_begun = ranks->is_last && (ranks->zero == 0 ? ranks->has_layouts : ranks->is_cut);
    ranks->is_last = ranks->starts = false;
    st = ot__ranks_agree(ranks->comm, st, "train step", NULL, 0);
    if (st != OT_OK)
        ot__ranks_give_up(session);
    return st;
}

void ot__ranks_forget_sums(ot_session *session)
{
    if (session->ranks != NULL)
        session->ranks->is_reduced = session->ranks->is_mean = false;
}

void ot__ranks_give_up(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;

    if (!ranks->has_begun)
        return;
    (void)reduce_gradients(session);
    ranks->has_begun = ranks->is_reduced = false;
}
