// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. Two loops serve them all: along rows when the last axis is reduced,
// otherwise down columns, a block of them at a time. Neither order depends on the number of
// threads.
#include <math.h>

#include "kernels/kernels.h"

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

void ot__reduction_init(ot__reduction *r, const ot_shape *x, const bool *is_reduced)
{
    int64_t stride[OT_MAX_NDIM];
    int last = -1; // kind of the axis before: 0 kept, 1 reduced

    *r = (ot__reduction){.n_out = 1, .n_each = 1};
    for (int k = 0; k < x->ndim; k++) {
        if (x->dim[k] == 0) {
            init_empty(r, x, is_reduced);
            return;
        }
    }
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

typedef struct job {
    void *y;
    const void *x;
    const ot__reduction *r;
    ot__reduce_op op;
    bool is_row;               // the last axis is reduced
    int n_outer;               // reduced axes besides the row
    int64_t row;               // its length
    int64_t n_steps;           // combinations of the outer reduced axes
    int64_t columns, n_blocks; // of the last kept axis
} job;

static job make_job(void *y, const void *x, const ot__reduction *r, ot__reduce_op op)
{
    job j = {.y = y,
             .x = x,
             .r = r,
             .op = op,
             .row = 1,
             .n_steps = r->n_each,
             .columns = 1,
             .n_blocks = 1};

    j.n_outer = r->n_reduced;
    j.is_row = r->n_kept == 0 || r->kept_stride[r->n_kept - 1] != 1;
    if (j.is_row && r->n_reduced > 0) {
        j.n_outer--;
        j.row = r->reduced_dim[j.n_outer];
        j.n_steps = j.row == 0 ? 0 : r->n_each / j.row;
    }
    if (!j.is_row) {
        j.columns = r->kept_dim[r->n_kept - 1];
        j.n_blocks = (j.columns + COLUMNS - 1) / COLUMNS;
    }
    return j;
}

// Offset in x of combination number `i` of the first n axes.
static int64_t offset_of(int64_t i, const int64_t *dim, const int64_t *stride, int n)
{
    int64_t at = 0;

    for (int k = n - 1; k >= 0; k--) {
        at += i % dim[k] * stride[k];
        i /= dim[k];
    }
    return at;
}

#define LARGER(a, v) ((v) > (a) || IS_NAN(v) ? (v) : (a))
#define SMALLER(a, v) ((v) < (a) || IS_NAN(v) ? (v) : (a))

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

// The four types with arithmetic.
#define IS_NAN(v) ((v) != (v))
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#define ROOT(v) sqrt(v)
#define MEAN(sum, n) ((sum) / (double)(n))
#define MAGNITUDE(v) fabs(v)
#define LOGARITHM(v) log(v)
#define LOAD(v) (v)
#define STORE(a) ((T)(a))
#define T float
#define FN(name) name##_f32
#define ACC float
#include "ref_reduce_extremes.tmpl.h"
#undef ACC
#define ACC double
#include "ref_reduce_sums.tmpl.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "ref_reduce_extremes.tmpl.h"
#include "ref_reduce_sums.tmpl.h"
#undef T
#undef FN
#undef ACC
#undef LOAD
#define T float
#define FN(name) name##_f32
#include "ref_reduce_log_sum_exp.tmpl.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "ref_reduce_log_sum_exp.tmpl.h"
#undef T
#undef FN
#undef STORE

// Storage types that only compare.
#define ACC float
#define T uint16_t
#define LOAD(v) ot__f16_to_f32(v)
#define STORE(a) ot__f32_to_f16(a)
#define FN(name) name##_f16
#include "ref_reduce_extremes.tmpl.h"
#undef FN
#undef LOAD
#undef STORE
#define LOAD(v) ot__bf16_to_f32(v)
#define STORE(a) ot__f32_to_bf16(a)
#define FN(name) name##_bf16
#include "ref_reduce_extremes.tmpl.h"
#undef FN
#undef LOAD
#undef STORE
#undef T
#undef ACC
#undef ROOT
#undef MEAN
#undef MAGNITUDE
#undef LOGARITHM
#undef LOWEST
#undef HIGHEST
#undef IS_NAN

#define IS_NAN(v) false
#define LOAD(v) (v)
#define STORE(a) ((T)(a))
#define ROOT(v) ((uint64_t)sqrt((double)(v)))
#define MEAN(sum, n) ((n) == 0 ? 0 : (uint64_t)((int64_t)(sum) / (n)))
#define MAGNITUDE(v) ((int64_t)(v) < 0 ? 0 - (v) : (v))
#define LOGARITHM(v) (v) // never asked for
#define ACC int64_t
#define T int64_t
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#define FN(name) name##_i64
#include "ref_reduce_extremes.tmpl.h"
#undef T
#undef LOWEST
#undef HIGHEST
#undef FN
#define T int32_t
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#define FN(name) name##_i32
#include "ref_reduce_extremes.tmpl.h"
#undef T
#undef LOWEST
#undef HIGHEST
#undef FN
#define T int8_t
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#define FN(name) name##_i8
#include "ref_reduce_extremes.tmpl.h"
#undef T
#undef LOWEST
#undef HIGHEST
#undef FN
#define T uint8_t
#define LOWEST 0
#define HIGHEST UINT8_MAX
#define FN(name) name##_u8
#include "ref_reduce_extremes.tmpl.h"
#undef HIGHEST
#undef FN
#define HIGHEST 1
#define FN(name) name##_bool
#include "ref_reduce_extremes.tmpl.h"
#undef T
#undef LOWEST
#undef HIGHEST
#undef FN
#undef ACC

// Sums and products of integers wrap around, as in ONNX; unsigned arithmetic does that in C.
#undef LOAD
#undef STORE
#define ACC uint64_t
#define LOAD(v) ((uint64_t)(v))
#define STORE(a) ((T)(a))
#define T int64_t
#define FN(name) name##_i64
#include "ref_reduce_sums.tmpl.h"
#undef T
#undef FN
#define T int32_t
#define FN(name) name##_i32
#include "ref_reduce_sums.tmpl.h"
#undef T
#undef FN

typedef struct type_entry {
    ot_dtype dtype;
    ot__reduce_function sums, extremes; // NULL: not for this type
} type_entry;
static const type_entry type_table[] = {
    {OT_F32, sums_f32, extremes_f32}, {OT_F64, sums_f64, extremes_f64},
    {OT_I32, sums_i32, extremes_i32}, {OT_I64, sums_i64, extremes_i64},
    {OT_F16, NULL, extremes_f16},     {OT_BF16, NULL, extremes_bf16},
    {OT_I8, NULL, extremes_i8},       {OT_U8, NULL, extremes_u8},
    {OT_BOOL, NULL, extremes_bool},
};

ot__reduce_function ot__ref_reduce_find(ot_dtype dtype, ot__reduce_op op)
{
    const bool is_extreme = op == OT__REDUCE_MAX || op == OT__REDUCE_MIN;

    if (op == OT__REDUCE_LOG_SUM_EXP)
        return dtype == OT_F32 ? log_sum_exp_f32 : dtype == OT_F64 ? log_sum_exp_f64 : NULL;
    if (op == OT__REDUCE_LOG_SUM && !ot__dtype_is_float(dtype))
        return NULL;
    for (size_t i = 0; i < OT_COUNT(type_table); i++) {
        if (type_table[i].dtype == dtype)
            return is_extreme ? type_table[i].extremes : type_table[i].sums;
    }
    return NULL;
}
