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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

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

int main(int argc, char **argv)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    const ot_optimizer_options *at_optimizer = &optimizer;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_session_options session_options = OT_SESSION_OPTIONS_INIT;
    const char *start = getenv("BENCH_START");
    double began = start ? strtod(start, NULL) : seconds(), first = 0;
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
    must(ot_model_load(argv[1], NULL, &model));
    must(ot_model_value_info(model, ot_model_output_name(model, 0), &dtype, &scores));
    must(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    must(ot_session_create_from_artifacts(artifacts, &session_options, &session));
    make_inputs(session, &scores, loss.class_axis, atoi(argv[4]), atoi(argv[6]), inputs);
    printf("{\"ms\": [");
    for (int step = 0; step < n_steps; step++) {
        double before = seconds();
        must(ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, &output, 1));
        must(ot_session_optimizer_step(session));
        ot_session_reset_gradients(session);
        if (step == 0)
            first = seconds() - began;
        printf("%s%.4f", step ? ", " : "", (seconds() - before) * 1e3);
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
