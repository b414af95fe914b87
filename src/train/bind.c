// SPDX-License-Identifier: Apache-2.0
// Which fields of a dataset the inputs of a session take.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "train/bind.h"

typedef struct binder {
    const ot_dataset *dataset;
    const ot_data_options *options;
    ot__inputs *inputs;
    bool *taken; // per field
} binder;

// Columns of CSV files and nothing else.
static bool is_csv(const ot_dataset *dataset)
{
    for (int i = 0; i < dataset->n_fields; i++)
        if (dataset->fields[i].is_array || dataset->fields[i].fault != NULL)
            return false;
    return dataset->n_fields > 0;
}

// ---- as it is said ----

static ot_status no_input(const ot__inputs *inputs, const char *text, size_t length)
{
    enum { MOST_LETTERS = 128 };
    char name[MOST_LETTERS];
    ot__names names = {.wanted = name};

    snprintf(name, sizeof name, "%.*s", (int)OT_MIN(length, sizeof name), text);
    for (int i = 0; i < inputs->count; i++)
        ot__names_add(&names, inputs->bindings[i].input);
    return ot__error(OT_ERR_INVALID, "bind: there is no input '%s', but %s%s", name,
                     ot__names_list(&names, "inputs"), ot__names_hint(&names));
}

static ot_status bind_as_told(binder *b)
{
    const ot__inputs *inputs = b->inputs;

    for (int k = 0; k < b->options->n_bind; k++) {
        const char *text = b->options->bind[k], *equals = strchr(text, '=');
        bool is_known = false;

        if (equals == NULL)
            return ot__error(OT_ERR_INVALID, "bind: '%s' is not INPUT=FIELD", text);
        for (int i = 0; i < inputs->count; i++) {
            ot_binding *binding = &inputs->bindings[i];
            const size_t length = strlen(binding->input);

            if (length != (size_t)(equals - text) || strncmp(binding->input, text, length) != 0)
                continue;
            is_known = true;
            if (binding->fields == NULL)
                binding->fields = equals + 1;
        }
        if (!is_known)
            return no_input(inputs, text, (size_t)(equals - text));
    }
    return OT_OK;
}

// The first target takes the field of the label, or that of its name, or being the only one the
// last column of a CSV.
static ot_status bind_target(binder *b)
{
    const char *label = b->options->label;
    ot_binding *target = b->inputs->target >= 0 ? &b->inputs->bindings[b->inputs->target] : NULL;
    int field;

    if (target == NULL)
        return label != NULL ? ot__error(OT_ERR_INVALID, "label: the model has no target input")
                             : OT_OK;
    if (target->fields != NULL)
        return OT_OK;
    field = label != NULL ? ot__dataset_find(b->dataset, label, strlen(label))
                          : ot__dataset_find_name(b->dataset, target->input, strlen(target->input));
    if (field < 0 && label != NULL) {
        (void)ot__dataset_no_field(b->dataset, label);
        return ot__error_prefix(OT_ERR_INVALID, "label");
    }
    if (field < 0 && b->inputs->n_targets == 1 && is_csv(b->dataset))
        field = b->dataset->n_fields - 1;
    if (field >= 0)
        target->fields = b->dataset->fields[field].name;
    return OT_OK;
}

static void bind_by_name(binder *b)
{
    for (int i = 0; i < b->inputs->count; i++) {
        ot_binding *binding = &b->inputs->bindings[i];

        if (binding->fields == NULL &&
            ot__dataset_find_name(b->dataset, binding->input, strlen(binding->input)) >= 0)
            binding->fields = binding->input;
    }
}

// ---- what is left ----

static ot_status find_taken(binder *b)
{
    int first, last;

    for (int i = 0; i < b->inputs->count; i++) {
        const ot_binding *binding = &b->inputs->bindings[i];
        const char *text = binding->fields;

        while (text != NULL) {
            OT_TRY(ot__dataset_next_fields(b->dataset, binding->input, &text, &first, &last));
            for (int f = first; f <= last; f++)
                b->taken[f] = true;
        }
    }
    return OT_OK;
}

// All columns that no input has, as ranges of positions: "#0:#63".
static ot_status other_columns(const binder *b, ot__buf *out)
{
    const int n = b->dataset->n_fields;
    char range[32];

    for (int i = 0; i < n; i++) {
        int last = i;

        if (b->taken[i])
            continue;
        while (last + 1 < n && !b->taken[last + 1])
            last++;
        snprintf(range, sizeof range, "%s#%d:#%d", out->length > 0 ? "," : "", i, last);
        ot__buf_append(out, range, strlen(range));
        i = last;
    }
    return ot__buf_status(out);
}

// One input takes what is left of a CSV's columns; several must say which.
static ot_status bind_columns(binder *b)
{
    ot__inputs *inputs = b->inputs;
    int input = 0;

    while (input < inputs->count &&
           (inputs->bindings[input].fields != NULL || inputs->is_target[input]))
        input++;
    if (input == inputs->count)
        return OT_OK;
    OT_TRY(other_columns(b, &inputs->columns));
    if (inputs->columns.length > 0)
        inputs->bindings[input].fields = inputs->columns.data;
    return OT_OK;
}

static void bind_in_order(binder *b)
{
    const ot_dataset *dataset = b->dataset;
    int f = 0;

    for (int i = 0; i < b->inputs->count; i++) {
        if (b->inputs->bindings[i].fields != NULL)
            continue;
        while (f < dataset->n_fields && (b->taken[f] || dataset->fields[f].fault != NULL))
            f++;
        if (f < dataset->n_fields)
            b->inputs->bindings[i].fields = dataset->fields[f++].name;
    }
}

static ot_status nothing_left(const binder *b, const char *input)
{
    ot__names names = {.wanted = input};

    for (int i = 0; i < b->dataset->n_fields; i++)
        ot__names_add(&names, b->dataset->fields[i].name);
    return ot__error(OT_ERR_INVALID,
                     "nothing in the data is left for input '%s'; bind %s=FIELD names it, of %s",
                     input, input, ot__names_list(&names, "fields"));
}

static ot_status bind_fields(binder *b)
{
    OT_TRY(bind_as_told(b));
    OT_TRY(bind_target(b));
    bind_by_name(b);
    OT_TRY(find_taken(b));
    if (is_csv(b->dataset))
        OT_TRY(bind_columns(b));
    else
        bind_in_order(b);
    for (int i = 0; i < b->inputs->count; i++)
        if (b->inputs->bindings[i].fields == NULL)
            return nothing_left(b, b->inputs->bindings[i].input);
    return OT_OK;
}

ot_status ot__inputs_bind(ot__inputs *inputs, const ot_dataset *dataset,
                          const ot_data_options *options)
{
    binder b = {.dataset = dataset, .options = options, .inputs = inputs};
    ot_status st;

    inputs->columns.length = 0;
    for (int i = 0; i < inputs->count; i++)
        inputs->bindings[i].fields = NULL;
    b.taken = ot__alloc_zero((size_t)dataset->n_fields + 1, sizeof(*b.taken));
    OT_TRY(ot__made(b.taken != NULL));
    st = bind_fields(&b);
    ot__free(b.taken);
    return st;
}
