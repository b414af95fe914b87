// SPDX-License-Identifier: Apache-2.0
// Twenty updates over ranks, which are threads, end at the parameters that PyTorch has in one
// process (record_trained.py says what is in the files): off by at most ten times what PyTorch in
// f32 is off from f64, for each parameter by Euclidean norms. Where PyTorch hit the f64 value by
// luck, half a unit in the last place counts as its error.
#include "trained.h"

enum { UPDATES = 20 };
static const int counts[] = {1, 2, 3, 4, 8};
static const double factor = 10.0, half_unit = 0x1p-24;

typedef struct run {
    int model, kind, n_ranks, accumulation, zero;
    int64_t rows; // of a micro-batch of all ranks
    uint32_t classes, words;
    ot_artifacts *artifacts[RANKS_MAX];
} run;

static ot_status train_micro_batch(const run *r, ot_trainer *trainer, int rank, int micro_batch)
{
    const ot_session *session = ot_trainer_session(trainer);
    const int64_t rows = r->rows / r->n_ranks;
    ot_tensor *inputs[2] = {NULL, NULL}, *outputs[2] = {NULL, NULL};
    ot_status st = OT_OK;

    for (int i = 0; i < 2; i++)
        OT_THEN(st, make_rows(session, i, micro_batch, rank * rows, rows,
                              i == 0 ? r->words : r->classes, &inputs[i]));
    OT_THEN(st, ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, outputs, 1));
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(inputs[i]);
        ot_tensor_destroy(outputs[i]);
    }
    return st;
}

static void train_rank(ot_comm *comm, void *context)
{
    const run *r = context;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_session *session;
    ot_trainer *trainer;

    parallel.comm = comm;
    parallel.bucket_bytes = 512; // several buckets
    parallel.zero = r->zero;
    how.parallel = &parallel;
    how.n_threads = 1;
    options.gradient_accumulation_steps = r->accumulation;
    RANK_MUST(ot_session_create_from_artifacts(r->artifacts[ot_comm_rank(comm)], &how, &session));
    RANK_MUST(ot_session_set_learning_rate(session, kinds[r->kind].learning_rate));
    RANK_MUST(ot_trainer_create_from_session(session, NULL, &options, &trainer));
    for (int i = 0; trainer != NULL && i < UPDATES * r->accumulation; i++)
        RANK_MUST(train_micro_batch(r, trainer, ot_comm_rank(comm), i));
    RANK_MUST(make_values_whole(session));
    ot_trainer_destroy(trainer);
    ot_session_destroy(session);
}

// ---- comparing ----

static void describe(const run *r, const char *parameter, char text[NAME_SIZE])
{
    snprintf(text, NAME_SIZE, "%s, %s, %d ranks, %d micro-batches, zero %d: %s",
             models[r->model].name, kinds[r->kind].name, r->n_ranks, r->accumulation, r->zero,
             parameter);
}

static void compare_parameter(const run *r, const char *recorded, const char *name,
                              const ot_tensor *found)
{
    const int64_t count = ot_tensor_count(found);
    char trajectory[NAME_SIZE], what[NAME_SIZE];
    double expected, error, distance = 0, size = 0;
    const char *at;

    snprintf(trajectory, sizeof trajectory, "%s.%d", kinds[r->kind].name, r->accumulation);
    if (strcmp(models[r->model].name, "cnn") == 0)
        snprintf(strchr(trajectory, '\0'), 16, ".%d", r->n_ranks);
    at = read_numbers(find_line(recorded, trajectory, name), &error, 1);
    for (int64_t i = 0; i < count; i++) {
        at = read_numbers(at, &expected, 1);
        distance += (element(found, i) - expected) * (element(found, i) - expected);
        size += expected * expected;
    }
    assert_int_equal(*at, '\n');
    describe(r, name, what);
    // Not >: NaN must fail.
    if (!(sqrt(distance) <= factor * fmax(error, half_unit) * sqrt(size)))
        fail_msg("%s is off by %.3g, PyTorch by %.3g", what, sqrt(distance / size), error);
}

// All ranks have the same bits.
static void compare_rank(const run *r, int rank, const char *name, const ot_tensor *first)
{
    ot_checkpoint *checkpoint = ot_artifacts_checkpoint(r->artifacts[rank]);
    char what[NAME_SIZE];
    ot_tensor *found;

    assert_int_equal(ot_checkpoint_get_parameter(checkpoint, name, &found), OT_OK);
    describe(r, name, what);
    if (memcmp(ot_tensor_data_const(found), ot_tensor_data_const(first),
               (size_t)ot_tensor_count(first) * sizeof(float)) != 0)
        fail_msg("%s has other bits on rank %d", what, rank);
    ot_tensor_destroy(found);
}

static void train_and_compare(run *r, const ot_model *model, const char *recorded)
{
    const ot_checkpoint *checkpoint;

    for (int i = 0; i < r->n_ranks; i++)
        r->artifacts[i] = make_artifacts(model, r->kind);
    run_ranks(r->n_ranks, train_rank, r);
    checkpoint = ot_artifacts_checkpoint(r->artifacts[0]);
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);
        ot_tensor *value;

        assert_int_equal(ot_checkpoint_get_parameter(checkpoint, name, &value), OT_OK);
        compare_parameter(r, recorded, name, value);
        for (int k = 1; k < r->n_ranks; k++)
            compare_rank(r, k, name, value);
        ot_tensor_destroy(value);
    }
    for (int i = 0; i < r->n_ranks; i++)
        ot_artifacts_destroy(r->artifacts[i]);
}

// With every optimizer, on every number of ranks.
static void train_model(int m)
{
    char *recorded = read_text(models[m].name, ".txt");
    ot_model *model = load_model(models[m].file, OT_F32);
    run r = {.model = m};

    r.rows = header_number(recorded, "batch ");
    r.classes = (uint32_t)header_number(recorded, "classes ");
    r.words = (uint32_t)header_number(recorded, "words ");
    for (r.kind = 0; r.kind < (int)OT_COUNT(kinds); r.kind++)
        for (r.accumulation = 1; r.accumulation <= 3; r.accumulation += 2) {
            for (size_t n = 0; n < OT_COUNT(counts); n++)
                for (size_t z = 0; z < OT_COUNT(zero_stages); z++) {
                    r.n_ranks = counts[n];
                    r.zero = zero_stages[z];
                    if (r.n_ranks == 1 && r.zero > 0)
                        continue; // there is nothing to cut
                    if (is_left_out(n + z + (size_t)r.kind + (size_t)r.accumulation / 2, 2))
                        continue;
                    train_and_compare(&r, model, recorded);
                }
        }
    ot_model_destroy(model);
    free(recorded);
}

static void train_state(void **state)
{
    train_model((int)(intptr_t)*state);
}

#define TEST_OF(m, name)                                                                           \
    {                                                                                              \
        name " ends where PyTorch does", train_state, NULL, NULL, (void *)(intptr_t)(m)            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(0, "a perceptron"), TEST_OF(1, "a convolution with batch normalisation"),
        TEST_OF(2, "an LSTM"),      TEST_OF(3, "an encoder"),
        TEST_OF(4, "a GPT"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
