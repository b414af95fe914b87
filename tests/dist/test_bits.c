// SPDX-License-Identifier: Apache-2.0
// Reproducible runs of the training loop end with the same bits on any number of ranks, which are
// threads, with any number of threads each, and whatever ZeRO stage.
#include "trained.h"

// The last batch of an epoch has fewer rows than slices.
enum { ROWS = 44, BATCH = 20, SLICES = 8, EPOCHS = 2, WIDE_ROWS = 16, WIDE_BATCH = 8 };

// ---- models that are wide enough for several threads ----

#define HEAD "<ir_version: 8, opset_import: [\"\" : 20]>\n"
#define MATRIX(name, dims)                                                                         \
    "  " name " = RandomNormal<shape = [" dims "], dtype = 1, scale = 0.1>()\n"

static const char wide_convolution[] =
    HEAD "net (float[N,3,24,24] x) => (float[N,5] y)\n"
         "<float[16] scale = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},\n"
         " float[16] bias = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},\n"
         " float[16] mean = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},\n"
         " float[16] var = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}>\n"
         "{\n" MATRIX("w", "16, 3, 3, 3") MATRIX("u", "16, 16, 3, 3") MATRIX("v", "2304, 5") //
    "  a = Conv<pads = [1, 1, 1, 1]>(x, w)\n"
    "  n = BatchNormalization<momentum = 0.5>(a, scale, bias, mean, var)\n"
    "  b = Relu(n)\n"
    "  c = Conv<pads = [1, 1, 1, 1]>(b, u)\n"
    "  d = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(c)\n"
    "  f = Flatten(d)\n"
    "  y = MatMul(f, v)\n"
    "}\n";

static const char wide_recurrent[] =
    HEAD "net (float[N,24,64] x) => (float[N,5] y)\n"
         "<int64[1] zero = {0}>\n"
         "{\n" MATRIX("w", "1, 512, 64") MATRIX("r", "1, 512, 128") MATRIX("v", "128, 5") //
    "  z = Transpose<perm = [1, 0, 2]>(x)\n"
    "  all, last = LSTM<hidden_size = 128>(z, w, r)\n"
    "  h = Squeeze(last, zero)\n"
    "  y = MatMul(h, v)\n"
    "}\n";

static const char wide_gpt[] =
    HEAD "net (int64[N,64] x) => (float[N,200,64] y)\n"
         "<int64[4] split = {0, 0, 2, 32}, int64[3] join = {0, 0, 64}, float half = {0.25}>\n"
         "{\n" MATRIX("e", "200, 64") MATRIX("q", "64, 64") MATRIX("k", "64, 64")                 //
    MATRIX("o", "64, 64") MATRIX("up", "64, 512") MATRIX("down", "512, 64") MATRIX("p", "64, 64") //
    MATRIX("g", "64")                                                                             //
    "  x0 = Gather(e, x)\n"
    "  x1 = Add(x0, p)\n"
    "  n1 = LayerNormalization(x1, g)\n"
    "  q0 = MatMul(n1, q)\n"
    "  k0 = MatMul(n1, k)\n"
    "  q1 = Reshape(q0, split)\n"
    "  k1 = Reshape(k0, split)\n"
    "  v1 = Reshape(n1, split)\n"
    "  q2 = Transpose<perm = [0, 2, 1, 3]>(q1)\n"
    "  k2 = Transpose<perm = [0, 2, 3, 1]>(k1)\n"
    "  v2 = Transpose<perm = [0, 2, 1, 3]>(v1)\n"
    "  s0 = MatMul(q2, k2)\n"
    "  s1 = Mul(s0, half)\n"
    "  s2 = Softmax(s1)\n"
    "  c0 = MatMul(s2, v2)\n"
    "  c1 = Transpose<perm = [0, 2, 1, 3]>(c0)\n"
    "  c2 = Reshape(c1, join)\n"
    "  c3 = MatMul(c2, o)\n"
    "  x2 = Add(x1, c3)\n"
    "  u0 = MatMul(x2, up)\n"
    "  u1 = Gelu(u0)\n"
    "  d0 = MatMul(u1, down)\n"
    "  x3 = Add(x2, d0)\n"
    "  t = Transpose<perm = [1, 0]>(e)\n"
    "  z = MatMul(x3, t)\n"
    "  y = Transpose<perm = [0, 2, 1]>(z)\n"
    "}\n";

// ---- one run ----

typedef struct run {
    const ot_model *model;
    const char *name;
    int kind, accumulation, n_ranks, n_threads, zero;
    int64_t rows, batch;
    uint32_t classes, words;
    ot_artifacts *artifacts[RANKS_MAX];
} run;

// All rows of both inputs, and how batches are made of them.
static ot_status make_batches(const run *r, const ot_session *session, ot_tensor **tensors,
                              ot_dataset **dataset, ot_batches **out)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    const char *names[2];
    ot_binding bindings[2] = {{.scale = 1}, {.scale = 1}};

    for (int i = 0; i < 2; i++) {
        ot_binding *b = &bindings[i];

        OT_TRY(make_rows(session, i, 0, 0, r->rows, i == 0 ? r->words : r->classes, &tensors[i]));
        names[i] = b->input = b->fields = ot_session_input_name(session, OT_MODE_TRAIN, i);
        OT_TRY(ot_session_input_info(session, OT_MODE_TRAIN, i, &b->dtype, &b->shape));
        b->shape.ndim--; // of a row
        memmove(b->shape.dim, b->shape.dim + 1, (size_t)b->shape.ndim * sizeof b->shape.dim[0]);
    }
    options.batch_size = r->batch;
    OT_TRY(ot_dataset_from_tensors(names, (const ot_tensor *const *)tensors, 2, dataset));
    return ot_batches_create(*dataset, bindings, 2, &options, out);
}

static ot_status train(const run *r, ot_session *session)
{
    ot_trainer_options how = OT_TRAINER_OPTIONS_INIT;
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_tensor *tensors[2] = {NULL, NULL};
    ot_dataset *dataset = NULL;
    ot_batches *batches = NULL;
    ot_trainer *trainer = NULL;
    ot_status st = make_batches(r, session, tensors, &dataset, &batches);

    options.epochs = EPOCHS;
    options.slices = SLICES;
    how.gradient_accumulation_steps = r->accumulation;
    OT_THEN(st, ot_trainer_create_from_session(session, NULL, &how, &trainer));
    OT_THEN(st, ot_train_run(trainer, batches, NULL, &options, NULL));
    ot_trainer_destroy(trainer);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
    ot_tensor_destroy(tensors[0]);
    ot_tensor_destroy(tensors[1]);
    return st;
}

static void train_rank(ot_comm *comm, void *context)
{
    const run *r = context;
    ot_artifacts *artifacts = r->artifacts[ot_comm_rank(comm)];
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_session *session;

    parallel.comm = comm;
    parallel.bucket_bytes = 512; // several buckets
    parallel.zero = r->zero;
    how.parallel = &parallel;
    how.n_threads = r->n_threads;
    how.reproducible = 1;
    RANK_MUST(ot_session_create_from_artifacts(artifacts, &how, &session));
    RANK_MUST(ot_session_set_learning_rate(session, kinds[r->kind].learning_rate));
    RANK_MUST(train(r, session));
    RANK_MUST(make_values_whole(session));
    ot_session_destroy(session);
}

// Of all parameters of a rank, as bytes; the caller frees it.
static unsigned char *take_values(const run *r, int rank, size_t *n_bytes)
{
    ot_checkpoint *checkpoint = ot_artifacts_checkpoint(r->artifacts[rank]);
    unsigned char *values = NULL;

    *n_bytes = 0;
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);
        ot_tensor *value;
        size_t n;

        assert_int_equal(ot_checkpoint_get_parameter(checkpoint, name, &value), OT_OK);
        n = (size_t)ot_tensor_count(value) * sizeof(float);
        values = realloc(values, *n_bytes + n);
        assert_non_null(values);
        memcpy(values + *n_bytes, ot_tensor_data_const(value), n);
        *n_bytes += n;
        ot_tensor_destroy(value);
    }
    return values;
}

// Trains, and compares all ranks with `expected`, which is made by the first run.
static void train_and_compare(run *r, int n_ranks, int n_threads, int zero,
                              unsigned char **expected)
{
    size_t n;

    r->n_ranks = n_ranks;
    r->n_threads = n_threads;
    r->zero = zero;
    for (int i = 0; i < n_ranks; i++)
        r->artifacts[i] = make_artifacts(r->model, r->kind);
    run_ranks(n_ranks, train_rank, r);
    for (int i = 0; i < n_ranks; i++) {
        unsigned char *found = take_values(r, i, &n);

        if (*expected == NULL)
            *expected = found;
        else if (memcmp(found, *expected, n) != 0)
            fail_msg(
                "%s, %s, %d micro-batches: other bits on rank %d of %d with %d threads, zero %d",
                r->name, kinds[r->kind].name, r->accumulation, i, n_ranks, n_threads, zero);
        if (found != *expected)
            free(found);
        ot_artifacts_destroy(r->artifacts[i]);
    }
}

// ---- tests ----

enum { KIND_ADAM = 3 };

// Every number of ranks up to that of slices.
static void train_with(run *r)
{
    unsigned char *expected = NULL;

    train_and_compare(r, 1, 1, 0, &expected);
    for (int n_ranks = 2; n_ranks <= SLICES; n_ranks++)
        for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
            if (!is_left_out((size_t)(n_ranks + r->kind) + z, 4))
                train_and_compare(r, n_ranks, 1, zero_stages[z], &expected);
    free(expected);
}

static void train_recorded(void **state)
{
    const int m = (int)(intptr_t)*state;
    char *recorded = read_text(models[m].name, ".txt");
    ot_model *model = load_model(models[m].file, OT_F32);
    run r = {.model = model, .name = models[m].name, .rows = ROWS, .batch = BATCH};

    r.classes = (uint32_t)header_number(recorded, "classes ");
    r.words = (uint32_t)header_number(recorded, "words ");
    for (r.kind = 0; r.kind < (int)OT_COUNT(kinds); r.kind++)
        for (r.accumulation = 1; r.accumulation <= 2; r.accumulation++)
            if (!is_left_out((size_t)(r.kind + r.accumulation + m), 2))
                train_with(&r);
    ot_model_destroy(model);
    free(recorded);
}

static void train_wide(void **state)
{
    static const int runs[][2] = {{1, 4}, {2, 1}, {2, 3}, {3, 2}, {4, 4}}; // ranks, threads
    run r = {.name = "wide",
             .kind = KIND_ADAM,
             .accumulation = 2,
             .rows = WIDE_ROWS,
             .batch = WIDE_BATCH,
             .classes = 5,
             .words = 200};
    const char *text = *state;
    unsigned char *expected = NULL;
    ot_model *model;

    if (!OT_WITH_OPENMP)
        skip(); // a build without OpenMP: ranks have one thread each
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &model), OT_OK);
    r.model = model;
    train_and_compare(&r, 1, 1, 0, &expected);
    for (size_t i = 0; i < OT_COUNT(runs); i++)
        train_and_compare(&r, runs[i][0], runs[i][1], zero_stages[i % OT_COUNT(zero_stages)],
                          &expected);
    free(expected);
    ot_model_destroy(model);
}

#define RECORDED(m, name)                                                                          \
    {                                                                                              \
        name " has the same bits on any ranks", train_recorded, NULL, NULL, (void *)(intptr_t)(m)  \
    }
#define WIDE(text)                                                                                 \
    {                                                                                              \
#text " has the same bits with any threads", train_wide, NULL, NULL,                       \
            (void *)(intptr_t)(text)                                                               \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED(0, "a perceptron"), RECORDED(1, "a convolution with batch normalisation"),
        RECORDED(2, "an LSTM"),      RECORDED(3, "an encoder"),
        RECORDED(4, "a GPT"),        WIDE(wide_convolution),
        WIDE(wide_recurrent),        WIDE(wide_gpt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
