// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void expect(bool holds, const char *claim)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", claim, ot_error_message());
    abort();
}

// Whatever is read can be written as ONNX, and, if it has this form, as .ort, which is read again.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_model *model = NULL, *again = NULL;
    ot__buf onnx = {0}, ort = {0};

    options.max_memory = (size_t)64 << 20;
    if (ot__ort_read(bytes, n_bytes, &options, "fuzz", &model) != OT_OK)
        return 0;
    expect(ot__onnx_write(model, &onnx) == OT_OK, "written as ONNX");
    if (ot__ort_write(model, &ort) == OT_OK) {
        options.max_memory *= 4; // what was one object of the file may be several now
        expect(ot__ort_read(ort.data, ort.length, &options, "written", &again) == OT_OK,
               "read again");
    }
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&onnx);
    ot__buf_deinit(&ort);
    return 0;
}
