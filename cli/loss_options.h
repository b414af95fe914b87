// SPDX-License-Identifier: Apache-2.0
// --loss: the terms of a weighted sum.
#ifndef CLI_LOSS_OPTIONS_H
#define CLI_LOSS_OPTIONS_H

#include "onnxtrain/artifacts.h"
#include "options.h"

typedef struct loss_terms {
    ot_loss_options *items; // what the library takes
    char **names;           // memory of each term's names
    ot_model **custom;      // each term's model, or NULL
    int count;
} loss_terms;

// "[WEIGHT*]LOSS[:VALUE[=TARGET]]" for each text. What the strings alone show to be wrong; losses
// and values that may be files and names of a model are left to loss_terms_parse(). The exit code,
// after a message when it is not EXIT_SUCCESS.
int loss_strings_check(const text_list *strings);
// Whether a text names the loss; none at all is cross-entropy.
bool loss_strings_name(const text_list *strings, ot_loss loss);
// Whether a text says ":VALUE".
bool loss_text_has_value(const char *text);
// Values are names of `model`. The exit code as above.
int loss_terms_parse(loss_terms *terms, const text_list *strings, const ot_model *model);
int loss_terms_init(loss_terms *terms, int most); // empty, with room
void loss_terms_deinit(loss_terms *terms);

#endif
