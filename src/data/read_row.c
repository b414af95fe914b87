// SPDX-License-Identifier: Apache-2.0
// One row of a field into a batch: numbers in f64, scaled, checked, then converted to the input's
// type.
#include <float.h>
#include <math.h>
#include <string.h>

#include "data/bind.h"

static void swap_bytes(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size / 2; i++) {
        uint8_t kept = bytes[i];
        bytes[i] = bytes[size - 1 - i];
        bytes[size - 1 - i] = kept;
    }
}

// Elements of a row that lie together.
static ot_status find_dataset_row(ot__bound *bound, int64_t row, const uint8_t **out)
{
    const ot__field *field = bound->fields[0];
    const size_t n = (size_t)field->row_count * ot_dtype_size(field->dtype);
    const uint64_t at = field->offset + (uint64_t)row * n;

    if (field->data) {
        *out = field->data + (size_t)row * n;
        return OT_OK;
    }
    OT_TRY(ot__window_move_to_row(&bound->window, field->source, row, at, n));
    *out = ot__window_at(&bound->window, at);
    return OT_OK;
}

// Element `i` of row `row` in Fortran order, where the first axis, the rows, runs fastest.
static const uint8_t *fortran_element(const ot__field *field, int64_t rows, int64_t row, int64_t i)
{
    const size_t size = ot_dtype_size(field->dtype);
    int64_t offset = row, stride = rows, rest = i, inner = field->row_count;

    for (int k = 0; k < field->row_shape.ndim; k++) {
        inner /= field->row_shape.dim[k];
        offset += rest / inner * stride;
        rest %= inner;
        stride *= field->row_shape.dim[k];
    }
    return field->data + (size_t)offset * size;
}

// `elements` are those of the row, but in Fortran order.
static void read_array(const ot__field *field, const uint8_t *elements, int64_t rows, int64_t row,
                       double *values)
{
    const size_t size = ot_dtype_size(field->dtype);
    uint8_t element[16];

    if (!field->swap_bytes && !field->fortran_order &&
        (uintptr_t)elements % size == 0) { // whole rows at once
        ot__convert(values, OT_F64, elements, field->dtype, field->row_count);
        return;
    }
    for (int64_t i = 0; i < field->row_count; i++) {
        memcpy(element,
               field->fortran_order ? fortran_element(field, rows, row, i)
                                    : elements + (size_t)i * size,
               size);
        if (field->swap_bytes)
            swap_bytes(element, size);
        ot__convert(&values[i], OT_F64, element, field->dtype, 1);
    }
}

ot_status ot__bound_bad_value(ot__bound *bound, int64_t row, int64_t i, const char *format, ...)
{
    const ot__field *field = bound->fields[bound->fields[0]->is_array ? 0 : i];
    char what[128];
    int64_t line;
    va_list args;

    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = '\0';
    va_end(args);
    if (field->is_array)
        return ot__error(OT_ERR_INVALID, "%s: array '%s', row %" PRId64 ", element %" PRId64 ": %s",
                         field->source->path, field->name, row + 1, i + 1, what);
    OT_TRY(ot__csv_line(field->source, row, &bound->window, &line));
    return ot__error(OT_ERR_INVALID, "%s: line %" PRId64 ", column %d ('%s'): %s",
                     field->source->path, line, field->column + 1, field->name, what);
}

static ot_status bad_cell(ot__bound *bound, int64_t row, int64_t i, const ot__cell *cell,
                          const char *expected)
{
    return ot__bound_bad_value(bound, row, i, "'%.*s' is not a %s",
                               (int)OT_MIN(cell->length, (size_t)40), cell->text, expected);
}

// Position of the cell's text among the sorted class names.
static ot_status read_class(ot__bound *bound, int64_t row, const ot__cell *cell, double *value)
{
    ot__buf text = {0};
    int first = 0, last = bound->n_class_names;
    ot_status st;

    ot__buf_append(&text, "", 0);
    ot__cell_text(cell, &text);
    st = ot__buf_status(&text);
    while (st == OT_OK && first < last) {
        int middle = first + (last - first) / 2;
        if (strcmp(bound->class_names[middle], text.data) < 0)
            first = middle + 1;
        else
            last = middle;
    }
    if (st == OT_OK &&
        (first == bound->n_class_names || strcmp(bound->class_names[first], text.data) != 0))
        st = bad_cell(bound, row, 0, cell, "known class");
    ot__buf_deinit(&text);
    *value = first;
    return st;
}

static ot_status read_cells(ot__bound *bound, int64_t row)
{
    OT_TRY(ot__csv_row(bound->fields[0]->source, row, &bound->window, bound->cells));
    for (int i = 0; i < bound->n_fields; i++) {
        const ot__cell *cell = &bound->cells[bound->fields[i]->column];

        if (ot__cell_is_empty(cell))
            return ot__bound_bad_value(bound, row, i, "is missing");
        if (bound->class_names)
            OT_TRY(read_class(bound, row, cell, &bound->values[i]));
        else if (!ot__cell_number(cell, &bound->values[i]))
            return bad_cell(bound, row, i, cell, "decimal number");
    }
    return OT_OK;
}

static ot_status check_labels(ot__bound *bound, int64_t row, int64_t n_classes)
{
    for (int64_t i = 0; i < bound->row_count; i++) {
        const double label = bound->values[i];
        if (bound->has_ignored_label && label == (double)bound->ignored_label)
            continue;
        if (isnan(label))
            return ot__bound_bad_value(bound, row, i, "is missing or not a number");
        if (label != floor(label) || fabs(label) > 0x1p53)
            return ot__bound_bad_value(
                bound, row, i, "label %g is not a whole number; the loss mse takes such targets",
                label);
        if (n_classes > 0 && (label < 0 || label >= (double)n_classes))
            return ot__bound_bad_value(bound, row, i, "label %g is outside 0..%" PRId64, label,
                                       n_classes - 1);
    }
    return OT_OK;
}

static ot_status scale_values(ot__bound *bound, int64_t row)
{
    const int64_t per_channel = bound->n_channels > 1 ? bound->row_count / bound->n_channels : 0;

    for (int64_t i = 0; i < bound->row_count; i++) {
        const int64_t channel = per_channel > 0 ? i / per_channel : 0;
        double value = bound->values[i] * bound->scale;

        if (bound->mean)
            value -= bound->mean[channel];
        if (bound->std)
            value /= bound->std[channel];
        if (!isfinite(value))
            return ot__bound_bad_value(bound, row, i, "%s",
                                       isnan(value) ? "is missing or not a number" : "is infinite");
        bound->values[i] = value;
    }
    return OT_OK;
}

// Beyond 0..1 binary cross entropy has no least value: training would go down for ever.
static ot_status check_probabilities(ot__bound *bound, int64_t row)
{
    for (int64_t i = 0; i < bound->row_count; i++) {
        const double value = bound->values[i];

        if (!(value >= 0 && value <= 1))
            return ot__bound_bad_value(
                bound, row, i, "%.16g is outside 0..1, which binary cross entropy takes", value);
    }
    return OT_OK;
}

// ---- what the input's type can hold ----

static const struct {
    ot_dtype dtype;
    double min, max;
} ranges[] = {
    {OT_I8, INT8_MIN, INT8_MAX},
    {OT_I16, INT16_MIN, INT16_MAX},
    {OT_I32, INT32_MIN, INT32_MAX},
    {OT_U8, 0, UINT8_MAX},
    {OT_U16, 0, UINT16_MAX},
    {OT_U32, 0, UINT32_MAX},
    {OT_BOOL, 0, 1},
    {OT_F16, -65504, 65504},
    {OT_BF16, -0x1.fep127, 0x1.fep127},
    {OT_F32, -(double)FLT_MAX, (double)FLT_MAX},
    // Beyond these, f64 has no longer every whole number.
    {OT_I64, -0x1p53, 0x1p53},
    {OT_U64, 0, 0x1p53},
};

static ot_status check_range(ot__bound *bound, int64_t row)
{
    const bool is_whole = bound->dtype != OT_F16 && bound->dtype != OT_BF16 &&
                          bound->dtype != OT_F32 && bound->dtype != OT_F64;
    double min = -DBL_MAX, max = DBL_MAX;

    for (size_t i = 0; i < OT_COUNT(ranges); i++)
        if (ranges[i].dtype == bound->dtype) {
            min = ranges[i].min;
            max = ranges[i].max;
        }
    for (int64_t i = 0; i < bound->row_count; i++) {
        const double value = bound->values[i];

        if (value >= min && value <= max && (!is_whole || value == floor(value)))
            continue;
        if (value >= min && value <= max)
            return ot__bound_bad_value(bound, row, i,
                                       "%.16g is not a whole number, the input takes %s", value,
                                       ot_dtype_name(bound->dtype));
        return ot__bound_bad_value(bound, row, i,
                                   "%.16g is outside %.16g..%.16g, the input takes %s", value, min,
                                   max, ot_dtype_name(bound->dtype));
    }
    return OT_OK;
}

// ---- whole rows of f32 and u8 features into f32: the same arithmetic, without a copy in f64 ----

// A row of numbers y = (x * scale - mean) / std; false when one is not finite in f32.
static bool scale_f32(float *y, const float *x, int64_t n, double scale, double mean, double std)
{
    int64_t n_bad = 0;

    for (int64_t i = 0; i < n; i++) {
        const double value = ((double)x[i] * scale - mean) / std;

        y[i] = (float)value;
        n_bad += !(fabs(value) <= (double)FLT_MAX);
    }
    return n_bad == 0;
}

static bool scale_u8(float *y, const uint8_t *x, int64_t n, double scale, double mean, double std)
{
    int64_t n_bad = 0;

    for (int64_t i = 0; i < n; i++) {
        const double value = ((double)x[i] * scale - mean) / std;

        y[i] = (float)value;
        n_bad += !(fabs(value) <= (double)FLT_MAX);
    }
    return n_bad == 0;
}

static bool is_plain_row(const ot__bound *bound, const uint8_t *elements)
{
    const ot__field *field = bound->fields[0];

    return field->is_array && !field->swap_bytes && !field->fortran_order && !bound->is_class &&
           !bound->is_probability && bound->dtype == OT_F32 &&
           (field->dtype == OT_U8 ||
            (field->dtype == OT_F32 && (uintptr_t)elements % sizeof(float) == 0));
}

// False when there is an element that is not finite; `y` is then undefined.
static bool read_plain(const ot__bound *bound, const uint8_t *elements, float *y)
{
    const ot__field *field = bound->fields[0];
    const int64_t n_channels = bound->mean || bound->std ? OT_MAX(bound->n_channels, 1) : 1;
    const int64_t n = bound->row_count / n_channels;
    bool is_finite = true;

    for (int64_t c = 0; c < n_channels; c++) {
        const double mean = bound->mean ? bound->mean[c] : 0, std = bound->std ? bound->std[c] : 1;

        is_finite &= field->dtype == OT_U8
                         ? scale_u8(y + c * n, elements + c * n, n, bound->scale, mean, std)
                         : scale_f32(y + c * n, (const float *)(const void *)elements + c * n, n,
                                     bound->scale, mean, std);
    }
    return is_finite;
}

ot_status ot__bound_read(ot__bound *bound, int64_t row, int64_t at, int64_t rows, int64_t n_classes)
{
    const size_t row_bytes = (size_t)bound->row_count * ot_dtype_size(bound->dtype);
    const ot__field *field = bound->fields[0];
    const uint8_t *elements = NULL;

    if (field->is_array && !field->fortran_order)
        OT_TRY(find_dataset_row(bound, row, &elements));
    // The long way also says which element it is that does not fit.
    if (is_plain_row(bound, elements) &&
        read_plain(bound, elements, (float *)bound->tensor->data + at * bound->row_count))
        return OT_OK;
    if (field->is_array)
        read_array(field, elements, rows, row, bound->values);
    else
        OT_TRY(read_cells(bound, row));
    if (bound->is_class)
        OT_TRY(check_labels(bound, row, n_classes));
    else
        OT_TRY(scale_values(bound, row));
    if (bound->is_probability)
        OT_TRY(check_probabilities(bound, row));
    OT_TRY(check_range(bound, row));
    ot__convert((char *)bound->tensor->data + (size_t)at * row_bytes, bound->dtype, bound->values,
                OT_F64, bound->row_count);
    return OT_OK;
}
