// SPDX-License-Identifier: Apache-2.0
// For the tests of building graphs: a model to build on, and what a builder made as text.
#ifndef TESTS_BLOCK_TESTS_H
#define TESTS_BLOCK_TESTS_H

#include "artifacts/artifacts.h"
#include "evaluate.h"
#include "onnxtrain/block.h"

static inline ot_block *block_over(const char *graph)
{
    char text[768];
    ot_block *b = NULL;
    ot_model *model;

    snprintf(text, sizeof text, "<ir_version: 8, opset_import: [\"\" : 17]> g %s", graph);
    model = read_text(text);
    assert_ok(ot_block_create(model, NULL, &b));
    ot_model_destroy(model); // the builder has its own
    return b;
}

static inline ot_model *finished(ot_block *b, ot_value *output)
{
    ot_model *model = NULL;

    assert_ok(ot_block_finish(b, &output, 1, &model));
    ot_block_destroy(b);
    return model;
}

// Finishing reports what went wrong before.
static inline void assert_refused(ot_block *b, ot_value *output, ot_status status, const char *text)
{
    ot_model *model = NULL;

    assert_null(output);
    ot__error(OT_ERR_INTERNAL, "something else that failed in between");
    assert_fails(ot_block_finish(b, NULL, 0, &model), status, text);
    assert_null(model);
    ot_block_destroy(b);
}

// The nodes of the graph in ONNX's textual syntax, each on a line of its own.
static inline void assert_nodes(const ot_model *model, const char *expected)
{
    char *text = NULL;
    const char *nodes;

    assert_ok(ot_model_to_text(model, &text));
    nodes = strstr(text, "{\n") + strlen("{\n");
    text[strlen(text) - strlen("}\n")] = '\0';
    assert_string_equal(nodes, expected);
    ot_string_free(text);
}

// The loss trains; the builder is gone.
static inline ot_artifacts *train_with(ot_block *b, ot_value *loss,
                                       const ot_artifacts_options *options)
{
    ot_artifacts *artifacts;

    assert_ok(ot_block_finish_training(b, &loss, 1, options, &artifacts));
    ot_block_destroy(b);
    return artifacts;
}

static inline ot_value *mse_of(ot_block *b, ot_value *y)
{
    ot_loss_options options = OT_LOSS_OPTIONS_INIT;

    options.loss = OT_LOSS_MSE;
    return ot_block_loss(b, y, &options);
}

// A whole model as text, which the caller frees with ot__free.
static inline char *bytes_of(const ot_model *model)
{
    ot__buf text = {0};
    const ot__text_options all = {0};

    assert_ok(ot__text_write(model, &all, &text));
    return text.data;
}

#endif
