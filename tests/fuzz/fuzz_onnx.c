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

// What was read can be written, and what was written can be read, to the same bytes.
static void check_round_trip(const ot_model *model, const ot_model_options *options)
{
    ot_model *again = NULL;
    ot__buf first = {0}, second = {0};

    expect(ot__onnx_write(model, &first) == OT_OK, "written");
    expect(ot__onnx_read(first.data, first.length, options, "written", NULL, &again) == OT_OK,
           "read again");
    expect(ot__onnx_write(again, &second) == OT_OK, "written again");
    expect(first.length == second.length && memcmp(first.data, second.data, first.length) == 0,
           "the same bytes");
    ot_model_destroy(again);
    ot__buf_deinit(&first);
    ot__buf_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_model *model = NULL, *clone = NULL;
    char *text = NULL;

    options.max_memory = (size_t)64 << 20;
    if (ot__onnx_read(bytes, n_bytes, &options, "fuzz", NULL, &model) != OT_OK)
        return 0;
    options.max_memory *= 2; // a typed field may be shorter than the raw bytes that are written
    check_round_trip(model, &options);
    expect(ot_model_to_text(model, &text) == OT_OK, "shown as text");
    expect(ot__model_clone(model, &clone) == OT_OK, "cloned");
    ot_string_free(text);
    if (ot__model_inline_functions(clone) == OT_OK) {
        expect(ot__graph_sort(clone->graph) == OT_OK, "sorted");
        expect(ot__graph_verify(clone->graph) == OT_OK, "verified when inlined");
        expect(ot__graph_prune(clone->graph, NULL) == OT_OK, "pruned");
        expect(ot__graph_verify(clone->graph) == OT_OK, "verified when pruned");
        check_round_trip(clone, &options);
    }
    ot_model_destroy(model);
    ot_model_destroy(clone);
    return 0;
}
