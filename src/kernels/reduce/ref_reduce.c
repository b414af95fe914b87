// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. Two loops serve them all: along rows when the last axis is reduced,
// otherwise down columns, a block of them at a time. Neither order depends on the number of
// threads.
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/simd_floats.h"

enum { COLUMNS = 64, LANES = 8 };

// No elements: zero outputs, or outputs that each reduce nothing.
static void init_empty(ot__reduction *r, const ot_shape *x, const bool *is_reduced)
{
    for (int k = 0; k < x->ndim; k++) {
        int64_t *count = is_reduced[k] ? &r->n_each : &r->n_out;

        if (ot__mul_overflows(*count, x->dim[k], count)) // only where the output has no elements
            *count = 0;
    }
    r->n_kept = r->n_reduced = 1;
    r->kept_dim[0] = r->n_out;
    r->kept_stride[0] = 1;
    r->reduced_dim[0] = r->n_each;
}

static void init_axes(ot__reduction *r, const ot_shape *x, const bool *is_reduced)
{
    int64_t stride[OT_MAX_NDIM];
    int last = -1; // kind of the axis before: 0 kept, 1 reduced

    ot__shape_strides(x, stride);
    for (int k = 0; k < x->ndim; k++) {
        int *n = is_reduced[k] ? &r->n_reduced : &r->n_kept;
        int64_t *dim = is_reduced[k] ? r->reduced_dim : r->kept_dim;
        int64_t *step = is_reduced[k] ? r->reduced_stride : r->kept_stride;

        *(is_reduced[k] ? &r->n_each : &r->n_out) *= x->dim[k];
        if (x->dim[k] == 1)
            continue;
        if (last == is_reduced[k])
            dim[*n - 1] *= x->dim[k];
        else
            dim[(*n)++] = x->dim[k];
        step[*n - 1] = stride[k];
        last = is_reduced[k];
    }
}

static void init_loops(ot__reduction *r)
{
    r->row = r->columns = r->n_blocks = 1;
    r->n_steps = r->n_each;
    r->n_outer = r->n_reduced;
    r->is_row = r->n_kept == 0 || r->kept_stride[r->n_kept - 1] != 1;
    if (r->is_row && r->n_reduced > 0) {
        r->n_outer--;
        r->row = r->reduced_dim[r->n_outer];
        r->n_steps = r->row == 0 ? 0 : r->n_each / r->row;
    }
    if (!r->is_row) {
        r->columns = r->kept_dim[r->n_kept - 1];
        r->n_blocks = (r->columns + COLUMNS - 1) / COLUMNS;
    }
}

void ot__reduction_init(ot__reduction *r, const ot_shape *x, const bool *is_reduced)
{
    bool is_empty = false;

    *r = (ot__reduction){.n_out = 1, .n_each = 1};
    for (int k = 0; k < x->ndim; k++)
        is_empty = is_empty || x->dim[k] == 0;
    (is_empty ? init_empty : init_axes)(r, x, is_reduced);
    init_loops(r);
}

typedef struct reduce_job {
    void *y;
    const void *x;
    const ot__reduction *r;
    void (*widen)(float *y, const uint16_t *x, int64_t n); // of f16 and bf16
} reduce_job;

// ---- sums and products ----

// The sum of exponentials is exp(largest) * sum: nothing overflows.
typedef struct exponentials {
    double largest, sum;
} exponentials;

static exponentials join_exponentials(exponentials a, exponentials b)
{
    exponentials c = {.largest = b.largest > a.largest || isnan(b.largest) ? b.largest : a.largest};

    c.sum = (a.largest == c.largest ? a.sum : a.sum * exp(a.largest - c.largest)) +
            (b.largest == c.largest ? b.sum : b.sum * exp(b.largest - c.largest));
    return c;
}

#define OUT T
#define STORE(a) ((T)(a))
#define ACC double
#define LOAD(v) ((double)(v))
#define ROOT(v) sqrt(v)
#define MEAN(sum, n) ((sum) / (double)(n))
#define MAGNITUDE(v) fabs(v)
#define TEMPLATE "kernels/reduce/ref_reduce_sums.tmpl.h"
#include "kernels/by_float.tmpl.h"
#define TEMPLATE "kernels/reduce/ref_reduce_logs.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef LOAD
#undef STORE
#undef OUT
#include "by_narrow.tmpl.h"
#define OUT T
#define STORE(a) ((T)(a))
#undef ACC
#undef ROOT
#undef MEAN
#undef MAGNITUDE

// Those of integers wrap around, as in ONNX; unsigned arithmetic does that in C.
#define ACC uint64_t
#define LOAD(v) ((uint64_t)(v))
#define ROOT(v) ((uint64_t)sqrt((double)(v)))
#define MEAN(sum, n) ((n) == 0 ? 0 : (uint64_t)((int64_t)(sum) / (n)))
#define MAGNITUDE(v) ((int64_t)(v) < 0 ? 0 - (v) : (v))
#define TEMPLATE "kernels/reduce/ref_reduce_sums.tmpl.h"
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#undef TEMPLATE
#undef ACC
#undef LOAD
#undef STORE

// ---- extremes ----

#define LARGER(a, v) ((v) > (a) || (v) != (v) ? (v) : (a))
#define SMALLER(a, v) ((v) < (a) || (v) != (v) ? (v) : (a))
#define LOWEST                                                                                     \
    _Generic((ACC)0, int64_t                                                                       \
             : INT64_MIN, int32_t                                                                  \
             : INT32_MIN, int8_t                                                                   \
             : INT8_MIN, uint8_t : 0, default                                                      \
             : -INFINITY)
#define HIGHEST                                                                                    \
    _Generic((ACC)0, int64_t                                                                       \
             : INT64_MAX, int32_t                                                                  \
             : INT32_MAX, int8_t                                                                   \
             : INT8_MAX, uint8_t                                                                   \
             : UINT8_MAX, default                                                                  \
             : INFINITY)
#define TEMPLATE "kernels/reduce/ref_reduce_extremes.tmpl.h"
#include "by_order.tmpl.h"
#undef HIGHEST

#define HIGHEST 1
#define ACC uint8_t
#define T uint8_t
#define LOAD(v) (v)
#define STORE(a) (a)
#define FN(name) name##_bool
#include "ref_reduce_extremes.tmpl.h"
