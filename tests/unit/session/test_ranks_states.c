// SPDX-License-Identifier: Apache-2.0
// The state of sessions over several ranks, which are threads: in parts, whole, as checkpoint
// directories that any number of ranks goes on from.
#include "ranks_fixture.h"

#include "ckpt/ckpt.h"

#include "unit/base/temporary_folder.h"

// What is cut comes back whole, from the session's ranks.
static void gather_state(ot_comm *comm, void *context)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;
    double loss, sums[2] = {0, 0};
    ot_dict *parts, *whole, *in;
    const ot_tensor *moment = NULL;
    ot_dict_kind kind;
    own w;

    (void)context;
    zero = 1;
    RANK_MUST(open_own(&w, perceptron, comm, 7));
    RANK_MUST(step_own(&w, 0, ROWS * ot_comm_rank(comm), ROWS, &loss));
    RANK_MUST(ot_session_update(w.session, 1, NULL));
    RANK_MUST(ot_session_get_shards(w.session, OT_STATE_OPTIMIZER, &options, &parts));
    options.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(w.session, OT_STATE_OPTIMIZER, &options, &whole));
    for (int i = 0; i < 2; i++) {
        RANK_MUST(ot_dict_get_dict(i == 0 ? parts : whole, "optim", &in));
        RANK_MUST(ot_dict_get_dict(in, "state", &in));
        RANK_MUST(ot_dict_get_dict(in, "u", &in));
        RANK_MUST(ot_dict_kind_of(in, "exp_avg", &kind));
        RANK_CHECK(kind == (i == 0 ? OT_DICT_SHARDS : OT_DICT_TENSOR), "kind %d", (int)kind);
    }
    RANK_MUST(ot_dict_get_tensor(in, "exp_avg", &moment));
    RANK_CHECK(ot_tensor_count(moment) == 350, "%d elements", (int)ot_tensor_count(moment));
    for (int64_t k = 0; k < ot_tensor_count(moment); k++)
        sums[0] += fabs(ot__tensor_get_f64(moment, k));
    for (int i = 0; i < ot_session_checkpoint(w.session)->n_parameters; i++) {
        const ot__parameter *p = ot_session_checkpoint(w.session)->parameters[i];

        for (int64_t k = 0; strcmp(p->name, "u") == 0 && k < ot_tensor_count(p->slots[0]); k++)
            sums[1] += fabs(ot__tensor_get_f64(p->slots[0], k));
    }
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, &sums[1], 1));
    RANK_CHECK(fabs(sums[0] - sums[1]) < 1e-12 && sums[0] > 0, "%g, in parts %g", sums[0], sums[1]);
    ot_dict_destroy(parts);
    ot_dict_destroy(whole);
    close_own(&w);
}

static void moments_that_are_cut_are_given_in_parts_or_whole(void **state)
{
    (void)state;
    run_ranks(3, gather_state, NULL);
}

// ---- set again ----

enum { ALL_SECTIONS = OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_OWN };

typedef struct round_trip {
    int zero, flat;
    ot_scatter scatter;
    bool gives_parts;
} round_trip;

static void update_own(own *w, ot_comm *comm, int micro_batch)
{
    double loss;

    RANK_MUST(step_own(w, micro_batch, ROWS * ot_comm_rank(comm), ROWS, &loss));
    RANK_MUST(ot_session_update(w->session, 1, NULL));
    ot_session_reset_gradients(w->session);
}

static ot_dict *state_of(own *w, ot_gather gather, int flat)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *state = NULL;

    o.copy = 1;
    o.gather = gather;
    o.flat_optimizer = flat;
    RANK_MUST(ot_session_get_shards(w->session, ALL_SECTIONS, &o, &state));
    return state;
}

static void check_same(ot_dict *a, ot_dict *b)
{
    static const char *const sections[] = {"model", "optim", "train"};

    for (size_t i = 0; i < OT_COUNT(sections); i++)
        RANK_CHECK(ot__dict_same(a, sections[i], b, sections[i]), "'%s' is another", sections[i]);
}

// A state of between two updates comes back, after others, and the next update is the same.
static void set_again(ot_comm *comm, void *context)
{
    const round_trip *t = context;
    static _Thread_local double expected[ELEMENTS_MAX], found[ELEMENTS_MAX];
    const bool gives = t->scatter != OT_SCATTER_ROOT || ot_comm_rank(comm) == 0;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *parts, *whole, *again;
    int64_t n;
    own w;

    zero = t->zero;
    RANK_MUST(open_own(&w, perceptron, comm, 7));
    update_own(&w, comm, 0);
    parts = state_of(&w, OT_GATHER_NONE, t->flat);
    whole = state_of(&w, OT_GATHER_ALL, t->flat);
    update_own(&w, comm, 1);
    n = values_of(&w, expected);
    update_own(&w, comm, 5);
    o.scatter = t->scatter;
    RANK_MUST(ot_session_set_shards(w.session, ALL_SECTIONS,
                                    !gives           ? NULL
                                    : t->gives_parts ? parts
                                                     : whole,
                                    &o, NULL));
    again = state_of(&w, OT_GATHER_ALL, t->flat);
    check_same(whole, again);
    update_own(&w, comm, 1);
    RANK_CHECK(values_of(&w, found) == n && memcmp(expected, found, (size_t)n * sizeof *found) == 0,
               "another update, ZeRO %d, scatter %d", t->zero, (int)t->scatter);
    ot_dict_destroy(parts);
    ot_dict_destroy(whole);
    ot_dict_destroy(again);
    close_own(&w);
}

static void a_state_that_is_set_again_gives_the_same_update(void **state)
{
    (void)state;
    for (int zero_stage = 0; zero_stage <= 3; zero_stage++)
        for (int scatter = OT_SCATTER_SHARDED; scatter <= OT_SCATTER_ROOT; scatter++)
            for (int has_parts = 0; has_parts <= (scatter == OT_SCATTER_SHARDED); has_parts++) {
                round_trip t = {zero_stage, (zero_stage + scatter) % 2, (ot_scatter)scatter,
                                has_parts != 0};

                run_ranks(3, set_again, &t);
            }
}

// ---- before the first update ----

// Slots that a get makes, and a first cut, change nothing else.
static void get_before_an_update(ot_comm *comm, void *context)
{
    static _Thread_local double before[ELEMENTS_MAX], after[ELEMENTS_MAX];
    static _Thread_local double expected[ELEMENTS_MAX];
    const int stage = *(const int *)context;
    ot__resume at, then;
    ot_dict *state;
    double loss;
    int64_t n;
    own w;

    for (int gets = 0; gets < 2; gets++) {
        zero = stage;
        RANK_MUST(open_own(&w, perceptron, comm, 7));
        RANK_MUST(step_own(&w, 0, ROWS * ot_comm_rank(comm), ROWS, &loss));
        n = values_of(&w, before);
        at = ot__session_position(w.session);
        if (gets != 0) {
            state = state_of(&w, OT_GATHER_ALL, 0);
            ot_dict_destroy(state);
        }
        then = ot__session_position(w.session);
        RANK_CHECK(at.seed == then.seed && at.counter == then.counter &&
                       fabs(at.learning_rate - then.learning_rate) <= 0 &&
                       ot_session_step_count(w.session) == 0,
                   "another position");
        RANK_CHECK(values_of(&w, after) == n &&
                       memcmp(before, after, (size_t)n * sizeof *after) == 0,
                   "other values");
        RANK_MUST(ot_session_update(w.session, 1, NULL));
        RANK_CHECK(values_of(&w, gets != 0 ? after : expected) == n, "other values");
        close_own(&w);
    }
    RANK_CHECK(memcmp(expected, after, (size_t)n * sizeof *after) == 0, "another update");
}

static void a_state_before_the_first_update_changes_nothing(void **state)
{
    (void)state;
    for (int stage = 1; stage <= 3; stage++)
        run_ranks(3, get_before_an_update, &stage);
}

typedef struct saving {
    char path[PATH_LENGTH_MAX];
    int zero_before, zero_after;
    bool is_async;
    double expected[ELEMENTS_MAX];
} saving;

// Two updates, saved, and two more, during which what is saved may still be written.
static void save_in_the_middle(ot_comm *comm, void *context)
{
    saving *s = context;
    const int n = 4 / ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    double values[ELEMENTS_MAX], loss;
    ot_shards_job *job;
    own w;

    zero = s->zero_before;
    RANK_MUST(ot_shards_job_create(&job));
    RANK_MUST(open_own(&w, perceptron, comm, 7));
    for (int i = 0; i < 4; i++) {
        RANK_MUST(step_own(&w, i, n * rank, n, &loss));
        RANK_MUST(ot_session_update(w.session, 1, NULL));
        ot_session_reset_gradients(w.session);
        if (i == 1) {
            RANK_MUST(ot_checkpoint_set_string(ot_session_checkpoint(w.session), "note", "two"));
            RANK_MUST(s->is_async ? ot_session_save_shards_async(w.session, job, s->path, NULL)
                                  : ot_session_save_shards(w.session, s->path, NULL));
        }
    }
    RANK_MUST(ot_shards_job_wait(job));
    ot_shards_job_destroy(job);
    (void)values_of(&w, rank == 0 ? s->expected : values);
    close_own(&w);
}

static void load_and_go_on(ot_comm *comm, void *context)
{
    saving *s = context;
    const int n = 4 / ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    double values[ELEMENTS_MAX], loss;
    const char *note = "";
    int64_t count;
    own w;

    zero = s->zero_after;
    RANK_MUST(open_own(&w, perceptron, comm, 8)); // other values
    RANK_MUST(ot_session_load_shards(w.session, s->path));
    RANK_CHECK(ot_session_step_count(w.session) == 2, "%d updates",
               (int)ot_session_step_count(w.session));
    RANK_MUST(ot_checkpoint_get_string(ot_session_checkpoint(w.session), "note", &note));
    RANK_CHECK(strcmp(note, "two") == 0, "%s", note);
    for (int i = 2; i < 4; i++) {
        RANK_MUST(step_own(&w, i, n * rank, n, &loss));
        RANK_MUST(ot_session_update(w.session, 1, NULL));
        ot_session_reset_gradients(w.session);
    }
    count = values_of(&w, values);
    for (int64_t i = 0; i < count; i++)
        RANK_CHECK(fabs(values[i] - s->expected[i]) < 1e-9, "value %d is %.17g, expected %.17g",
                   (int)i, values[i], s->expected[i]);
    close_own(&w);
}

static void a_state_that_is_cut_goes_on_with_any_other_number_of_ranks(void **state)
{
    static const int counts[][2] = {{2, 4}, {4, 1}, {1, 2}, {4, 2}};
    static const int zeros[][2] = {{0, 1}, {1, 1}, {1, 0}, {2, 3}, {3, 2}, {3, 0}};
    void *folder = NULL;
    int k = 0;

    (void)state;
    assert_int_equal(temporary_folder_make(&folder), 0);
    for (size_t i = 0; i < OT_COUNT(counts); i++)
        for (size_t cut = 0; cut < OT_COUNT(zeros); cut++) {
            saving s = {.zero_before = zeros[cut][0],
                        .zero_after = zeros[cut][1],
                        .is_async = (i + cut) % 2 == 1};
            char name[16];

            snprintf(name, sizeof name, "s%d", k++);
            snprintf(s.path, sizeof s.path, "%s", in_folder(&folder, name));
            run_ranks(counts[i][0], save_in_the_middle, &s);
            run_ranks(counts[i][1], load_and_go_on, &s);
        }
    temporary_folder_remove(&folder);
}

// ---- one rank goes on from a checkpoint, and the other begins anew ----

typedef struct lone_resume {
    char path[PATH_LENGTH_MAX];
    int zero, rank; // that goes on
    const char *expected;
} lone_resume;

static ot_status open_saved(own *w, const lone_resume *r, ot_comm *comm)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_checkpoint *saved;
    ot_status st;

    parallel.comm = comm;
    parallel.bucket_bytes = 512;
    parallel.zero = r->zero;
    options.parallel = &parallel;
    options.n_threads = 1;
    OT_TRY(ot_checkpoint_load(r->path, &saved));
    st = ot_session_create(
        ot_artifacts_training_model(w->artifacts), ot_artifacts_eval_model(w->artifacts),
        ot_artifacts_optimizer_model(w->artifacts), saved, &options, &w->session);
    ot_checkpoint_destroy(saved); // it goes with the session
    return st;
}

static void resume_on_one(ot_comm *comm, void *context)
{
    const lone_resume *r = context;
    const bool resumes = ot_comm_rank(comm) == r->rank;
    ot_status st;
    own w;

    zero = r->zero;
    if (resumes) {
        RANK_MUST(open_own(&w, perceptron, NULL, 7)); // its artifacts are those of the other
        ot_session_destroy(w.session);
        w.session = NULL;
    }
    st = resumes ? open_saved(&w, r, comm) : open_own(&w, perceptron, comm, 7);
    RANK_CHECK(st == OT_ERR_MISMATCH, "%s, zero %d", ot_status_name(st), r->zero);
    RANK_CHECK(strncmp(ot_error_message(), r->expected, strlen(r->expected)) == 0, "%s",
               ot_error_message());
    RANK_MUST(ot_comm_barrier(comm));
    close_own(&w);
}

static void save_after(const char *path, int n_updates)
{
    double loss;
    own w;

    zero = 0;
    assert_int_equal(open_own(&w, perceptron, NULL, 7), OT_OK);
    for (int i = 0; i < n_updates; i++) {
        assert_int_equal(step_own(&w, i, 0, ROWS, &loss), OT_OK);
        assert_int_equal(ot_session_update(w.session, 1, NULL), OT_OK);
        ot_session_reset_gradients(w.session);
    }
    assert_int_equal(ot_session_save(w.session, path), OT_OK);
    close_own(&w);
}

// With ZeRO a session that begins anew has no moments, and one that is loaded has.
static void what_one_rank_alone_goes_on_from_is_told(void **state)
{
    static const char *const counts[] = {
        "ranks 0 and 1 differ in the number of updates that the checkpoint has seen: 2 and 0 (",
        "ranks 0 and 1 differ in the number of updates that the checkpoint has seen: 0 and 2 ("};
    void *folder = NULL;
    lone_resume r = {.zero = 0};

    (void)state;
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(r.path, sizeof r.path, "%s", in_folder(&folder, "saved"));
    save_after(r.path, 2);
    for (r.zero = 0; r.zero <= 3; r.zero++)
        for (r.rank = 0; r.rank < 2; r.rank++) {
            r.expected = counts[r.rank];
            run_ranks(2, resume_on_one, &r);
        }
    save_after(r.path, 0);
    r.expected = "ranks 0 and 1 differ in which moments the checkpoint has: ";
    for (r.zero = 1; r.zero <= 3; r.zero++)
        for (r.rank = 0; r.rank < 2; r.rank++)
            run_ranks(2, resume_on_one, &r);
    temporary_folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_that_are_cut_are_given_in_parts_or_whole),
        cmocka_unit_test(a_state_that_is_set_again_gives_the_same_update),
        cmocka_unit_test(a_state_before_the_first_update_changes_nothing),
        cmocka_unit_test(a_state_that_is_cut_goes_on_with_any_other_number_of_ranks),
        cmocka_unit_test(what_one_rank_alone_goes_on_from_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
