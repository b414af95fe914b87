// SPDX-License-Identifier: Apache-2.0
// Running sums and products along one axis, and the gradient of the latter.
#include "kernels/kernels.h"

typedef struct cumulative_job {
    void *y;
    const void *x, *dy; // dy: of the gradient alone
    int64_t n, inner;
    bool is_exclusive, is_reverse;
} cumulative_job;

#define CUMULATE FN(ot__ref_cumsum)
#define LINES FN(cumsum_lines)
#define START 0
#define COMBINE(a, b) ((a) + (b))
#include "by_number.tmpl.h"

#define CUMULATE FN(ot__ref_cumprod)
#define LINES FN(cumprod_lines)
#define START 1
#define COMBINE(a, b) ((a) * (b))
#include "by_number.tmpl.h"

#define TEMPLATE "kernels/reduce/ref_cumprod_grad.tmpl.h"
#include "kernels/by_float.tmpl.h"
