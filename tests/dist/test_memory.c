// SPDX-License-Identifier: Apache-2.0
// What a rank says that it takes, against what it asks the library's allocator for.
#include "trained.h"

enum { WIDTH = 400, ROWS = 4, SIDE = 64, LAYERS = 88 };
enum { STEPS = 3, HEADER = 64, TOLERANCE = 256 << 10, CLASSES = 50 };

// ---- an allocator that counts what a thread, which is a rank, takes ----

static _Thread_local size_t taken, most;

static void *counting_reallocate(void *context, void *block, size_t n_bytes)
{
    char *start = block == NULL ? NULL : (char *)block - HEADER;
    size_t before = 0;

    (void)context;
    if (start != NULL)
        memcpy(&before, start, sizeof before);
    start = realloc(start, n_bytes + HEADER);
    if (start == NULL)
        return NULL;
    memcpy(start, &n_bytes, sizeof n_bytes);
    taken += n_bytes - before;
    most = OT_MAX(most, taken);
    return start + HEADER;
}

static void counting_release(void *context, void *block)
{
    char *start = (char *)block - HEADER;
    size_t n_bytes;

    (void)context;
    memcpy(&n_bytes, start, sizeof n_bytes);
    taken -= n_bytes;
    free(start);
}

// ---- ranks ----

// With running statistics, which are summed, too.
static const char perceptron[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "net (float[N,400] x) => (float[N,400] y)\n"
    "{\n"
    "  w = RandomNormal<shape = [400, 2000], dtype = 1>()\n"
    "  b = RandomNormal<shape = [2000], dtype = 1>()\n"
    "  v = RandomNormal<shape = [2000, 400], dtype = 1>()\n"
    "  scale = RandomNormal<shape = [2000], dtype = 1>()\n"
    "  bias = RandomNormal<shape = [2000], dtype = 1>()\n"
    "  mean = RandomUniform<shape = [2000], dtype = 1>()\n"
    "  var = RandomUniform<shape = [2000], dtype = 1, low = 1.0, high = 2.0>()\n"
    "  a = Gemm(x, w, b)\n"
    "  n = BatchNormalization(a, scale, bias, mean, var)\n"
    "  h = Tanh(n)\n"
    "  y = MatMul(h, v)\n"
    "}\n";
static const ot_shape shapes[2] = {{2, {ROWS, WIDTH}}, {1, {ROWS}}};
static const ot_shape chain_shapes[2] = {{2, {ROWS, SIDE}}, {1, {ROWS}}};

typedef struct run {
    const char *text;
    int zero, accumulation, syncs_norms, reproducible;
    ot_memory predicted;
    int64_t n_sent;
    size_t bucket_bytes, memory_max;
    const char *refusal; // NULL: the ceiling is high enough
} run;

static ot_status make_trainer(const char *text, const ot_session_options *how, int accumulation,
                              ot_trainer **out)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options of_trainer = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts *artifacts = NULL;
    ot_model *model;
    ot_status st;

    options.losses = &loss;
    options.n_losses = 1;
    adam.name = "AdamOptimizer";
    options.optimizer = &adam;
    of_trainer.session = how;
    of_trainer.gradient_accumulation_steps = accumulation;
    of_trainer.n_threads = 1;
    OT_TRY(ot_model_load_buffer(text, strlen(text), NULL, &model));
    st = ot_artifacts_generate(model, &options, &artifacts);
    OT_THEN(st, ot_trainer_create_from_artifacts(artifacts, NULL, &of_trainer, out));
    ot_model_destroy(model);
    ot_artifacts_destroy(artifacts);
    return st;
}

// The most that the rank takes in some updates.
static ot_status train_updates(const run *r, ot_trainer *trainer, size_t before, size_t *peak)
{
    const ot_session *session = ot_trainer_session(trainer);
    ot_tensor *inputs[2], *loss = NULL;
    ot_status st = OT_OK;
    size_t fed = taken;

    OT_TRY(make_rows(session, 0, 0, 0, ROWS, 0, &inputs[0]));
    OT_TRY(make_rows(session, 1, 0, 0, ROWS, CLASSES, &inputs[1]));
    fed = taken - fed;
    most = taken;
    for (int i = 0; i < STEPS * r->accumulation; i++)
        OT_THEN(st, ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, &loss, 1));
    *peak = most - before - fed;
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    ot_tensor_destroy(loss);
    return st;
}

static void check_near(const run *r, const char *what, size_t said, size_t peak)
{
    const size_t apart = said > peak ? said - peak : peak - said;

    RANK_CHECK(apart <= TOLERANCE, "zero %d%s: %s %zu bytes, %zu are taken", r->zero,
               r->syncs_norms ? ", sync_batch_norm" : "", what, said, peak);
}

static void train_and_measure(ot_comm *comm, void *context)
{
    const run *r = context;
    const size_t before = taken;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_comm_counters begin = OT_COMM_COUNTERS_INIT, end = OT_COMM_COUNTERS_INIT;
    ot_memory first = OT_MEMORY_INIT, later = OT_MEMORY_INIT;
    ot_trainer *trainer;
    size_t peak_first, peak_later;
    double sent;

    parallel.comm = comm;
    parallel.zero = r->zero;
    parallel.sync_batch_norm = r->syncs_norms;
    how.reproducible = r->reproducible;
    how.parallel = &parallel;
    how.n_threads = 1;
    RANK_MUST(make_trainer(r->text, &how, r->accumulation, &trainer));
    RANK_MUST(ot_trainer_memory(trainer, shapes, 2, &first));
    RANK_MUST(train_updates(r, trainer, before, &peak_first));
    RANK_MUST(ot_comm_get_counters(comm, &begin));
    RANK_MUST(train_updates(r, trainer, before, &peak_later));
    RANK_MUST(ot_comm_get_counters(comm, &end));
    RANK_MUST(ot_trainer_memory(trainer, shapes, 2, &later));
    check_near(r, "before the first step", first.total, peak_first);
    check_near(r, "later", later.total, peak_later);
    check_near(r, "predicted", r->predicted.total, peak_first);
    sent = (double)(end.bytes_sent - begin.bytes_sent) / STEPS;
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_MAX, OT_F64, &sent, 1));
    RANK_CHECK(sent >= (double)r->n_sent * 0.999 && sent <= (double)r->n_sent * 1.001,
               "zero %d, %d micro-batches: %.0f bytes are sent, expected %lld", r->zero,
               r->accumulation, sent, (long long)r->n_sent);
    ot_trainer_destroy(trainer);
}

// By one process.
static void predict(run *r, ot_trainer *trainer, int n_ranks)
{
    ot_parallel_ranks ranks = OT_PARALLEL_RANKS_INIT;

    ranks.n_ranks = n_ranks;
    ranks.zero = r->zero;
    ranks.accumulation = r->accumulation;
    ranks.sync_batch_norm = r->syncs_norms;
    ranks.reproducible = r->reproducible;
    ranks.bucket_bytes = r->bucket_bytes;
    r->predicted = (ot_memory)OT_MEMORY_INIT;
    if (ot_trainer_predict(trainer, &ranks, r->text == perceptron ? shapes : chain_shapes, 2,
                           &r->predicted, &r->n_sent) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static void ranks_take_and_send_what_is_said(void **state)
{
    static const int counts[] = {2, 4};
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_trainer *trainer;

    (void)state;
    how.n_threads = 1;
    assert_int_equal(make_trainer(perceptron, &how, 1, &trainer), OT_OK);
    for (size_t n = 0; n < OT_COUNT(counts); n++)
        for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
            for (int syncs = 0; syncs <= (n == 0 && z % 3 == 0); syncs++) {
                run r = {.text = perceptron,
                         .zero = zero_stages[z],
                         .accumulation = 1 + (int)z % 2,
                         .syncs_norms = syncs};

                predict(&r, trainer, counts[n]);
                run_ranks(counts[n], train_and_measure, &r);
            }
    for (int zero = 2; zero <= 3; zero++) { // gradients stay whole
        run r = {.text = perceptron, .zero = zero, .accumulation = 1, .reproducible = 1};

        predict(&r, trainer, 2);
        run_ranks(2, train_and_measure, &r);
    }
    ot_trainer_destroy(trainer);
}

// ---- ceilings ----

static void train_below(ot_comm *comm, void *context)
{
    const run *r = context;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_trainer *trainer = NULL;
    size_t ignored;
    ot_status st;

    parallel.comm = comm;
    parallel.zero = r->zero;
    parallel.bucket_bytes = r->bucket_bytes;
    how.parallel = &parallel;
    how.n_threads = 1;
    how.memory_max = r->memory_max;
    st = make_trainer(r->text, &how, 1, &trainer);
    OT_THEN(st, train_updates(r, trainer, 0, &ignored));
    RANK_CHECK(st == (r->refusal == NULL ? OT_OK : OT_ERR_NO_MEMORY), "zero %d, %zu bytes: %s",
               r->zero, r->memory_max, st == OT_OK ? "OT_OK" : ot_error_message());
    if (st != OT_OK && r->refusal != NULL)
        RANK_CHECK(strstr(ot_error_message(), r->refusal) != NULL, "zero %d: %s", r->zero,
                   ot_error_message());
    ot_trainer_destroy(trainer);
}

static void train_at(run *r, int n_ranks, size_t memory_max, const char *refusal)
{
    r->memory_max = memory_max;
    r->refusal = refusal;
    run_ranks(n_ranks, train_below, r);
}

// What a ceiling counts of it.
static size_t counted(const ot_memory *m)
{
    return m->parameters + m->gradients + m->moments + m->derived + m->activations + m->scratch +
           m->staging;
}

// Which are 4 MiB.
static void a_ceiling_counts_what_sums_take(void **state)
{
    enum { N_RANKS = 2 };
    const size_t more = 64 << 10, less = 1 << 20;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_trainer *trainer;

    (void)state;
    how.n_threads = 1;
    assert_int_equal(make_trainer(perceptron, &how, 1, &trainer), OT_OK);
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++) {
        run r = {.text = perceptron, .zero = zero_stages[z], .accumulation = 1};

        predict(&r, trainer, N_RANKS);
        assert_true(r.predicted.staging > 3 * less);
        train_at(&r, N_RANKS, counted(&r.predicted) + more, NULL);
        train_at(&r, N_RANKS, counted(&r.predicted) - less, "are allowed");
    }
    ot_trainer_destroy(trainer);
}

// Products of square matrices, each a bucket.
static char *chain_of_products(void)
{
    enum { ROOM = 128 };
    char *text = malloc((LAYERS + 2) * 2 * ROOM), *at = text;

    at += sprintf(at, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                      "net (float[N,64] h0) => (float[N,64] y)\n{\n");
    for (int i = 0; i < LAYERS; i++)
        at += sprintf(at,
                      "  w%d = RandomNormal<shape = [64, 64], dtype = 1, scale = 0.1>()\n"
                      "  h%d = MatMul(h%d, w%d)\n",
                      i, i + 1, i, i);
    sprintf(at, "  y = Identity(h%d)\n}\n", LAYERS);
    return text;
}

// Eight ranks need half of that afterwards.
static void values_that_are_whole_before_the_first_step_need_room(void **state)
{
    enum { N_RANKS = 8, BUCKET = SIDE * SIDE * sizeof(float) };
    const size_t whole = (size_t)LAYERS * BUCKET, shares = 2 * BUCKET / N_RANKS, more = 4 << 10;
    char *text = chain_of_products();
    run r = {.text = text, .zero = 3, .accumulation = 1, .bucket_bytes = BUCKET};
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_trainer *trainer;

    (void)state;
    how.n_threads = 1;
    assert_int_equal(make_trainer(text, &how, 1, &trainer), OT_OK);
    predict(&r, trainer, N_RANKS);
    // Of gradients and values two buckets are there at a time, however many there are.
    assert_true(r.predicted.activations < (size_t)16 * BUCKET);
    assert_true(counted(&r.predicted) + more < whole);
    train_at(&r, N_RANKS, whole + shares + more, NULL);
    train_at(&r, N_RANKS, whole - more,
             "parameters, which are whole until the first step cuts them over the ranks (zero), "
             "need ");
    ot_trainer_destroy(trainer);
    free(text);
}

int main(void)
{
    static const ot_allocator counting = {counting_reallocate, counting_release, NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_take_and_send_what_is_said),
        cmocka_unit_test(a_ceiling_counts_what_sums_take),
        cmocka_unit_test(values_that_are_whole_before_the_first_step_need_room),
    };

    ot_set_allocator(&counting);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
