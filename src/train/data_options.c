// SPDX-License-Identifier: Apache-2.0
// Options of data, as structs of this version, and whether they are complete.
#include "train/train.h"

static bool is_list(const char *const *items, int n)
{
    for (int i = 0; items != NULL && i < n; i++)
        if (items[i] == NULL)
            return false;
    return n == 0 || (n > 0 && items != NULL);
}

static ot_status check_data_options(const ot_data_options *options)
{
    if (!is_list(options->targets, options->n_targets) || !is_list(options->bind, options->n_bind))
        return ot__error(OT_ERR_INVALID, "%d targets and %d bindings, of which some are missing",
                         options->n_targets, options->n_bind);
    if (!is_list(options->probabilities, options->n_probabilities))
        return ot__error(OT_ERR_INVALID, "%d probabilities, of which some are missing",
                         options->n_probabilities);
    if ((options->mean != NULL || options->std != NULL) && options->n_channels < 1)
        return ot__error(OT_ERR_INVALID, "means or deviations of %d channels", options->n_channels);
    return OT_OK;
}

ot_status ot__data_options_take(const ot_data_options *given, ot__data_taken *taken)
{
    OT_TRY(OT_OPTIONS_READ(ot_data_options, OT_DATA_OPTIONS_INIT, given, &taken->data));
    taken->given_batches = taken->data.batches;
    OT_TRY(OT_OPTIONS_READ(ot_batches_options, OT_BATCHES_OPTIONS_INIT, taken->given_batches,
                           &taken->batches));
    taken->data.batches = &taken->batches;
    OT_TRY(OT_OPTIONAL(taken->data.forward, "forward"));
    return check_data_options(&taken->data);
}

void ot__data_options_give(const ot__data_taken *taken, ot_data_options *to)
{
    ot_data_options data = taken->data;

    data.batches = taken->given_batches;
    ot__options_write(to, &data, sizeof data);
}
