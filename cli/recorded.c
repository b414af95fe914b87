// SPDX-License-Identifier: Apache-2.0
#include "recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

int recorded_read(const ot_model *model, bool is_ignored, ot_record **out)
{
    *out = NULL;
    return is_ignored || ot_record_read(model, out) == OT_OK ? EXIT_SUCCESS : report_error();
}

bool recorded_has_loss(const ot_record *record)
{
    int n;

    return ot_record_losses(record, &n) != NULL;
}

bool recorded_has_data(const ot_record *record)
{
    ot_data_options data = OT_DATA_OPTIONS_INIT;
    ot_batches_options batches = OT_BATCHES_OPTIONS_INIT;

    data.scale = NAN;
    return ot_record_data(record, &data, &batches) == OT_OK &&
           (!isnan(data.scale) || batches.class_names);
}

// The library's message begins with the name of a field.
static int report_difference(void)
{
    char *message = strdup(ot_error_message());

    if (!message)
        return report_text("out of memory");
    for (char *p = message; *p && *p != ':'; p++)
        if (*p == '_')
            *p = '-';
    report_text("--%s; --ignore-recorded takes what is given", message);
    free(message);
    return EXIT_FAILED;
}

int recorded_terms(model_setup *setup)
{
    int n;
    const ot_loss_options *recorded = ot_record_losses(setup->record, &n);

    if (loss_terms_init(&setup->loss, n) != EXIT_SUCCESS)
        return EXIT_FAILED;
    setup->loss.count = n;
    memcpy(setup->loss.items, recorded, (size_t)n * sizeof(*recorded));
    for (int i = 0; i < n; i++) {
        setup->loss.items[i].input = NULL; // for --loss-input and --target
        setup->loss.items[i].target = NULL;
    }
    return EXIT_SUCCESS;
}

int recorded_take_loss(model_setup *setup, const model_values *values, const ot_model *model,
                       int64_t ignored_label)
{
    const ot_reduction reduction = (ot_reduction)values->reduction;
    const int class_axis = values->class_axis == 0 ? 1 : -1;
    ot_record_given given = OT_RECORD_GIVEN_INIT;
    int n;
    const ot_loss_options *recorded = ot_record_losses(setup->record, &n);

    given.losses = setup->loss.items;
    given.n_losses = setup->loss.count;
    given.reduction = option_is_given("reduction") ? &reduction : NULL;
    given.class_weights = setup->class_weights;
    given.ignore_index = values->ignore_index ? &ignored_label : NULL;
    given.class_axis = option_is_given("class-axis") ? &class_axis : NULL;
    if (ot_record_check(setup->record, &given) != OT_OK)
        return report_difference();
    for (int i = 0; i < n; i++) {
        setup->loss.items[i] = recorded[i];
        setup->loss.items[i].custom = setup->loss.custom[i];
        if (recorded[i].loss == OT_LOSS_CUSTOM && !setup->loss.custom[i])
            return report_text("the model was trained with a loss from a file, which --loss says");
    }
    if (n == 1 && recorded[0].loss == OT_LOSS_NONE && recorded[0].factor == 1 &&
        recorded[0].input && strcmp(recorded[0].input, ot_model_output_name(model, 0)) == 0)
        setup->loss.items[0].input = NULL; // the first output, as without a name
    return EXIT_SUCCESS;
}

int recorded_take_data(const ot_record *record, const data_values *values, int n_mean, int n_std,
                       ot_data_options *options, ot_batches_options *batches)
{
    ot_record_given given = OT_RECORD_GIVEN_INIT;

    given.scale = option_is_given("scale") ? &values->scale : NULL;
    given.mean = options->mean;
    given.n_mean = options->mean ? n_mean : 0;
    given.std = options->std;
    given.n_std = options->std ? n_std : 0;
    if (ot_record_check(record, &given) != OT_OK)
        return report_difference();
    return ot_record_data(record, options, batches) == OT_OK ? EXIT_SUCCESS : report_error();
}

void recorded_say(FILE *out, const ot_record *record)
{
    if (record)
        fprintf(out, "as the model was trained: %s\n", ot_record_text(record));
}
