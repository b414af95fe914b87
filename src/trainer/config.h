// SPDX-License-Identifier: Apache-2.0
// A configuration: what was given, and what a check has read of it.
#ifndef OT_TRAINER_CONFIG_H
#define OT_TRAINER_CONFIG_H

#include "onnxtrain/config.h"
#include "trainer/options.h"

enum { OT_CONFIG_N_SOURCES = OT_CONFIG_FLAG + 1 };

typedef struct ot__train_value {
    const char *name, *value;
} ot__train_value;

struct ot_config {
    struct json_t *given[OT_CONFIG_N_SOURCES]; // objects
    ot_config_train_function train_function;
    void *train_context;
    // What the last check has read; arena NULL: nothing is.
    ot__arena *arena;
    ot_trainer_options options;
    ot_optimizer_options optimizer;
    ot_model_description description;
    bool has_description;
    const char *model;
    ot__train_value *train;
    int n_train;
    const char *train_json; // "train" as it was given
};

// All that the sources together gave, an object. After an error nothing is read; `violations` as
// those of ot_config_check() (config_read.c).
ot_status ot__config_read(ot_config *config, const struct json_t *json, char **violations);
void ot__config_forget(ot_config *config); // what was read

#endif
