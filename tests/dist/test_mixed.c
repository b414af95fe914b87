// SPDX-License-Identifier: Apache-2.0
// Mixed precision over ranks, which are threads, is that of one process with the rows of all: a
// training ends ten times nearer to it than that ends to one in f32. Where ranks normalise by
// statistics of their own, it ends ten times farther.
#include "trained.h"

enum { UPDATES = 3, SGD = 0, MLP = 0, CNN = 1 };

typedef struct run {
    int model, n_ranks, zero, syncs_norms;
    ot_precision precision;
    int64_t rows; // of a micro-batch of all ranks
    uint32_t classes, words;
    ot_artifacts *artifacts[RANKS_MAX];
} run;

static ot_status train_micro_batch(const run *r, ot_session *session, int rank, int micro_batch)
{
    const int64_t rows = r->rows / r->n_ranks;
    ot_tensor *inputs[2] = {NULL, NULL}, *loss = NULL;
    ot_status st = OT_OK;

    for (int i = 0; i < 2; i++)
        OT_THEN(st, make_rows(session, i, micro_batch, rank * rows, rows,
                              i == 0 ? r->words : r->classes, &inputs[i]));
    OT_THEN(st, ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, &loss, 1));
    OT_THEN(st, ot_session_optimizer_step(session));
    ot_session_reset_gradients(session);
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    ot_tensor_destroy(loss);
    return st;
}

static void train_rank(ot_comm *comm, void *context)
{
    const run *r = context;
    const int rank = ot_comm_rank(comm);
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_session *session;

    parallel.comm = comm;
    parallel.bucket_bytes = 512; // several buckets
    parallel.zero = r->zero;
    parallel.sync_batch_norm = r->syncs_norms;
    how.parallel = &parallel;
    how.n_threads = 1;
    how.precision = r->precision;
    RANK_MUST(ot_session_create_from_artifacts(r->artifacts[rank], &how, &session));
    RANK_MUST(ot_session_set_learning_rate(session, kinds[SGD].learning_rate));
    for (int i = 0; session != NULL && i < UPDATES; i++)
        RANK_MUST(train_micro_batch(r, session, rank, i));
    RANK_MUST(make_values_whole(session));
    ot_session_destroy(session);
}

// The caller destroys the artifacts, whose checkpoint has ended there.
static ot_artifacts *train(run r, const ot_model *model)
{
    for (int i = 0; i < r.n_ranks; i++)
        r.artifacts[i] = make_artifacts(model, SGD);
    run_ranks(r.n_ranks, train_rank, &r);
    for (int i = 1; i < r.n_ranks; i++)
        ot_artifacts_destroy(r.artifacts[i]);
    return r.artifacts[0];
}

// Over all elements of all parameters, as a part of the size of `b`.
static double distance(ot_artifacts *a, ot_artifacts *b)
{
    const ot_checkpoint *const checkpoints[2] = {ot_artifacts_checkpoint(a),
                                                 ot_artifacts_checkpoint(b)};
    double apart = 0, size = 0;

    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoints[0]); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoints[0], i);
        ot_tensor *values[2];

        for (int k = 0; k < 2; k++)
            assert_int_equal(ot_checkpoint_get_parameter(checkpoints[k], name, &values[k]), OT_OK);
        for (int64_t k = 0; k < ot_tensor_count(values[0]); k++) {
            apart += pow(element(values[0], k) - element(values[1], k), 2);
            size += pow(element(values[1], k), 2);
        }
        ot_tensor_destroy(values[0]);
        ot_tensor_destroy(values[1]);
    }
    return sqrt(apart / size);
}

static double distance_of(run r, const ot_model *model, ot_artifacts *expected)
{
    ot_artifacts *found = train(r, model);
    const double apart = distance(found, expected);

    ot_artifacts_destroy(found);
    return apart;
}

static void compare_model(int m, ot_precision precision)
{
    static const int counts[] = {2, 4};
    char *recorded = read_text(models[m].name, ".txt");
    ot_model *model = load_model(models[m].file, OT_F32);
    run r = {.model = m, .n_ranks = 1};
    ot_artifacts *one;
    double allowed;

    r.rows = header_number(recorded, "batch ");
    r.classes = (uint32_t)header_number(recorded, "classes ");
    r.words = (uint32_t)header_number(recorded, "words ");
    r.precision = precision;
    one = train(r, model);
    r.precision = OT_PRECISION_F32;
    allowed = distance_of(r, model, one);
    assert_true(allowed > 0);
    r.precision = precision;
    for (size_t n = 0; n < OT_COUNT(counts); n++)
        for (size_t z = 0; z < OT_COUNT(zero_stages); z++) {
            double apart;

            r.n_ranks = counts[n];
            r.zero = zero_stages[z];
            r.syncs_norms = 1;
            apart = distance_of(r, model, one);
            if (!(apart < allowed / 10))
                fail_msg("%s, %d ranks, zero %d: off by %g, f32 by %g", models[m].name, r.n_ranks,
                         r.zero, apart, allowed);
            r.syncs_norms = 0;
            if (m == CNN)
                assert_true(distance_of(r, model, one) > 10 * allowed);
        }
    ot_artifacts_destroy(one);
    ot_model_destroy(model);
    free(recorded);
}

static void a_perceptron_is_that_of_one_process(void **state)
{
    (void)state;
    compare_model(MLP, OT_PRECISION_BF16);
    compare_model(MLP, OT_PRECISION_F16);
}

static void normalisations_by_statistics_of_all_ranks_are_those_of_one_process(void **state)
{
    (void)state;
    compare_model(CNN, OT_PRECISION_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perceptron_is_that_of_one_process),
        cmocka_unit_test(normalisations_by_statistics_of_all_ranks_are_those_of_one_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
