// SPDX-License-Identifier: Apache-2.0
// Trains MODEL, a transformer that predicts the next byte and computes its loss, on the bytes of
// TEXT, and writes it with its trained weights to OUT. Its inputs are tokens and labels [rows, 32],
// its outputs the loss and the scores: tests/curves/data/causal.onnx is one.
#include <onnxtrain/onnxtrain.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 8, LENGTH = 32, VOCABULARY = 128, STEPS = 120, EVERY = 30 };

static void must(ot_status status)
{
    if (status != OT_OK)
        fprintf(stderr, "%s\n", ot_error_message()), exit(1);
}

static size_t read_text(const char *path, char *text, size_t capacity)
{
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(text, 1, capacity, file) : 0;

    if (n <= LENGTH)
        fprintf(stderr, "%s: cannot be read, or is too short\n", path), exit(1);
    fclose(file);
    return n;
}

int main(int argc, char **argv)
{
    static char text[1 << 20];
    if (argc != 4)
        return fprintf(stderr, "usage: language_model MODEL TEXT OUT\n"), 2;
    const size_t n_text = read_text(argv[2], text, sizeof text);

    // Adam with decay but for biases and normalisations, two micro-batches to an update, the
    // learning rate up over 5 % of the steps and then down.
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    adam.name = "AdamOptimizer";
    adam.lr = 3e-3;
    adam.hyper = &(ot_hyper){"lambda", 0.01};
    adam.n_hyper = 1;
    ot_param_group plain = OT_PARAM_GROUP_INIT;
    plain.params = (const char *[]){"*bias", "*norm*"};
    plain.n_params = 2;
    plain.hyper = &(ot_hyper){"lambda", 0};
    plain.n_hyper = 1;
    adam.groups = &plain;
    adam.n_groups = 1;
    ot_schedule schedule = OT_SCHEDULE_INIT;
    schedule.kind = OT_SCHEDULE_LINEAR;
    schedule.initial_lr = adam.lr;
    schedule.warmup_steps = 0.05 * STEPS;
    schedule.total_steps = STEPS;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    options.gradient_accumulation_steps = 2;
    options.lr_schedule = &schedule;
    options.frozen_weights = (const char *[]){"blocks.0.mask", "blocks.1.mask"};
    options.n_frozen_weights = 2;

    ot_model *model;
    ot_trainer *trainer;
    must(ot_model_load(argv[1], NULL, &model));
    must(ot_trainer_create(model, NULL, &adam, &options, &trainer));
    ot_model_destroy(model);

    int64_t tokens[ROWS * LENGTH], labels[ROWS * LENGTH];
    ot_tensor *inputs[2], *loss = NULL; // the loss: made by the first step, reused by the others
    const ot_shape shape = {2, {ROWS, LENGTH}};
    must(ot_tensor_wrap(OT_I64, &shape, tokens, sizeof tokens, &inputs[0]));
    must(ot_tensor_wrap(OT_I64, &shape, labels, sizeof labels, &inputs[1]));
    double sum = 0;
    srand(1);
    for (int call = 1; call <= 2 * STEPS; call++) {
        for (int row = 0; row < ROWS; row++) {
            const size_t start = (size_t)rand() % (n_text - LENGTH);
            for (int k = 0; k < LENGTH; k++) {
                tokens[row * LENGTH + k] = text[start + (size_t)k] & (VOCABULARY - 1);
                labels[row * LENGTH + k] = text[start + (size_t)k + 1] & (VOCABULARY - 1);
            }
        }
        must(ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, &loss, 1));
        sum += (double)*(const float *)ot_tensor_data_const(loss);
        if (call % (2 * EVERY) == 0) {
            printf("update %d: loss %.3f\n", call / 2, sum / (2 * EVERY));
            sum = 0;
        }
    }
    must(ot_trainer_save_as_onnx(trainer, argv[3]));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    ot_tensor_destroy(loss);
    ot_trainer_destroy(trainer);
}
