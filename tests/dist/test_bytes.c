// SPDX-License-Identifier: Apache-2.0
// What ranks send for an update, and what they keep: as the formulas of ZeRO have it, and little
// else.
#include "trained.h"

enum { WIDTH = 200, INNER = 700, ELEMENTS = 2 * WIDTH * INNER + INNER, KIND = 3, UPDATES = 2 };

static const char perceptron[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "net (float[N,200] x) => (float[N,200] y)\n"
                                 "{\n"
                                 "  w = RandomNormal<shape = [200, 700], dtype = 1>()\n"
                                 "  b = RandomNormal<shape = [700], dtype = 1>()\n"
                                 "  v = RandomNormal<shape = [700, 200], dtype = 1>()\n"
                                 "  a = Gemm(x, w, b)\n"
                                 "  h = Tanh(a)\n"
                                 "  y = MatMul(h, v)\n"
                                 "}\n";

// How often an update sends (D - 1) / D of all elements: sums to their owners, or to all.
static double times_of(int zero, int accumulation)
{
    const double times[] = {2, 2, accumulation + 1, 3 * accumulation}; // by stage

    return times[zero];
}

// Bytes of an element on a rank, on average: value, gradient and two moments in f32.
static double bytes_of(int zero, int n_ranks)
{
    const double bytes[] = {16, 8 + 8.0 / n_ranks, 4 + 12.0 / n_ranks, 16.0 / n_ranks};

    return bytes[zero];
}

static const double excess = 1.001;

typedef struct run {
    int zero, accumulation;
    ot_artifacts *artifacts[RANKS_MAX];
} run;

static ot_status train_updates(const run *r, ot_trainer *trainer, int n)
{
    ot_tensor *inputs[2], *loss = NULL;
    const ot_session *session = ot_trainer_session(trainer);
    ot_status st = OT_OK;

    OT_TRY(make_rows(session, 0, 0, 0, 1, 0, &inputs[0]));
    OT_TRY(make_rows(session, 1, 0, 0, 1, WIDTH, &inputs[1]));
    for (int i = 0; i < n * r->accumulation; i++)
        OT_THEN(st, ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, &loss, 1));
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    ot_tensor_destroy(loss);
    return st;
}

static void train_and_count(ot_comm *comm, void *context)
{
    const run *r = context;
    const int n_ranks = ot_comm_world_size(comm);
    const double wanted =
        times_of(r->zero, r->accumulation) * (n_ranks - 1) * ELEMENTS * sizeof(float); // of all
    ot_comm_counters before = OT_COMM_COUNTERS_INIT, after = OT_COMM_COUNTERS_INIT;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_session *session;
    ot_trainer *trainer;
    double sent, least, kept;

    parallel.comm = comm;
    parallel.zero = r->zero;
    how.parallel = &parallel;
    how.n_threads = 1;
    options.gradient_accumulation_steps = r->accumulation;
    RANK_MUST(ot_session_create_from_artifacts(r->artifacts[ot_comm_rank(comm)], &how, &session));
    RANK_MUST(ot_trainer_create_from_session(session, NULL, &options, &trainer));
    RANK_MUST(train_updates(r, trainer, 1)); // after which all is where it stays
    RANK_MUST(ot_comm_get_counters(comm, &before));
    RANK_MUST(train_updates(r, trainer, UPDATES));
    RANK_MUST(ot_comm_get_counters(comm, &after));
    sent = (double)(after.bytes_sent - before.bytes_sent) / UPDATES;
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, &sent, 1));
    // What the backward pass finds still there, or does not read, is not gathered again.
    least = r->zero == 3 ? wanted * 2 / 3 : wanted;
    RANK_CHECK(sent >= least && sent <= wanted * excess,
               "zero %d, %d micro-batches: %.0f bytes, expected %.0f", r->zero, r->accumulation,
               sent, wanted);
    kept = (double)ot_session_state_bytes(session);
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, &kept, 1));
    kept /= n_ranks * bytes_of(r->zero, n_ranks) * ELEMENTS;
    RANK_CHECK(kept >= 1 && kept <= excess, "zero %d: %g of the bytes that must be", r->zero, kept);
    ot_trainer_destroy(trainer);
    ot_session_destroy(session);
}

static void updates_send_and_keep_what_they_must(void **state)
{
    static const int counts[] = {2, 3, 4};
    ot_model *model;

    (void)state;
    assert_int_equal(ot_model_load_buffer(perceptron, strlen(perceptron), NULL, &model), OT_OK);
    for (size_t n = 0; n < OT_COUNT(counts); n++)
        for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
            for (int accumulation = 1; accumulation <= 3; accumulation += 2) {
                run r = {.zero = zero_stages[z], .accumulation = accumulation};

                for (int i = 0; i < counts[n]; i++)
                    r.artifacts[i] = make_artifacts(model, KIND);
                run_ranks(counts[n], train_and_count, &r);
                for (int i = 0; i < counts[n]; i++)
                    ot_artifacts_destroy(r.artifacts[i]);
            }
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(updates_send_and_keep_what_they_must)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
