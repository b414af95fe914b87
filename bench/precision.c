// SPDX-License-Identifier: Apache-2.0
// Training steps of one model in f32, bf16 and f16, which take turns in one process: time, and the
// bytes of activations and of parameters, gradients, moments and casts.
//
//     bench_precision MODEL THREADS ROUNDS ROWS CLASS_AXIS VOCABULARY
//
// The arguments are those of bench_step; every round is a step of each. Median and least of the
// rounds behind the first.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <onnxtrain/onnxtrain.h>

enum { N_TYPES = 3, ROUNDS_MAX = 1000 };
static const char *const names[N_TYPES] = {"f32", "bf16", "f16"};
static const ot_precision precisions[N_TYPES] = {OT_PRECISION_F32, OT_PRECISION_BF16,
                                                 OT_PRECISION_F16};

static void must(ot_status status)
{
    if (status != OT_OK)
        fprintf(stderr, "bench_precision: %s\n", ot_error_message()), exit(1);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static ot_tensor *input_of(const ot_session *session, int index, int64_t rows, int64_t bound)
{
    uint64_t state = 1;
    ot_dtype dtype;
    ot_shape shape;
    ot_tensor *tensor;

    must(ot_session_input_info(session, OT_MODE_TRAIN, index, &dtype, &shape));
    shape.dim[0] = rows;
    must(ot_tensor_create(dtype, &shape, &tensor));
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++) {
        double uniform;

        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uniform = (double)(state >> 11) * 0x1p-53;
        if (dtype == OT_F32)
            ((float *)ot_tensor_data(tensor))[i] = (float)(uniform - 0.5);
        else
            ((int64_t *)ot_tensor_data(tensor))[i] = (int64_t)(uniform * (double)bound);
    }
    return tensor;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double ms[N_TYPES][ROUNDS_MAX];
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts[N_TYPES];
    ot_session *sessions[N_TYPES];
    ot_tensor *inputs[2], *output = NULL;
    double losses[N_TYPES], median = 0;
    ot_model *model;
    ot_dtype dtype;
    ot_shape scores;
    int n_rounds;

    if (argc != 7)
        return 2;
    n_rounds = atoi(argv[3]) < ROUNDS_MAX ? atoi(argv[3]) : ROUNDS_MAX;
    loss.class_axis = atoi(argv[5]);
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &adam;
    must(ot_model_load(argv[1], NULL, &model));
    must(ot_model_value_info(model, ot_model_output_name(model, 0), &dtype, &scores));
    for (int t = 0; t < N_TYPES; t++) {
        ot_session_options how = OT_SESSION_OPTIONS_INIT;

        how.n_threads = atoi(argv[2]);
        how.precision = precisions[t];
        must(ot_artifacts_generate(model, &options, &artifacts[t]));
        must(ot_session_create_from_artifacts(artifacts[t], &how, &sessions[t]));
    }
    inputs[0] = input_of(sessions[0], 0, atoi(argv[4]), atoi(argv[6]));
    inputs[1] = input_of(sessions[0], 1, atoi(argv[4]),
                         scores.dim[loss.class_axis < 0 ? scores.ndim - 1 : loss.class_axis]);
    for (int round = -1; round < n_rounds; round++)
        for (int t = 0; t < N_TYPES; t++) {
            const double before = seconds();

            must(ot_session_train_step(sessions[t], (const ot_tensor *const *)inputs, 2, &output,
                                       1));
            must(ot_session_optimizer_step(sessions[t]));
            ot_session_reset_gradients(sessions[t]);
            if (round >= 0)
                ms[t][round] = 1e3 * (seconds() - before);
            losses[t] = (double)*(const float *)ot_tensor_data_const(output);
        }
    printf(
        "| type | ms/step, median | ms/step, min | to f32 | activations, MB | state, MB | loss |\n"
        "|---|---|---|---|---|---|---|\n");
    for (int t = 0; t < N_TYPES; t++) {
        qsort(ms[t], (size_t)n_rounds, sizeof ms[t][0], compare);
        if (t == 0)
            median = ms[t][n_rounds / 2];
        printf("| %s | %.2f | %.2f | %.3f | %.2f | %.2f | %.4f |\n", names[t], ms[t][n_rounds / 2],
               ms[t][0], ms[t][n_rounds / 2] / median,
               (double)ot_session_plan_bytes(sessions[t]) / 1e6,
               (double)ot_session_state_bytes(sessions[t]) / 1e6, losses[t]);
    }
    ot_tensor_destroy(output);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    for (int t = 0; t < N_TYPES; t++) {
        ot_session_destroy(sessions[t]);
        ot_artifacts_destroy(artifacts[t]);
    }
    ot_model_destroy(model);
    return 0;
}
