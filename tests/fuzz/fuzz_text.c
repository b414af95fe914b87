// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void expect(bool holds, const char *claim)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", claim, ot_error_message());
    abort();
}

// What was read can be written, and what was written can be read, to the same text.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    const ot__text_options all = {0};
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_model *model = NULL, *again = NULL;
    ot__buf first = {0}, second = {0};

    options.max_memory = (size_t)64 << 20;
    if (ot__text_read((const char *)bytes, n_bytes, &options, "fuzz", &model) != OT_OK)
        return 0;
    options.max_memory *= 2;
    expect(ot__text_write(model, &all, &first) == OT_OK, "written");
    expect(ot__text_read(first.data, first.length, &options, "written", &again) == OT_OK,
           "read again");
    expect(ot__text_write(again, &all, &second) == OT_OK, "written again");
    expect(first.length == second.length && memcmp(first.data, second.data, first.length) == 0,
           "the same text");
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&first);
    ot__buf_deinit(&second);
    return 0;
}
