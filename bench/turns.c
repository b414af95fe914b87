// SPDX-License-Identifier: Apache-2.0
// Training steps of one model in several ways, which take turns step by step in one process: in
// element types, and under ceilings of memory.
//
//     bench_turns MODEL THREADS ROUNDS ROWS CLASS_AXIS VOCABULARY WAY...
//
// MODEL and what describes its data are as for bench_step. WAY: f32, bf16 or f16; behind a colon a
// ceiling, in percent of the bytes of activations and scratch that the first way takes. The first
// round is not timed. Prints a JSON array with an object for each way: milliseconds and loss of
// each step, bytes of activations (with scratch) and of state.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

enum { WAYS_MAX = 9, ROUNDS_MAX = 1000, N_INPUTS = 2 };

typedef struct way {
    const char *name;
    ot_precision precision;
    double percent; // 0: no ceiling
    ot_artifacts *artifacts;
    ot_session *session;
    double ms[ROUNDS_MAX];
    float loss[ROUNDS_MAX];
} way;

static void parse_way(way *w, const char *text)
{
    static const struct type {
        const char *name;
        ot_precision precision;
    } types[] = {{"f32", OT_PRECISION_F32}, {"bf16", OT_PRECISION_BF16}, {"f16", OT_PRECISION_F16}};
    const size_t length = strcspn(text, ":");

    *w = (way){.name = text, .percent = text[length] == ':' ? atof(text + length + 1) : 0};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && memcmp(text, types[i].name, length) == 0) {
            w->precision = types[i].precision;
            return;
        }
    fprintf(stderr, "bench: '%s' begins with none of f32, bf16, f16\n", text);
    exit(2);
}

static void make_session(way *w, const way *first, const ot_model *model, int class_axis,
                         int n_threads)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_session_options how = OT_SESSION_OPTIONS_INIT;

    loss.class_axis = class_axis;
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &adam;
    how.n_threads = n_threads;
    how.precision = w->precision;
    if (w->percent > 0)
        how.memory_max = ot_session_state_bytes(first->session) +
                         (size_t)((double)ot_session_plan_bytes(first->session) * w->percent / 100);
    must(ot_artifacts_generate(model, &options, &w->artifacts));
    must(ot_session_create_from_artifacts(w->artifacts, &how, &w->session));
}

// The first step of a session plans.
static void run_step(way *w, int round, ot_tensor *const *inputs)
{
    const double before = seconds();
    ot_tensor *loss = NULL;

    must(ot_session_train_step(w->session, (const ot_tensor *const *)inputs, N_INPUTS, &loss, 1));
    must(ot_session_optimizer_step(w->session));
    ot_session_reset_gradients(w->session);
    w->ms[round] = (seconds() - before) * 1e3;
    w->loss[round] = *(const float *)ot_tensor_data_const(loss);
    ot_tensor_destroy(loss);
}

static void print_way(const way *w, int n_rounds)
{
    printf("{\"way\": \"%s\", \"activations\": %zu, \"state\": %zu, \"ms\": [", w->name,
           ot_session_plan_bytes(w->session), ot_session_state_bytes(w->session));
    for (int i = 1; i <= n_rounds; i++)
        printf("%s%.4f", i > 1 ? ", " : "", w->ms[i]);
    printf("], \"losses\": [");
    for (int i = 0; i <= n_rounds; i++)
        printf("%s%.9g", i > 0 ? ", " : "", (double)w->loss[i]);
    printf("]}");
}

int main(int argc, char **argv)
{
    static way ways[WAYS_MAX];
    const int n_ways = argc - 7;
    ot_tensor *inputs[N_INPUTS];
    ot_model *model;
    ot_dtype dtype;
    ot_shape scores;
    int n_rounds, class_axis;

    if (n_ways < 1 || n_ways > WAYS_MAX)
        return 2;
    n_rounds = atoi(argv[3]) < ROUNDS_MAX ? atoi(argv[3]) : ROUNDS_MAX - 1;
    class_axis = atoi(argv[5]);
    must(ot_model_load(argv[1], NULL, &model));
    must(ot_model_value_info(model, ot_model_output_name(model, 0), &dtype, &scores));
    for (int i = 0; i < n_ways; i++) {
        parse_way(&ways[i], argv[7 + i]);
        make_session(&ways[i], &ways[0], model, class_axis, atoi(argv[2]));
        if (i == 0)
            make_inputs(ways[0].session, &scores, class_axis, atoi(argv[4]), atoi(argv[6]), inputs);
        run_step(&ways[i], 0, inputs);
    }
    ot_model_destroy(model);
    for (int round = 1; round <= n_rounds; round++)
        for (int i = 0; i < n_ways; i++)
            run_step(&ways[(i + round) % n_ways], round, inputs);
    for (int i = 0; i < n_ways; i++) {
        printf("%s", i == 0 ? "[" : ", ");
        print_way(&ways[i], n_rounds);
        ot_session_destroy(ways[i].session);
        ot_artifacts_destroy(ways[i].artifacts);
    }
    printf("]\n");
    for (int i = 0; i < N_INPUTS; i++)
        ot_tensor_destroy(inputs[i]);
    return 0;
}
