// SPDX-License-Identifier: Apache-2.0
// Graphs for tests, stated as ONNX text.
#ifndef OT_TESTS_MODEL_TEXT_H
#define OT_TESTS_MODEL_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "onnx/onnx.h"

static inline ot_model *model_of(const char *text)
{
    ot_model *model = NULL;

    if (ot__text_read(text, strlen(text), NULL, "test", &model) != OT_OK)
        fail_msg("%s", ot_error_message());
    return model;
}

// With ' for the quotes around names that have dots or slashes.
static inline ot_model *quoted_model(const char *text)
{
    char quoted[8192];
    size_t n = 0;

    for (; text[n]; n++) {
        assert_true(n + 1 < sizeof quoted);
        quoted[n] = text[n] == '\'' ? '"' : text[n];
    }
    quoted[n] = '\0';
    return model_of(quoted);
}

// Fails the test unless the last message has this part.
static inline void assert_message_has(const char *part)
{
    if (!strstr(ot_error_message(), part))
        fail_msg("'%s' is not in the message: %s", part, ot_error_message());
}

// The node that makes this value.
static inline ot_node *maker(const ot_model *model, const char *name)
{
    ot_value *value = ot__graph_find(model->graph, name);

    assert_non_null(value);
    assert_non_null(value->producer);
    return value->producer;
}

#endif
