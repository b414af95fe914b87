// SPDX-License-Identifier: Apache-2.0
// What the programs of the benchmark have in common. step.c is also compiled against earlier
// versions of the library: this uses what those have.
#ifndef BENCH_PROBLEM_H
#define BENCH_PROBLEM_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "onnxtrain/onnxtrain.h"

static inline void must(ot_status status)
{
    if (status == OT_OK)
        return;
    fprintf(stderr, "bench: %s\n", ot_error_message());
    exit(1);
}

static inline double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// A plain generator: the data only has to be alike for all, not equal.
static inline double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

// Of the session's training model: floats in [-0.5, 0.5), integers below `bound`.
static inline ot_tensor *make_input(const ot_session *session, int index, int64_t rows,
                                    int64_t bound)
{
    uint64_t state = 1;
    ot_dtype dtype;
    ot_shape shape;
    ot_tensor *tensor;

    must(ot_session_input_info(session, OT_MODE_TRAIN, index, &dtype, &shape));
    shape.dim[0] = rows;
    must(ot_tensor_create(dtype, &shape, &tensor));
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++) {
        if (dtype == OT_F32)
            ((float *)ot_tensor_data(tensor))[i] = (float)(uniform(&state) - 0.5);
        else
            ((int64_t *)ot_tensor_data(tensor))[i] = (int64_t)(uniform(&state) * (double)bound);
    }
    return tensor;
}

// Tokens, or floats, and labels of a model whose output is class scores.
static inline void make_inputs(const ot_session *session, const ot_shape *scores, int class_axis,
                               int64_t rows, int64_t vocabulary, ot_tensor **inputs)
{
    inputs[0] = make_input(session, 0, rows, vocabulary);
    inputs[1] =
        make_input(session, 1, rows, scores->dim[class_axis < 0 ? scores->ndim - 1 : class_axis]);
}

#endif
