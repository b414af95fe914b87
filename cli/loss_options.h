// --loss: the terms of a weighted sum.
#ifndef CLI_LOSS_OPTIONS_H
#define CLI_LOSS_OPTIONS_H

#include "onnxtrain/artifacts.h"
#include "onnxtrain/train.h"
#include "options.h"

typedef struct loss_terms {
    ot_loss_options *items; // what the library takes
    char **names;           // memory of each term's names
    ot_model **custom;      // each term's model, or NULL
    int count;
} loss_terms;

// "[WEIGHT*]LOSS[:VALUE[=TARGET]]" for each text; values are names of `model`. The exit code, after
// a message when it is not EXIT_SUCCESS.
int loss_terms_parse(loss_terms *terms, const text_list *texts, const ot_model *model);
void loss_terms_deinit(loss_terms *terms);

// The name of the input that a term compares with; NULL: a custom loss, whose inputs have their own
// names.
const char *loss_target(const ot_loss_options *term);
ot_task loss_task(ot_loss loss);
// "cross-entropy"; NULL for a custom loss. loss_of_name: OT_LOSS_CUSTOM when there is none.
const char *loss_name(ot_loss loss);
ot_loss loss_of_name(const char *name, size_t length);

// What a folder of artifacts says about its loss, or NULL: a line per term, "weight, loss, value,
// targets..." separated by tabs; behind the loss may stand " ignoring LABEL".
typedef struct loss_note {
    ot_loss loss; // of the first term, OT_LOSS_CUSTOM when nothing is known
    char *text;   // memory of the names
    const char *value;
    const char **targets; // of all terms; the first is the first term's
    int n_targets;
    bool has_ignored_label;
    int64_t ignored_label;
} loss_note;
int loss_note_parse(loss_note *note, const char *text); // the exit code; text may be NULL
void loss_note_deinit(loss_note *note);

#endif
