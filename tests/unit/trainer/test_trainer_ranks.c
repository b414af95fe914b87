// SPDX-License-Identifier: Apache-2.0
// Trainers over ranks, by their options. Ranks are threads.
#include "trainer_ranks_fixture.h"

#include <math.h>
#include <stdatomic.h>

enum { N_RANKS = 2, N_STEPS = 3 };

// ---- training ----

typedef struct training {
    const ot_model *model;
    int64_t zero_stage;
    float found[N_RANKS][N_IN + 1];
    int64_t said[N_RANKS][3]; // rank, size, replicas in the state
} training;

static ot_status read_options(ot_trainer *trainer, int64_t said[3])
{
    static const char *const names[] = {"world_rank", "world_size", "data_parallel_size"};
    ot_dict *state = NULL, *options = NULL;
    ot_status st = ot_trainer_get_state(trainer, OT_STATE_OPTIONS, &state);

    OT_THEN(st, ot_dict_get_dict(state, "trainer_options", &options));
    for (size_t i = 0; i < OT_COUNT(names); i++)
        OT_THEN(st, ot_dict_get_int(options, names[i], &said[i]));
    ot_dict_destroy(state);
    return st;
}

static void train_rank(ot_comm *comm, void *context)
{
    training *t = context;
    const int rank = ot_comm_rank(comm);
    ot_trainer_options options = of_replicas(N_RANKS);
    ot_trainer *trainer = NULL;

    options.world_rank = options.local_rank = rank;
    options.zero_stage = t->zero_stage;
    RANK_MUST(make(t->model, comm, &options, &trainer));
    if (trainer == NULL)
        return;
    for (int i = 0; i < N_STEPS; i++)
        RANK_MUST(step_of_rank(trainer, N_RANKS * i + rank));
    RANK_MUST(ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL,
                                        t->found[rank], N_IN + 1));
    RANK_MUST(read_options(trainer, t->said[rank]));
    ot_trainer_destroy(trainer);
}

static void updates_are_those_of_the_batches_of_all_ranks(void **state)
{
    ot_model *model = linear_model();
    hand h = hand_begin();
    float x[N_ROWS * N_IN], t[N_ROWS];

    (void)state;
    for (int64_t i = 0; i < N_STEPS; i++) {
        for (int64_t rank = 0; rank < N_RANKS; rank++) {
            batch_of(N_RANKS * i + rank, x, t);
            hand_add(&h, x, t);
        }
        hand_update(&h, learning_rate);
    }
    for (int stage = 0; stage < 2; stage++) {
        training run = {.model = model, .zero_stage = stage};

        run_ranks(N_RANKS, train_rank, &run);
        for (int rank = 0; rank < N_RANKS; rank++) {
            for (int i = 0; i < N_IN; i++)
                assert_float_equal(run.found[rank][i], h.w[i], 2e-6);
            assert_float_equal(run.found[rank][N_IN], h.b, 2e-6);
            assert_int_equal(run.said[rank][0], rank);
            assert_int_equal(run.said[rank][1], N_RANKS);
            assert_int_equal(run.said[rank][2], N_RANKS);
        }
    }
    ot_model_destroy(model);
}

static void give_and_take(ot_comm *comm, void *context)
{
    ot_trainer_options options = of_replicas(N_RANKS);
    ot_state_dict_options how = OT_STATE_DICT_OPTIONS_INIT;
    ot_trainer *trainer = NULL;
    ot_dict *state = NULL, *in = NULL;
    const ot_tensor *moment = NULL;

    options.zero_stage = 1;
    RANK_MUST(make_by("AdamOptimizer", context, comm, &options, &trainer));
    if (trainer == NULL)
        return;
    RANK_MUST(ot_trainer_get_shards(trainer, OT_STATE_OPTIMIZER, &how, &state));
    RANK_MUST(ot_dict_get_dict(state, "optim", &in));
    RANK_MUST(ot_dict_get_dict(in, "state", &in));
    RANK_MUST(ot_dict_get_dict(in, "w", &in));
    RANK_MUST(ot_dict_get_tensor(in, "exp_avg", &moment));
    RANK_CHECK(moment != NULL && ot_tensor_count(moment) == N_IN, "no whole moment");
    RANK_MUST(ot_trainer_set_shards(trainer, OT_STATE_OPTIMIZER, state, &how, NULL));
    RANK_MUST(step_of_rank(trainer, 1));
    ot_dict_destroy(state);
    ot_trainer_destroy(trainer);
}

static void before_the_first_update_moments_are_whole(void **state)
{
    ot_model *model = linear_model();

    (void)state;
    run_ranks(N_RANKS, give_and_take, model);
    ot_model_destroy(model);
}

// Where a trainer stands is the same on all ranks, or no state.
static void give_other_steps(ot_comm *comm, void *context)
{
    static const char *const names[] = {"train_step", "optimization_step"};
    ot_trainer_options options = of_replicas(N_RANKS);
    ot_trainer *trainer = NULL;
    ot_dict *state = NULL, *in = NULL;

    RANK_MUST(make_by("AdamOptimizer", context, comm, &options, &trainer));
    RANK_MUST(step_of_rank(trainer, 0));
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        char message[64];
        ot_status st;

        RANK_MUST(ot_trainer_get_shards(trainer, OT_STATE_OWN, NULL, &state));
        RANK_MUST(ot_dict_get_dict(state, "train", &in));
        RANK_MUST(ot_trainer_set_shards(trainer, OT_STATE_OWN, state, NULL, NULL));
        RANK_MUST(ot_dict_set_int(in, names[i], 7 + ot_comm_rank(comm)));
        snprintf(message, sizeof message, "differ in '%s' of the state", names[i]);
        st = ot_trainer_set_shards(trainer, OT_STATE_OWN, state, NULL, NULL);
        RANK_CHECK(st == OT_ERR_MISMATCH && strstr(ot_error_message(), message) != NULL, "%s: %s",
                   names[i], ot_error_message());
        ot_dict_destroy(state);
    }
    RANK_MUST(step_of_rank(trainer, 1));
    ot_trainer_destroy(trainer);
}

static void ranks_do_not_take_other_steps(void **state)
{
    ot_model *model = linear_model();

    (void)state;
    run_ranks(N_RANKS, give_other_steps, model);
    ot_model_destroy(model);
}

// ---- gradients that are not finite on one rank ----

enum { BAD_STEP = 1 };
static const float large = 1e6F; // makes dw[0], which is of rank 0, infinite, and nothing else

typedef struct scaling {
    const ot_model *model;
    ot_precision precision;
    int has_function;
    int64_t zero_stage;
    double first_scale;
    int64_t n_applied[N_RANKS];
    double scales[N_RANKS][N_STEPS];
    int finite[N_RANKS][N_STEPS], asked[N_RANKS];
} scaling;

typedef struct halving {
    int n_calls, n_not_finite, fails;
} halving;

static int halve_or_double(void *context, const ot_step_info *info, double *loss_scale)
{
    halving *h = context;

    h->n_calls++;
    h->n_not_finite += !info->all_finite;
    *loss_scale *= info->all_finite ? 2 : 0.5;
    return h->fails;
}

static ot_status make_scaled(const scaling *s, ot_comm *comm, ot_loss_scaler *scaler,
                             ot_trainer **out)
{
    ot_trainer_options options = of_replicas(N_RANKS);

    options.zero_stage = s->zero_stage;
    options.precision = s->precision;
    options.skip_non_finite = 1;
    options.loss_scaler = scaler;
    scaler->loss_scale = s->first_scale;
    scaler->up_scale_window = 1;
    scaler->max_loss_scale = 2 * s->first_scale;
    return make_by("AdamOptimizer", s->model, comm, &options, out);
}

// Rows of the rank; on rank 1 one is large in the bad step.
static ot_status scaled_step(ot_trainer *trainer, int rank, int i)
{
    float x[N_ROWS * N_IN], t[N_ROWS];
    ot_tensor *inputs[2] = {NULL, NULL};
    ot_status st;

    batch_of(N_RANKS * i + rank, x, t);
    if (rank == 1 && i == BAD_STEP)
        x[0] = large;
    st = ot_tensor_wrap(OT_F32, &OT_SHAPE(N_ROWS), t, sizeof t, &inputs[0]);
    OT_THEN(st, ot_tensor_wrap(OT_F32, &OT_SHAPE(N_ROWS, N_IN), x, sizeof x, &inputs[1]));
    OT_THEN(st, ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, NULL, 0));
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    return st;
}

static void scale_on_rank(ot_comm *comm, void *context)
{
    scaling *s = context;
    const int rank = ot_comm_rank(comm);
    ot_loss_scaler scaler = OT_LOSS_SCALER_INIT;
    halving own = {.n_calls = 0};
    ot_trainer *trainer = NULL;
    ot_step_info info = OT_STEP_INFO_INIT;

    scaler.update = s->has_function ? halve_or_double : NULL;
    scaler.context = &own;
    RANK_MUST(make_scaled(s, comm, &scaler, &trainer));
    for (int i = 0; i < N_STEPS && trainer != NULL; i++) {
        RANK_MUST(scaled_step(trainer, rank, i));
        RANK_MUST(ot_trainer_info(trainer, &info));
        s->finite[rank][i] = info.all_finite;
        s->scales[rank][i] = scaler.loss_scale;
    }
    s->n_applied[rank] = info.optimization_step;
    s->asked[rank] = own.n_calls * N_STEPS + own.n_not_finite;
    ot_trainer_destroy(trainer);
}

static void check_scaling(const scaling *s)
{
    for (int rank = 0; rank < N_RANKS; rank++) {
        assert_int_equal(s->n_applied[rank], N_STEPS - 1);
        assert_int_equal(s->asked[rank], s->has_function ? N_STEPS * N_STEPS + 1 : 0);
        for (int i = 0; i < N_STEPS; i++) {
            const double expected = s->first_scale * (i == BAD_STEP ? 1 : 2);

            assert_int_equal(s->finite[rank][i], i != BAD_STEP);
            if (s->scales[rank][i] != expected)
                fail_msg("rank %d, zero %d, step %d: scale %g, expected %g", rank,
                         (int)s->zero_stage, i, s->scales[rank][i], expected);
        }
    }
}

static void all_ranks_skip_what_is_not_finite_on_one(void **state)
{
    static const scaling cases[] = {
        {.precision = OT_PRECISION_F16, .first_scale = 16, .has_function = 1},
        {.precision = OT_PRECISION_F16, .first_scale = 16},
        {.precision = OT_PRECISION_BF16, .first_scale = 0x1p100},
        {.precision = OT_PRECISION_BF16, .first_scale = 0x1p100, .has_function = 1},
    };
    ot_model *model = linear_model();

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        for (int64_t stage = 0; stage <= 3; stage++) {
            scaling s = cases[i];

            s.model = model;
            s.zero_stage = stage;
            run_ranks(N_RANKS, scale_on_rank, &s);
            check_scaling(&s);
        }
    ot_model_destroy(model);
}

// It fails on rank 1 in the second step, and is left out in the fourth one on rank 1 alone.
static void fail_on_rank(ot_comm *comm, void *context)
{
    const scaling *s = context;
    const int rank = ot_comm_rank(comm);
    ot_loss_scaler scaler = OT_LOSS_SCALER_INIT;
    halving own = {.n_calls = 0};
    ot_trainer *trainer = NULL;
    ot_status st;

    scaler.update = halve_or_double;
    scaler.context = &own;
    RANK_MUST(make_scaled(s, comm, &scaler, &trainer));
    if (trainer == NULL)
        return;
    RANK_MUST(scaled_step(trainer, rank, 0));
    own.fails = rank == 1;
    st = scaled_step(trainer, rank, 2);
    RANK_CHECK(st == OT_ERR_INTERRUPTED, "%s", ot_status_name(st));
    RANK_CHECK(strstr(ot_error_message(), "the loss scaler's update function failed") != NULL, "%s",
               ot_error_message());
    RANK_CHECK(scaler.loss_scale == 2 * s->first_scale, "%g", scaler.loss_scale);
    own.fails = 0;
    RANK_MUST(scaled_step(trainer, rank, 2));
    RANK_CHECK(scaler.loss_scale == 4 * s->first_scale, "%g", scaler.loss_scale);
    if (rank == 1)
        scaler.update = NULL;
    st = scaled_step(trainer, rank, 3);
    RANK_CHECK(st == OT_ERR_MISMATCH, "%s: %s", ot_status_name(st), ot_error_message());
    ot_trainer_destroy(trainer);
}

static void a_function_that_fails_on_one_rank_fails_on_all(void **state)
{
    ot_model *model = linear_model();

    (void)state;
    for (int64_t stage = 0; stage <= 3; stage++)
        run_ranks(N_RANKS, fail_on_rank,
                  &(scaling){.model = model,
                             .precision = OT_PRECISION_F16,
                             .zero_stage = stage,
                             .first_scale = 16});
    ot_model_destroy(model);
}

// ---- what does not fit ----

typedef struct refusal {
    const ot_model *model;
    int64_t world_size, world_rank, local_rank, adasum; // ranks: of rank 1
    ot_status status;
    const char *text;
} refusal;

static void be_refused(ot_comm *comm, void *context)
{
    const refusal *r = context;
    ot_trainer_options options = of_replicas(r->world_size);
    ot_trainer *trainer = NULL;
    ot_status st;

    options.enable_adasum = (int)r->adasum;
    if (ot_comm_rank(comm) == 1) {
        options.world_rank = r->world_rank;
        options.local_rank = r->local_rank;
    }
    st = make(r->model, comm, &options, &trainer);
    RANK_CHECK(st == r->status, "%s: %s", ot_status_name(st), ot_error_message());
    RANK_CHECK(strstr(ot_error_message(), r->text) != NULL, "%s", ot_error_message());
    ot_trainer_destroy(trainer);
    RANK_MUST(ot_comm_barrier(comm));
}

static void what_does_not_fit_the_communicator_is_refused_on_all_ranks(void **state)
{
    ot_model *model = linear_model();
    refusal cases[] = {
        {model, 4, 0, 0, 0, OT_ERR_INVALID, "distributed.world_size is 4, found 2 processes"},
        {model, 2, 3, 0, 0, OT_ERR_INVALID,
         "rank 1: options.distributed.world_rank is 3, expected 1"},
        {model, 1, 0, 5, 0, OT_ERR_INVALID,
         "rank 1: options.distributed.local_rank is 5, expected 1"},
        {model, 1, 0, 0, 1, OT_ERR_UNSUPPORTED,
         "distributed.enable_adasum is true, expected false for 2 processes"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        run_ranks(N_RANKS, be_refused, &cases[i]);
    ot_model_destroy(model);
}

static void a_process_that_is_alone_is_no_replica(void **state)
{
    ot_model *model = linear_model();
    ot_trainer_options options = of_replicas(2);
    ot_trainer *trainer;

    (void)state;
    assert_int_equal(make(model, NULL, &options, &trainer), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "options.distributed.world_size is 2, found 1 process: "
                                            "mpirun has not started this one");
    options.world_size = 1;
    options.world_rank = 1;
    assert_int_equal(make(model, NULL, &options, &trainer), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "options.distributed.world_rank is 1, expected 0");
    options.world_rank = 0;
    options.data_parallel_size = 1;
    options.zero_stage = 1;
    assert_int_equal(make(model, NULL, &options, &trainer), OT_OK);
    ot_trainer_destroy(trainer);
    ot_model_destroy(model);
}

typedef struct warning {
    const ot_model *model;
    atomic_int n; // of all ranks
    char text[256];
} warning;

static void note_warning(void *context, ot_log_level level, const char *text)
{
    warning *w = context;

    if (level != OT_LOG_WARNING)
        return;
    atomic_fetch_add(&w->n, 1);
    snprintf(w->text, sizeof w->text, "%s", text);
}

static void make_two_replicas(ot_comm *comm, void *context)
{
    const warning *w = context;
    ot_trainer_options options = of_replicas(N_RANKS + 1);
    ot_trainer *trainer = NULL;

    options.data_parallel_size = N_RANKS;
    options.world_rank = options.local_rank = ot_comm_rank(comm);
    RANK_MUST(make(w->model, comm, &options, &trainer));
    ot_trainer_destroy(trainer);
}

static void another_number_of_replicas_is_told_once(void **state)
{
    ot_model *model = linear_model();
    warning w = {.model = model};

    (void)state;
    ot_set_log(note_warning, &w);
    run_ranks(N_RANKS + 1, make_two_replicas, &w);
    ot_set_log(NULL, NULL);
    assert_int_equal(atomic_load(&w.n), 1);
    assert_string_equal(w.text, "options.distributed.data_parallel_size is 2: 3 processes are as "
                                "many replicas");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_the_batches_of_all_ranks),
        cmocka_unit_test(before_the_first_update_moments_are_whole),
        cmocka_unit_test(ranks_do_not_take_other_steps),
        cmocka_unit_test(all_ranks_skip_what_is_not_finite_on_one),
        cmocka_unit_test(a_function_that_fails_on_one_rank_fails_on_all),
        cmocka_unit_test(what_does_not_fit_the_communicator_is_refused_on_all_ranks),
        cmocka_unit_test(a_process_that_is_alone_is_no_replica),
        cmocka_unit_test(another_number_of_replicas_is_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
