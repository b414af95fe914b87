// SPDX-License-Identifier: Apache-2.0
// What an update of 100 M parameters in 200 tensors costs: Adam without groups, with 20, with the
// norm of all gradients and the check that they are finite; beside them a copy of 400 MB with
// stores that bypass the caches, and a read of 400 MB. What updates cost while moments decay, since
// no gradient comes after the first. And what a trainer adds to a session in a call of a tiny
// model.
//
//     bench_update [THREADS] [ROUNDS]
//
// All but the second take turns. Median and least of the rounds. Adam moves 28 bytes an element
// (gradient, weight and two moments read, all but the gradient written), the copy 8.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "problem.h"

enum { TENSORS = 200, GROUPS = 20, ELEMENTS = 500000, ROUNDS_MAX = 1000, CALLS = 20000 };
static const double n_elements = (double)TENSORS * ELEMENTS;

// ---- what is timed ----

static ot_model *model_of_tensors(void)
{
    static char text[TENSORS * 160 + 1000];
    size_t n = (size_t)sprintf(text, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                     "many (float[1] x) => (float loss)\n{\n");
    ot_model *model;

    for (int i = 0; i < TENSORS; i++)
        n += (size_t)sprintf(text + n,
                             "  w%03d = RandomUniform<shape = [%d]>()\n"
                             "  s%03d = ReduceSum<keepdims = 0>(w%03d)\n",
                             i, ELEMENTS, i, i);
    n += (size_t)sprintf(text + n, "  all = Sum(x");
    for (int i = 0; i < TENSORS; i++)
        n += (size_t)sprintf(text + n, ", s%03d", i);
    n += (size_t)sprintf(text + n, ")\n  loss = ReduceMean<keepdims = 0>(all)\n}\n");
    must(ot_model_load_buffer(text, n, NULL, &model));
    return model;
}

static ot_session *session_of(const ot_model *model, int n_groups, double max_norm_clip,
                              int n_threads)
{
    static char patterns[GROUPS][8];
    static const char *names[GROUPS];
    static ot_hyper decay[GROUPS];
    ot_param_group groups[GROUPS];
    const ot_hyper clip = {"max_norm_clip", max_norm_clip};
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_session *session;
    const ot_shape one = {1, {1}};
    ot_tensor *x, *loss = NULL;

    for (int i = 0; i < n_groups; i++) { // ten tensors each
        groups[i] = (ot_param_group)OT_PARAM_GROUP_INIT;
        snprintf(patterns[i], sizeof patterns[i], "w%02d?", i);
        names[i] = patterns[i];
        decay[i] = (ot_hyper){"lambda", 0.001 * i};
        groups[i].params = &names[i];
        groups[i].n_params = 1;
        groups[i].hyper = &decay[i];
        groups[i].n_hyper = 1;
    }
    adam.name = "AdamOptimizer";
    adam.hyper = &clip;
    adam.n_hyper = 1;
    adam.groups = groups;
    adam.n_groups = n_groups;
    options.optimizer = &adam;
    how.n_threads = n_threads;
    must(ot_artifacts_generate(model, &options, &artifacts));
    must(ot_session_create_from_artifacts(artifacts, &how, &session));
    must(ot_tensor_create(OT_F32, &one, &x));
    must(ot_session_train_step(session, (const ot_tensor *const[]){x}, 1, &loss, 1));
    ot_tensor_destroy(loss);
    ot_tensor_destroy(x);
    ot_artifacts_destroy(artifacts);
    return session;
}

static void copy(float *to, const float *from, int64_t n, int n_threads)
{
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int64_t i = 0; i < n; i += 4) {
#ifdef __SSE2__
        _mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
        memcpy(to + i, from + i, 4 * sizeof *to);
#endif
    }
}

static float read_all(const float *from, int64_t n, int n_threads)
{
    float sum = 0;

#pragma omp parallel for simd schedule(static) num_threads(n_threads) reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += from[i];
    return sum;
}

// ---- figures ----

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(const char *name, double *times, int n, double bytes, double against)
{
    qsort(times, (size_t)n, sizeof *times, by_value);
    printf("%-28s %9.2f ms %9.2f ms %8.2f GB/s %8.3f\n", name, 1e3 * times[n / 2], 1e3 * times[0],
           1e-9 * bytes / times[n / 2], times[n / 2] / against);
}

static void time_updates(int n_threads, int rounds)
{
    static const struct {
        const char *name;
        int n_groups;
        double max_norm_clip;
    } kinds[] = {{"Adam", 0, 0}, {"Adam, 20 groups", GROUPS, 0}, {"Adam, norm and finite", 0, 1}};
    static double times[5][ROUNDS_MAX];
    volatile float seen;
    float *from = aligned_alloc(64, (size_t)n_elements * 4),
          *to = aligned_alloc(64, (size_t)n_elements * 4);
    ot_model *model = model_of_tensors();
    ot_session *sessions[3];

    memset(from, 1, (size_t)n_elements * 4);
    memset(to, 1, (size_t)n_elements * 4);
    for (int k = 0; k < 3; k++)
        sessions[k] = session_of(model, kinds[k].n_groups, kinds[k].max_norm_clip, n_threads);
    for (int round = -2; round < rounds; round++)
        for (int k = 0; k < 5; k++) {
            const double start = seconds();

            if (k < 3)
                must(ot_session_optimizer_step(sessions[k]));
            else if (k == 3)
                copy(to, from, (int64_t)n_elements, n_threads);
            else
                seen = read_all(from, (int64_t)n_elements, n_threads);
            times[k][round < 0 ? 0 : round] = seconds() - start;
        }
    printf("%-28s %12s %12s %13s %8s\n", "100 M parameters, 200 tensors", "median", "least",
           "bandwidth", "to Adam");
    qsort(times[0], (size_t)rounds, sizeof(double), by_value);
    const double adam = times[0][rounds / 2];
    for (int k = 0; k < 3; k++)
        report(kinds[k].name, times[k], rounds, 28 * n_elements, adam);
    report("copy of 400 MB", times[3], rounds, 8 * n_elements, adam);
    report("read of 400 MB", times[4], rounds, 4 * n_elements, adam);
    (void)seen;
    for (int k = 0; k < 3; k++)
        ot_session_destroy(sessions[k]);
    ot_model_destroy(model);
    free(from);
    free(to);
}

// ---- moments that decay ----

static const char decaying_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                    "decaying (float[1] x) => (float loss)\n{\n"
                                    "  w = RandomUniform<shape = [3000000]>()\n  p = Mul(w, x)\n"
                                    "  loss = ReduceMean<keepdims = 0>(p)\n}\n";

static void time_decay(int n_threads)
{
    enum { UPDATES = 1200, WINDOW = 50, WINDOWS = UPDATES / WINDOW };
    static double times[UPDATES];
    double slowest = 0;
    const ot_shape one = {1, {1}};
    ot_session *session;
    ot_model *model;
    ot_tensor *x, *loss = NULL;

    must(ot_model_load_buffer(decaying_text, sizeof decaying_text - 1, NULL, &model));
    session = session_of(model, 0, 0, n_threads);
    must(ot_tensor_create(OT_F32, &one, &x));
    for (int i = 0; i < UPDATES; i++) {
        *(float *)ot_tensor_data(x) = i == 0 ? 30000 : 0; // a hundredth for each weight
        must(ot_session_train_step(session, (const ot_tensor *const[]){x}, 1, &loss, 1));
        const double start = seconds();
        must(ot_session_optimizer_step(session));
        times[i] = seconds() - start;
        ot_session_reset_gradients(session);
    }
    for (int i = 0; i < WINDOWS; i++) {
        double *window = &times[i * WINDOW];

        qsort(window, WINDOW, sizeof *window, by_value);
        slowest = window[WINDOW / 2] > slowest ? window[WINDOW / 2] : slowest;
    }
    printf("Adam over 3 M parameters without gradients: %.2f ms first, %.2f ms slowest, %.2f ms "
           "last (of %d updates, medians of %d)\n",
           1e3 * times[WINDOW / 2], 1e3 * slowest, 1e3 * times[UPDATES - WINDOW / 2], UPDATES,
           WINDOW);
    ot_tensor_destroy(loss);
    ot_tensor_destroy(x);
    ot_session_destroy(session);
    ot_model_destroy(model);
}

// ---- what a trainer adds ----

static const char tiny_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "tiny (float[N,4] x) => (float loss) <float[4] w = {1, 2, 3, 4}>\n"
                                "{\n  y = MatMul(x, w)\n  loss = ReduceMean<keepdims = 0>(y)\n}\n";

static double time_calls(ot_trainer *trainer, ot_session *session, const ot_tensor *const *inputs,
                         ot_tensor **loss)
{
    const double start = seconds();

    for (int i = 0; i < CALLS; i++)
        if (trainer != NULL) {
            must(ot_trainer_train_step(trainer, inputs, 1, loss, 1));
        } else {
            must(ot_session_train_step(session, inputs, 1, loss, 1));
            must(ot_session_optimizer_step(session));
            ot_session_reset_gradients(session);
        }
    return (seconds() - start) / CALLS;
}

static void time_trainer(int rounds)
{
    static double times[2][ROUNDS_MAX];
    ot_session_options one = OT_SESSION_OPTIONS_INIT;
    ot_trainer_options how = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    const ot_shape rows = {2, {2, 4}};
    ot_session *session;
    ot_trainer *trainer;
    ot_tensor *x, *losses[2] = {NULL, NULL};
    ot_model *model;

    one.n_threads = 1;
    how.session = &one;
    must(ot_model_load_buffer(tiny_text, sizeof tiny_text - 1, NULL, &model));
    must(ot_artifacts_generate(model, NULL, &artifacts));
    must(ot_session_create_from_artifacts(artifacts, &one, &session));
    must(ot_trainer_create(model, NULL, NULL, &how, &trainer));
    must(ot_tensor_create(OT_F32, &rows, &x));
    for (int round = -1; round < rounds; round++)
        for (int k = 0; k < 2; k++)
            times[k][round < 0 ? 0 : round] = time_calls(k == 0 ? NULL : trainer, session,
                                                         (const ot_tensor *const[]){x}, &losses[k]);
    for (int k = 0; k < 2; k++)
        qsort(times[k], (size_t)rounds, sizeof(double), by_value);
    printf("a call of a tiny model: session %.2f us, trainer %.2f us: %.2f us more (median), %.2f "
           "us (least)\n",
           1e6 * times[0][rounds / 2], 1e6 * times[1][rounds / 2],
           1e6 * (times[1][rounds / 2] - times[0][rounds / 2]), 1e6 * (times[1][0] - times[0][0]));
    for (int k = 0; k < 2; k++)
        ot_tensor_destroy(losses[k]);
    ot_tensor_destroy(x);
    ot_trainer_destroy(trainer);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(int argc, char **argv)
{
    const int n_threads = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 15;

    if (n_threads < 1 || rounds < 1 || rounds > ROUNDS_MAX)
        return fprintf(stderr, "usage: bench_update [THREADS] [ROUNDS]\n"), 2;
    time_updates(n_threads, rounds);
    time_decay(n_threads);
    time_trainer(rounds);
}
