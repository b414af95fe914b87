// SPDX-License-Identifier: Apache-2.0
// What it costs to train in less memory: sessions over one model, without a ceiling and under
// ceilings that only values made again in the backward pass can meet, take turns step by step.
//
//     bench_recompute MODEL ROWS CLASS_AXIS VOCABULARY THREADS ROUNDS [PERCENT..]
//
// MODEL and what follows it are as for bench_step. PERCENT: of the bytes of activations and scratch
// without a ceiling (default: 80 60 40). Prints a line for each: bytes, medians of the steps, the
// median of the ratios of paired steps, and whether all losses are the same bits.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <onnxtrain/onnxtrain.h>

enum { SESSIONS_MAX = 9, ROUNDS_MAX = 1000, WARM_UP = 2 };

typedef struct contestant {
    ot_artifacts *artifacts;
    ot_session *session;
    size_t plan_bytes;
    double ms[ROUNDS_MAX], ratio[ROUNDS_MAX];
    float loss[ROUNDS_MAX];
} contestant;

static int must(ot_status status)
{
    if (status == OT_OK)
        return 0;
    fprintf(stderr, "bench_recompute: %s\n", ot_error_message());
    exit(1);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void make(contestant *c, const ot_model *model, int class_axis, int n_threads,
                 size_t memory_max)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;

    loss.class_axis = class_axis;
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    how.n_threads = n_threads;
    how.memory_max = memory_max;
    must(ot_artifacts_generate(model, &options, &c->artifacts));
    must(ot_session_create_from_artifacts(c->artifacts, &how, &c->session));
}

static ot_tensor *make_input(const ot_session *session, int index, int64_t rows, int64_t bound)
{
    ot_dtype dtype;
    ot_shape shape;
    ot_tensor *tensor;
    uint64_t state = 1;

    must(ot_session_input_info(session, OT_MODE_TRAIN, index, &dtype, &shape));
    shape.dim[0] = rows;
    must(ot_tensor_create(dtype, &shape, &tensor));
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (dtype == OT_F32)
            ((float *)ot_tensor_data(tensor))[i] = (float)((double)(state >> 11) * 0x1p-53 - 0.5);
        else
            ((int64_t *)ot_tensor_data(tensor))[i] = (int64_t)(state >> 33) % bound;
    }
    return tensor;
}

static void step(contestant *c, int round, ot_tensor *const *inputs)
{
    const double before = seconds();
    ot_tensor *loss = NULL;

    must(ot_session_train_step(c->session, (const ot_tensor *const *)inputs, 2, &loss, 1));
    must(ot_session_optimizer_step(c->session));
    ot_session_reset_gradients(c->session);
    c->ms[round] = (seconds() - before) * 1e3;
    c->loss[round] = *(const float *)ot_tensor_data_const(loss);
    ot_tensor_destroy(loss);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

int main(int argc, char **argv)
{
    static contestant all[SESSIONS_MAX];
    static const char *const percents[] = {"80", "60", "40"};
    int n = 1, n_rounds;
    ot_model *model;
    ot_tensor *inputs[2];
    ot_dtype dtype;
    ot_shape scores;

    if (argc < 7 || argc > 6 + SESSIONS_MAX)
        return fprintf(stderr, "usage: bench_recompute MODEL ROWS CLASS_AXIS VOCABULARY THREADS "
                               "ROUNDS [PERCENT..]\n"),
               2;
    n_rounds = atoi(argv[6]) < ROUNDS_MAX - WARM_UP ? atoi(argv[6]) : ROUNDS_MAX - WARM_UP;
    must(ot_model_load(argv[1], NULL, &model));
    must(ot_model_value_info(model, ot_model_output_name(model, 0), &dtype, &scores));
    make(&all[0], model, atoi(argv[3]), atoi(argv[5]), 0);
    inputs[0] = make_input(all[0].session, 0, atoi(argv[2]), atoi(argv[4]));
    inputs[1] = make_input(all[0].session, 1, atoi(argv[2]),
                           scores.dim[atoi(argv[3]) < 0 ? scores.ndim - 1 : atoi(argv[3])]);
    step(&all[0], 0, inputs);
    all[0].plan_bytes = ot_session_plan_bytes(all[0].session);
    const size_t state = ot_session_state_bytes(all[0].session);

    for (int i = 0; i < (argc > 7 ? argc - 7 : 3); i++, n++) {
        const double percent = atof(argc > 7 ? argv[7 + i] : percents[i]);

        // Layouts of parameters may need a little more.
        make(&all[n], model, atoi(argv[3]), atoi(argv[5]),
             state + (size_t)((double)all[0].plan_bytes * percent / 100));
        step(&all[n], 0, inputs);
        all[n].plan_bytes = ot_session_plan_bytes(all[n].session);
    }
    ot_model_destroy(model);
    for (int round = 1; round < n_rounds + WARM_UP; round++)
        for (int i = 0; i < n; i++)
            step(&all[(i + round) % n], round, inputs);
    printf(
        "| ceiling | activations and scratch, bytes | of those without | ms/step, median | times "
        "as long | losses |\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < n; i++)
        for (int round = 0; round < n_rounds; round++)
            all[i].ratio[round] = all[i].ms[WARM_UP + round] / all[0].ms[WARM_UP + round];
    for (int i = 0; i < n; i++) {
        const bool is_same =
            memcmp(all[i].loss, all[0].loss, (size_t)(n_rounds + WARM_UP) * sizeof(float)) == 0;

        if (i == 0)
            printf("| none |");
        else
            printf("| %s %% |", argc > 7 ? argv[6 + i] : percents[i - 1]);
        printf(" %zu | %.2f |", all[i].plan_bytes,
               (double)all[i].plan_bytes / (double)all[0].plan_bytes);
        printf(" %.2f | %.2f | %s |\n", median(all[i].ms + WARM_UP, n_rounds),
               median(all[i].ratio, n_rounds), is_same ? "the same bits" : "differ");
    }
    return 0;
}
