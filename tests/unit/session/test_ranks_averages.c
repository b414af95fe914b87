// SPDX-License-Identifier: Apache-2.0
// Averages of the parameters over several ranks, which are threads: evaluation and exports take
// those of one process with the rows of all.
#include <math.h>

#include "onnxtrain/onnxtrain.h"
#include "session/ranks.h"
#include "unit/dist/ranks.h"

// One parameter has no axis, and cannot be cut.
static const char text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "net (double[N,6] x, double[N,1] t) => (double[N,1] y, double loss) <double once = {0.5}>\n"
    "{\n"
    "  w = RandomNormal<shape = [6, 50], dtype = 11>()\n"
    "  v = RandomNormal<shape = [50, 1], dtype = 11>()\n"
    "  a = MatMul(x, w)\n"
    "  h = Tanh(a)\n"
    "  s = Mul(h, once)\n"
    "  y = MatMul(s, v)\n"
    "  d = Sub(y, t)\n"
    "  q = Mul(d, d)\n"
    "  loss = ReduceMean<keepdims = 0>(q)\n"
    "}\n";

enum { FEATURES = 6, ROWS = 12, UPDATES = 3, LOSSES = 3 * UPDATES + 2 };

// What evaluation says in the course of a training, and the outputs of the exported model.
typedef struct course {
    int zero;
    double losses[LOSSES], outputs[ROWS];
    int n;
} course;

typedef struct own {
    ot_artifacts *artifacts;
    ot_session *session;
    double x[ROWS * FEATURES], t[ROWS];
} own;

static double number_at(uint32_t i)
{
    i = (i + 1) * 2654435761u;
    i ^= i >> 15;
    i *= 2246822519u;
    return (double)(i >> 8) / (1 << 23) - 1;
}

static ot_status open_own(own *w, int zero, double decay, ot_comm *comm)
{
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model;
    ot_status st;

    *w = (own){0};
    for (uint32_t i = 0; i < ROWS * FEATURES; i++)
        w->x[i] = number_at(i);
    for (uint32_t i = 0; i < ROWS; i++)
        w->t[i] = number_at(1000 + i);
    adam.average_decay = decay;
    loss.loss = OT_LOSS_NONE;
    loss.input = "loss";
    how.losses = &loss;
    how.n_losses = 1;
    how.optimizer = &adam;
    how.seed = 7;
    parallel.comm = comm;
    parallel.bucket_bytes = 512; // several buckets
    parallel.zero = zero;
    options.parallel = &parallel;
    options.n_threads = 1;
    OT_TRY(ot_model_load_buffer(text, strlen(text), NULL, &model));
    st = ot_artifacts_generate(model, &how, &w->artifacts);
    ot_model_destroy(model);
    OT_THEN(st, ot_session_create_from_artifacts(w->artifacts, &options, &w->session));
    OT_THEN(st, ot_session_set_learning_rate(w->session, 0.05));
    return st;
}

static void close_own(own *w)
{
    ot_session_destroy(w->session);
    ot_artifacts_destroy(w->artifacts);
}

// Of rows [first, first + n).
static ot_status step_own(own *w, ot_mode mode, int first, int n, double *loss)
{
    ot_tensor *inputs[2], *outputs[2] = {NULL, NULL};
    ot_status st;

    OT_TRY(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, FEATURES), w->x + first * FEATURES,
                          (size_t)(n * FEATURES) * sizeof(double), &inputs[0]));
    OT_TRY(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, 1), w->t + first, (size_t)n * sizeof(double),
                          &inputs[1]));
    st = mode == OT_MODE_TRAIN
             ? ot_session_train_step(w->session, (const ot_tensor *const *)inputs, 2, outputs, 1)
             : ot_session_eval_step(w->session, (const ot_tensor *const *)inputs, 2, outputs, 1);
    if (st == OT_OK)
        *loss = ot__tensor_get_f64(outputs[0], 0);
    ot_tensor_destroy(outputs[0]);
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    return st;
}

static ot_status evaluate_own(own *w, int with_averages, course *out)
{
    OT_TRY(ot_session_use_averages(w->session, with_averages));
    return step_own(w, OT_MODE_EVAL, 0, ROWS, &out->losses[out->n++]);
}

// By whoever gets the model; *has_model: this one did.
static ot_status run_exported(own *w, course *out, bool *has_model)
{
    static const char *const names[] = {"y"};
    ot_tensor *x = NULL, *y = NULL;
    ot_model *model;
    ot_status st;

    OT_TRY(ot_session_export(w->session, names, 1, &model));
    *has_model = model != NULL;
    if (model == NULL)
        return OT_OK;
    st = ot_tensor_wrap(OT_F64, &OT_SHAPE(ROWS, FEATURES), w->x, sizeof w->x, &x);
    OT_THEN(st, ot_model_run(model, NULL, (const ot_tensor *const *)&x, 1, &y, 1));
    for (int i = 0; i < ROWS && st == OT_OK; i++)
        out->outputs[i] = ot__tensor_get_f64(y, i);
    ot_tensor_destroy(x);
    ot_tensor_destroy(y);
    ot_model_destroy(model);
    return st;
}

// A rank trains on `n` rows from `first` on, and evaluates on all.
static ot_status follow(own *w, int first, int n, course *out, bool *has_model)
{
    double ignored;

    OT_TRY(evaluate_own(w, 1, out));
    for (int update = 0; update < UPDATES; update++) {
        OT_TRY(step_own(w, OT_MODE_TRAIN, first, n, &ignored));
        OT_TRY(evaluate_own(w, 1, out)); // of the first one: there is no average yet
        OT_TRY(ot_session_update(w->session, 1, NULL));
        ot_session_reset_gradients(w->session);
        OT_TRY(step_own(w, OT_MODE_EVAL, 0, ROWS, &out->losses[out->n++]));
        OT_TRY(evaluate_own(w, 0, out));
    }
    OT_TRY(ot_session_use_averages(w->session, 1));
    OT_TRY(run_exported(w, out, has_model));
    return evaluate_own(w, 1, out);
}

static void follow_on_rank(ot_comm *comm, void *context)
{
    const course *expected = context;
    const int rank = ot_comm_rank(comm), n = ROWS / ot_comm_world_size(comm);
    course found = {.n = 0};
    bool has_model = false;
    own w;

    RANK_MUST(open_own(&w, expected->zero, 0.5, comm));
    RANK_MUST(follow(&w, rank * n, n, &found, &has_model));
    for (int i = 0; i < LOSSES; i++)
        RANK_CHECK(fabs(found.losses[i] - expected->losses[i]) < 1e-9,
                   "zero %d: loss %d is %.17g, expected %.17g", expected->zero, i, found.losses[i],
                   expected->losses[i]);
    RANK_CHECK(has_model == (rank == 0 || expected->zero == 0), "zero %d, rank %d", expected->zero,
               rank);
    for (int i = 0; i < ROWS && has_model; i++)
        RANK_CHECK(fabs(found.outputs[i] - expected->outputs[i]) < 1e-9,
                   "zero %d: output %d is %.17g, expected %.17g", expected->zero, i,
                   found.outputs[i], expected->outputs[i]);
    close_own(&w);
}

static void evaluation_and_exports_take_those_of_one_process(void **state)
{
    static const int counts[] = {2, 3, 4};
    course expected = {.n = 0};
    bool has_model;
    own w;

    (void)state;
    assert_int_equal(open_own(&w, 0, 0.5, NULL), OT_OK);
    assert_int_equal(follow(&w, 0, ROWS, &expected, &has_model), OT_OK);
    assert_int_equal(expected.n, LOSSES);
    assert_true(fabs(expected.losses[2] - expected.losses[3]) > 1e-3); // averages are not values
    close_own(&w);
    for (expected.zero = 0; expected.zero <= 3; expected.zero++)
        for (size_t i = 0; i < OT_COUNT(counts); i++)
            run_ranks(counts[i], follow_on_rank, &expected);
}

static void use_on_one_rank(ot_comm *comm, void *context)
{
    const double *decay = context;
    const int rank = ot_comm_rank(comm);
    ot_status st;
    own w;

    RANK_MUST(open_own(&w, 1, *decay, comm));
    st = ot_session_use_averages(w.session, *decay > 0 ? rank : 1);
    RANK_CHECK(st == (*decay > 0 ? OT_ERR_MISMATCH : OT_ERR_STATE), "%s", ot_error_message());
    RANK_CHECK(strstr(ot_error_message(), *decay > 0 ? "ranks 0 and 1 differ in whether averages "
                                                       "are used: 0 and 1"
                                                     : "rank 0: the optimizer keeps no averages"),
               "%s", ot_error_message());
    RANK_MUST(ot_session_use_averages(w.session, 0));
    close_own(&w);
}

static void ranks_use_them_together(void **state)
{
    static double decays[] = {0.5, 0};

    (void)state;
    run_ranks(2, use_on_one_rank, &decays[0]);
    run_ranks(2, use_on_one_rank, &decays[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_and_exports_take_those_of_one_process),
        cmocka_unit_test(ranks_use_them_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
