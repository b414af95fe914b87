// SPDX-License-Identifier: Apache-2.0
// For the tests of the fusions: a fused graph gives what the graph gave.
#ifndef TESTS_UNIT_PASSES_FUSE_FIXTURE_H
#define TESTS_UNIT_PASSES_FUSE_FIXTURE_H

#include "evaluate.h"
#include "passes/fuse.h"

// Fuses the graph whose text follows its header, and checks that its outputs stay the same.
static inline ot_model *fuse(ot_status (*fusion)(ot_model *), const char *graph)
{
    enum { N_NUMBERS = 23 };
    static double numbers[1024];
    ot__buf text = {0};
    ot_model *model, *fused;
    evaluation before = {0}, after = {0};

    ot__buf_text(&text, "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> ");
    ot__buf_text(&text, graph);
    assert_ok(ot__buf_status(&text));
    model = read_prepared(text.data);
    fused = read_prepared(text.data);
    ot__buf_deinit(&text);
    for (int k = 0; k < 1024; k++)
        numbers[k] = (k % N_NUMBERS * 7 % 11 - 4) * 0.5;
    assert_ok(fusion(fused));
    assert_ok(ot__graph_verify(fused->graph));
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        feed(&before, x->name, new_tensor(x->dtype, x->shape, numbers + i));
        feed(&after, x->name, new_tensor(x->dtype, x->shape, numbers + i));
    }
    compute(&before, model);
    compute(&after, fused);
    for (int o = 0; o < model->graph->n_outputs; o++) {
        const char *name = model->graph->outputs[o]->name;

        for (int64_t k = 0; k < ot_tensor_count(result(&before, name)); k++)
            assert_float_equal(element(&after, name, k), element(&before, name, k), 1e-5);
    }
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    return fused;
}

#endif
