// SPDX-License-Identifier: Apache-2.0
// Running sums along one axis.
#include "kernels/kernels.h"

typedef struct cumsum_job {
    void *y;
    const void *x;
    int64_t n, inner;
    bool is_exclusive, is_reverse;
} cumsum_job;

#define ACC double
#define TEMPLATE "kernels/reduce/ref_cumsum.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef ACC

#define ACC uint64_t // integers wrap around
#define TEMPLATE "kernels/reduce/ref_cumsum.tmpl.h"
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"
