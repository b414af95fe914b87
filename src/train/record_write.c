// SPDX-License-Identifier: Apache-2.0
// Writing what a model's metadata say of its training, so that numbers read back the same.
#include <string.h>

#include "train/record_internal.h"

static ot_status write_numbers(ot_model *model, const char *key, const double *numbers, int n)
{
    ot__buf text = {0};

    for (int i = 0; i < n; i++) {
        ot__buf_text(&text, i > 0 ? "," : "");
        ot__buf_float(&text, numbers[i], false);
    }
    return ot__model_set_metadata_text(model, key, &text);
}

static ot_status write_classes(ot_model *model, const char *const *names, int n)
{
    ot__buf text = {0};

    ot__class_names_write(&text, names, n);
    return ot__model_set_metadata_text(model, OT_METADATA_CLASSES, &text);
}

// Artifacts without a term pass the forward model's first output through as the loss.
static ot_status write_loss(ot_model *model, const ot_artifacts *artifacts, const ot_model *forward)
{
    const char *note = ot_model_metadata(artifacts->training, OT_METADATA_LOSS);
    const char *loss = ot_model_output_name(artifacts->training, 0);
    const char *output = ot_model_output_name(forward, 0);
    ot__buf text = {0};

    if (note)
        return ot_model_set_metadata(model, OT_METADATA_LOSS, note);
    if (!loss || !output || strcmp(loss, output) != 0 || strpbrk(output, "\t\n"))
        return OT_OK;
    ot__buf_printf(&text, "1\tnone\t%s\n", output);
    return ot__model_set_metadata_text(model, OT_METADATA_LOSS, &text);
}

static ot_status write_record_data(ot_model *model, const ot_data_options *data)
{
    const ot_batches_options *batches = data->batches;

    OT_TRY(write_numbers(model, OT_METADATA_SCALE, &data->scale, 1));
    if (data->mean)
        OT_TRY(write_numbers(model, OT_METADATA_MEAN, data->mean, data->n_channels));
    if (data->std)
        OT_TRY(write_numbers(model, OT_METADATA_STD, data->std, data->n_channels));
    return batches->class_names && batches->n_classes > 0
               ? write_classes(model, batches->class_names, batches->n_classes)
               : OT_OK;
}

ot_status ot_record_write(ot_model *model, const ot_artifacts *artifacts,
                          const ot_data_options *data)
{
    ot__data_taken taken;

    OT_TRY(OT_GIVEN(model));
    OT_TRY(OT_GIVEN(artifacts));
    OT_TRY(ot__data_options_take(data, &taken));
    OT_TRY(ot__record_drop(model));
    OT_TRY(write_loss(model, artifacts, taken.data.forward));
    return data ? write_record_data(model, &taken.data) : OT_OK;
}
