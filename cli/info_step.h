// SPDX-License-Identifier: Apache-2.0
// What a training step takes, as `onnxtrain info` tells it.
#ifndef CLI_INFO_STEP_H
#define CLI_INFO_STEP_H

#include <jansson.h>

#include "model_options.h"
#include "onnxtrain/onnxtrain.h"

// Memory of a training step at the given batch size; no plan when the model cannot be trained as it
// is.
typedef struct step_info {
    size_t state_bytes, plan_bytes;
    ot_memory memory;
    ot_parallel_ranks ranks; // of --parallel, what one takes, and what it sends for an update
    ot_memory rank_memory;
    int64_t n_sent;
    bool has_ranks;
    bool json; // what the plan is wanted as
    char *plan;
    char problem[512]; // why there is none
} step_info;

// `artifacts` NULL: they are made of the model. `out` has the ranks of --parallel and the form of
// the plan already.
void info_step_measure(const ot_model *model, ot_artifacts *artifacts, int64_t memory_max,
                       int64_t batch_size, const ot_config *config, const model_setup *setup,
                       step_info *out);
void info_step_add(const step_info *step, int64_t batch_size, json_t *object);
void info_step_print(const step_info *step, int64_t batch_size);
int info_step_print_plan(const step_info *step); // the exit code

#endif
