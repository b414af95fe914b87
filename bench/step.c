// SPDX-License-Identifier: Apache-2.0
// Times training steps of one model on fixed random data: the library's side of bench/run.py.
//
//   bench_step MODEL THREADS STEPS ROWS CLASS_AXIS VOCABULARY
//
// MODEL has one input with a batch axis, of floats, or of tokens below VOCABULARY, and class scores
// as its output, the classes on CLASS_AXIS (1 or -1). Prints one JSON object: milliseconds of every
// step, seconds from process start (BENCH_START, CLOCK_MONOTONIC) to the end of the first step,
// peak resident memory.
//
// It is also compiled against earlier versions of the library, which it is compared with: it uses
// what those have.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "onnxtrain/onnxtrain.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(ot_status status)
{
    if (status == OT_OK)
        return;
    fprintf(stderr, "bench_step: %s\n", ot_error_message());
    exit(1);
}

// Of this program alone: ru_maxrss of getrusage() begins with that of the process it was forked
// from.
static double peak_mb(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kilobytes = 0;

    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "VmHWM: %ld", &kilobytes) == 1)
            break;
    if (status)
        fclose(status);
    return (double)kilobytes / 1024;
}

// A plain generator: the data only has to be alike for all, not equal.
static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static ot_tensor *make_input(const ot_session *session, int index, int64_t rows, int64_t bound)
{
    uint64_t state = 1;
    ot_dtype dtype;
    ot_shape shape;
    ot_tensor *tensor;

    check(ot_session_input_info(session, OT_MODE_TRAIN, index, &dtype, &shape));
    shape.dim[0] = rows;
    check(ot_tensor_create(dtype, &shape, &tensor));
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++) {
        if (dtype == OT_F32)
            ((float *)ot_tensor_data(tensor))[i] = (float)(uniform(&state) - 0.5);
        else
            ((int64_t *)ot_tensor_data(tensor))[i] = (int64_t)(uniform(&state) * (double)bound);
    }
    return tensor;
}

int main(int argc, char **argv)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    const ot_optimizer_options *at_optimizer = &optimizer;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_session_options session_options = OT_SESSION_OPTIONS_INIT;
    const char *start = getenv("BENCH_START");
    double began = start ? strtod(start, NULL) : now(), first = 0;
    ot_model *model;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_tensor *inputs[2], *output = NULL;
    ot_dtype dtype;
    ot_shape scores;
    int n_steps;

    if (argc != 7)
        return 2;
    n_steps = atoi(argv[3]);
    loss.class_axis = atoi(argv[5]);
    options.losses = &loss;
    options.n_losses = 1;
#if __has_include("onnxtrain/optimizer.h")
    optimizer.hyper = &(const ot_hyper){"adam_mode", 0};
    optimizer.n_hyper = 1;
#else // an earlier version
    optimizer.adam_mode = 0;
#endif
    // Earlier versions have the struct itself there.
    memcpy(&options.optimizer,
           sizeof options.optimizer == sizeof optimizer ? (const void *)&optimizer
                                                        : (const void *)&at_optimizer,
           sizeof options.optimizer);
    session_options.n_threads = atoi(argv[2]);
    check(ot_model_load(argv[1], NULL, &model));
    check(ot_model_value_info(model, ot_model_output_name(model, 0), &dtype, &scores));
    check(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    check(ot_session_create_from_artifacts(artifacts, &session_options, &session));
    inputs[0] = make_input(session, 0, atoi(argv[4]), atoi(argv[6]));
    inputs[1] = make_input(session, 1, atoi(argv[4]),
                           scores.dim[loss.class_axis < 0 ? scores.ndim - 1 : loss.class_axis]);
    printf("{\"ms\": [");
    for (int step = 0; step < n_steps; step++) {
        double before = now();
        check(ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, &output, 1));
        check(ot_session_optimizer_step(session));
        ot_session_reset_gradients(session);
        if (step == 0)
            first = now() - began;
        printf("%s%.4f", step ? ", " : "", (now() - before) * 1e3);
    }
    printf("], \"first\": %.4f, \"peak_mb\": %.3f, \"loss\": %g}\n", first, peak_mb(),
           (double)*(const float *)ot_tensor_data_const(output));
    ot_tensor_destroy(output);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    return 0;
}
