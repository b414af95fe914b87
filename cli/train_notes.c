// SPDX-License-Identifier: Apache-2.0
// What is refused or noted before a run begins.
#include <string.h>

#include "report.h"
#include "train_config.h"

// What the making of artifacts decides; NULL: nothing of it is asked for.
static const char *built_in_option(const ot_trainer_options *options)
{
    return options->n_frozen_weights > 0            ? "utils.frozen_weights"
           : !options->grad_norm_clip               ? "utils.grad_norm_clip"
           : options->skip_non_finite               ? "onnxtrain.skip_non_finite"
           : options->average_decay > 0             ? "onnxtrain.average_decay"
           : options->mixed_precision               ? "mixed_precision.enabled"
           : options->precision != OT_PRECISION_F32 ? "onnxtrain.precision"
                                                    : NULL;
}

// What a trainer of the library honours and this command does not.
int train_check_honoured(const train_run *r)
{
    const ot_trainer_options *o = &r->trainer_options;

    if (r->from_folder && built_in_option(o))
        return report_text("options.%s: the artifacts in '%s' have this built in; make them anew "
                           "from the model",
                           built_in_option(o), r->path);
    return EXIT_SUCCESS;
}

static bool note_left_over(train_run *r, const ot_batches *batches, const char *rows)
{
    char text[200];

    return !data_left_over(batches, rows, text, sizeof(text)) || progress_note(&r->progress, text);
}

// As the command line calls it, or the configuration.
static const char *optimizer_shown(const train_run *r)
{
    const char *operator= optimizer_operator(&r->values->model);

    return operator&& strcmp(operator, r->optimizer.name) == 0 ? optimizer_name(&r->values->model)
                                                               : r->optimizer.name;
}

// Plain SGD goes on from any state; every other rule refuses the moments of another, and finds none
// after plain SGD. A checkpoint of another maker does not say.
static bool note_moments(train_run *r)
{
    const bool is_plain = strcmp(r->optimizer.name, "SGDOptimizerV2") == 0;
    ot_property_kind kind;
    char text[200];

    if (!r->resumed || r->from_folder || is_plain == !r->moments_of[0] ||
        ot_checkpoint_property_kind_of(r->resumed, "onnxtrain.epoch", &kind) != OT_OK)
        return true;
    if (is_plain)
        snprintf(text, sizeof(text),
                 "the run was made with %s: sgd goes on from its parameters and drops its moments",
                 r->moments_of);
    else
        snprintf(text, sizeof(text),
                 "the run was made with sgd: %s goes on from its parameters with new moments, "
                 "after step %lld",
                 optimizer_shown(r), (long long)ot_session_step_count(r->session));
    return progress_note(&r->progress, text);
}

// Of artifacts only the learning rate is open.
static bool note_optimizer(train_run *r)
{
    return !r->from_folder || !train_config_names_optimizer() ||
           progress_note(&r->progress, "of the configuration's optimizer only the learning rate "
                                       "counts: the artifacts have theirs built in");
}

int train_note_all(train_run *r)
{
    for (int i = 0; i < ot_artifacts_note_count(r->artifacts); i++)
        if (!progress_note(&r->progress, ot_artifacts_note(r->artifacts, i, NULL)))
            return report_text("out of memory");
    if (!note_left_over(r, r->data.training, "training rows") ||
        !note_left_over(r, r->data.validation, "validation rows") || !note_moments(r) ||
        !note_optimizer(r))
        return report_text("out of memory");
    return EXIT_SUCCESS;
}
