// SPDX-License-Identifier: Apache-2.0
// A model input's share of a dataset. Private to `data`.
#ifndef OT_DATA_BIND_H
#define OT_DATA_BIND_H

#include "data/data.h"

typedef struct ot__bound {
    char *input;
    ot_dtype dtype;
    ot_shape row_shape; // concrete
    int64_t row_count;
    const ot__field **fields; // one array, or columns of one CSV
    int n_fields;
    double scale;
    double *mean, *std; // n_channels of each, or NULL
    int n_channels;
    bool is_class, is_probability, has_ignored_label;
    int64_t ignored_label;
    char **class_names; // of text labels, sorted; NULL: labels are numbers
    int n_class_names;
    ot_tensor *tensor; // room for a whole batch
    double *values;    // one row, f64
    ot__cell *cells;   // one CSV row
    ot__window window; // of the fields' source
} ot__bound;

// Which fields the input takes. Then, of a batch that has room for options->batch_size rows, all
// else.
ot_status ot__bound_find(ot__bound *bound, const ot_dataset *dataset, const ot_binding *binding);
ot_status ot__bound_init(ot__bound *bound, const ot_binding *binding,
                         const ot_batches_options *options);
void ot__bound_deinit(ot__bound *bound);
// OT_ERR_INVALID: what is wrong with an element of a row, with file, row and column.
ot_status ot__bound_bad_value(ot__bound *bound, int64_t row, int64_t i, const char *format, ...)
    OT_PRINTF(4, 5);
// Row `row` of the data, which has `rows`, into row `at` of the batch tensor. n_classes 0: labels
// are not bounded.
ot_status ot__bound_read(ot__bound *bound, int64_t row, int64_t at, int64_t rows,
                         int64_t n_classes);

#endif
