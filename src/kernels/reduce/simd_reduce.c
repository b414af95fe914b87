// SPDX-License-Identifier: Apache-2.0
// Reductions of f32 over any axes, compiled once per instruction set (OT_ISA): along rows when the
// last axis is reduced, otherwise down columns, a block of them at a time. Sums and products are
// kept in f64. Neither order depends on the number of threads.
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

#include "kernels/simd.h"

enum {
    COLUMNS = 128, // worked on at once
    STEPS = 4,     // elements of each column at once
    CHAINS = 4,    // registers that a row is accumulated in
    BLOCK = 256,   // of exponentials that need not be kept
    LINE = 16,     // floats of a line of the cache
};

typedef struct job {
    float *y;
    const float *x;
    const ot__reduction *r;
} job;

typedef void walk(void *context, int64_t first, int64_t last);

typedef struct column_block {
    float *y;
    const float *x;
    int64_t n;
} column_block;

static column_block find_columns(const job *j, int64_t item)
{
    const ot__reduction *r = j->r;
    const int64_t n_blocks = (r->columns + COLUMNS - 1) / COLUMNS;
    const int64_t outer = item / n_blocks, from = item % n_blocks * COLUMNS;

    return (column_block){
        .y = j->y + outer * r->columns + from,
        .x = j->x + from + ot__reduction_offset(outer, r->kept_dim, r->kept_stride, r->n_kept - 1),
        .n = OT_MIN((int64_t)COLUMNS, r->columns - from),
    };
}

// Where STEPS elements of each column lie, from step s on; behind the last one it is repeated.
static void place_steps(const float **x, const ot__reduction *r, const float *first, int64_t s)
{
    for (int i = 0; i < STEPS; i++)
        x[i] = first + ot__reduction_offset(OT_MIN(s + i, r->n_steps - 1), r->reduced_dim,
                                            r->reduced_stride, r->n_outer);
}

// Whether rows or columns are too few for lanes side by side: a lane takes an output each then.
static bool is_narrow(const ot__reduction *r, int lanes)
{
    return r->n_out >= lanes && (r->is_row ? r->row < 3 * lanes : r->columns < lanes);
}

// By outputs where that is not NULL.
static void run_reduction(float *y, const float *x, const ot__reduction *r, walk *outputs,
                          walk *rows, walk *columns)
{
    job j = {y, x, r};
    const int64_t n_blocks = (r->columns + COLUMNS - 1) / COLUMNS;
    const bool is_each = outputs != NULL || r->is_row;
    const int64_t n_items = is_each ? r->n_out : r->n_out / OT_MAX(r->columns, 1) * n_blocks;
    const int64_t per_item = r->n_each * (is_each ? 1 : OT_MIN(COLUMNS, r->columns)) + 1;

    ot__parallel_for(n_items, OT_PAR_MIN / per_item + 1,
                     outputs != NULL ? outputs
                     : r->is_row     ? rows
                                     : columns,
                     &j);
}

// ---- sums and products ----

typedef ot__vector_wide wide;
typedef uint64_t wide_bits __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(8), may_alias));

OT_SIMD_INLINE wide magnitude(wide v)
{
    return (wide)((wide_bits)v & ~(UINT64_C(1) << 63));
}

#define ACC double
#define VECTOR wide
#define LOAD(x) ot__vector_widen(x)
#define START 0
#define JOIN(a, b) ((a) + (b))
#define JOIN_1(a, b) ((a) + (b))

#define OP(name) sum_##name
#include "simd_reduce.tmpl.h"

#define OP(name) mean_##name
#define FINISH(a) ((a) / (double)r->n_each)
#include "simd_reduce.tmpl.h"

#define OP(name) l1_##name
#define TERM(v) magnitude(v)
#define TERM_1(v) fabs(v)
#include "simd_reduce.tmpl.h"

#define OP(name) sum_square_##name
#define TERM(v) ((v) * (v))
#define TERM_1(v) ((v) * (v))
#include "simd_reduce.tmpl.h"

#define OP(name) l2_##name
#define TERM(v) ((v) * (v))
#define TERM_1(v) ((v) * (v))
#define FINISH(a) sqrt(a)
#include "simd_reduce.tmpl.h"

#define OP(name) log_sum_##name
#define FINISH(a) log(a)
#include "simd_reduce.tmpl.h"

#undef START
#undef JOIN
#undef JOIN_1
#define START 1
#define JOIN(a, b) ((a) * (b))
#define JOIN_1(a, b) ((a) * (b))
#define OP(name) prod_##name
#include "simd_reduce.tmpl.h"
#undef START
#undef JOIN
#undef JOIN_1
#undef LOAD
#undef VECTOR
#undef ACC

// ---- extremes: of elements with NaN that is NaN ----

OT_SIMD_INLINE ot__vector choose(ot__vector_bits first, ot__vector a, ot__vector b)
{
    return (ot__vector)(((ot__vector_bits)a & first) | ((ot__vector_bits)b & ~first));
}

OT_SIMD_INLINE ot__vector larger(ot__vector a, ot__vector v)
{
    return choose((ot__vector_bits)((a >= v) | (a != a)), a, v);
}

OT_SIMD_INLINE ot__vector smaller(ot__vector a, ot__vector v)
{
    return choose((ot__vector_bits)((a <= v) | (a != a)), a, v);
}

#define ACC float
#define VECTOR ot__vector
#define LOAD(x) ot__vector_load(x)

#define START -INFINITY
#define JOIN(a, b) larger(a, b)
#define JOIN_1(a, b) ((a) >= (b) || (a) != (a) ? (a) : (b))
#define OP(name) max_##name
#include "simd_reduce.tmpl.h"
#undef START
#undef JOIN
#undef JOIN_1

#define START INFINITY
#define JOIN(a, b) smaller(a, b)
#define JOIN_1(a, b) ((a) <= (b) || (a) != (a) ? (a) : (b))
#define OP(name) min_##name
#include "simd_reduce.tmpl.h"
#undef START
#undef JOIN
#undef JOIN_1

// ---- logarithms of sums of exponentials ----

// What is taken off before the exponential, so that it cannot overflow: the largest element where
// that is a number.
static float shift_of(float largest)
{
    return fabsf(largest) <= 3.40282347e38F ? largest : 0;
}

OT_SIMD_INLINE void exponentials(float *y, const float *x, float shift, int64_t n)
{
    OT_SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = ot__vexp(x[k] - shift);
}

static void log_sum_exp_rows(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__reduction *r = j->r;
    float block[BLOCK];

    for (int64_t o = first; o < last; o++) {
        const float *x = j->x + ot__reduction_offset(o, r->kept_dim, r->kept_stride, r->n_kept);
        float shift = -INFINITY;
        double sum = 0;

        for (int64_t s = 0; s < r->n_steps; s++) {
            const float part = max_row_total(
                x + ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer), r->row);

            shift = shift >= part || shift != shift ? shift : part;
        }
        shift = shift_of(shift);
        for (int64_t s = 0; s < r->n_steps; s++) {
            const float *xs =
                x + ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer);

            for (int64_t k = 0; k < r->row; k += BLOCK) {
                const int64_t n = OT_MIN(r->row - k, (int64_t)BLOCK);

                exponentials(block, xs + k, shift, n);
                sum += sum_row_total(block, n);
            }
        }
        j->y[o] = (float)(shift + log(sum));
    }
}

static void log_sum_exp_columns(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__reduction *r = j->r;

    for (int64_t item = first; item < last; item++) {
        const column_block b = find_columns(j, item);
        float shift[COLUMNS], power[COLUMNS];
        const float *x = shift, *powers = power;
        double sum[COLUMNS];

        for (int64_t c = 0; c < b.n; c++) {
            shift[c] = -INFINITY;
            sum[c] = 0;
        }
        for (int64_t s = 0; s < r->n_steps; s++) {
            x = b.x + ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer);
            max_join_steps(shift, &x, &x, b.n, 1);
        }
        for (int64_t c = 0; c < b.n; c++)
            shift[c] = shift_of(shift[c]);
        for (int64_t s = 0; s < r->n_steps; s++) {
            x = b.x + ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer);
            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                power[c] = ot__vexp(x[c] - shift[c]);
            sum_join_steps(sum, &powers, &powers, b.n, 1);
        }
        for (int64_t c = 0; c < b.n; c++)
            b.y[c] = (float)(shift[c] + log(sum[c]));
    }
}

static void log_sum_exp_reduce(float *y, const float *x, const ot__reduction *r)
{
    run_reduction(y, x, r, NULL, log_sum_exp_rows, log_sum_exp_columns);
}

const ot__reducers OT_ISA_NAME(ot__reducers) = {
    .reduce_sum = sum_reduce,
    .reduce_mean = mean_reduce,
    .reduce_l1 = l1_reduce,
    .reduce_sum_square = sum_square_reduce,
    .reduce_l2 = l2_reduce,
    .reduce_prod = prod_reduce,
    .reduce_log_sum = log_sum_reduce,
    .reduce_log_sum_exp = log_sum_exp_reduce,
    .reduce_max = max_reduce,
    .reduce_min = min_reduce,
    .row = CHAINS * OT_VECTOR_LANES,
    .columns = COLUMNS,
    .steps = STEPS,
};
