// SPDX-License-Identifier: Apache-2.0
// Which fields an input takes, and whether their shape and type fit.
#include "data/bind.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 1 << 16 };

static ot_status add_fields(ot__bound *bound, const ot_dataset *dataset, int first, int last)
{
    const ot__field **grown;

    for (int i = first; i <= last; i++)
        if (dataset->fields[i].fault)
            return ot__error(OT_ERR_UNSUPPORTED, "input '%s': %s", bound->input,
                             dataset->fields[i].fault);
    grown =
        ot__realloc(bound->fields, (size_t)(bound->n_fields + last - first + 1) * sizeof(*grown));
    OT_TRY(ot__made(grown));
    bound->fields = grown;
    for (int i = first; i <= last; i++)
        bound->fields[bound->n_fields++] = &dataset->fields[i];
    return OT_OK;
}

static ot_status find_bound_fields(ot__bound *bound, const ot_dataset *dataset, const char *spec)
{
    int first, last;

    while (spec) {
        OT_TRY(ot__dataset_next_fields(dataset, bound->input, &spec, &first, &last));
        OT_TRY(add_fields(bound, dataset, first, last));
    }
    for (int i = 0; bound->n_fields > 1 && i < bound->n_fields; i++)
        if (bound->fields[i]->is_array || bound->fields[i]->source != bound->fields[0]->source)
            return ot__error(OT_ERR_INVALID,
                             "input '%s': '%s' is not a column of the same CSV as '%s'",
                             bound->input, bound->fields[i]->name, bound->fields[0]->name);
    return OT_OK;
}

// "MedInc to Longitude" for columns that stand side by side, else their names.
static const char *columns_text(const ot__bound *bound, ot__names *names)
{
    const int n = bound->n_fields;

    for (int i = 0; i < n; i++)
        ot__names_add(names, bound->fields[i]->name);
    for (int i = 1; i < n; i++)
        if (bound->fields[i]->column != bound->fields[i - 1]->column + 1 || n == 2)
            return ot__names_list(names, "columns");
    names->is_long = true;
    return ot__names_list(names, "columns");
}

static ot_status refuse_shape(const ot__bound *bound, const ot_shape *wanted)
{
    const ot__field *field = bound->fields[0];
    const char *wanted_text = OT_SHAPE_TEXT(wanted);
    ot__names names = {.wanted = ""};

    if (bound->n_fields > 1)
        return ot__error(OT_ERR_INVALID, "input '%s' wants rows of %s, got the columns %s",
                         bound->input, wanted_text, columns_text(bound, &names));
    if (field->is_array && field->row_shape.ndim == 0)
        return ot__error(OT_ERR_INVALID,
                         "input '%s' wants rows of %s, field '%s' has one number a row",
                         bound->input, wanted_text, field->name);
    if (wanted->ndim == 0)
        wanted_text = "one number";
    return ot__error(OT_ERR_INVALID, "input '%s' wants rows of %s, field '%s' has %s", bound->input,
                     wanted_text, field->name,
                     OT_SHAPE_TEXT(field->is_array ? &field->row_shape : &(ot_shape){1, {1}}));
}

// The row's shape as the model wants it: same elements; one extent below 0 takes what is left, more
// take the data's.
static ot_status fit_shape(ot__bound *bound, const ot_shape *wanted)
{
    const ot__field *field = bound->fields[0];
    int64_t have = field->is_array ? field->row_count : bound->n_fields, known = 1;
    int n_free = 0, free_axis = 0;

    bound->row_count = have;
    bound->row_shape = *wanted;
    for (int i = 0; i < wanted->ndim; i++) {
        if (wanted->dim[i] < 0) {
            n_free++;
            free_axis = i;
        } else if (ot__mul_overflows(known, wanted->dim[i], &known)) {
            known = -1; // no row has so many
        }
        if (known < 0)
            break;
    }
    if (n_free == 1 && known > 0 && have % known == 0)
        bound->row_shape.dim[free_axis] = have / known;
    else if (n_free > 1 && field->is_array && field->row_shape.ndim == wanted->ndim)
        bound->row_shape = field->row_shape;
    else if (n_free > 0 || known != have)
        return refuse_shape(bound, wanted);
    return OT_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// The different strings of the label column, sorted.
static ot_status find_classes(ot__bound *bound)
{
    ot__map seen = {0};
    ot__buf text = {0};
    ot_status st = OT_OK;

    bound->class_names = ot__alloc_zero(MAX_CLASSES, sizeof(char *));
    OT_TRY(ot__made(bound->class_names));
    for (int64_t row = 0; st == OT_OK && row < bound->fields[0]->rows; row++) {
        st = ot__csv_row(bound->fields[0]->source, row, &bound->window, bound->cells);
        if (st != OT_OK)
            break;
        if (ot__cell_is_empty(&bound->cells[bound->fields[0]->column])) {
            st = ot__bound_bad_value(bound, row, 0, "is missing");
            break;
        }
        text.length = 0;
        ot__buf_append(&text, "", 0);
        ot__cell_text(&bound->cells[bound->fields[0]->column], &text);
        st = ot__buf_status(&text);
        if (st != OT_OK || ot__map_get(&seen, text.data))
            continue;
        if (bound->n_class_names == MAX_CLASSES) {
            st = ot__error(OT_ERR_INVALID, "label column '%s' has more than %d different strings",
                           bound->fields[0]->name, MAX_CLASSES);
            break;
        }
        char *name = ot__strdup(text.data);
        if (!name || !ot__map_put(&seen, name, name)) {
            ot__free(name);
            st = OT_ERR_NO_MEMORY;
            break;
        }
        bound->class_names[bound->n_class_names++] = name;
    }
    ot__map_deinit(&seen);
    ot__buf_deinit(&text);
    qsort(bound->class_names, (size_t)bound->n_class_names, sizeof(char *), compare_names);
    return st;
}

static ot_status copy_classes(ot__bound *bound, const char *const *names, int n)
{
    bound->class_names = ot__alloc_zero((size_t)n + 1, sizeof(char *));
    OT_TRY(ot__made(bound->class_names));
    for (int i = 0; i < n; i++) {
        bound->class_names[i] = ot__strdup(names[i]);
        OT_TRY(ot__made(bound->class_names[i]));
        bound->n_class_names = i + 1;
    }
    return OT_OK;
}

static ot_status copy_numbers(const double *from, int n, double **out)
{
    if (!from)
        return OT_OK;
    *out = ot__alloc((size_t)n * sizeof(**out));
    OT_TRY(ot__made(*out));
    memcpy(*out, from, (size_t)n * sizeof(**out));
    return OT_OK;
}

static ot_status check_image_channels(const ot__bound *bound)
{
    for (int i = 0; bound->std && i < bound->n_channels; i++)
        if (!(bound->std[i] > 0))
            return ot__error(OT_ERR_INVALID, "input '%s': standard deviation %g is not above 0",
                             bound->input, bound->std[i]);
    if ((bound->mean || bound->std) && bound->n_channels != 1 &&
        (bound->row_shape.ndim == 0 || bound->row_shape.dim[0] != bound->n_channels))
        return ot__error(
            OT_ERR_INVALID, "input '%s': %d means or deviations for rows of %" PRId64 " channels",
            bound->input, bound->n_channels, bound->row_shape.ndim ? bound->row_shape.dim[0] : 1);
    return OT_OK;
}

static ot_status make_tensor(ot__bound *bound, int64_t batch_size)
{
    ot_shape shape = {.ndim = bound->row_shape.ndim + 1, .dim = {batch_size}};

    if (shape.ndim > OT_MAX_NDIM)
        return ot__error(OT_ERR_INVALID, "input '%s' has more than %d axes", bound->input,
                         OT_MAX_NDIM);
    memcpy(shape.dim + 1, bound->row_shape.dim, (size_t)bound->row_shape.ndim * sizeof(int64_t));
    return ot_tensor_create(bound->dtype, &shape, &bound->tensor);
}

ot_status ot__bound_find(ot__bound *bound, const ot_dataset *dataset, const ot_binding *binding)
{
    if (!binding->input || !binding->fields)
        return ot__error(OT_ERR_INVALID, "the %s of a binding is NULL",
                         binding->input ? "field" : "input");
    *bound = (ot__bound){.input = ot__strdup(binding->input)};
    return bound->input ? find_bound_fields(bound, dataset, binding->fields) : OT_ERR_NO_MEMORY;
}

ot_status ot__bound_init(ot__bound *bound, const ot_binding *binding,
                         const ot_batches_options *options)
{
    bound->dtype = binding->dtype;
    bound->scale = binding->scale;
    bound->n_channels = binding->n_channels;
    bound->is_class = binding->is_class != 0;
    bound->is_probability = binding->is_probability != 0;
    bound->has_ignored_label = options->has_ignored_label != 0;
    bound->ignored_label = options->ignored_label;
    OT_TRY(fit_shape(bound, &binding->shape));
    OT_TRY(copy_numbers(binding->mean, binding->n_channels, &bound->mean));
    OT_TRY(copy_numbers(binding->std, binding->n_channels, &bound->std));
    OT_TRY(check_image_channels(bound));
    bound->values = ot__alloc((size_t)OT_MAX(bound->row_count, 1) * sizeof(double));
    OT_TRY(ot__made(bound->values));
    if (!bound->fields[0]->is_array) {
        bound->cells =
            ot__alloc_zero((size_t)bound->fields[0]->source->n_columns, sizeof(ot__cell));
        OT_TRY(ot__made(bound->cells));
    }
    if (bound->is_class && bound->fields[0]->dtype == OT_STRING)
        OT_TRY(options->class_names ? copy_classes(bound, options->class_names, options->n_classes)
                                    : find_classes(bound));
    return make_tensor(bound, options->batch_size);
}

void ot__bound_deinit(ot__bound *bound)
{
    ot_tensor_destroy(bound->tensor);
    ot__window_deinit(&bound->window);
    for (int i = 0; bound->class_names && i < bound->n_class_names; i++)
        ot__free(bound->class_names[i]);
    ot__free(bound->class_names);
    ot__free(bound->cells);
    ot__free(bound->values);
    ot__free(bound->mean);
    ot__free(bound->std);
    ot__free(bound->fields);
    ot__free(bound->input);
    *bound = (ot__bound){0};
}
