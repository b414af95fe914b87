// SPDX-License-Identifier: Apache-2.0
// Rows of a CSV bound to inputs of all types. The bytes are: the input's type; flags; the fields,
// to the first line end; the CSV.
#include <string.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { IS_CLASS = 1, SHUFFLE = 2, SPLIT = 4, NORMALISE = 8, DROP_LAST = 16, SECOND = 32 };

static const ot_dtype dtypes[] = {OT_F32, OT_I64, OT_F64, OT_I32,  OT_U8,
                                  OT_I8,  OT_F16, OT_U64, OT_BOOL, OT_BF16};

static void read_batches(const ot_dataset *dataset, const ot_binding *bindings, int n_bindings,
                         const ot_batches_options *options)
{
    enum { MAX_BATCHES = 50 };
    const ot_tensor *tensors[2];
    ot_batches *batches;

    if (ot_batches_create(dataset, bindings, n_bindings, options, &batches) != OT_OK)
        return;
    for (int i = 0; i < MAX_BATCHES; i++)
        if (ot_batches_next(batches, tensors, n_bindings) != OT_OK || !tensors[0])
            break;
    ot_batches_destroy(batches);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static const double mean[] = {1, 2}, std[] = {0.5, 3};
    const uint8_t *end = n_bytes > 2 ? memchr(bytes + 2, '\n', n_bytes - 2) : NULL;
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_binding bindings[2];
    ot_dataset *dataset;
    char fields[256];
    size_t n_fields;

    if (!end || (size_t)(end - bytes) - 2 >= sizeof(fields))
        return 0;
    n_fields = (size_t)(end - bytes) - 2;
    memcpy(fields, bytes + 2, n_fields);
    fields[n_fields] = '\0';
    if (ot__dataset_open_bytes(end + 1, n_bytes - n_fields - 3, NULL, &dataset) != OT_OK)
        return 0;
    bindings[0] = (ot_binding){.input = "x",
                               .dtype = dtypes[bytes[0] % OT_COUNT(dtypes)],
                               .shape = OT_SHAPE(-1),
                               .fields = fields,
                               .scale = 1,
                               .n_channels = 1,
                               .is_class = bytes[1] & IS_CLASS ? 1 : 0};
    if (bytes[1] & NORMALISE) {
        bindings[0].mean = mean;
        bindings[0].std = std;
        bindings[0].n_channels = 2;
    }
    bindings[1] = (ot_binding){.input = "labels",
                               .dtype = OT_I64,
                               .fields = "-1",
                               .scale = 1,
                               .n_channels = 1,
                               .is_class = 1};
    options.batch_size = 3;
    options.shuffle = bytes[1] & SHUFFLE ? 1 : 0;
    options.split_seed = bytes[1] & SPLIT ? 7 : 0;
    options.drop_last = bytes[1] & DROP_LAST ? 1 : 0;
    read_batches(dataset, bindings, bytes[1] & SECOND ? 2 : 1, &options);
    ot_dataset_destroy(dataset);
    return 0;
}
