// SPDX-License-Identifier: Apache-2.0
// Two transformers on real text lose what PyTorch loses (record_curves.py says what is in the
// files): 50 updates of two micro-batches by Adam with decay, a linear schedule and warm-up.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/onnxtrain.h"

enum { PAGES = 4, PAGE_BYTES = 8192, WINDOW = 32, BATCH = 8, UPDATES = 50, ACCUMULATION = 2 };
enum { STEPS = UPDATES * ACCUMULATION };

// PyTorch's own f32 differs from its f64 by 2.3e-7 at most; another order of summation may differ
// by a few times that.
static const double tolerance = 1e-6;

static void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

static int64_t start_of(int step, int row)
{
    uint64_t z = (uint64_t)(step * BATCH + row + 1) * UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (int64_t)(z % PAGES * PAGE_BYTES + (z >> 8) % (PAGE_BYTES - WINDOW));
}

static void read_all(const char *name, char *to, size_t n)
{
    char path[1024];
    FILE *file;

    snprintf(path, sizeof path, OT_TEST_DIR "/data/%s", name);
    file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    to[fread(to, 1, n, file)] = '\0';
    fclose(file);
}

static void read_losses(const char *name, double losses[STEPS])
{
    static char text[1 << 14];
    char file[64], *at;

    snprintf(file, sizeof file, "%s.txt", name);
    read_all(file, text, sizeof text - 1);
    at = strstr(text, "f64 ");
    assert_non_null(at);
    at += 4;
    for (int i = 0; i < STEPS; i++)
        losses[i] = strtod(at, &at);
}

static ot_trainer *make_trainer(const char *name)
{
    static const ot_hyper hyper[] = {{"lambda", 0.01}};
    static const char *const masks[] = {"blocks.0.mask", "blocks.1.mask"}; // buffers
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_schedule schedule = OT_SCHEDULE_INIT;
    char path[1024];
    ot_trainer *trainer;
    ot_model *model;

    snprintf(path, sizeof path, OT_TEST_DIR "/data/%s.onnx", name);
    need(ot_model_load(path, NULL, &model));
    adam.name = "AdamOptimizer";
    adam.lr = 3e-3;
    adam.hyper = hyper;
    adam.n_hyper = 1;
    schedule.kind = OT_SCHEDULE_LINEAR;
    schedule.initial_lr = 3e-3;
    schedule.warmup_steps = 4.5;
    schedule.total_steps = 60;
    options.lr_schedule = &schedule;
    options.gradient_accumulation_steps = ACCUMULATION;
    options.grad_norm_clip = 0;
    options.frozen_weights = masks;
    options.n_frozen_weights = 2;
    need(ot_trainer_create(model, NULL, &adam, &options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static void train_and_compare(const char *name, int is_causal)
{
    static char text[PAGES * PAGE_BYTES + 1];
    int64_t tokens[BATCH * WINDOW], labels[BATCH * WINDOW];
    const ot_shape wide = OT_SHAPE(BATCH, WINDOW), one = OT_SHAPE(BATCH);
    const ot_shape *shape = is_causal ? &wide : &one;
    ot_trainer *trainer = make_trainer(name);
    double expected[STEPS];
    ot_tensor *inputs[2];

    read_all("text.txt", text, sizeof text - 1);
    read_losses(name, expected);
    need(ot_tensor_wrap(OT_I64, &wide, tokens, sizeof tokens, &inputs[0]));
    need(ot_tensor_wrap(OT_I64, shape, labels,
                        (is_causal ? (size_t)WINDOW : 1) * BATCH * sizeof *labels, &inputs[1]));
    for (int step = 0; step < STEPS; step++) {
        ot_tensor *loss = NULL;

        for (int row = 0; row < BATCH; row++) {
            const int64_t start = start_of(step, row);

            if (!is_causal)
                labels[row] = start / PAGE_BYTES;
            for (int k = 0; k < WINDOW; k++)
                tokens[row * WINDOW + k] = text[start + k];
            for (int k = 0; k < WINDOW && is_causal; k++)
                labels[row * WINDOW + k] = text[start + k + 1];
        }
        need(ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, &loss, 1));
        assert_true(fabs((double)*(const float *)ot_tensor_data_const(loss) - expected[step]) <=
                    tolerance * expected[step]);
        ot_tensor_destroy(loss);
    }
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    ot_trainer_destroy(trainer);
}

static void a_causal_language_model_loses_what_pytorch_loses(void **state)
{
    (void)state;
    train_and_compare("causal", 1);
}

static void a_classifier_of_text_loses_what_pytorch_loses(void **state)
{
    (void)state;
    train_and_compare("classifier", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_causal_language_model_loses_what_pytorch_loses),
        cmocka_unit_test(a_classifier_of_text_loses_what_pytorch_loses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
