// SPDX-License-Identifier: Apache-2.0
// What a file may ask for.
#ifndef OT_ONNX_LIMITS_H
#define OT_ONNX_LIMITS_H

#include "onnx/onnx.h"

typedef struct ot__limits {
    int depth;
    int64_t nodes;
    size_t memory;
} ot__limits;

// guard.c
ot__limits ot__limits_of(const ot_model_options *options, size_t n_bytes);
// One more of what the limit on counts is about.
ot_status ot__count_one(const ot__limits *limits, int64_t *counter, const char *what);

#endif
