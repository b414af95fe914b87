// SPDX-License-Identifier: Apache-2.0
// What a rank says that it takes, against what it asks the library's allocator for.
#include "trained.h"

enum { WIDTH = 400, INNER = 2000, ROWS = 4, ELEMENTS = 2 * WIDTH * INNER + INNER, KIND = 3 };
enum { STEPS = 3, HEADER = 64, TOLERANCE = 256 << 10 };

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

typedef struct run {
    int zero, accumulation;
    ot_memory predicted;
    int64_t n_sent;
} run;

static ot_status make_trainer(const ot_session_options *how, int accumulation, ot_trainer **out)
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
    OT_TRY(ot_model_load_buffer(perceptron, strlen(perceptron), NULL, &model));
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
    OT_TRY(make_rows(session, 1, 0, 0, ROWS, WIDTH, &inputs[1]));
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

    RANK_CHECK(apart <= TOLERANCE, "zero %d: %s %zu bytes, %zu are taken", r->zero, what, said,
               peak);
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
    how.parallel = &parallel;
    how.n_threads = 1;
    RANK_MUST(make_trainer(&how, r->accumulation, &trainer));
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
    r->predicted = (ot_memory)OT_MEMORY_INIT;
    if (ot_trainer_predict(trainer, &ranks, shapes, 2, &r->predicted, &r->n_sent) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static void ranks_take_and_send_what_is_said(void **state)
{
    static const int counts[] = {2, 4};
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_trainer *trainer;

    (void)state;
    how.n_threads = 1;
    assert_int_equal(make_trainer(&how, 1, &trainer), OT_OK);
    for (size_t n = 0; n < OT_COUNT(counts); n++)
        for (size_t z = 0; z < OT_COUNT(zero_stages); z++) {
            run r = {.zero = zero_stages[z], .accumulation = 1 + (int)z % 2};

            predict(&r, trainer, counts[n]);
            run_ranks(counts[n], train_and_measure, &r);
        }
    ot_trainer_destroy(trainer);
}

int main(void)
{
    static const ot_allocator counting = {counting_reallocate, counting_release, NULL};
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_take_and_send_what_is_said)};

    ot_set_allocator(&counting);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
