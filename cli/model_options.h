// SPDX-License-Identifier: Apache-2.0
// Options that say how a forward model is trained: loss, optimizer, parameters.
#ifndef CLI_MODEL_OPTIONS_H
#define CLI_MODEL_OPTIONS_H

#include "loss_options.h"
#include "onnxtrain/record.h"
#include "onnxtrain/session.h"
#include "options.h"

typedef struct model_values {
    text_list loss;
    const char *loss_input, *target;
    int reduction;
    const char *class_weights, *ignore_index;
    int class_axis;        // 0: the second; 1: the last
    const char *optimizer; // NULL: the default
    double beta1, beta2, epsilon, weight_decay, momentum, clip_norm;
    int adam_mode;
    bool nesterov;
    text_list train, freeze, init, shared, no_decay;
    int batch_norm; // as ot_batch_norm, or BATCH_NORM_SYNC
    int64_t seed;
    bool ignore_recorded;
    text_list op_libraries;
} model_values;

// Statistics of the batch, of all processes together: what trains sees to the latter.
enum { BATCH_NORM_SYNC = OT_BATCH_NORM_STORED + 1 };

extern const option_spec model_option_table[];

enum { MOST_HYPER = 9 };

// Options of an optimizer and what they point to: it stays where it is.
typedef struct optimizer_setup {
    ot_optimizer_options options;
    ot_hyper hyper[MOST_HYPER], no_decay;
    ot_param_group undecayed;
} optimizer_setup;

// Filled-in options and what they point to: it stays where it is.
typedef struct model_setup {
    ot_artifacts_options options;
    optimizer_setup optimizer;
    loss_terms loss; // at least one; metrics are those of the first
    ot_tensor *class_weights;
    const char **outputs; // what the first term takes and the model's outputs, none twice
    ot_record *record;    // what the model's metadata say of its training; NULL: nothing
} model_setup;

// What the options alone show to be wrong: EXIT_SUCCESS, or EXIT_USAGE after a message.
int model_values_check(const model_values *values);
// As a command's check, where they come first among its values.
int model_command_check(const void *values, const char *const *arguments);
// The exit code: EXIT_SUCCESS, or EXIT_FAILED after a message.
int model_setup_init(model_setup *setup, const model_values *values, const ot_model *model);
void model_setup_deinit(model_setup *setup);

// optimizer_options.c: whether there is one of that name, and it has what is given.
int optimizer_check(const model_values *values);
int optimizer_setup_init(optimizer_setup *setup, const model_values *values);
// Of the operator; NULL: none.
const char *optimizer_operator(const model_values *values);
bool optimizer_is_none(const model_values *values);
const char *optimizer_name(const model_values *values);
// More threads than any machine has are a slip; the exit code.
int check_threads(int64_t n_threads);
// A row of a command's table: `at` is the offset of an int64_t, which set_memory_max() takes.
#define MEMORY_MAX_OPTION(at)                                                                      \
    {                                                                                              \
        "memory-max", OPTION_BYTES, at, "BYTES",                                                   \
            "refuse to need more, or none; 0: three quarters of the memory there is", "0", NULL, 0 \
    }
size_t set_memory_max(int64_t n_bytes); // of the process; what options of the library take
// Loads a model; the exit code.
int load_model(const char *path, ot_model **out);

#endif
