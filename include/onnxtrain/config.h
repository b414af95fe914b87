// SPDX-License-Identifier: Apache-2.0
// The configuration of a training run as JSON: model, its description, optimizer, options.
#ifndef ONNXTRAIN_CONFIG_H
#define ONNXTRAIN_CONFIG_H

#include "onnxtrain/optimizer.h"
#include "onnxtrain/trainer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A configuration, of several documents and single values:
 *
 *     {"model": "model.onnx", "model_desc": {"inputs": [["x", ["batch", 4]]],
 *      "outputs": [["loss", [], true]]}, "optimizer": {"name": "AdamOptimizer", "lr": 0.001},
 *      "options": {"batch": {"gradient_accumulation_steps": 4}}, "train": {"epochs": 3}}
 *
 * docs/options.md lists what may stand in it.
 */
typedef struct ot_config ot_config;

/** By what a value was given. Flags go before files, and files before the environment. */
typedef enum ot_config_source {
    OT_CONFIG_ENVIRONMENT,
    OT_CONFIG_FILE,
    OT_CONFIG_FLAG,
} ot_config_source;

OT_API ot_status ot_config_create(ot_config **out);
OT_API void ot_config_destroy(ot_config *config); ///< NULL is fine

// What is given later by the same source goes before what it gave earlier. Objects are merged,
// but one that has a "type" replaces what was there.

/** All of a document. OT_ERR_FORMAT with line and column for what is no JSON object. */
OT_API ot_status ot_config_merge(ot_config *config, const char *json, ot_config_source source);
/** One value: "options.batch.gradient_accumulation_steps" and "4". */
OT_API ot_status ot_config_set(ot_config *config, const char *path, const char *json_value,
                               ot_config_source source);
/** Several, a line "path=value" each, as in the environment variable OT_SET and in flags; empty
 * lines are skipped. When one is wrong, none is set. */
OT_API ot_status ot_config_set_lines(ot_config *config, const char *lines, ot_config_source source);
/** By what the value at a path was given, last of all. OT_ERR_NOT_FOUND: by nothing. */
OT_API ot_status ot_config_source_of(const ot_config *config, const char *path,
                                     ot_config_source *source);

/**
 * What the program whose options "train" has says of a value there, as a command line has it.
 *
 * @return NULL, or what is wrong with it, which stays until the next call
 */
typedef const char *(*ot_config_train_function)(void *context, const char *name, const char *value);
/** Ask `function` in checks from now on; NULL: all of "train" is right. */
OT_API ot_status ot_config_set_train_function(ot_config *config, ot_config_train_function function,
                                              void *context);

/**
 * Read and check all that was given.
 *
 * @param violations  NULL is fine. Receives NULL, or all that is wrong, nested as the
 * configuration is: {"options": [{"mixed_precision": [{"enabled": ["must be of boolean type"]}]}]};
 * the caller releases it with ot_string_free()
 * @return OT_ERR_INVALID, and the message lists what is wrong, when there is something
 */
OT_API ot_status ot_config_check(ot_config *config, char **violations);

// What the last ot_config_check() has read, until the next one or until something more is given;
// NULL before, and when something was wrong. Owned by the configuration.

OT_API const ot_trainer_options *ot_config_options(const ot_config *config);
OT_API const ot_optimizer_options *ot_config_optimizer(const ot_config *config);
/** NULL where none was given. */
OT_API const ot_model_description *ot_config_description(const ot_config *config);
OT_API const char *ot_config_model(const ot_config *config); ///< a path; NULL: none was given

/** The values of "train", of a list each element. The value is as on a command line: "true",
 * "0.5", "name". */
OT_API int ot_config_train_count(const ot_config *config);
OT_API const char *ot_config_train_name(const ot_config *config, int index);
OT_API const char *ot_config_train_value(const ot_config *config, int index);

typedef enum ot_config_style {
    OT_CONFIG_EFFECTIVE,       ///< all that counts, with our own options; a valid configuration
    OT_CONFIG_DEFAULTS_FILLED, ///< with the defaults of ONNX Runtime's ORTTrainerOptions
} ot_config_style;

/** The configuration in one line, which the caller releases with ot_string_free(). OT_ERR_STATE
 * before ot_config_check(), or when something was wrong. */
OT_API ot_status ot_config_text(const ot_config *config, ot_config_style style, char **json);

#ifdef __cplusplus
}
#endif
#endif
