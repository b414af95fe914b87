// SPDX-License-Identifier: Apache-2.0
// What a session over several ranks takes besides its plans: parts of parameters in buckets, as
// they are once all is cut that zero cuts, and the memory in which sums are made.
#include "session/ranks.h"

bool ot__ranks_have(const ot_session *session, const ot__parameter *p)
{
    const struct ot__ranks *ranks = session->ranks;

    return ranks != NULL && ranks->bucket_of != NULL && p->number >= 0 &&
           ranks->bucket_of[p->number] >= 0;
}

// What the optimizer keeps of a parameter.
static size_t slots_kept(const ot_session *session)
{
    size_t n = 0;

    for (int k = 0; k < OT_SLOTS && session->optimizer.program.model != NULL; k++)
        n += session->optimizer.has_slot[k];
    return n;
}

static size_t bytes_of_bucket(const ot__bucket *b)
{
    return (size_t)b->n_elements * ot_dtype_size(b->dtype);
}

static void measure_bucket(const ot_session *session, const ot__bucket *b, ot__session_bytes *out)
{
    const struct ot__ranks *ranks = session->ranks;
    const size_t whole = bytes_of_bucket(b), share = ot__bucket_share_bytes(ranks, b);

    out->parameters += ranks->cuts_values ? share : whole;
    out->gradients += ranks->cuts_gradients ? share : whole;
    out->moments += slots_kept(session) * (ranks->zero > 0 ? share : whole);
}

// Shares are where they will be.
static void measure_buckets(const ot_session *session, ot__session_bytes *out)
{
    const struct ot__ranks *ranks = session->ranks;

    if (ranks->zero > 0 && !ranks->is_cut && !ranks->is_half_cut)
        ot__zero_find_shares(session);
    for (int k = 0; k < ranks->n_buckets; k++)
        measure_bucket(session, &ranks->buckets[k], out);
}

// ---- while it is cut ----

// What the parameters of a bucket take now; of ranks that are only thought of their values.
static void measure_uncut(const ot_session *session, const ot__bucket *b, size_t *all,
                          size_t *slots)
{
    const bool is_thought = session->ranks->comm == NULL;

    *all = *slots = 0;
    for (int i = 0; i < b->n_parameters; i++) {
        const ot__parameter *p = b->parameters[i];

        *all += is_thought ? p->value->n_bytes : ot__parameter_bytes(p);
        for (int k = 0; k < OT_SLOTS && !is_thought; k++)
            *slots += p->slots[k] != NULL ? p->slots[k]->n_bytes : 0;
    }
}

// Buckets are cut one after the other; of each its shares are made before the whole goes.
size_t ot__ranks_cut_bytes(const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;
    size_t now = 0, most, all, slots;

    for (int k = 0; k < ranks->n_buckets; k++) {
        measure_uncut(session, &ranks->buckets[k], &all, &slots);
        now += all;
    }
    most = now;
    for (int k = 0; k < ranks->n_buckets && !ranks->is_cut; k++) {
        const ot__bucket *b = &ranks->buckets[k];
        const size_t share = ot__bucket_share_bytes(ranks, b);

        measure_uncut(session, b, &all, &slots);
        now += (slots > 0 ? slots_kept(session) * share : 0) +
               ((size_t)ranks->cuts_gradients + (size_t)ranks->cuts_values) * share;
        most = OT_MAX(most, now);
        now -= slots + (ranks->cuts_values ? bytes_of_bucket(b) : 0);
    }
    return most;
}

// ---- sums ----

// That contribute to the sums of an update.
static int slices_of_update(const ot_session *session)
{
    return session->slices.count > 1 ? session->slices.count : session->ranks->n_ranks;
}

static ot_status measure_sum(const struct ot__ranks *ranks, const ot__bucket *b, int n_terms,
                             size_t *lanes, ot__session_bytes *out)
{
    const ot__reduce_options options = {
        .dtype = b->dtype, .n_slices = n_terms, .starts = b->starts};
    ot__reduce_bytes bytes;

    OT_TRY(ot__reduce_measure(ranks->n_ranks, ranks->rank, &options, &bytes));
    *lanes = OT_MAX(*lanes, bytes.lanes);
    out->structure += bytes.structure + sizeof *b + ((size_t)ranks->n_ranks + 1) * sizeof(int64_t);
    return OT_OK;
}

// Where batch normalisations sum their statistics over the ranks.
static size_t bytes_of_norms(const ot_session *session)
{
    int64_t all, most;

    if (!session->syncs_norms)
        return 0;
    ot__count_sync_norms(session->training.model->graph, &all, &most);
    return ot__all_reduce_bytes(session->ranks->n_ranks, most);
}

static ot_status measure_sums(const ot_session *session, ot__session_bytes *out)
{
    const struct ot__ranks *ranks = session->ranks;
    const int n_slices = slices_of_update(session);
    size_t lanes = 0;

    for (int k = 0; k < ranks->n_buckets; k++) {
        const ot__bucket *b = &ranks->buckets[k];

        OT_TRY(measure_sum(ranks, b, ot__buckets_terms(ranks, n_slices), &lanes, out));
        if (ranks->cuts_values)
            OT_TRY(measure_sum(ranks, b, ranks->n_ranks, &lanes, out));
    }
    for (int k = 0; k < ranks->n_statistics; k++) {
        OT_TRY(measure_sum(ranks, &ranks->statistics[k], n_slices, &lanes, out));
        out->staging += bytes_of_bucket(&ranks->statistics[k]);
    }
    out->staging += lanes + bytes_of_norms(session);
    return OT_OK;
}

ot_status ot__ranks_kept_bytes(const ot_session *session, size_t *out)
{
    ot__session_bytes bytes = {0};

    measure_buckets(session, &bytes);
    OT_TRY(measure_sums(session, &bytes));
    *out = bytes.parameters + bytes.gradients + bytes.moments + bytes.staging;
    return OT_OK;
}

// ---- lists ----

// Tensors of a parameter in a bucket, and the sharding of its state.
static size_t structure_of_parameter(const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;
    const size_t tensors =
        (2 + slots_kept(session)) * sizeof(ot_tensor) + slots_kept(session) * ot__aligned_taken(0);

    return tensors + (ranks->zero > 0 ? ot__sharding_taken(ranks->n_ranks) : 0);
}

static size_t structure_of_ranks(const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;
    const size_t of_parameter = sizeof *ranks->parameters + sizeof *ranks->bucket_of +
                                sizeof *ranks->offset_of + sizeof *ranks->first_here;
    size_t n = sizeof *ranks + ((size_t)session->n_parameters + 1) * of_parameter;

    for (int i = 0; i < (int)OT_COUNT(ranks->transfers); i++)
        n += (size_t)ranks->n_transfers[i] * sizeof *ranks->transfers[i];
    return n + (size_t)ranks->n_parameters * structure_of_parameter(session);
}

ot_status ot__ranks_measure(const ot_session *session, ot__session_bytes *out)
{
    measure_buckets(session, out);
    out->structure += structure_of_ranks(session);
    return measure_sums(session, out);
}

// ---- messages ----

// How often a step gathers the values of a bucket.
static int64_t count_gathers(const struct ot__ranks *ranks, int bucket)
{
    int64_t n = 0;

    for (int i = 0; i < ranks->n_transfers[OT_MODE_TRAIN]; i++)
        n += ranks->transfers[OT_MODE_TRAIN][i].what == OT_TRANSFER_GATHER_START &&
             ranks->transfers[OT_MODE_TRAIN][i].bucket == bucket;
    return n;
}

// A rank sends what it contributes to the shares of others, and its share to each of them.
static ot_status count_bucket(const struct ot__ranks *ranks, const ot__bucket *b, int n_terms,
                              int64_t n_scatters, int64_t n_gathers, int64_t *n_sent)
{
    const ot__reduce_options options = {
        .dtype = b->dtype, .n_slices = n_terms, .starts = b->starts};
    const int64_t share = (int64_t)ot__bucket_share_bytes(ranks, b);
    ot__reduce_bytes bytes;

    OT_TRY(ot__reduce_measure(ranks->n_ranks, ranks->rank, &options, &bytes));
    *n_sent += n_scatters * bytes.n_own * ((int64_t)bytes_of_bucket(b) - share) +
               n_gathers * (ranks->n_ranks - 1) * share;
    return OT_OK;
}

// A rank sends its numbers to all others.
static int64_t sent_by_norms(const ot_session *session)
{
    int64_t all = 0, most;

    if (session->syncs_norms)
        ot__count_sync_norms(session->training.model->graph, &all, &most);
    return all * (int64_t)sizeof(double) * (session->ranks->n_ranks - 1);
}

ot_status ot__ranks_count_sent(const ot_session *session, int64_t n_steps, int64_t *n_sent)
{
    const struct ot__ranks *ranks = session->ranks;
    const int n_slices = slices_of_update(session);

    *n_sent = n_steps * sent_by_norms(session);
    for (int k = 0; k < ranks->n_buckets; k++) {
        const int64_t n_scatters = ranks->cuts_gradients ? n_steps : 1;
        const int64_t n_gathers = ranks->cuts_values ? n_steps * count_gathers(ranks, k) : 1;

        OT_TRY(count_bucket(ranks, &ranks->buckets[k], ot__buckets_terms(ranks, n_slices),
                            n_scatters, n_gathers, n_sent));
    }
    for (int k = 0; k < ranks->n_statistics; k++)
        OT_TRY(count_bucket(ranks, &ranks->statistics[k], n_slices, 1, 1, n_sent));
    return OT_OK;
}
