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

// Number p of `groups` times `factor` runs of x becomes `factor` runs of y, one after the other.
typedef struct factor_pass {
    const float *roots; // of `factor` where it is odd, then all but the first of each group
    int64_t groups, run;
} factor_pass;

// The factor is a constant, a power of 2. The roots of the one group of the last pass are 1.
OT_SIMD_INLINE void pass_even(const factor_pass *s, complex_rows y, complex_rows x, int factor,
                              bool is_last)
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
                r[k] = ot__vector_load(xr + c + k * apart);
                i[k] = ot__vector_load(xi + c + k * apart);
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

// The factor is odd; where this is called a constant if it is small. Numbers at the same distance
// from the first and the last are taken together.
OT_SIMD_INLINE void pass_odd(const factor_pass *s, complex_rows y, complex_rows x, int factor)
{
    enum { MOST_PAIRS = OT__FOURIER_FACTOR / 2 };
    const int64_t run = s->run, apart = s->groups * run;
    const int n_pairs = factor / 2;
    const float *of_factor = s->roots;

    for (int64_t p = 0; p < s->groups; p++) {
        const float *roots = s->roots + 2 * factor + 2 * (factor - 1) * p - 2;

        for (int64_t c = 0; c < run; c += OT_VECTOR_LANES) {
            const float *xr = x.re + p * run + c, *xi = x.im + p * run + c;
            float *yr = y.re + factor * p * run + c, *yi = y.im + factor * p * run + c;
            ot__vector sum_r[MOST_PAIRS + 1], sum_i[MOST_PAIRS + 1];
            ot__vector off_r[MOST_PAIRS + 1], off_i[MOST_PAIRS + 1];
            ot__vector all_r = ot__vector_load(xr), all_i = ot__vector_load(xi);

            sum_r[0] = all_r;
            sum_i[0] = all_i;
            OT_SIMD_UNROLL
            for (int k = 1; k <= n_pairs; k++) {
                const ot__vector low_r = ot__vector_load(xr + k * apart);
                const ot__vector low_i = ot__vector_load(xi + k * apart);
                const ot__vector high_r = ot__vector_load(xr + (factor - k) * apart);
                const ot__vector high_i = ot__vector_load(xi + (factor - k) * apart);

                sum_r[k] = low_r + high_r;
                sum_i[k] = low_i + high_i;
                off_r[k] = low_r - high_r;
                off_i[k] = low_i - high_i;
                all_r += sum_r[k];
                all_i += sum_i[k];
            }
            ot__vector_store(yr, all_r);
            ot__vector_store(yi, all_i);
            OT_SIMD_UNROLL
            for (int j = 1; j <= n_pairs; j++) {
                const float *w = roots + 2 * j, *v = roots + 2 * (factor - j);
                ot__vector even_r = sum_r[0], even_i = sum_i[0];
                ot__vector odd_r = {0}, odd_i = {0}, r, i;
                int at = 0;

                OT_SIMD_UNROLL
                for (int k = 1; k <= n_pairs; k++) {
                    at += at + j >= factor ? j - factor : j;
                    even_r += sum_r[k] * of_factor[2 * at];
                    even_i += sum_i[k] * of_factor[2 * at];
                    odd_r -= off_i[k] * of_factor[2 * at + 1]; // by -i
                    odd_i += off_r[k] * of_factor[2 * at + 1];
                }
                r = even_r + odd_r;
                i = even_i + odd_i;
                ot__vector_store(yr + j * run, r * w[0] - i * w[1]);
                ot__vector_store(yi + j * run, r * w[1] + i * w[0]);
                r = even_r - odd_r;
                i = even_i - odd_i;
                ot__vector_store(yr + (factor - j) * run, r * v[0] - i * v[1]);
                ot__vector_store(yi + (factor - j) * run, r * v[1] + i * v[0]);
            }
        }
    }
}

// Any odd factor, a number that the compiler does not know.
static void pass_large(const factor_pass *s, complex_rows y, complex_rows x, int factor)
{
    pass_odd(s, y, x, factor);
}

static void pass_any(const factor_pass *s, complex_rows y, complex_rows x, int factor)
{
    const bool is_last = s->groups == 1;

    if (factor == 2)
        is_last ? pass_even(s, y, x, 2, true) : pass_even(s, y, x, 2, false);
    else if (factor == 3)
        pass_odd(s, y, x, 3);
    else if (factor == 4)
        is_last ? pass_even(s, y, x, 4, true) : pass_even(s, y, x, 4, false);
    else if (factor == 5)
        pass_odd(s, y, x, 5);
    else if (factor == 7)
        pass_odd(s, y, x, 7);
    else if (factor == 8)
        is_last ? pass_even(s, y, x, 8, true) : pass_even(s, y, x, 8, false);
    else
        pass_large(s, y, x, factor);
}

// Rows of x are point k of the transforms of every OT_VECTOR_LANES-th number, from each on; y is
// the transform of all.
static void pass_lanes(const ot__fast_fourier *f, complex_rows y, complex_rows x)
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
        turn_square(r);
        turn_square(i);
        transform_points(r, i, LANES);
        // In this order: of fewer rows than lanes what is too much is written over by the next.
        OT_SIMD_UNROLL
        for (int a = 0; a < LANES; a++) {
            ot__vector_store(y.re + first + a * rows, r[a]);
            ot__vector_store(y.im + first + a * rows, i[a]);
        }
    }
}

// Of f->length points; the result lies in what is given back, x or `other`.
static complex_rows run_passes(const ot__fast_fourier *f, complex_rows x, complex_rows other)
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
        pass_any(&s, other, from, factor);
        s.run *= factor;
        x = other;
        other = from;
    }
    if (!f->is_folded)
        return x;
    pass_lanes(f, other, x);
    return other;
}

#endif
