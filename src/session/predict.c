// SPDX-License-Identifier: Apache-2.0
// What a rank would take if a session of one process were over several: its buckets, their shares
// and its plan are found as they would be, in the place of the session's own, and nothing runs.
#include <string.h>

#include "session/ranks.h"

static ot_status check_ranks(const ot_session *session, const ot_parallel_ranks *ranks)
{
    if (session->ranks != NULL)
        return ot__error(OT_ERR_STATE, "the session is over %d ranks, expected one of one process",
                         session->ranks->n_ranks);
    if (ranks->n_ranks < 1 || ranks->n_ranks > OT_SLICES_MAX)
        return ot__error(OT_ERR_INVALID, "%d ranks, expected 1 to %d", ranks->n_ranks,
                         OT_SLICES_MAX);
    if (ranks->slices != 0 && (ranks->slices < ranks->n_ranks || ranks->slices > OT_SLICES_MAX))
        return ot__error(OT_ERR_INVALID, "%d slices, expected %d to %d: at least one for each rank",
                         ranks->slices, ranks->n_ranks, OT_SLICES_MAX);
    if (ranks->sync_batch_norm != 0 && ranks->slices > ranks->n_ranks)
        return ot__error(OT_ERR_INVALID,
                         "%d slices, expected %d, one for each rank: batch "
                         "normalisations take the statistics of all together "
                         "(sync_batch_norm)",
                         ranks->slices, ranks->n_ranks);
    if (ranks->accumulation < 1)
        return ot__error(OT_ERR_INVALID, "accumulation is %d, expected at least 1",
                         ranks->accumulation);
    OT_TRY(ot__ranks_check_zero(session, ranks->zero));
    return ot__session_check_values(session);
}

// Of all buckets together.
static int64_t elements_of_rank(const struct ot__ranks *ranks, int rank)
{
    int64_t n = 0;

    for (int k = 0; k < ranks->n_buckets; k++)
        n += ranks->buckets[k].starts[rank + 1] - ranks->buckets[k].starts[rank];
    return n;
}

static int largest_rank(const struct ot__ranks *ranks)
{
    int found = 0;

    for (int i = 1; i < ranks->n_ranks; i++)
        if (elements_of_rank(ranks, i) > elements_of_rank(ranks, found))
            found = i;
    return found;
}

// The layouts of parameters decide where shares begin; the first plan finds them.
static ot_status choose_rank(ot_session *session, const ot_shape *inputs)
{
    ot__compiled_model *program = &session->training;
    ot__plan *plan;

    ot__compiled_model_set_shapes(program, inputs);
    OT_TRY(ot__session_find_plan(session, program, &plan));
    if (session->ranks->zero > 0)
        ot__zero_find_shares(session);
    session->ranks->rank = largest_rank(session->ranks);
    return OT_OK;
}

static void take_slices(ot_session *session, const ot_parallel_ranks *ranks, int rank)
{
    const int64_t n = ranks->slices > 0 ? ranks->slices : ranks->n_ranks;

    session->slices = (ot__slices){.count = (int)n,
                                   .first = (int)(n * rank / ranks->n_ranks),
                                   .last = (int)(n * (rank + 1) / ranks->n_ranks)};
}

// In a session that has no plans, slices or ranks of its own any more.
static ot_status predict(ot_session *session, const ot_parallel_ranks *ranks,
                         const ot_shape *inputs, const ot_model *besides, ot__session_bytes *out,
                         int64_t *n_sent)
{
    struct ot__ranks thought = {0};
    const int64_t n_slices = ranks->slices > 0 ? ranks->slices : ranks->n_ranks;
    const int64_t of_rank = (n_slices + ranks->n_ranks - 1) / ranks->n_ranks;
    ot_status st = OT_OK;

    *n_sent = 0;
    if (ranks->n_ranks > 1) {
        ot__ranks_init(&thought, session, ranks->n_ranks, ranks->zero, ranks->bucket_bytes);
        st = ot__buckets_find(session);
        OT_THEN(st, ot__transfers_list(session));
        OT_THEN(st, choose_rank(session, inputs));
    }
    take_slices(session, ranks, thought.rank);
    OT_THEN(st, ot__session_measure(session, inputs, besides, out));
    if (ranks->n_ranks > 1) {
        OT_THEN(st, ot__ranks_count_sent(session, of_rank * ranks->accumulation, n_sent));
        ot__buckets_deinit(&thought);
    }
    session->ranks = NULL;
    return st;
}

// With plans of their own, and where batch normalisations are those of all ranks with a model of
// its own.
static ot_status predict_apart(ot_session *session, const ot_parallel_ranks *ranks,
                               const ot_shape *inputs, const ot_model *besides,
                               ot__session_bytes *out, int64_t *n_sent)
{
    ot__compiled_model *program = &session->training;
    ot_model *const model = program->model;
    ot_model *own = NULL;
    ot__cached_plan plans[OT_PLAN_CACHE];
    ot_status st = OT_OK;

    if (session->syncs_norms) {
        st = ot__model_clone(model, &own);
        OT_THEN(st, ot__fuse_sync_norm(own));
        program->model = own;
    }
    memcpy(plans, program->plans, sizeof plans);
    memset(program->plans, 0, sizeof plans);
    OT_THEN(st, predict(session, ranks, inputs, besides, out, n_sent));
    ot__compiled_model_drop_plans(program);
    memcpy(program->plans, plans, sizeof plans);
    program->model = model;
    ot_model_destroy(own);
    return st;
}

ot_status ot__session_predict(ot_session *session, const ot_parallel_ranks *ranks,
                              const ot_shape *inputs, const ot_model *besides,
                              ot__session_bytes *out, int64_t *n_sent)
{
    const ot__slices slices = session->slices;
    const bool syncs_norms = session->syncs_norms;
    const int reproducible = session->options.reproducible;
    const ot__plan_options plan_options = session->plan_options;
    ot_status st;

    OT_TRY(check_ranks(session, ranks));
    if (ranks->reproducible != 0)
        session->options.reproducible = session->plan_options.reproducible = true;
    session->syncs_norms = ranks->sync_batch_norm != 0 && ranks->n_ranks > 1;
    st = predict_apart(session, ranks, inputs, besides, out, n_sent);
    session->slices = slices;
    session->syncs_norms = syncs_norms;
    session->options.reproducible = reproducible;
    session->plan_options = plan_options;
    return st;
}
