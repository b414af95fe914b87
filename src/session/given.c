// SPDX-License-Identifier: Apache-2.0
// What a plan is for: the shapes of the inputs, and the values that decide on others.
#include <string.h>

#include "session/session_internal.h"

static bool strings_are_equal(const ot_tensor *a, const ot_tensor *b)
{
    for (int64_t i = 0; i < ot_tensor_count(a); i++) {
        size_t n_a, n_b;
        const char *text_a = ot_tensor_string(a, i, &n_a), *text_b = ot_tensor_string(b, i, &n_b);

        if (n_a != n_b || memcmp(text_a, text_b, n_a) != 0)
            return false;
    }
    return true;
}

// By their bytes: where a NaN or a zero of another sign decides, it decides so again.
static bool answers_are_equal(const ot_tensor *a, const ot_tensor *b)
{
    if (a->dtype != b->dtype || !ot__shape_equal(&a->shape, &b->shape))
        return false;
    return a->dtype == OT_STRING ? strings_are_equal(a, b)
                                 : a->n_bytes == 0 || memcmp(a->data, b->data, a->n_bytes) == 0;
}

bool ot__given_equal(const ot__given *a, const ot__given *b, int n_inputs)
{
    if (a->n_shapes != b->n_shapes || a->n_answers != b->n_answers)
        return false;
    for (int i = 0; i < n_inputs; i++)
        if (a->lengths[i] != b->lengths[i])
            return false;
    for (int i = 0; i < a->n_shapes; i++)
        if (!ot__shape_equal(&a->shapes[i], &b->shapes[i]))
            return false;
    for (int i = 0; i < a->n_answers; i++)
        if (!answers_are_equal(a->answers[i], b->answers[i]))
            return false;
    return true;
}

ot_status ot__given_copy(const ot__given *from, int n_inputs, ot__given *to)
{
    to->lengths = ot__alloc_zero((size_t)n_inputs + 1, sizeof *to->lengths);
    to->shapes = ot__alloc_zero((size_t)from->n_shapes + 1, sizeof *to->shapes);
    OT_TRY(ot__made(to->lengths != NULL && to->shapes != NULL));
    to->n_shapes = from->n_shapes;
    to->capacity = from->n_shapes + 1;
    if (n_inputs > 0)
        memcpy(to->lengths, from->lengths, (size_t)n_inputs * sizeof *to->lengths);
    if (from->n_shapes > 0)
        memcpy(to->shapes, from->shapes, (size_t)from->n_shapes * sizeof *to->shapes);
    for (int i = 0; i < from->n_answers; i++) {
        ot_tensor *copy;

        OT_TRY(ot_tensor_clone(from->answers[i], &copy));
        OT_TRY(ot__given_add_answer(to, copy));
    }
    return OT_OK;
}

ot_status ot__given_add_answer(ot__given *given, ot_tensor *answer)
{
    if (!ot__grow(&given->answers, &given->answers_capacity, given->n_answers,
                  sizeof *given->answers)) {
        ot_tensor_destroy(answer);
        return OT_ERR_NO_MEMORY;
    }
    given->answers[given->n_answers++] = answer;
    return OT_OK;
}

void ot__given_forget_answers(ot__given *given)
{
    for (int i = 0; i < given->n_answers; i++)
        ot_tensor_destroy(given->answers[i]);
    given->n_answers = 0;
}

void ot__given_deinit(ot__given *given)
{
    ot__given_forget_answers(given);
    ot__free(given->lengths);
    ot__free(given->shapes);
    ot__free(given->tensors);
    ot__free(given->answers);
    *given = (ot__given){0};
}
