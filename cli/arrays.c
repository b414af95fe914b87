// SPDX-License-Identifier: Apache-2.0
#include "arrays.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

int array_files_open(array_files *files, const text_list *paths)
{
    files->items = calloc((size_t)paths->count + 1, sizeof(*files->items));
    if (!files->items)
        return report_text("out of memory");
    for (; files->count < paths->count; files->count++)
        if (ot_dataset_open(&paths->items[files->count], 1, NULL, &files->items[files->count]) !=
            OT_OK)
            return report_error();
    return EXIT_SUCCESS;
}

void array_files_deinit(array_files *files)
{
    for (int i = 0; i < files->count; i++)
        ot_dataset_destroy(files->items[i]);
    free(files->items);
}

static int find_field(const ot_dataset *dataset, const char *name)
{
    for (int i = 0; i < ot_dataset_field_count(dataset); i++)
        if (strcmp(ot_dataset_field_name(dataset, i), name) == 0)
            return i;
    return -1;
}

// What --bind says of the input; NULL: nothing.
static const char *bound_fields(const array_request *r)
{
    const size_t length = strlen(r->name);

    for (int i = 0; r->bind && i < r->bind->count; i++)
        if (strncmp(r->bind->items[i], r->name, length) == 0 && r->bind->items[i][length] == '=')
            return r->bind->items[i] + length + 1;
    return NULL;
}

// Reads the fields of one file as one batch.
static int read_all(const ot_dataset *dataset, const char *fields, const array_request *r,
                    ot_tensor **out)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_binding binding = {.input = r->name, .fields = fields, .scale = r->scale, .n_channels = 1};
    const int field = find_field(dataset, fields);
    const ot_tensor *batch = NULL;
    ot_batches *batches = NULL;
    int64_t rows;
    int code = EXIT_SUCCESS;
    ot_dtype stored;
    ot_shape shape;

    if (ot_model_value_info(r->model, r->name, &binding.dtype, &shape) != OT_OK)
        return report_error();
    if (shape.ndim > 0) {
        binding.shape.ndim = shape.ndim - 1;
        memcpy(binding.shape.dim, shape.dim + 1, (size_t)(shape.ndim - 1) * sizeof(int64_t));
    } else if (shape.ndim < 0 && (field < 0 || ot_dataset_field_info(dataset, field, &stored,
                                                                     &binding.shape) != OT_OK)) {
        return report_text("'%s': neither the model nor the file says how many axes it has",
                           r->name);
    }
    if (ot_batches_create(dataset, &binding, 1, NULL, &batches) != OT_OK)
        return report_error();
    rows = ot_batches_rows(batches);
    ot_batches_destroy(batches);
    batches = NULL;
    options.batch_size = r->max_rows > 0 && r->max_rows < rows ? r->max_rows : rows;
    if (rows < 1)
        return report_text("'%s': the data have no rows", r->name);
    if (ot_batches_create(dataset, &binding, 1, &options, &batches) != OT_OK ||
        ot_batches_next(batches, &batch, 1) != OT_OK)
        code = report_error();
    else if (shape.ndim == 0 && ot_tensor_count(batch) != 1)
        code = report_text("'%s': the model wants a single number", r->name);
    else if (ot_tensor_create(binding.dtype, shape.ndim == 0 ? &shape : ot_tensor_shape(batch),
                              out) != OT_OK)
        code = report_error();
    else
        memcpy(ot_tensor_data(*out), ot_tensor_data_const(batch), ot_tensor_bytes(batch));
    ot_batches_destroy(batches);
    return code;
}

int array_read(const array_files *files, const array_request *r, ot_tensor **out)
{
    const char *fields = bound_fields(r);

    for (int i = 0; i < files->count; i++) {
        const ot_dataset *dataset = files->items[i];

        if (find_field(dataset, fields ? fields : r->name) >= 0)
            return read_all(dataset, fields ? fields : r->name, r, out);
    }
    // Several columns, which no field is called after; the file says when it has not got them.
    if (fields && files->count == 1)
        return read_all(files->items[0], fields, r, out);
    if (!fields && r->is_only && files->count == 1 && ot_dataset_field_count(files->items[0]) == 1)
        return read_all(files->items[0], ot_dataset_field_name(files->items[0], 0), r, out);
    return report_text("no array '%s' in the data: name it so, by NAME=FILE, or use --bind",
                       fields ? fields : r->name);
}
