// SPDX-License-Identifier: Apache-2.0
// Training of the models of data/ by the four optimizers of generate.py.
#ifndef OT_TESTS_GOLDEN_GOLDEN_TRAIN_H
#define OT_TESTS_GOLDEN_GOLDEN_TRAIN_H

#include "golden.h"

enum { STEPS = 10 };

static const struct {
    const char *name;
    const char *optimizer;
    int adam_mode;
    double learning_rate;
} kinds[] = {
    {"sgd", "SGDOptimizerV2", 0, 0.1},
    {"momentum", "SGDOptimizer", 0, 0.02},
    {"adamw0", "AdamWOptimizer", 0, 0.01},
    {"adamw1", "AdamWOptimizer", 1, 0.01},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

// With `loss_scale` 1 the training model has an input for the scale.
static inline ot_artifacts *generate(const char *name, int kind, ot_dtype dtype, int loss_scale)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    const ot_hyper adamw[] = {{"weight_decay", 0.01}, {"adam_mode", kinds[kind].adam_mode}};
    const ot_hyper momentum[] = {{"weight_decay", 0.01}, {"nesterov", 1}, {"momentum", 0.9}};
    const ot_hyper *hyper = strcmp(kinds[kind].optimizer, "AdamWOptimizer") == 0 ? adamw : momentum;
    ot_model *model = load_model(name, dtype);
    ot_artifacts *artifacts;

    options.loss_scale = loss_scale;
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.name = kinds[kind].optimizer;
    optimizer.hyper = hyper;
    if (strcmp(optimizer.name, "SGDOptimizerV2") != 0)
        optimizer.n_hyper = hyper == adamw ? 2 : 3;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s: %s", name, ot_error_message());
    ot_model_destroy(model);
    return artifacts;
}

// `recorded` begins with the header of NAME.txt.
static inline double train_step(ot_session *session, int step, const char *recorded)
{
    const int64_t rows = header_number(recorded, "batch ");
    const uint32_t classes = (uint32_t)header_number(recorded, "classes ");
    const uint32_t words = (uint32_t)header_number(recorded, "words ");
    ot_tensor *x = make_input(session, 0, step, rows, words);
    ot_tensor *labels = make_input(session, 1, step, rows, classes), *loss = NULL;
    double value;

    if (ot_session_train_step(session, (const ot_tensor *const[]){x, labels}, 2, &loss, 1) !=
            OT_OK ||
        ot_session_optimizer_step(session) != OT_OK)
        fail_msg("step %d: %s", step, ot_error_message());
    ot_session_reset_gradients(session);
    value = element(loss, 0);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
    ot_tensor_destroy(loss);
    return value;
}

#endif
