// SPDX-License-Identifier: Apache-2.0
// For the tests of regions: a model with its gradient gives what it gave.
#ifndef TESTS_UNIT_PASSES_REGION_FIXTURE_H
#define TESTS_UNIT_PASSES_REGION_FIXTURE_H

#include <math.h>

#include "autodiff/autodiff.h"
#include "evaluate.h"
#include "passes/passes.h"

// The sum of y * dy, whose gradient with respect to y is dy.
static inline ot_value *weigh(ot_graph *graph, ot_value *y)
{
    ot__builder b = {.graph = graph};
    ot_value *in[] = {y, ot__graph_find(graph, "dy")}, *z = ot__build_value(&b, "z"),
             *loss = ot__build_value(&b, "loss");
    ot_node *sum;

    ot__op_settle(&b, ot__op_build(&b, "", "Mul", "z", in, 2, &z, 1));
    sum = ot__op_build(&b, "", "ReduceSum", "loss", &z, 1, &loss, 1);
    ot__build_int(&b, sum, "keepdims", 0);
    ot__op_settle(&b, sum);
    assert_ok(b.status);
    return loss;
}

// The graph with the gradients of its first output, of which `dy` is the gradient, with respect to
// the inputs called `from` (ended by NULL; NULL itself: without gradients), which become outputs.
static inline ot_model *model_with_gradients(const char *graph, const char *const *from)
{
    enum { MAX_FROM = 8 };
    ot_value *of[MAX_FROM], *grads[MAX_FROM];
    ot__buf text = {0};
    ot_model *model;
    int n = 0;

    if (graph[0] != '<')
        ot__buf_text(&text, "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> ");
    ot__buf_text(&text, graph);
    assert_ok(ot__buf_status(&text));
    model = read_prepared(text.data);
    ot__buf_deinit(&text);
    assert_ok(ot__pass_train(model));
    assert_ok(ot__pass_fold(model, 0));
    for (; from != NULL && from[n] != NULL; n++)
        of[n] = find_value(model, from[n]);
    if (n > 0)
        assert_ok(ot__autodiff_build(model->graph, weigh(model->graph, model->graph->outputs[0]),
                                     NULL, of, n, grads));
    for (int i = 0; i < n; i++)
        assert_true(ot__graph_add_output(model->graph, grads[i]));
    assert_ok(ot__pass_fold(model, 0));
    return model;
}

// Exchanges regions in the graph, and checks that its outputs and gradients stay the same.
static inline ot_model *fuse_regions(const char *graph, const char *const *from)
{
    enum { N_NUMBERS = 23 };
    static double numbers[4096];
    ot_model *model = model_with_gradients(graph, from), *fused = model_with_gradients(graph, from);
    evaluation before = {0}, after = {0};

    for (int k = 0; k < 4096; k++)
        numbers[k] = sin(k * 1.7 + k % N_NUMBERS);
    assert_ok(ot__fuse_regions(fused));
    assert_ok(ot__graph_verify(fused->graph));
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        feed(&before, x->name, new_tensor(x->dtype, x->shape, numbers + 7 * i));
        feed(&after, x->name, new_tensor(x->dtype, x->shape, numbers + 7 * i));
    }
    compute(&before, model);
    compute(&after, fused);
    for (int o = 0; o < model->graph->n_outputs; o++) {
        const char *name = model->graph->outputs[o]->name;

        for (int64_t k = 0; k < ot_tensor_count(result(&before, name)); k++) {
            const double was = element(&before, name, k),
                         is = element(&after, fused->graph->outputs[o]->name, k);

            if (isnan(was) || isnan(is))
                assert_true(isnan(was) && isnan(is));
            else
                assert_float_equal(is, was, 1e-9);
        }
    }
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    return fused;
}

#endif
