// SPDX-License-Identifier: Apache-2.0
// The k greatest or least elements of each line, the best one first, and where they stand. They are
// kept in a heap whose root is the worst of them.
#include "kernels/kernels.h"

typedef struct top_k_job {
    void *values; // NULL: not wanted
    int64_t *indices;
    const void *x;
    int64_t n, inner, k;
    bool is_largest;
} top_k_job;

#define IS_NAN(v) ((v) != (v))
#define TEMPLATE "kernels/reduce/ref_top_k.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef IS_NAN
#define IS_NAN(v) false
#define TEMPLATE "kernels/reduce/ref_top_k.tmpl.h"
#include "kernels/by_integer.tmpl.h"
