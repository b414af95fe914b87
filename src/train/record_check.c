// SPDX-License-Identifier: Apache-2.0
// Whether what somebody says of loss and data is what a model was trained with.
#include <string.h>

#include "train/record_internal.h"

// ---- messages ----

// The two strings, which are then freed, as what is given and what is recorded under `name`.
static ot_status record_differs(const char *name, ot__buf *given, ot__buf *recorded)
{
    ot_status st = ot__buf_status(given);

    OT_THEN(st, ot__buf_status(recorded));
    OT_THEN(st, ot__error(OT_ERR_INVALID, "%s: %s is given, the model was trained with %s", name,
                          given->data, recorded->data));
    ot__buf_deinit(given);
    ot__buf_deinit(recorded);
    return st;
}

static void say_weights(ot__buf *text, const ot_tensor *weights)
{
    if (!weights)
        ot__buf_text(text, "none");
    for (int64_t i = 0; weights && i < ot_tensor_count(weights); i++) {
        ot__buf_text(text, i > 0 ? "," : "");
        ot__buf_float(text, ot__tensor_get_f64(weights, i), ot_tensor_dtype(weights) == OT_F32);
    }
}

static void say_ignored(ot__buf *text, const ot_loss_options *term)
{
    if (term->has_ignore_index)
        ot__buf_printf(text, "%" PRId64, term->ignore_index);
    else
        ot__buf_text(text, "none");
}

// ---- the loss ----

static bool same_name(const char *given, const char *recorded)
{
    return !given || (recorded && strcmp(given, recorded) == 0);
}

static ot_status check_terms(const ot_record *record, const ot_record_given *given)
{
    bool is_same = given->n_losses == record->n_losses;
    ot__buf a = {0}, b = {0};

    for (int i = 0; is_same && i < record->n_losses; i++) {
        const ot_loss_options *x = &given->losses[i], *y = &record->losses[i];

        is_same = x->loss == y->loss && x->factor == y->factor && same_name(x->input, y->input) &&
                  same_name(x->target, y->target);
    }
    if (is_same)
        return OT_OK;
    ot__record_say_losses(&a, given->losses, given->n_losses);
    ot__record_say_losses(&b, record->losses, record->n_losses);
    return record_differs("loss", &a, &b);
}

static bool same_weights(const ot_tensor *a, const ot_tensor *b)
{
    bool is_same = a && b && ot_tensor_count(a) == ot_tensor_count(b);

    for (int64_t i = 0; is_same && i < ot_tensor_count(a); i++)
        is_same = ot__tensor_get_f64(a, i) == ot__tensor_get_f64(b, i);
    return is_same;
}

static ot_status check_record_classes(const ot_loss_options *term, const ot_record_given *given)
{
    ot__buf a = {0}, b = {0};

    if (given->class_weights && !same_weights(given->class_weights, term->weight)) {
        say_weights(&a, given->class_weights);
        say_weights(&b, term->weight);
        return record_differs("class_weights", &a, &b);
    }
    if (given->ignore_index &&
        !(term->has_ignore_index && *given->ignore_index == term->ignore_index)) {
        ot__buf_printf(&a, "%" PRId64, *given->ignore_index);
        say_ignored(&b, term);
        return record_differs("ignore_index", &a, &b);
    }
    if (given->class_axis && *given->class_axis != term->class_axis) {
        ot__buf_printf(&a, "%d", *given->class_axis);
        ot__buf_printf(&b, "%d", term->class_axis);
        return record_differs("class_axis", &a, &b);
    }
    return OT_OK;
}

static ot_status check_losses(const ot_record *record, const ot_record_given *given)
{
    const bool is_told = given->class_weights || given->ignore_index || given->class_axis;
    bool has_classes = false;

    if (given->losses)
        OT_TRY(check_terms(record, given));
    for (int i = 0; i < record->n_losses; i++) {
        const ot_loss_options *term = &record->losses[i];

        if (given->reduction && term->loss != OT_LOSS_NONE &&
            *given->reduction != term->reduction) {
            ot__buf a = {0}, b = {0};

            ot__buf_text(&a, ot__reduction_name(*given->reduction));
            ot__buf_text(&b, ot__reduction_name(term->reduction));
            return record_differs("reduction", &a, &b);
        }
        has_classes = has_classes || term->loss == OT_LOSS_CROSS_ENTROPY;
        if (term->loss == OT_LOSS_CROSS_ENTROPY)
            OT_TRY(check_record_classes(term, given));
    }
    if (record->n_losses > 0 && is_told && !has_classes)
        return ot__error(OT_ERR_INVALID, "%s: the model was trained without cross-entropy",
                         given->class_weights  ? "class_weights"
                         : given->ignore_index ? "ignore_index"
                                               : "class_axis");
    return OT_OK;
}

// ---- the data ----

static ot_status check_numbers(const char *name, const double *given, int n_given,
                               const double *recorded, int n_recorded)
{
    bool is_same = recorded && n_given == n_recorded;
    ot__buf a = {0}, b = {0};

    for (int i = 0; is_same && i < n_given; i++)
        is_same = given[i] == recorded[i];
    if (is_same)
        return OT_OK;
    ot__record_say_numbers(&a, given, n_given);
    if (recorded)
        ot__record_say_numbers(&b, recorded, n_recorded);
    else
        ot__buf_text(&b, "none");
    return record_differs(name, &a, &b);
}

static ot_status check_data(const ot_record *record, const ot_record_given *given)
{
    if (given->scale)
        OT_TRY(check_numbers("scale", given->scale, 1, &record->scale, 1));
    if (given->mean)
        OT_TRY(check_numbers("mean", given->mean, given->n_mean, record->mean, record->n_channels));
    if (given->std)
        OT_TRY(check_numbers("std", given->std, given->n_std, record->std, record->n_channels));
    return OT_OK;
}

static ot_status check_record(const ot_record *record, const ot_record_given *given)
{
    if (record->n_losses > 0)
        OT_TRY(check_losses(record, given));
    return record->has_data ? check_data(record, given) : OT_OK;
}

ot_status ot_record_check(const ot_record *record, const ot_record_given *given)
{
    static const ot_loss_options loss_defaults = OT_LOSS_OPTIONS_INIT;
    ot_record_given own;
    ot_loss_options *losses;
    ot_status st;

    OT_TRY(OT_OPTIONAL(record, "record"));
    OT_TRY(OT_GIVEN(given));
    OT_TRY(OT_OPTIONS_READ(ot_record_given, OT_RECORD_GIVEN_INIT, given, &own));
    OT_TRY(OT_GIVEN_MANY(own.losses, own.n_losses));
    OT_TRY(OT_GIVEN_MANY(own.mean, own.n_mean));
    OT_TRY(OT_GIVEN_MANY(own.std, own.n_std));
    OT_TRY(OT_OPTIONAL(own.class_weights, "class_weights"));
    losses = ot__alloc_zero((size_t)own.n_losses + 1, sizeof *losses);
    OT_TRY(ot__made(losses));
    st = ot__options_read_all("ot_loss_options", own.losses, own.n_losses, &loss_defaults, losses,
                              sizeof *losses);
    own.losses = own.losses ? losses : NULL;
    if (st == OT_OK && record)
        st = check_record(record, &own);
    ot__free(losses);
    return st;
}
