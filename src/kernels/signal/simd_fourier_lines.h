// SPDX-License-Identifier: Apache-2.0
// How simd_fourier.c reads and writes lines: into lists of real and of imaginary parts, in which
// the numbers of all lanes lie side by side, or those of one line that is folded one by one.
#ifndef OT_KERNELS_SIGNAL_SIMD_FOURIER_LINES_H
#define OT_KERNELS_SIGNAL_SIMD_FOURIER_LINES_H

#include "kernels/kernels.h"
#include "kernels/signal/simd_fourier_passes.h"

// Where the lines of a group are.
typedef struct line_places {
    bool is_folded;
    int n; // lanes with a line of their own: behind the last one it is repeated
    int64_t at[OT_VECTOR_LANES];
    int64_t step;  // from a number of a line to the next
    int64_t apart; // from its real part to its imaginary one; 0: it is real
    int64_t whole; // numbers
    bool has_rest; // there is the real part of one more
    bool are_side_by_side;
} line_places;

static line_places find_places(const ot__fast_fourier *f, const ot__fourier_lines *l,
                               const ot__fourier_side *side, int64_t group)
{
    const bool is_packed = f->is_packed && side->parts == 1;
    const int64_t n_lines = l->outer * l->inner, first = f->is_folded ? group : group * f->lanes;
    line_places p = {.is_folded = f->is_folded,
                     .n = f->is_folded ? 1 : (int)OT_MIN(n_lines - first, (int64_t)f->lanes),
                     .step = is_packed ? 2 * side->point : side->point,
                     .apart = is_packed ? side->point : side->parts - 1,
                     .whole = is_packed ? side->used / 2 : side->used,
                     .has_rest = is_packed && side->used % 2 != 0};
    int64_t outer = first / l->inner, inner = first % l->inner;

    p.are_side_by_side = p.n == OT_VECTOR_LANES;
    for (int i = 0; i < (f->is_folded ? 1 : OT_VECTOR_LANES); i++) {
        p.at[i] = outer * side->outer + inner * side->inner;
        p.are_side_by_side = p.are_side_by_side && p.at[i] == p.at[0] + i * (p.apart == 1 ? 2 : 1);
        inner += i + 1 < p.n;
        if (inner == l->inner) {
            inner = 0;
            outer++;
        }
    }
    return p;
}

// Whether all floats of a line follow each other.
static bool are_dense(const line_places *p)
{
    return p->step == (p->apart == 0 ? 1 : 2) && p->apart <= 1;
}

// ---- one by one ----

static void load_numbers(complex_rows y, const float *x, const line_places *p, int64_t first,
                         int64_t last)
{
    const int lanes = p->is_folded ? 1 : OT_VECTOR_LANES;

    for (int64_t k = first; k < last; k++)
        for (int i = 0; i < lanes; i++) {
            const float *from = x + p->at[i] + k * p->step;

            y.re[k * lanes + i] = from[0];
            y.im[k * lanes + i] = p->apart != 0 && k < p->whole ? from[p->apart] : 0;
        }
}

static void store_numbers(float *y, complex_rows x, const line_places *p, float scale,
                          int64_t first, int64_t last)
{
    const int lanes = p->is_folded ? 1 : OT_VECTOR_LANES;

    for (int i = 0; i < p->n; i++)
        for (int64_t k = first; k < last; k++) {
            float *to = y + p->at[i] + k * p->step;

            to[0] = scale * x.re[k * lanes + i];
            if (p->apart != 0 && k < p->whole)
                to[p->apart] = scale * x.im[k * lanes + i];
        }
}

// ---- loading ----

// What is not loaded is 0, up to so many numbers.
static void load_zeros(complex_rows y, const line_places *p, int64_t n)
{
    const int64_t lanes = p->is_folded ? 1 : OT_VECTOR_LANES, first = p->whole + p->has_rest;

    if (first >= n)
        return;
    memset(y.re + first * lanes, 0, (size_t)((n - first) * lanes) * sizeof(float));
    memset(y.im + first * lanes, 0, (size_t)((n - first) * lanes) * sizeof(float));
}

// A dense line, or of several each number's lanes side by side: how many numbers were loaded.
static int64_t load_along(complex_rows y, const float *x, const line_places *p)
{
    const int64_t rows = p->is_folded ? p->whole / OT_VECTOR_LANES : p->whole;
    const int64_t step = p->is_folded ? p->step * OT_VECTOR_LANES : p->step;

    for (int64_t k = 0; k < rows; k++) {
        const float *from = x + p->at[0] + k * step;
        ot__vector re, im = {0};

        if (p->apart == 1) {
            load_parts(&re, &im, from);
        } else {
            re = ot__vector_load(from);
            if (p->apart != 0)
                im = ot__vector_load(from + p->apart);
        }
        ot__vector_store(y.re + k * OT_VECTOR_LANES, re);
        ot__vector_store(y.im + k * OT_VECTOR_LANES, im);
    }
    return p->is_folded ? rows * OT_VECTOR_LANES : rows;
}

// Of dense lines, in squares. The last of them come twice rather than too few.
static int64_t load_squares(complex_rows y, const float *x, const line_places *p)
{
    enum { LANES = OT_VECTOR_LANES };
    const int64_t numbers = p->apart == 0 ? LANES : LANES / 2; // of a vector

    if (p->whole < numbers)
        return 0;
    for (int64_t k = 0; k < p->whole; k += numbers) {
        const int64_t first = OT_MIN(k, p->whole - numbers);
        float *re = y.re + first * LANES, *im = y.im + first * LANES;
        ot__vector v[LANES];

        OT_SIMD_UNROLL
        for (int i = 0; i < LANES; i++)
            v[i] = ot__vector_load(x + p->at[i] + first * p->step);
        transpose_lanes(v);
        if (p->apart == 0) {
            OT_SIMD_UNROLL
            for (int i = 0; i < LANES; i++)
                ot__vector_store(re + i * LANES, v[i]);
            continue;
        }
        OT_SIMD_UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            ot__vector_store(re + i * LANES, v[2 * i]);
            ot__vector_store(im + i * LANES, v[2 * i + 1]);
        }
    }
    if (p->apart == 0)
        memset(y.im, 0, (size_t)(p->whole * LANES) * sizeof(float));
    return p->whole;
}

// n: numbers of the list, of which those behind the line's become 0.
static void load_lines(complex_rows y, const float *x, const line_places *p, int64_t n)
{
    int64_t done = 0;

    if (p->is_folded ? are_dense(p) : p->are_side_by_side)
        done = load_along(y, x, p);
    else if (!p->is_folded && are_dense(p))
        done = load_squares(y, x, p);
    load_numbers(y, x, p, done, p->whole + p->has_rest);
    load_zeros(y, p, n);
}

// ---- storing ----

static int64_t store_along(float *y, complex_rows x, const line_places *p, float scale)
{
    const int64_t rows = p->is_folded ? p->whole / OT_VECTOR_LANES : p->whole;
    const int64_t step = p->is_folded ? p->step * OT_VECTOR_LANES : p->step;

    for (int64_t k = 0; k < rows; k++) {
        const ot__vector re = ot__vector_load(x.re + k * OT_VECTOR_LANES) * scale;
        const ot__vector im = ot__vector_load(x.im + k * OT_VECTOR_LANES) * scale;
        float *to = y + p->at[0] + k * step;

        if (p->apart == 1) {
            store_parts(to, re, im);
            continue;
        }
        ot__vector_store(to, re);
        if (p->apart != 0)
            ot__vector_store(to + p->apart, im);
    }
    return p->is_folded ? rows * OT_VECTOR_LANES : rows;
}

static int64_t store_squares(float *y, complex_rows x, const line_places *p, float scale)
{
    enum { LANES = OT_VECTOR_LANES };
    const int64_t numbers = p->apart == 0 ? LANES : LANES / 2;

    if (p->whole < numbers)
        return 0;
    for (int64_t k = 0; k < p->whole; k += numbers) {
        const int64_t first = OT_MIN(k, p->whole - numbers);
        const float *re = x.re + first * LANES, *im = x.im + first * LANES;
        ot__vector v[LANES];

        OT_SIMD_UNROLL
        for (int i = 0; i < LANES; i++) {
            if (p->apart == 0)
                v[i] = ot__vector_load(re + i * LANES) * scale;
            else
                v[i] = ot__vector_load((i % 2 == 0 ? re : im) + i / 2 * LANES) * scale;
        }
        transpose_lanes(v);
        if (p->n == LANES) {
            OT_SIMD_UNROLL
            for (int i = 0; i < LANES; i++)
                ot__vector_store(y + p->at[i] + first * p->step, v[i]);
        } else {
            for (int i = 0; i < p->n; i++)
                ot__vector_store(y + p->at[i] + first * p->step, v[i]);
        }
    }
    return p->whole;
}

// Numbers behind those that are made become 0, up to the line's points.
static void store_zeros(float *y, const ot__fourier_side *to, const line_places *p)
{
    for (int i = 0; i < p->n; i++)
        for (int64_t k = to->used; k < to->points; k++) {
            y[p->at[i] + k * to->point] = 0;
            if (to->parts == 2)
                y[p->at[i] + k * to->point + 1] = 0;
        }
}

static void store_lines(float *y, complex_rows x, const line_places *p, const ot__fourier_side *to,
                        float scale)
{
    int64_t done = 0;

    if (p->is_folded ? are_dense(p) : p->are_side_by_side)
        done = store_along(y, x, p, scale);
    else if (!p->is_folded && are_dense(p))
        done = store_squares(y, x, p, scale);
    store_numbers(y, x, p, scale, done, p->whole + p->has_rest);
    if (to->used < to->points)
        store_zeros(y, to, p);
}

#endif
