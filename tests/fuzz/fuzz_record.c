// SPDX-License-Identifier: Apache-2.0
// What a model's metadata say of its training: a key's number, then its text, up to a zero byte.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/record.h"
#include "train/train.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static const char *const keys[] = {OT_METADATA_LOSS, OT_METADATA_SCALE, OT_METADATA_MEAN,
                                   OT_METADATA_STD, OT_METADATA_CLASSES};

static void read_record(const ot_model *model)
{
    ot_data_options data = OT_DATA_OPTIONS_INIT;
    ot_batches_options batches = OT_BATCHES_OPTIONS_INIT;
    ot_record *record;
    int n;

    if (ot_record_read(model, &record) != OT_OK)
        return;
    if (ot_record_data(record, &data, &batches) != OT_OK ||
        (ot_record_losses(record, &n) && n < 1) ||
        (record && !ot_record_text(record)[0] && data.scale != 1))
        abort();
    ot_record_destroy(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "f (float[2] x) => (float[2] y) { y = Relu(x) }";
    ot_model *model;

    if (ot_model_load_buffer(text, strlen(text), NULL, &model) != OT_OK)
        return 0;
    while (n_bytes > 1) {
        const uint8_t *end = memchr(bytes + 1, '\0', n_bytes - 1);
        const size_t n = (end ? (size_t)(end - bytes) : n_bytes) - 1;
        char *value = malloc(n + 1);

        if (!value)
            break;
        memcpy(value, bytes + 1, n);
        value[n] = '\0';
        if (ot_model_set_metadata(model, keys[bytes[0] % OT_COUNT(keys)], value) != OT_OK)
            abort();
        free(value);
        bytes += end ? n + 2 : n_bytes;
        n_bytes -= end ? n + 2 : n_bytes;
    }
    read_record(model);
    ot_model_destroy(model);
    return 0;
}
