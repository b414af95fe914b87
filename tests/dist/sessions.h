// SPDX-License-Identifier: Apache-2.0
// A session on each of a few ranks, which train and end at the same values.
#ifndef TESTS_DIST_SESSIONS_H
#define TESTS_DIST_SESSIONS_H

#include "trained.h"

enum { SESSIONS_MAX = 3, SGD = 0, MOMENTUM = 1, ADAMW = 2 };

typedef struct session_run {
    int n_ranks, kind, zero, n_updates, n_micro_batches;
    int64_t rows; // of a micro-batch, on each rank
    uint32_t classes;
    bool has_reference[SESSIONS_MAX]; // the kernels of this rank
    ot_artifacts *artifacts[SESSIONS_MAX];
} session_run;

static inline ot_status open_rank(const session_run *r, ot_comm *comm, ot_session **out)
{
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    const int rank = ot_comm_rank(comm);

    parallel.comm = comm;
    parallel.bucket_bytes = 512; // several buckets
    parallel.zero = r->zero;
    how.parallel = &parallel;
    how.n_threads = 1;
    how.reference_kernels = r->has_reference[rank];
    return ot_session_create_from_artifacts(r->artifacts[rank], &how, out);
}

static inline ot_status train_rank_update(const session_run *r, ot_session *session, int rank,
                                          int update)
{
    ot_status st = OT_OK;

    for (int k = 0; k < r->n_micro_batches; k++) {
        const int batch = update * r->n_micro_batches + k;
        ot_tensor *inputs[2] = {NULL, NULL}, *loss = NULL;

        OT_THEN(st, make_rows(session, 0, batch, rank * r->rows, r->rows, 0, &inputs[0]));
        OT_THEN(st, make_rows(session, 1, batch, rank * r->rows, r->rows, r->classes, &inputs[1]));
        OT_THEN(st, ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, &loss, 1));
        ot_tensor_destroy(inputs[0]);
        ot_tensor_destroy(inputs[1]);
        ot_tensor_destroy(loss);
    }
    OT_THEN(st, ot_session_optimizer_step(session));
    ot_session_reset_gradients(session);
    return st;
}

static inline void train_one_rank(ot_comm *comm, void *context)
{
    const session_run *r = context;
    ot_session *session = NULL;

    RANK_MUST(open_rank(r, comm, &session));
    for (int i = 0; session != NULL && i < r->n_updates; i++)
        RANK_MUST(train_rank_update(r, session, ot_comm_rank(comm), i));
    if (session != NULL)
        RANK_MUST(make_values_whole(session));
    ot_session_destroy(session);
}

// `work` on all ranks. Returns what rank 0 ends with, which the caller destroys; the others end at
// the same bits.
static inline ot_artifacts *run_sessions(const ot_model *model, session_run *r,
                                         void (*work)(ot_comm *comm, void *context))
{
    for (int i = 0; i < r->n_ranks; i++)
        r->artifacts[i] = make_artifacts(model, r->kind);
    run_ranks(r->n_ranks, work, r);
    for (int i = 1; i < r->n_ranks; i++)
        ot_artifacts_destroy(r->artifacts[i]);
    return r->artifacts[0];
}

static inline ot_artifacts *train_sessions(const ot_model *model, session_run *r)
{
    return run_sessions(model, r, train_one_rank);
}

static inline void compare_parameters(const ot_artifacts *a, const ot_artifacts *b,
                                      double tolerance)
{
    const ot_checkpoint *x = ot_artifacts_checkpoint((ot_artifacts *)(uintptr_t)a),
                        *y = ot_artifacts_checkpoint((ot_artifacts *)(uintptr_t)b);

    for (int i = 0; i < ot_checkpoint_parameter_count(x); i++) {
        const char *name = ot_checkpoint_parameter_name(x, i);
        ot_tensor *found, *expected;

        assert_int_equal(ot_checkpoint_get_parameter(x, name, &found), OT_OK);
        assert_int_equal(ot_checkpoint_get_parameter(y, name, &expected), OT_OK);
        for (int64_t k = 0; k < ot_tensor_count(found); k++)
            if (!(fabs(element(found, k) - element(expected, k)) < tolerance))
                fail_msg("%s[%" PRId64 "] is %g, expected %g", name, k, element(found, k),
                         element(expected, k));
        ot_tensor_destroy(found);
        ot_tensor_destroy(expected);
    }
}

#endif
