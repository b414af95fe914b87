// SPDX-License-Identifier: Apache-2.0
// What simd_fourier.c does to all points: Stockham's passes, each of which takes one factor out of
// the length and leaves everything in order, and the pass that makes one line of the lanes.
#ifndef OT_KERNELS_SIGNAL_SIMD_FOURIER_PASSES_H
#define OT_KERNELS_SIGNAL_SIMD_FOURIER_PASSES_H

#include "kernels/kernels.h"
#include "kernels/signal/simd_fourier_lanes.h"

typedef struct complex_rows {
    float *re, *im;
} complex_rows;

// Memory that the first pass reads or the last one writes instead of a list: numbers one after the
// other, real and imaginary parts in turns. NULL: it is not so.
typedef struct direct_numbers {
    const float *from;
    float *to;
    float scale;     // of what is written
    bool is_swapped; // real and imaginary parts are in each other's place
} direct_numbers;

// Number p of `groups` times `factor` runs of x becomes `factor` runs of y, one after the other.
typedef struct factor_pass {
    const float *roots; // of `factor` where it is odd, then all but the first of each group
    int64_t groups, run;
} factor_pass;

// The factor is a constant, a power of 2. The roots of the one group of the last pass are 1.
// `direct`, where it is not NULL, stands in the place of x.
OT_SIMD_INLINE void pass_even(const factor_pass *s, complex_rows y, complex_rows x, int factor,
                              bool is_last, const float *direct, bool is_swapped)
{
    enum { MOST = 16 };
    const int64_t run = s->run, apart = s->groups * run;

    for (int64_t p = 0; p < s->groups; p++) {
        const float *xr = x.re + p * run, *xi = x.im + p * run;
        const float *roots = s->roots + 2 * (factor - 1) * p;
        float *yr = y.re + factor * p * run, *yi = y.im + factor * p * run;

        for (int64_t c = 0; c < run; c += OT_VECTOR_LANES) {
            ot__vector r[MOST], i[MOST];

            OT_SIMD_UNROLL
            for (int k = 0; k < factor; k++) {
                if (direct != NULL && is_swapped) {
                    load_parts(&i[k], &r[k], direct + 2 * (p * run + c + k * apart));
                } else if (direct != NULL) {
                    load_parts(&r[k], &i[k], direct + 2 * (p * run + c + k * apart));
                } else {
                    r[k] = ot__vector_load(xr + c + k * apart);
                    i[k] = ot__vector_load(xi + c + k * apart);
                }
            }
            transform_points(r, i, factor);
            ot__vector_store(yr + c, r[0]);
            ot__vector_store(yi + c, i[0]);
            OT_SIMD_UNROLL
            for (int k = 1; k < factor; k++) {
                if (!is_last)
                    multiply_by(&r[k], &i[k], ot__vector_of(roots[2 * k - 2]),
                                ot__vector_of(roots[2 * k - 1]));
                ot__vector_store(yr + c + k * run, r[k]);
                ot__vector_store(yi + c + k * run, i[k]);
            }
        }
    }
}

enum { MOST_PAIRS = OT__FOURIER_FACTOR / 2, SMALL_PAIRS = 3 };

// Numbers at the same distance from the first and the last of an odd factor: their sum and their
// difference.
OT_SIMD_INLINE void take_pair(ot__vector *sums, ot__vector *offs, const float *low,
                              const float *high)
{
    const ot__vector a = ot__vector_load(low), b = ot__vector_load(high);

    *sums = a + b;
    *offs = a - b;
}

// All of a factor, the first of which is alone; what y gets first is their sum.
OT_SIMD_INLINE void take_pairs(ot__vector *sums, ot__vector *offs, float *y, const float *x,
                               int64_t apart, int factor)
{
    ot__vector all = ot__vector_load(x);

    sums[0] = all;
    for (int k = 1; k <= factor / 2; k++) {
        take_pair(&sums[k], &offs[k], x + k * apart, x + (factor - k) * apart);
        all += sums[k];
    }
    ot__vector_store(y, all);
}

// Two numbers of the result, at the same distance from the first and the last, of `even` and of
// i times `odd`, which have been summed with cosines and with sines.
OT_SIMD_INLINE void give_pair(complex_rows low, complex_rows high, const ot__vector *even,
                              const ot__vector *odd, const float *w, const float *v)
{
    ot__vector r = even[0] - odd[1], i = even[1] + odd[0];

    multiply_by(&r, &i, ot__vector_of(w[0]), ot__vector_of(w[1]));
    ot__vector_store(low.re, r);
    ot__vector_store(low.im, i);
    r = even[0] + odd[1];
    i = even[1] - odd[0];
    multiply_by(&r, &i, ot__vector_of(v[0]), ot__vector_of(v[1]));
    ot__vector_store(high.re, r);
    ot__vector_store(high.im, i);
}

// Number c of a run; the factor is a constant, 3, 5 or 7. `roots`: of the group.
OT_SIMD_INLINE void give_small(const factor_pass *s, complex_rows y, complex_rows x, int factor,
                               const float *roots)
{
    const int64_t run = s->run, apart = s->groups * run;
    const int n_pairs = factor / 2;
    const float *of_factor = s->roots;
    ot__vector sum_r[SMALL_PAIRS + 1], sum_i[SMALL_PAIRS + 1];
    ot__vector off_r[SMALL_PAIRS + 1], off_i[SMALL_PAIRS + 1];

    take_pairs(sum_r, off_r, y.re, x.re, apart, factor);
    take_pairs(sum_i, off_i, y.im, x.im, apart, factor);
    OT_SIMD_UNROLL
    for (int j = 1; j <= n_pairs; j++) {
        const complex_rows low = {y.re + j * run, y.im + j * run};
        const complex_rows high = {y.re + (factor - j) * run, y.im + (factor - j) * run};
        ot__vector even[2] = {sum_r[0], sum_i[0]}, odd[2] = {{0}, {0}};

        OT_SIMD_UNROLL
        for (int k = 1; k <= n_pairs; k++) {
            const float *root = of_factor + 2 * (j * k % factor);

            even[0] += sum_r[k] * root[0];
            even[1] += sum_i[k] * root[0];
            odd[0] += off_r[k] * root[1];
            odd[1] += off_i[k] * root[1];
        }
        give_pair(low, high, even, odd, roots + 2 * j, roots + 2 * (factor - j));
    }
}

// The same of any odd factor.
static void give_large(const factor_pass *s, complex_rows y, complex_rows x, int factor,
                       const float *roots)
{
    const int64_t run = s->run, apart = s->groups * run;
    const int n_pairs = factor / 2;
    ot__vector sum_r[MOST_PAIRS + 1], sum_i[MOST_PAIRS + 1];
    ot__vector off_r[MOST_PAIRS + 1], off_i[MOST_PAIRS + 1];

    take_pairs(sum_r, off_r, y.re, x.re, apart, factor);
    take_pairs(sum_i, off_i, y.im, x.im, apart, factor);
    for (int j = 1; j <= n_pairs; j++) {
        const complex_rows low = {y.re + j * run, y.im + j * run};
        const complex_rows high = {y.re + (factor - j) * run, y.im + (factor - j) * run};
        ot__vector even[2] = {sum_r[0], sum_i[0]}, odd[2] = {{0}, {0}};
        int at = 0;

        for (int k = 1; k <= n_pairs; k++) {
            const float *root;

            at += at + j >= factor ? j - factor : j;
            root = s->roots + 2 * at;
            even[0] += sum_r[k] * root[0];
            even[1] += sum_i[k] * root[0];
            odd[0] += off_r[k] * root[1];
            odd[1] += off_i[k] * root[1];
        }
        give_pair(low, high, even, odd, roots + 2 * j, roots + 2 * (factor - j));
    }
}

// The factor is odd, and a constant where it is small.
OT_SIMD_INLINE void pass_odd(const factor_pass *s, complex_rows y, complex_rows x, int factor)
{
    const int64_t run = s->run;

    for (int64_t p = 0; p < s->groups; p++) {
        const float *roots = s->roots + 2 * factor + 2 * (factor - 1) * p - 2;

        for (int64_t c = 0; c < run; c += OT_VECTOR_LANES) {
            const complex_rows from = {x.re + p * run + c, x.im + p * run + c};
            const complex_rows to = {y.re + factor * p * run + c, y.im + factor * p * run + c};

            if (factor <= 2 * SMALL_PAIRS + 1)
                give_small(s, to, from, factor, roots);
            else
                give_large(s, to, from, factor, roots);
        }
    }
}

static void pass_any(const factor_pass *s, complex_rows y, complex_rows x, int factor)
{
    const bool is_last = s->groups == 1;

    if (factor == 2)
        is_last ? pass_even(s, y, x, 2, true, NULL, false)
                : pass_even(s, y, x, 2, false, NULL, false);
    else if (factor == 3)
        pass_odd(s, y, x, 3);
    else if (factor == 4)
        is_last ? pass_even(s, y, x, 4, true, NULL, false)
                : pass_even(s, y, x, 4, false, NULL, false);
    else if (factor == 5)
        pass_odd(s, y, x, 5);
    else if (factor == 7)
        pass_odd(s, y, x, 7);
    else if (factor == 8)
        is_last ? pass_even(s, y, x, 8, true, NULL, false)
                : pass_even(s, y, x, 8, false, NULL, false);
    else
        pass_odd(s, y, x, OT_MAX(factor, 2 * SMALL_PAIRS + 3));
}

// The first of several passes, of factor 4 or 8, from memory.
static void pass_first(const factor_pass *s, complex_rows y, const direct_numbers *d, int factor)
{
    const complex_rows none = y;

    if (factor == 4 && d->is_swapped)
        pass_even(s, y, none, 4, false, d->from, true);
    else if (factor == 4)
        pass_even(s, y, none, 4, false, d->from, false);
    else if (d->is_swapped)
        pass_even(s, y, none, 8, false, d->from, true);
    else
        pass_even(s, y, none, 8, false, d->from, false);
}

// Rows of x are point k of the transforms of every OT_VECTOR_LANES-th number, from each on; y, or
// what there is in its place, is the transform of all.
OT_SIMD_INLINE void pass_lanes(const ot__fast_fourier *f, complex_rows y, complex_rows x,
                               const direct_numbers *d)
{
    enum { LANES = OT_VECTOR_LANES };
    const int64_t rows = f->length / LANES;

    // The last rows come twice rather than too few.
    for (int64_t k = 0; k < rows; k += LANES) {
        const int64_t first = OT_MAX(OT_MIN(k, rows - LANES), (int64_t)0);
        ot__vector r[LANES], i[LANES];

        OT_SIMD_UNROLL
        for (int a = 0; a < LANES; a++) {
            const int64_t row = OT_MIN(first + a, rows - 1);
            const float *w = f->lane_roots + 2 * LANES * row;
            const ot__vector wr = ot__vector_load(w), wi = ot__vector_load(w + LANES);

            r[a] = ot__vector_load(x.re + LANES * row);
            i[a] = ot__vector_load(x.im + LANES * row);
            multiply_by(&r[a], &i[a], wr, wi);
        }
        transpose_lanes(r);
        transpose_lanes(i);
        transform_points(r, i, LANES);
        // In this order: of fewer rows than lanes what is too much is written over by the next.
        OT_SIMD_UNROLL
        for (int a = 0; a < LANES; a++) {
            const int64_t at = first + a * rows;

            if (d == NULL) {
                ot__vector_store(y.re + at, r[a]);
                ot__vector_store(y.im + at, i[a]);
            } else if (d->is_swapped) {
                store_parts(d->to + 2 * at, i[a] * d->scale, r[a] * d->scale);
            } else {
                store_parts(d->to + 2 * at, r[a] * d->scale, i[a] * d->scale);
            }
        }
    }
}

static void pass_lanes_to_list(const ot__fast_fourier *f, complex_rows y, complex_rows x)
{
    pass_lanes(f, y, x, NULL);
}

static void pass_lanes_direct(const ot__fast_fourier *f, complex_rows x, const direct_numbers *d)
{
    const direct_numbers kept = *d;

    pass_lanes(f, x, x, &kept);
}

// Whether the first pass and the last can be of memory.
static bool can_pass_directly(const ot__fast_fourier *f)
{
    return f->is_folded && f->chirp == NULL && f->n_factors >= 2 &&
           (f->factor[0] == 4 || f->factor[0] == 8) &&
           f->length >= OT_VECTOR_LANES * OT_VECTOR_LANES;
}

// Of f->length points; the result lies in what is given back, x or `other`, if nowhere else.
static complex_rows run_passes(const ot__fast_fourier *f, complex_rows x, complex_rows other,
                               const direct_numbers *d)
{
    const float *roots = f->roots;
    factor_pass s = {.groups = f->is_folded ? f->length / OT_VECTOR_LANES : f->length,
                     .run = OT_VECTOR_LANES};

    for (int k = 0; k < f->n_factors; k++) {
        const int factor = f->factor[k];
        const complex_rows from = x;

        s.groups /= factor;
        s.roots = roots;
        roots += ot__fourier_pass_size(factor, s.groups);
        if (k == 0 && d->from != NULL)
            pass_first(&s, other, d, factor);
        else
            pass_any(&s, other, from, factor);
        s.run *= factor;
        x = other;
        other = from;
    }
    if (!f->is_folded)
        return x;
    if (d->to != NULL)
        pass_lanes_direct(f, x, d);
    else
        pass_lanes_to_list(f, other, x);
    return other;
}

#endif
