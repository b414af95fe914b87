// SPDX-License-Identifier: Apache-2.0
// Reading what a model's metadata say of its training. They come from anybody: numbers must be
// finite, names in order, and losses those that there are.
#include <math.h>
#include <string.h>

#include "train/record_internal.h"

static ot_status in_key(ot_status st, const char *key)
{
    return st == OT_ERR_FORMAT ? ot__error_prefix(st, "metadata '%s'", key) : st;
}

// ---- numbers ----

// A comma behind each but the last.
static ot_status read_record_numbers(ot__arena *arena, const char *text, const double **out, int *n)
{
    const size_t count = ot__count_char(text, ',') + 1;
    double *numbers = ot__arena_alloc(arena, count * sizeof *numbers);
    char *at = ot__arena_strdup(arena, text);

    OT_TRY(ot__made(at && numbers));
    for (size_t i = 0; i < count; i++) {
        char *next = ot__cut(at, ',');

        if (!ot__parse_float(at, &numbers[i]) || !isfinite(numbers[i]))
            return ot__error(OT_ERR_FORMAT, "'%.40s' is not a finite number", at);
        at = next;
    }
    *out = numbers;
    *n = (int)OT_MIN(count, (size_t)INT32_MAX);
    return OT_OK;
}

static ot_status read_key(ot_record *record, const ot_model *model, const char *key,
                          const double **out, int *n)
{
    const char *text = ot_model_metadata(model, key);

    *n = 0;
    return text ? in_key(read_record_numbers(record->arena, text, out, n), key) : OT_OK;
}

static ot_status read_record_data(ot_record *record, const ot_model *model)
{
    const double *scale = NULL;
    int n_scale, n_mean, n_std;

    OT_TRY(read_key(record, model, OT_METADATA_SCALE, &scale, &n_scale));
    OT_TRY(read_key(record, model, OT_METADATA_MEAN, &record->mean, &n_mean));
    OT_TRY(read_key(record, model, OT_METADATA_STD, &record->std, &n_std));
    if (n_scale > 1)
        return ot__error(OT_ERR_FORMAT, "metadata '%s' has %d numbers, expected one",
                         OT_METADATA_SCALE, n_scale);
    if (n_mean > 0 && n_std > 0 && n_mean != n_std)
        return ot__error(OT_ERR_FORMAT, "metadata '%s' has %d numbers, '%s' has %d",
                         OT_METADATA_MEAN, n_mean, OT_METADATA_STD, n_std);
    for (int i = 0; i < n_std; i++)
        if (!(record->std[i] > 0))
            return ot__error(OT_ERR_FORMAT, "metadata '%s': %g is not above 0", OT_METADATA_STD,
                             record->std[i]);
    record->has_data = scale || record->mean || record->std;
    record->scale = scale ? *scale : 1;
    record->n_channels = OT_MAX(OT_MAX(n_mean, n_std), 1);
    return OT_OK;
}

// ---- the loss ----

static ot_status make_weights(const ot__loss_term *term, const ot_tensor **out)
{
    const ot_shape shape = OT_SHAPE(term->n_weights);
    ot_tensor *weights;

    *out = NULL;
    if (term->n_weights == 0)
        return OT_OK;
    OT_TRY(ot_tensor_create(term->weights_dtype, &shape, &weights));
    ot__convert(ot_tensor_data(weights), term->weights_dtype, term->weights, OT_F64,
                term->n_weights);
    *out = weights;
    return OT_OK;
}

static ot_status take_loss_term(const ot__loss_term *term, ot_loss_options *out)
{
    const bool has_target = term->loss != OT_LOSS_CUSTOM && term->loss != OT_LOSS_NONE;

    if (has_target && term->n_targets != 1)
        return ot__error(OT_ERR_FORMAT, "a loss has %d targets, expected one", term->n_targets);
    *out = (ot_loss_options)OT_LOSS_OPTIONS_INIT;
    out->loss = term->loss;
    out->factor = term->factor;
    out->input = term->input;
    out->target = has_target ? term->targets[0] : NULL;
    out->reduction = term->reduction;
    out->has_ignore_index = term->has_ignored_label;
    out->ignore_index = term->ignored_label;
    out->class_axis = term->class_axis;
    return make_weights(term, &out->weight);
}

static ot_status take_terms(ot_record *record, const char *note)
{
    ot__loss_term *terms;
    int n;

    OT_TRY(ot__loss_parse(record->arena, note, &terms, &n));
    record->losses = ot__arena_alloc(record->arena, (size_t)(n + 1) * sizeof *record->losses);
    OT_TRY(ot__made(record->losses));
    for (int i = 0; i < n; i++) {
        record->n_losses = i + 1;
        OT_TRY(take_loss_term(&terms[i], &record->losses[i]));
    }
    return OT_OK;
}

// ---- the whole ----

static ot_status read_classes(ot_record *record, const ot_model *model)
{
    const char *text = ot_model_metadata(model, OT_METADATA_CLASSES);

    return text ? in_key(ot__class_names_read(record->arena, text, &record->class_names,
                                              &record->n_classes),
                         OT_METADATA_CLASSES)
                : OT_OK;
}

static ot_status read_record(ot_record *record, const ot_model *model)
{
    const char *note = ot_model_metadata(model, OT_METADATA_LOSS);

    record->arena = ot__arena_create();
    OT_TRY(ot__made(record->arena));
    if (note)
        OT_TRY(in_key(take_terms(record, note), OT_METADATA_LOSS));
    OT_TRY(read_record_data(record, model));
    OT_TRY(read_classes(record, model));
    return ot__record_say(record);
}

ot_status ot_record_read(const ot_model *model, ot_record **out)
{
    ot_record *record;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    record = ot__alloc_zero(1, sizeof *record);
    OT_TRY(ot__made(record));
    OT_ENTER(record);
    st = read_record(record, model);
    if (st == OT_OK && (record->n_losses > 0 || record->has_data || record->class_names)) {
        *out = record;
        record = NULL;
    }
    ot_record_destroy(record);
    return st;
}

void ot_record_destroy(ot_record *record)
{
    if (!OT_ENDS(record))
        return;
    for (int i = 0; i < record->n_losses; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)record->losses[i].weight);
    ot__arena_destroy(record->arena);
    ot__free(record);
}

const ot_loss_options *ot_record_losses(const ot_record *record, int *n_losses)
{
    if (n_losses)
        *n_losses = OT_IS_LIVE(record) ? record->n_losses : 0;
    return n_losses && *n_losses > 0 ? record->losses : NULL;
}

ot_status ot_record_data(const ot_record *record, ot_data_options *data,
                         ot_batches_options *batches)
{
    ot__data_taken taken;
    ot_batches_options own;

    OT_TRY(OT_OPTIONAL(record, "record"));
    OT_TRY(OT_GIVEN(data));
    OT_TRY(ot__data_options_take(data, &taken));
    OT_TRY(OT_OPTIONS_READ(ot_batches_options, OT_BATCHES_OPTIONS_INIT, batches, &own));
    if (record && record->has_data) {
        taken.data.scale = record->scale;
        taken.data.mean = record->mean;
        taken.data.std = record->std;
        taken.data.n_channels = record->n_channels;
    }
    if (record && record->class_names) {
        own.class_names = record->class_names;
        own.n_classes = record->n_classes;
    }
    ot__data_options_give(&taken, data);
    if (batches)
        ot__options_write(batches, &own, sizeof own);
    return OT_OK;
}
