// SPDX-License-Identifier: Apache-2.0
// Ranks of which some have parameters packed for their kernels, and some not: other kernels, no
// batch before the first update. They sum what belongs together, and end where ranks of one kind
// do.
#include "sessions.h"

#if OT_WITH_ONEDNN && defined(__x86_64__)
enum { HAS_LAYOUTS = 1 };
#else
enum { HAS_LAYOUTS = 0 };
#endif

static const double tolerance = 2e-6; // of parameters up to 1, after few updates by f32 kernels

static session_run make_run(int n_ranks, int kind)
{
    return (session_run){.n_ranks = n_ranks,
                         .kind = kind,
                         .n_updates = 3,
                         .n_micro_batches = 2,
                         .rows = 2,
                         .classes = 5};
}

static void set_references(session_run *r, bool first, bool others)
{
    for (int i = 0; i < SESSIONS_MAX; i++)
        r->has_reference[i] = i == 0 ? first : others;
}

static void train_packed(ot_comm *comm, void *context)
{
    const session_run *r = context;
    ot_session *session = NULL;

    RANK_MUST(open_rank(r, comm, &session));
    RANK_MUST(train_rank_update(r, session, ot_comm_rank(comm), 0));
    RANK_CHECK((session->packing.buffer != NULL) == HAS_LAYOUTS, "the model packs nothing");
    ot_session_destroy(session);
}

static void ranks_may_have_other_kernels(void **state)
{
    ot_model *model = load_model("blocks", OT_F32);

    (void)state;
    for (int n = 2; n <= SESSIONS_MAX; n++)
        for (int zero = 0; zero <= 3; zero++) {
            session_run r = make_run(n, zero % 2 == 0 ? SGD : MOMENTUM);
            ot_artifacts *expected, *found;

            r.zero = zero;
            ot_artifacts_destroy(run_sessions(model, &r, train_packed));
            set_references(&r, true, true);
            expected = train_sessions(model, &r);
            for (int first = 0; first <= 1; first++) {
                set_references(&r, first == 1, first == 0);
                found = train_sessions(model, &r);
                compare_parameters(found, expected, tolerance);
                ot_artifacts_destroy(found);
            }
            ot_artifacts_destroy(expected);
        }
    ot_model_destroy(model);
}

// ---- runs by slices ----

enum { ROWS_MAX = 8, IMAGE = 3 * 8 * 8 };

typedef struct loop {
    session_run sessions; // first, for train_loop()
    int64_t n_rows, slices;
} loop;

static ot_status run_loop(const loop *l, ot_session *session)
{
    static const char *const names[] = {"x", "t"};
    const ot_binding bindings[] = {
        {.input = "x", .dtype = OT_F32, .shape = OT_SHAPE(3, 8, 8), .fields = "x", .scale = 1},
        {.input = "labels", .dtype = OT_I64, .fields = "t", .scale = 1, .is_class = 1},
    };
    ot_batches_options how = OT_BATCHES_OPTIONS_INIT;
    ot_trainer_options trainer_options = OT_TRAINER_OPTIONS_INIT;
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_tensor *rows[2] = {NULL, NULL};
    ot_dataset *data = NULL;
    ot_batches *batches = NULL;
    ot_trainer *trainer = NULL;
    ot_status st = make_rows(session, 0, 0, 0, l->n_rows, 0, &rows[0]);

    how.batch_size = ROWS_MAX;
    options.slices = l->slices;
    options.epochs = 3;
    OT_THEN(st, make_rows(session, 1, 0, 0, l->n_rows, l->sessions.classes, &rows[1]));
    OT_THEN(st, ot_dataset_from_tensors(names, (const ot_tensor *const *)rows, 2, &data));
    OT_THEN(st, ot_batches_create(data, bindings, 2, &how, &batches));
    OT_THEN(st, ot_trainer_create_from_session(session, NULL, &trainer_options, &trainer));
    OT_THEN(st, ot_train_run(trainer, batches, NULL, &options, NULL));
    ot_trainer_destroy(trainer);
    ot_batches_destroy(batches);
    ot_dataset_destroy(data);
    ot_tensor_destroy(rows[0]);
    ot_tensor_destroy(rows[1]);
    return st;
}

static void train_loop(ot_comm *comm, void *context)
{
    const loop *l = context;
    ot_session *session = NULL;

    RANK_MUST(open_rank(&l->sessions, comm, &session));
    if (session == NULL)
        return;
    RANK_MUST(run_loop(l, session));
    RANK_MUST(make_values_whole(session));
    ot_session_destroy(session);
}

static void train_and_compare(const ot_model *model, int64_t n_rows, int64_t slices, int zero)
{
    loop l = {.sessions = make_run(2, ADAMW), .n_rows = n_rows, .slices = slices};
    ot_artifacts *expected, *found;

    l.sessions.zero = zero;
    set_references(&l.sessions, true, true);
    expected = run_sessions(model, &l.sessions, train_loop);
    for (int first = 0; first <= 1; first++) {
        // Rank 1 has no rows where there is one only.
        set_references(&l.sessions, first == 1, n_rows > 1 && first == 0);
        found = run_sessions(model, &l.sessions, train_loop);
        compare_parameters(found, expected, tolerance);
        ot_artifacts_destroy(found);
    }
    ot_artifacts_destroy(expected);
}

static void so_they_may_by_slices(void **state)
{
    ot_model *model = load_model("blocks", OT_F32);

    (void)state;
    for (int zero = 0; zero <= 3; zero++)
        for (int64_t slices = 2; slices <= 4; slices++)
            train_and_compare(model, ROWS_MAX, slices, zero);
    ot_model_destroy(model);
}

static void a_rank_may_have_no_batch_before_an_update(void **state)
{
    ot_model *model = load_model("blocks", OT_F32);

    (void)state;
    for (int zero = 0; zero <= 3; zero++)
        for (int64_t slices = 2; slices <= 4; slices += 2)
            train_and_compare(model, 1, slices, zero);
    ot_model_destroy(model);
}

// ---- another optimizer ----

typedef struct change {
    session_run sessions;
    bool is_early; // before the first update
    ot_artifacts *others[SESSIONS_MAX], *refused[SESSIONS_MAX];
} change;

// AdamW with another attribute.
static ot_artifacts *make_other(const ot_model *model)
{
    const ot_hyper hyper = {"epsilon", 1e-5};
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;

    optimizer.hyper = &hyper;
    optimizer.n_hyper = 1;
    return make_artifacts_with(model, &optimizer);
}

static void must_refuse(ot_session *session, const ot_model *optimizer, ot_status status,
                        const char *message)
{
    const ot_status st = ot_session_set_optimizer(session, optimizer);

    RANK_CHECK(st == status && strstr(ot_error_message(), message) != NULL, "%s: %s",
               ot_status_name(st), ot_error_message());
}

static void change_optimizer(ot_comm *comm, void *context)
{
    const change *c = context;
    const session_run *r = &c->sessions;
    const int rank = ot_comm_rank(comm);
    const ot_model *refused = ot_artifacts_optimizer_model(c->refused[rank]),
                   *other = ot_artifacts_optimizer_model(c->others[rank]);
    ot_session *session = NULL;

    RANK_MUST(open_rank(r, comm, &session));
    if (session == NULL)
        return;
    must_refuse(session, rank == 1 ? refused : ot_artifacts_optimizer_model(r->artifacts[rank]),
                OT_ERR_MISMATCH, "ranks 0 and 1 differ in the optimizer model");
    if (!c->is_early)
        RANK_MUST(train_rank_update(r, session, rank, 0));
    if (!c->is_early && r->zero > 0 && HAS_LAYOUTS && !r->has_reference[0])
        must_refuse(session, other, OT_ERR_UNSUPPORTED, "cannot be changed once packed");
    else
        RANK_MUST(ot_session_set_optimizer(session, other));
    RANK_MUST(train_rank_update(r, session, rank, 1));
    RANK_MUST(make_values_whole(session));
    ot_session_destroy(session);
}

static ot_artifacts *run_change(const ot_model *model, change *c)
{
    ot_artifacts *out;

    for (int i = 0; i < c->sessions.n_ranks; i++) {
        c->others[i] = make_artifacts(model, MOMENTUM);
        c->refused[i] = make_other(model);
    }
    out = run_sessions(model, &c->sessions, change_optimizer);
    for (int i = 0; i < c->sessions.n_ranks; i++) {
        ot_artifacts_destroy(c->others[i]);
        ot_artifacts_destroy(c->refused[i]);
    }
    return out;
}

static void compare_change(const ot_model *model, bool is_early, bool has_reference)
{
    change c = {.sessions = make_run(2, ADAMW), .is_early = is_early};
    ot_artifacts *expected, *found;

    set_references(&c.sessions, has_reference, has_reference);
    expected = run_change(model, &c);
    for (int zero = 1; zero <= 3; zero++) {
        c.sessions.zero = zero;
        found = run_change(model, &c);
        if (is_early || has_reference || !HAS_LAYOUTS)
            compare_parameters(found, expected, tolerance);
        ot_artifacts_destroy(found);
    }
    ot_artifacts_destroy(expected);
}

static void all_ranks_take_the_same_other_optimizer(void **state)
{
    ot_model *model = load_model("blocks", OT_F32);

    (void)state;
    for (int k = 0; k < 4; k++)
        compare_change(model, k % 2 == 0, k / 2 == 0);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_may_have_other_kernels),
        cmocka_unit_test(so_they_may_by_slices),
        cmocka_unit_test(a_rank_may_have_no_batch_before_an_update),
        cmocka_unit_test(all_ranks_take_the_same_other_optimizer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
