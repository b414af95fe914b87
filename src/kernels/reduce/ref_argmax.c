// SPDX-License-Identifier: Apache-2.0
// Position of the greatest or least element along one axis.
#include "kernels/kernels.h"

typedef struct arg_job {
    int64_t *y;
    const void *x;
    int64_t n, inner;
    bool is_max, is_last;
} arg_job;

#define IS_NAN(v) ((v) != (v))
#define TEMPLATE "kernels/reduce/ref_argmax.tmpl.h"
#include "by_order.tmpl.h"
