// SPDX-License-Identifier: Apache-2.0
// What is read can be written, and is then read the same.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shards/shards.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void must(bool is_so)
{
    if (!is_so)
        abort();
}

static void write_and_read(const ot__safetensors *file, ot__safetensor *tensors)
{
    const int n = file->n_tensors;
    ot__buf out = {0};
    ot__safetensors again;
    uint64_t end;

    must(ot__safetensors_place(tensors, n) == OT_OK);
    must(ot__safetensors_header(tensors, n, file->texts, file->n_texts, 8, &out) == OT_OK);
    end = n > 0 ? tensors[n - 1].end : 0;
    for (uint64_t i = 0; i < end; i++)
        ot__buf_append(&out, "", 1);
    must(ot__safetensors_read(out.data, out.length, &again) == OT_OK);
    must(again.n_tensors == n && again.n_texts == file->n_texts);
    for (int i = 0; i < n; i++) {
        const ot__safetensor *t = ot__safetensors_find(&again, file->tensors[i].name);

        must(t != NULL && t->dtype == file->tensors[i].dtype && t->ndim == file->tensors[i].ndim);
        must(t->end - t->begin == file->tensors[i].end - file->tensors[i].begin);
    }
    ot__safetensors_deinit(&again);
    ot__buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    ot__safetensors file;
    ot__safetensor *tensors;

    if (ot__safetensors_read(bytes, n_bytes, &file) != OT_OK)
        return 0;
    tensors = malloc(((size_t)file.n_tensors + 1) * sizeof *tensors);
    must(tensors != NULL);
    if (file.n_tensors > 0)
        memcpy(tensors, file.tensors, (size_t)file.n_tensors * sizeof *tensors);
    write_and_read(&file, tensors);
    free(tensors);
    ot__safetensors_deinit(&file);
    return 0;
}
