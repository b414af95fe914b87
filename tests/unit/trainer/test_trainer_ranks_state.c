// SPDX-License-Identifier: Apache-2.0
// Whole states of trainers whose state is cut over ranks, also within an accumulation.
#include "trainer_ranks_fixture.h"

#include <math.h>

#include "unit/base/temporary_folder.h"

enum { N_RANKS = 2 };

// ---- whole states, at any time ----

typedef struct going_back {
    const ot_model *model;
    const char *path;
    int64_t stage, accumulation; // the state is taken after a micro-batch
} going_back;

static void read_elements(ot_dict *state, const char *outer, const char *inner, const char *name,
                          float *out)
{
    const ot_tensor *t = NULL;
    ot_dict *of = NULL;

    RANK_MUST(ot_dict_get_dict(state, outer, &of));
    RANK_MUST(ot_dict_get_dict(of, inner, &of));
    RANK_MUST(ot_dict_get_tensor(of, name, &t));
    if (t != NULL)
        memcpy(out, t->data, t->n_bytes);
}

static void read_moments(ot_trainer *trainer, float found[2 * (N_IN + 1)])
{
    ot_dict *state = NULL;

    RANK_MUST(ot_trainer_get_state(trainer, OT_STATE_ALL, &state));
    if (state == NULL)
        return;
    read_elements(state, "optimizer", "w", "Moment_1", found);
    read_elements(state, "optimizer", "b", "Moment_1", found + N_IN);
    read_elements(state, "model", "full_precision", "w", found + N_IN + 1);
    read_elements(state, "model", "full_precision", "b", found + 2 * N_IN + 1);
    ot_dict_destroy(state);
}

static void check_same(ot_trainer *trainer, const float expected[2 * (N_IN + 1)], float tolerance)
{
    float found[2 * (N_IN + 1)] = {0};

    read_moments(trainer, found);
    for (int i = 0; i < 2 * (N_IN + 1); i++)
        RANK_CHECK(fabsf(found[i] - expected[i]) <= tolerance, "number %d is %g, expected %g", i,
                   (double)found[i], (double)expected[i]);
}

static void go_back(ot_comm *comm, void *context)
{
    const going_back *g = context;
    const int rank = ot_comm_rank(comm);
    const bool has_file = OT_WITH_HDF5;
    // Sums of gradients that are averaged between are rounded otherwise.
    const float tolerance = g->accumulation > 1 ? 1e-6F : 0;
    ot_trainer_options options = of_replicas(N_RANKS);
    ot_save_options how = OT_SAVE_OPTIONS_INIT;
    float then[2 * (N_IN + 1)] = {0}, later[2 * (N_IN + 1)] = {0};
    ot_trainer *trainer = NULL;
    ot_dict *state = NULL;
    ot_status st;

    options.zero_stage = g->stage;
    options.gradient_accumulation_steps = g->accumulation;
    how.format = OT_FORMAT_HDF5;
    RANK_MUST(make_by("AdamOptimizer", g->model, comm, &options, &trainer));
    if (trainer == NULL)
        return;
    RANK_MUST(step_of_rank(trainer, rank));
    RANK_MUST(ot_trainer_get_state(trainer, OT_STATE_ALL, &state));
    read_moments(trainer, then);
    if (has_file)
        RANK_MUST(ot_trainer_save(trainer, g->path, &how));
    RANK_MUST(ot_comm_barrier(comm));
    RANK_MUST(step_of_rank(trainer, N_RANKS + rank));
    read_moments(trainer, later);
    for (int i = 0; i < 1 + has_file; i++) {
        RANK_MUST(i == 0 ? ot_trainer_set_state(trainer, state, OT_STRICTNESS_ALL)
                         : ot_trainer_load(trainer, &g->path, 1, OT_STRICTNESS_ALL, NULL));
        check_same(trainer, then, 0);
        RANK_MUST(step_of_rank(trainer, N_RANKS + rank));
        check_same(trainer, later, tolerance);
    }
    if (g->stage > 0) {
        st = ot_trainer_set_state(trainer, rank == 1 ? NULL : state, OT_STRICTNESS_ALL);
        RANK_CHECK(st == OT_ERR_INVALID, "%s: %s", ot_status_name(st), ot_error_message());
        check_same(trainer, later, tolerance);
    }
    ot_dict_destroy(state);
    ot_trainer_destroy(trainer);
}

static void whole_states_are_taken_at_any_time(void **state)
{
    ot_model *model = linear_model();

    for (int64_t stage = 0; stage <= 3; stage++)
        for (int64_t accumulation = 1; accumulation <= 2; accumulation++) {
            going_back g = {.model = model, .stage = stage, .accumulation = accumulation};

            g.path = in_folder(state, "state.h5");
            (void)remove(g.path);
            run_ranks(N_RANKS, go_back, &g);
        }
    ot_model_destroy(model);
}

// ---- gradients of an accumulation, for any other number of ranks ----

typedef struct passing_on {
    const ot_model *model;
    int64_t stage;
    ot_dict *state;                         // what rank 0 gives
    double gradient[N_IN + 1], w[N_IN + 1]; // expected: of the state, after the update
} passing_on;

static ot_status make_accumulating(const passing_on *p, ot_comm *comm, ot_trainer **out)
{
    ot_trainer_options options = of_replicas(ot_comm_world_size(comm));

    options.zero_stage = p->stage;
    options.gradient_accumulation_steps = 2;
    return make(p->model, comm, &options, out);
}

static void check_near(ot_dict *of, const double expected[N_IN + 1])
{
    const ot_tensor *w = NULL, *b = NULL;

    RANK_MUST(ot_dict_get_tensor(of, "w", &w));
    RANK_MUST(ot_dict_get_tensor(of, "b", &b));
    for (int i = 0; w != NULL && b != NULL && i <= N_IN; i++) {
        const double found = ot__tensor_get_f64(i < N_IN ? w : b, i % N_IN);

        RANK_CHECK(fabs(found - expected[i]) < 2e-6, "number %d is %g, expected %g", i, found,
                   expected[i]);
    }
}

static ot_dict *section_of(ot_dict *state, const char *outer, const char *inner)
{
    ot_dict *of = NULL;

    RANK_MUST(ot_dict_get_dict(state, outer, &of));
    RANK_MUST(ot_dict_get_dict(of, inner, &of));
    return of;
}

static void stop_between(ot_comm *comm, void *context)
{
    passing_on *p = context;
    ot_trainer *trainer = NULL;
    ot_dict *state = NULL;

    RANK_MUST(make_accumulating(p, comm, &trainer));
    RANK_MUST(step_of_rank(trainer, ot_comm_rank(comm)));
    RANK_MUST(ot_trainer_get_state(trainer, OT_STATE_ALL, &state));
    check_near(section_of(state, "onnxtrain", "gradients"), p->gradient);
    RANK_CHECK(ot_trainer_save_shards(trainer, "none", NULL) == OT_ERR_STATE &&
                   strstr(ot_error_message(), "in an accumulation of 1 micro-batches") != NULL,
               "%s", ot_error_message());
    if (ot_comm_rank(comm) == 0)
        p->state = state;
    else
        ot_dict_destroy(state);
    ot_trainer_destroy(trainer);
}

static void go_on_elsewhere(ot_comm *comm, void *context)
{
    const passing_on *p = context;
    ot_trainer *trainer = NULL;
    ot_dict *state = NULL;

    RANK_MUST(make_accumulating(p, comm, &trainer));
    RANK_MUST(ot_trainer_set_state(trainer, p->state, OT_STRICTNESS_ALL));
    RANK_MUST(step_of_rank(trainer, 10 + ot_comm_rank(comm)));
    RANK_MUST(ot_trainer_get_state(trainer, OT_STATE_ALL, &state));
    check_near(section_of(state, "model", "full_precision"), p->w);
    ot_dict_destroy(state);
    ot_trainer_destroy(trainer);
}

// The mean over batches of n ranks, of the rows that step_of_rank() gives them.
static void add_mean(hand *h, int64_t first, int n, double mean[N_IN + 1])
{
    float x[N_ROWS * N_IN], t[N_ROWS];

    for (int rank = 0; rank < n; rank++) {
        batch_of(first + rank, x, t);
        hand_add(h, x, t);
    }
    for (int i = 0; i <= N_IN; i++)
        mean[i] += (i < N_IN ? h->dw[i] : h->db) / n;
}

static void gradients_of_an_accumulation_are_those_of_one_process(void **state)
{
    ot_model *model = linear_model();

    (void)state;
    for (int64_t stage = 1; stage <= 3; stage++) {
        passing_on p = {.model = model, .stage = stage};
        hand h = hand_begin();

        add_mean(&h, 0, N_RANKS, p.gradient);
        run_ranks(N_RANKS, stop_between, &p);
        for (int n = 1; n <= 4; n++)
            for (p.stage = 0; p.stage <= 3; p.stage++) {
                double sum[N_IN + 1];

                h = hand_begin();
                memcpy(sum, p.gradient, sizeof sum);
                add_mean(&h, 10, n, sum);
                for (int i = 0; i <= N_IN; i++)
                    p.w[i] = (i < N_IN ? h.w[i] : h.b) - learning_rate * sum[i] / 2;
                run_ranks(n, go_on_elsewhere, &p);
            }
        ot_dict_destroy(p.state);
    }
    ot_model_destroy(model);
}

// ---- no memory on one rank ----

// Of the bad rank the allocations from the n-th on fail, until it works.
static void lack_memory_in(ot_comm *comm, ot_trainer *trainer, ot_dict *given)
{
    ot_status st = OT_ERR_NO_MEMORY;

    for (int64_t n = 0; st == OT_ERR_NO_MEMORY; n += 1 + n / 16) {
        ot_dict *state = NULL;
        int64_t both[2];

        if (ot_comm_rank(comm) == 1)
            ot__alloc_fail_after(n);
        st = given != NULL ? ot_trainer_set_state(trainer, given, OT_STRICTNESS_ALL)
                           : ot_trainer_get_state(trainer, OT_STATE_ALL, &state);
        ot__alloc_fail_after(-1);
        ot_dict_destroy(state);
        both[0] = (int64_t)st;
        both[1] = -(int64_t)st;
        if (st != OT_OK)
            RANK_CHECK(ot__starts_with(ot_error_message(), "rank 1: "), "%s", ot_error_message());
        RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_MAX, OT_I64, both, 2));
        RANK_CHECK(both[0] == -both[1], "status %d here, and %d", (int)st, (int)both[0]);
        if (both[0] != -both[1])
            return;
    }
    RANK_MUST(st);
}

static void lack_memory(ot_comm *comm, void *context)
{
    const passing_on *p = context;
    ot_trainer *from = NULL, *to = NULL;
    ot_dict *state = NULL, *again = NULL;

    RANK_MUST(make_accumulating(p, comm, &from));
    RANK_MUST(make_accumulating(p, comm, &to));
    RANK_MUST(step_of_rank(from, ot_comm_rank(comm)));
    lack_memory_in(comm, from, NULL);
    RANK_MUST(ot_trainer_get_state(from, OT_STATE_ALL, &state));
    lack_memory_in(comm, to, state);
    RANK_MUST(ot_trainer_get_state(to, OT_STATE_ALL, &again));
    check_near(section_of(again, "onnxtrain", "gradients"), p->gradient);
    ot_dict_destroy(state);
    RANK_CHECK(ot_trainer_get_state(to, ot_comm_rank(comm) == 1 ? 1U << 20 : OT_STATE_ALL,
                                    &state) == OT_ERR_INVALID,
               "%s", ot_error_message());
    RANK_MUST(step_of_rank(to, 10 + ot_comm_rank(comm)));
    ot_dict_destroy(again);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

static void a_lack_of_memory_on_one_rank_is_that_of_all(void **state)
{
    ot_model *model = linear_model();

    (void)state;
    for (int64_t stage = 1; stage <= 3; stage++) {
        passing_on p = {.model = model, .stage = stage};
        hand h = hand_begin();

        add_mean(&h, 0, N_RANKS, p.gradient);
        run_ranks(N_RANKS, lack_memory, &p);
    }
    ot_model_destroy(model);
}

// ---- states with other constants ----

// P stands for the exponent, which is no parameter and is built into the graph.
#define NORM_TEXT(p)                                                                               \
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"                                                 \
    "norm (float[N,3] x, float[N] t) => (float[N] y, float loss)\n"                                \
    "<float[3] w = {0.5, -1, 0.25}, float b = {0.125}, float power = {" p "},\n"                   \
    " float[3] scale = {1, 2, 0.5}, float[3] bias = {0, 0.5, -0.5}, float[3] mean = {0, 0, 0},\n"  \
    " float[3] var = {1, 1, 1}>\n"                                                                 \
    "{\n"                                                                                          \
    "  n = BatchNormalization(x, scale, bias, mean, var)\n"                                        \
    "  r = Pow(n, power)\n"                                                                        \
    "  p = MatMul(r, w)\n"                                                                         \
    "  y = Add(p, b)\n"                                                                            \
    "  d = Sub(y, t)\n"                                                                            \
    "  q = Mul(d, d)\n"                                                                            \
    "  loss = ReduceMean<keepdims = 0>(q)\n"                                                       \
    "}\n"

static ot_status make_norm(const char *text, ot_comm *comm, ot_trainer **out)
{
    ot_trainer_options options = of_replicas(N_RANKS);
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_session_options session = OT_SESSION_OPTIONS_INIT;
    ot_model *model;
    ot_status st;

    parallel.comm = comm;
    parallel.sync_batch_norm = 1;
    session.parallel = &parallel;
    session.n_threads = 1;
    options.session = &session;
    optimizer.name = "SGDOptimizerV2";
    optimizer.lr = 0.01;
    OT_TRY(ot_model_load_buffer(text, strlen(text), NULL, &model));
    st = ot_trainer_create(model, &linear_description, &optimizer, &options, out);
    ot_model_destroy(model);
    return st;
}

static uint64_t values_hash(ot_trainer *trainer)
{
    float values[5 * N_IN + 1] = {0};

    RANK_MUST(ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL, values,
                                        OT_COUNT(values)));
    return ot__id_mix(0, values, sizeof values);
}

static void take_other_constants(ot_comm *comm, void *context)
{
    ot_trainer *from = NULL, *to = NULL;
    ot_dict *state = NULL;

    (void)context;
    RANK_MUST(make_norm(NORM_TEXT("2"), comm, &from));
    RANK_MUST(make_norm(NORM_TEXT("3"), comm, &to));
    if (from == NULL || to == NULL)
        return;
    RANK_MUST(step_of_rank(from, ot_comm_rank(comm)));
    RANK_MUST(ot_trainer_get_state(from, OT_STATE_ALL, &state));
    RANK_MUST(ot_trainer_set_state(to, state, OT_STRICTNESS_ALL));
    for (int i = 0; i < 3; i++) {
        RANK_MUST(step_of_rank(from, 2 * i + ot_comm_rank(comm)));
        RANK_MUST(step_of_rank(to, 2 * i + ot_comm_rank(comm)));
        RANK_CHECK(values_hash(from) == values_hash(to), "step %d leads to other values", i);
    }
    ot_dict_destroy(state);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

static void with_other_constants_norms_are_those_of_all_ranks_still(void **state)
{
    (void)state;
    run_ranks(N_RANKS, take_other_constants, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_states_are_taken_at_any_time, temporary_folder_make,
                                        temporary_folder_remove),
        cmocka_unit_test(gradients_of_an_accumulation_are_those_of_one_process),
        cmocka_unit_test(a_lack_of_memory_on_one_rank_is_that_of_all),
        cmocka_unit_test(with_other_constants_norms_are_those_of_all_ranks_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
