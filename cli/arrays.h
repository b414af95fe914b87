// SPDX-License-Identifier: Apache-2.0
// Whole arrays from data files as inputs of a model, not row by row.
#ifndef CLI_ARRAYS_H
#define CLI_ARRAYS_H

#include "onnxtrain/data.h"
#include "onnxtrain/model.h"
#include "options.h"

// Files are opened one by one, since arrays of different inputs need not have the same rows.
typedef struct array_files {
    ot_dataset **items;
    int count;
} array_files;

// The exit codes: EXIT_SUCCESS, or another after a message. Deinit in any case.
int array_files_open(array_files *files, const text_list *paths);
void array_files_deinit(array_files *files);

// An input's tensor: the field called `name`, or CSV columns and other fields by a `bind` of the
// form INPUT=FIELDS, or the only field of the only file when `is_only` (there is no other input).
// At most `max_rows` rows; 0: all. The caller destroys *out.
typedef struct array_request {
    const ot_model *model;
    const char *name;
    const text_list *bind;
    bool is_only;
    int64_t max_rows;
    double scale;
} array_request;
int array_read(const array_files *files, const array_request *request, ot_tensor **out);

#endif
