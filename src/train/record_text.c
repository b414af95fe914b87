// SPDX-License-Identifier: Apache-2.0
// Records as people read them.
#include "train/record_internal.h"

enum { MAX_SHOWN = 8 };

void ot__record_say_losses(ot__buf *text, const ot_loss_options *losses, int n)
{
    for (int i = 0; i < n; i++) {
        const ot_loss_options *term = &losses[i];

        ot__buf_text(text, i > 0 ? " + " : "");
        if (term->factor != 1) {
            ot__buf_float(text, term->factor, false);
            ot__buf_text(text, "*");
        }
        ot__buf_text(text, term->loss == OT_LOSS_CUSTOM ? "a model" : ot__loss_name(term->loss));
        if (term->input)
            ot__buf_printf(text, ":%s", term->input);
        if (term->target)
            ot__buf_printf(text, "=%s", term->target);
    }
}

void ot__record_say_numbers(ot__buf *text, const double *numbers, int n)
{
    for (int i = 0; i < OT_MIN(n, MAX_SHOWN); i++) {
        ot__buf_text(text, i > 0 ? "," : "");
        ot__buf_float(text, numbers[i], false);
    }
    if (n > MAX_SHOWN)
        ot__buf_printf(text, ",... (%d)", n);
}

static void say_data(ot__buf *text, const ot_record *record)
{
    if (record->scale != 1) {
        ot__buf_text(text, ", scale ");
        ot__buf_float(text, record->scale, false);
    }
    if (record->mean) {
        ot__buf_text(text, ", mean ");
        ot__record_say_numbers(text, record->mean, record->n_channels);
    }
    if (record->std) {
        ot__buf_text(text, ", std ");
        ot__record_say_numbers(text, record->std, record->n_channels);
    }
}

ot_status ot__record_say(ot_record *record)
{
    ot__buf text = {0};
    ot_status st;
    char *copy;

    if (record->n_losses > 0) {
        ot__buf_text(&text, ", loss ");
        ot__record_say_losses(&text, record->losses, record->n_losses);
    }
    if (record->has_data)
        say_data(&text, record);
    if (record->class_names)
        ot__buf_printf(&text, ", classes %s to %s (%d)", record->class_names[0],
                       record->class_names[record->n_classes - 1], record->n_classes);
    st = ot__buf_status(&text);
    if (st == OT_OK) {
        copy = ot__arena_strdup(record->arena, text.length > 2 ? text.data + 2 : "");
        st = ot__made(copy);
        if (copy)
            ot__text_printable(copy);
        record->text = copy;
    }
    ot__buf_deinit(&text);
    return st;
}

const char *ot_record_text(const ot_record *record)
{
    return OT_IS_LIVE(record) ? record->text : "";
}
