// SPDX-License-Identifier: Apache-2.0
// --precision and --recompute: what steps compute in, and what they make again.
#ifndef CLI_PRECISION_OPTIONS_H
#define CLI_PRECISION_OPTIONS_H

#include "onnxtrain/config.h"
#include "options.h"

extern const char *const precision_names[];

#define PRECISION_OPTION(at)                                                                       \
    {                                                                                              \
        "precision", OPTION_CHOICE, at, "NAME",                                                    \
            "element type that steps compute in; parameters and what is saved stay f32", "f32",    \
            precision_names, 0                                                                     \
    }
#define RECOMPUTE_OPTION(at)                                                                       \
    {                                                                                              \
        "recompute", OPTION_LIST, at, "WHAT",                                                      \
            "make values again in the backward pass instead of keeping them: attn-dropout, gelu, " \
            "layers (all but the last) or layers=N (the first N)",                                 \
            NULL, NULL, 0                                                                          \
    }

// A value of a configuration, which is taken over; the exit code.
struct json_t;
int config_give(ot_config *config, const char *path, struct json_t *value, ot_config_source source);
// What --recompute says, as configuration; the exit code.
int recompute_give(ot_config *config, const text_list *list, ot_config_source source);

#endif
