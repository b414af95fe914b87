// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets of data files do with their bytes: open them and read the rows of every
// field.
#ifndef FUZZ_READ_DATASET_H
#define FUZZ_READ_DATASET_H

#include <stdlib.h>

#include "data/data.h"

static void read_field(const ot_dataset *dataset, int index)
{
    enum { MAX_ROWS = 200 };
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_binding binding = {.input = "x", .dtype = OT_F32, .scale = 1, .n_channels = 1};
    const ot_tensor *batch;
    ot_batches *batches;
    ot_dtype dtype;
    int64_t n_read = 0;
    char position[16];

    snprintf(position, sizeof(position), "#%d", index);
    binding.fields = position;
    options.batch_size = 3;
    if (ot_dataset_field_info(dataset, index, &dtype, &binding.shape) != OT_OK) {
        binding.shape = OT_SHAPE(-1);
        if (ot_batches_create(dataset, &binding, 1, &options, &batches) == OT_OK)
            abort(); // what has no type cannot be bound
        return;
    }
    binding.is_class = dtype == OT_STRING;
    binding.dtype = binding.is_class ? OT_I64 : OT_F32;
    options.last = OT_MIN(ot_dataset_rows(dataset), (int64_t)MAX_ROWS);
    if (ot_batches_create(dataset, &binding, 1, &options, &batches) != OT_OK)
        return;
    while (ot_batches_next(batches, &batch, 1) == OT_OK && batch)
        n_read += ot_tensor_shape(batch)->dim[0];
    if (n_read > MAX_ROWS && options.last > 0)
        abort();
    ot_batches_destroy(batches);
}

static int read_dataset(const uint8_t *bytes, size_t n_bytes, const ot_dataset_options *options)
{
    enum { MAX_FIELDS = 20 };
    ot_dataset *dataset;

    if (ot__dataset_open_bytes(bytes, n_bytes, options, &dataset) != OT_OK)
        return 0;
    for (int i = 0; i < OT_MIN(ot_dataset_field_count(dataset), MAX_FIELDS); i++)
        read_field(dataset, i);
    ot_dataset_destroy(dataset);
    return 0;
}

#endif
