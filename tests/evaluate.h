// SPDX-License-Identifier: Apache-2.0
// For tests: computing a graph node by node with the reference kernels, without any plan.
#ifndef TESTS_EVALUATE_H
#define TESTS_EVALUATE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "onnx/onnx.h"
#include "passes/passes.h"

// Fails the test with the library's message.
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        const ot_status status_ = (call);                                                          \
        if (status_ != OT_OK)                                                                      \
            fail_msg("%s: %s", ot_status_name(status_), ot_error_message());                       \
    } while (0)

// The call fails with this status, and its message contains `text`.
#define assert_fails(call, status, text)                                                           \
    do {                                                                                           \
        assert_int_equal(call, status);                                                            \
        if (!strstr(ot_error_message(), text))                                                     \
            fail_msg("message '%s' lacks '%s'", ot_error_message(), text);                         \
    } while (0)

// Elements by value name.
typedef struct evaluation {
    ot__map tensors;
} evaluation;

static inline ot_model *read_text(const char *text)
{
    ot_model *model = NULL;

    assert_ok(ot__text_read(text, strlen(text), NULL, "test", &model));
    return model;
}

static inline ot_model *read_prepared(const char *text)
{
    ot_model *model = read_text(text);

    assert_ok(ot__pass_prepare(model));
    return model;
}

static inline ot_value *find_value(const ot_model *model, const char *name)
{
    ot_value *value = ot__graph_find(model->graph, name);

    if (!value)
        fail_msg("the graph has no value '%s'", name);
    return value;
}

// The first node of this operator; NULL when there is none.
static inline ot_node *find_node(const ot_model *model, const char *op_type)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        if (strcmp(model->graph->nodes[n]->op_type, op_type) == 0)
            return model->graph->nodes[n];
    return NULL;
}

static inline int count_nodes(const ot_model *model, const char *op_type)
{
    int count = 0;

    for (int n = 0; n < model->graph->n_nodes; n++)
        count += strcmp(model->graph->nodes[n]->op_type, op_type) == 0;
    return count;
}

static inline ot_tensor *new_tensor(ot_dtype dtype, ot_shape shape, const double *elements)
{
    ot_tensor *tensor = NULL;

    assert_ok(ot_tensor_create(dtype, &shape, &tensor));
    assert_true(ot__convert(tensor->data, dtype, elements, OT_F64, ot_tensor_count(tensor)));
    return tensor;
}

// `tensor` becomes the evaluation's.
static inline void feed(evaluation *e, const char *name, ot_tensor *tensor)
{
    ot_tensor_destroy(ot__map_get(&e->tensors, name));
    assert_true(ot__map_put(&e->tensors, name, tensor));
}

static inline const ot_tensor *result(const evaluation *e, const char *name)
{
    const ot_tensor *tensor = ot__map_get(&e->tensors, name);

    if (!tensor)
        fail_msg("'%s' was not computed", name);
    return tensor;
}

static inline double element(const evaluation *e, const char *name, int64_t index)
{
    return ot__tensor_get_f64(result(e, name), index);
}

static inline void compute_node(evaluation *e, const ot_node *node)
{
    const ot_tensor *in[64] = {0};
    ot_tensor *out[64] = {0};

    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];

        if (x)
            in[i] = x->constant ? x->constant : result(e, x->name);
    }
    assert_ok(ot__op_eval(node, in, node->n_inputs, out, node->n_outputs));
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i])
            feed(e, node->outputs[i]->name, out[i]);
        else
            ot_tensor_destroy(out[i]);
}

static inline void compute(evaluation *e, const ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        compute_node(e, model->graph->nodes[n]);
}

static inline void evaluation_deinit(evaluation *e)
{
    size_t position = 0;
    const char *name;
    void *tensor;

    while (ot__map_next(&e->tensors, &position, &name, &tensor))
        ot_tensor_destroy(tensor);
    ot__map_deinit(&e->tensors);
}

#endif
