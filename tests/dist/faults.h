// SPDX-License-Identifier: Apache-2.0
// Sessions over ranks, which are threads, and one of which does what the others do not.
#ifndef TESTS_DIST_FAULTS_H
#define TESTS_DIST_FAULTS_H

#include "session/session.h"
#include "trained.h"

enum { ROWS = 4, MODEL_MLP = 0, MODEL_CNN = 1, KIND_SGD = 0, KIND_ADAM = 3 };
static const uint32_t classes = 4; // below those of either model

// One case; what ranks have of their own are artifacts.
typedef struct fault {
    int n_ranks, zero, bad_rank;
    bool overlaps;                      // sums begin while steps run
    ot_artifacts *artifacts[RANKS_MAX]; // of the rank that goes through it,
    ot_artifacts *others[RANKS_MAX];    // and of one without faults, or of another kind
} fault;

static _Thread_local struct {
    ot_comm *comm;
    const fault *fault;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_parallel_options parallel;
    ot_session_options options;
    int64_t rows;  // of a step
    float value;   // what the first element of the inputs is multiplied with
    int64_t label; // of the first row; below 0: a good one
    double learning_rate;
    int64_t fail_at; // the allocation of a call that fails, and all after it; below 0: none does
} own;

// ---- outcomes ----

enum { OUTCOME_LENGTH = 512 };

// All ranks have this status, and the same message.
static inline void check_alike(ot_status st)
{
    const int n = ot_comm_world_size(own.comm);
    char mine[OUTCOME_LENGTH] = "", all[RANKS_MAX][OUTCOME_LENGTH];

    snprintf(mine, sizeof mine, "%s: %s", ot_status_name(st),
             st == OT_OK ? "" : ot_error_message());
    RANK_MUST(ot_comm_all_gather(own.comm, mine, sizeof mine, all));
    for (int i = 0; i < n; i++)
        RANK_CHECK(strcmp(all[i], mine) == 0, "'%.500s', on rank %d '%.500s'", mine, i, all[i]);
}

static inline void check_fails(ot_status st, ot_status expected, const char *message)
{
    RANK_CHECK(st == expected, "%s: %s, expected %s", ot_status_name(st), ot_error_message(),
               ot_status_name(expected));
    RANK_CHECK(strstr(ot_error_message(), message) != NULL, "'%s', expected '%s'",
               ot_error_message(), message);
    check_alike(st);
}

static inline bool is_bad(void)
{
    return ot_comm_rank(own.comm) == own.fault->bad_rank;
}

// Around a call whose allocations fail.
static inline void arm(void)
{
    if (is_bad())
        ot__alloc_fail_after(own.fail_at);
}

static inline ot_status disarm(ot_status st)
{
    ot__alloc_fail_after(-1);
    return st;
}

// ---- calls ----

static inline ot_status open_session(void)
{
    arm();
    return disarm(ot_session_create_from_artifacts(own.artifacts, &own.options, &own.session));
}

static inline ot_status make_inputs(ot_tensor *inputs[2])
{
    const int64_t first = ROWS * ot_comm_rank(own.comm);

    inputs[0] = inputs[1] = NULL;
    OT_TRY(make_rows(own.session, 0, 0, first, own.rows, 0, &inputs[0]));
    OT_TRY(make_rows(own.session, 1, 0, first, own.rows, classes, &inputs[1]));
    ((float *)ot_tensor_data(inputs[0]))[0] *= own.value;
    if (own.label >= 0)
        ((int64_t *)ot_tensor_data(inputs[1]))[0] = own.label;
    return OT_OK;
}

static inline void drop_inputs(ot_tensor *inputs[2])
{
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
}

static inline ot_status train_step(void)
{
    ot_tensor *inputs[2], *loss = NULL;
    ot_status st = make_inputs(inputs);

    RANK_MUST(st);
    ot_session_reset_gradients(own.session); // of steps that failed
    if (own.fault->overlaps)
        ot__session_set_last(own.session);
    arm();
    st = disarm(ot_session_train_step(own.session, (const ot_tensor *const *)inputs, 2, &loss, 1));
    drop_inputs(inputs);
    ot_tensor_destroy(loss);
    return st;
}

static inline ot_status update(void)
{
    arm();
    return disarm(ot_session_update(own.session, 1, NULL));
}

static inline ot_status make_two_updates(void)
{
    OT_TRY(open_session());
    OT_TRY(ot_session_set_learning_rate(own.session, own.learning_rate));
    for (int i = 0; i < 2; i++) {
        OT_TRY(train_step());
        OT_TRY(update());
    }
    return OT_OK;
}

static inline void begin_rank(ot_comm *comm, const fault *f)
{
    own.comm = comm;
    own.fault = f;
    own.artifacts = f->artifacts[ot_comm_rank(comm)];
    own.session = NULL;
    own.parallel = (ot_parallel_options)OT_PARALLEL_OPTIONS_INIT;
    own.parallel.comm = comm;
    own.parallel.bucket_bytes = 256; // several buckets
    own.parallel.zero = f->zero;
    own.options = (ot_session_options)OT_SESSION_OPTIONS_INIT;
    own.options.parallel = &own.parallel;
    own.options.n_threads = 1;
    own.rows = ROWS;
    own.value = 1;
    own.label = -1;
    own.learning_rate = 0.125;
    own.fail_at = -1;
}

static inline void end_rank(void)
{
    if (own.session != NULL)
        RANK_MUST(make_values_whole(own.session));
    ot_session_destroy(own.session);
    own.session = NULL;
}

static inline void make_fault(fault *f, const ot_model *model, int kind, int other_kind)
{
    for (int i = 0; i < f->n_ranks; i++) {
        f->artifacts[i] = make_artifacts(model, kind);
        f->others[i] = make_artifacts(model, other_kind);
    }
}

static inline void run_fault(fault *f, void (*work)(ot_comm *comm, void *context))
{
    run_ranks(f->n_ranks, work, f);
    for (int i = 0; i < f->n_ranks; i++) {
        ot_artifacts_destroy(f->artifacts[i]);
        ot_artifacts_destroy(f->others[i]);
    }
}

static inline void check_same_parameters(ot_artifacts *a, ot_artifacts *b)
{
    ot_checkpoint *first = ot_artifacts_checkpoint(a), *second = ot_artifacts_checkpoint(b);

    for (int i = 0; i < ot_checkpoint_parameter_count(first); i++) {
        const char *name = ot_checkpoint_parameter_name(first, i);
        ot_tensor *x, *y;

        RANK_MUST(ot_checkpoint_get_parameter(first, name, &x));
        RANK_MUST(ot_checkpoint_get_parameter(second, name, &y));
        for (int64_t k = 0; k < ot_tensor_count(x); k++)
            RANK_CHECK(memcmp((const float *)ot_tensor_data_const(x) + k,
                              (const float *)ot_tensor_data_const(y) + k, sizeof(float)) == 0,
                       "%s[%d] is %.9g and %.9g", name, (int)k, element(x, k), element(y, k));
        ot_tensor_destroy(x);
        ot_tensor_destroy(y);
    }
}

#endif
