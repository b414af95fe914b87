// Options that say how a forward model is trained: loss, optimizer, parameters.
#ifndef CLI_MODEL_OPTIONS_H
#define CLI_MODEL_OPTIONS_H

#include "onnxtrain/artifacts.h"
#include "options.h"

typedef struct model_values {
    const char *loss;
    const char *loss_input, *target;
    int reduction;
    const char *class_weights, *ignore_index;
    int optimizer;
    double beta1, beta2, epsilon, weight_decay, momentum, clip_norm;
    int64_t adam_mode;
    bool nesterov;
    text_list train, freeze, init;
    int batch_norm;
    int64_t seed;
} model_values;

extern const option_spec model_option_table[];

// Filled-in options and what they point to.
typedef struct model_setup {
    ot_artifacts_options options;
    ot_loss_options loss;
    ot_tensor *class_weights;
    ot_model *custom_loss;
    const char *scores; // the forward model's first output, an additional output beside the loss
} model_setup;

// The exit code: EXIT_SUCCESS, or another after a message.
int model_setup_init(model_setup *setup, const model_values *values, const ot_model *model);
void model_setup_deinit(model_setup *setup);

// Loads a model; the exit code.
int load_model(const char *path, ot_model **out);

#endif
