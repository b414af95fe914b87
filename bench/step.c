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
// Steps are those of a trainer, as `onnxtrain train` makes them. It is also compiled against
// earlier versions of the library, which it is compared with: it uses what those have.
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

#if __has_include("onnxtrain/trainer.h")
typedef ot_trainer stepper;

static stepper *make_stepper(ot_artifacts *artifacts, const ot_session_options *session)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainer;

    options.session = session;
    must(ot_trainer_create_from_artifacts(artifacts, NULL, &options, &trainer));
    return trainer;
}

static const ot_session *session_of(stepper *trainer)
{
    return ot_trainer_session(trainer);
}

static void step(stepper *trainer, ot_tensor *const *inputs, ot_tensor **output)
{
    must(ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, output, 1));
}

static void drop_stepper(stepper *trainer)
{
    ot_trainer_destroy(trainer);
}
#else // an earlier version
typedef ot_session stepper;

static stepper *make_stepper(ot_artifacts *artifacts, const ot_session_options *options)
{
    ot_session *session;

    must(ot_session_create_from_artifacts(artifacts, options, &session));
    return session;
}

static const ot_session *session_of(stepper *session)
{
    return session;
}

static void step(stepper *session, ot_tensor *const *inputs, ot_tensor **output)
{
    must(ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, output, 1));
    must(ot_session_optimizer_step(session));
    ot_session_reset_gradients(session);
}

static void drop_stepper(stepper *session)
{
    ot_session_destroy(session);
}
#endif

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
    stepper *trained;
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
    trained = make_stepper(artifacts, &session_options);
    make_inputs(session_of(trained), &scores, loss.class_axis, atoi(argv[4]), atoi(argv[6]),
                inputs);
    printf("{\"ms\": [");
    for (int i = 0; i < n_steps; i++) {
        double before = seconds();
        step(trained, inputs, &output);
        if (i == 0)
            first = seconds() - began;
        printf("%s%.4f", i ? ", " : "", (seconds() - before) * 1e3);
    }
    printf("], \"first\": %.4f, \"peak_mb\": %.3f, \"loss\": %g}\n", first, peak_mb(),
           (double)*(const float *)ot_tensor_data_const(output));
    ot_tensor_destroy(output);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    drop_stepper(trained);
    ot_artifacts_destroy(artifacts);
    return 0;
}
