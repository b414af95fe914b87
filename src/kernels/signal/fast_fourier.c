// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of lines of f32 in f32 (simd_fourier.c): how they are taken apart, tables,
// threads.
#include "kernels/kernels.h"

#include <math.h>

// ---- how a transform is taken apart ----

// Factors of n, none above 8 where that can be: few passes go through all points. What is left
// over of the powers of 2 comes first, in passes of many groups.
static void choose_factors(ot__fast_fourier *f, int64_t n)
{
    int twos = 0;

    f->n_factors = 0;
    for (; n % 2 == 0; n /= 2)
        twos++;
    for (; twos % 3 != 0 && twos != 1; twos -= 2)
        f->factor[f->n_factors++] = 4;
    for (; twos >= 3; twos -= 3)
        f->factor[f->n_factors++] = 8;
    if (twos == 1)
        f->factor[f->n_factors++] = 2;
    for (int factor = 3; n > 1; factor += 2)
        for (; n % factor == 0; n /= factor)
            f->factor[f->n_factors++] = (uint8_t)factor;
}

// Whether all lanes have the same line: it then stays in the first cache, but a vector of each lane
// is needed at the end, the line's length has to be a multiple of the lanes, and points that do not
// follow each other are read one by one.
static bool choose_folded(int64_t length, const ot__fourier_lines *l, int lanes)
{
    const bool is_dense = l->from.point == l->from.parts && l->to.point == l->to.parts;

    return length % lanes == 0 &&
           ((is_dense && length >= lanes * lanes) || 2 * l->outer * l->inner <= lanes);
}

// Parts lie at different places of the pages of memory: at the same one they would fall on the same
// lines of the first cache.
static int64_t choose_room(const ot__fast_fourier *f)
{
    enum { APART = 192, BEHIND = 2 }; // floats; vectors that may be written too much
    const int64_t numbers = OT_MAX(f->length, f->n + 1);
    const int64_t floats = (f->is_folded ? 1 : f->lanes) * numbers + BEHIND * f->lanes;

    return (floats + OT__CLASH - 1) / OT__CLASH * OT__CLASH + APART;
}

void ot__fast_fourier_plan(ot__fast_fourier *f, int64_t n, const ot__fourier_lines *l, int lanes)
{
    *f = (ot__fast_fourier){.n = n, .lanes = lanes};
    f->is_packed = n % 2 == 0 && l->from.parts + l->to.parts == 3;
    f->points = f->is_packed ? n / 2 : n;
    f->length = ot__fourier_length(f->points);
    f->is_folded = choose_folded(f->length, l, lanes);
    choose_factors(f, f->is_folded ? f->length / lanes : f->length);
    f->room = choose_room(f);
    f->is_windowed = l->is_windowed;
}

// ---- tables ----

enum { ALIGNED = 16 }; // floats of a line of the cache

static int64_t round_up(int64_t n)
{
    return (n + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static int64_t roots_size(const ot__fast_fourier *f)
{
    int64_t groups = f->is_folded ? f->length / f->lanes : f->length, size = 0;

    for (int i = 0; i < f->n_factors; i++) {
        groups /= f->factor[i];
        size += ot__fourier_pass_size(f->factor[i], groups);
    }
    return size;
}

int64_t ot__fast_fourier_table_size(const ot__fast_fourier *f)
{
    const bool has_chirp = f->length != f->points;

    return ALIGNED + round_up(roots_size(f)) + (f->is_folded ? 2 * f->length : 0) +
           (f->is_packed ? 2 * round_up(f->points + 1) : 0) +
           (has_chirp ? 2 * round_up(f->points) + 2 * round_up(f->length) : 0);
}

int64_t ot__fast_fourier_scratch_size(const ot__fast_fourier *f)
{
    return ALIGNED + 4 * f->room + (f->is_windowed ? 2 * round_up(f->points) : 0);
}

// Numbers of a list of pairs, real parts and then imaginary ones.
static float *split_pairs(float *to, const double *pairs, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        to[k] = (float)pairs[2 * k];
        to[k + round_up(n)] = (float)pairs[2 * k + 1];
    }
    return to + 2 * round_up(n);
}

static void put_root(float *to, const double *roots, int64_t k)
{
    to[0] = (float)roots[2 * k];
    to[1] = (float)roots[2 * k + 1];
}

// `roots` are those of f->length.
static void fill_pass_roots(const ot__fast_fourier *f, float *to, const double *roots)
{
    int64_t groups = f->is_folded ? f->length / f->lanes : f->length;
    int64_t step = f->length / groups; // of the roots

    for (int i = 0; i < f->n_factors; i++) {
        const int factor = f->factor[i];

        groups /= factor;
        for (int k = 0; factor % 2 != 0 && k < factor; k++, to += 2)
            put_root(to, roots, f->length / factor * k);
        for (int64_t p = 0; p < groups; p++)
            for (int k = 1; k < factor; k++, to += 2)
                put_root(to, roots, p * k * step);
        step *= factor;
    }
}

static void fill_lane_roots(const ot__fast_fourier *f, float *to, const double *roots)
{
    for (int64_t k = 0; k < f->length / f->lanes; k++)
        for (int lane = 0; lane < f->lanes; lane++) {
            const int64_t at = 2 * f->lanes * k + lane;

            to[at] = (float)roots[2 * k * lane];
            to[at + f->lanes] = (float)roots[2 * k * lane + 1];
        }
}

static void fill_pack_roots(const ot__fast_fourier *f, float *to)
{
    static const double turn = 6.283185307179586476925;
    float *im = to + round_up(f->points + 1);

    for (int64_t k = 0; k <= f->points; k++) {
        const double angle = turn * (double)k / (double)f->n;

        to[k] = (float)cos(angle);
        im[k] = (float)-sin(angle);
    }
}

void ot__fast_fourier_make(ot__fast_fourier *f, float *tables, double *work)
{
    float *at = (float *)(((uintptr_t)tables + 63) / 64 * 64);
    ot__fourier exact;

    ot__fourier_make(&exact, f->points, work, work + ot__fourier_table_size(f->points));
    f->roots = at;
    fill_pass_roots(f, at, exact.roots);
    at += round_up(roots_size(f));
    if (f->is_folded) {
        f->lane_roots = at;
        fill_lane_roots(f, at, exact.roots);
        at += 2 * f->length;
    }
    if (f->is_packed) {
        f->pack_roots = at;
        fill_pack_roots(f, at);
        at += 2 * round_up(f->points + 1);
    }
    if (exact.chirp == NULL)
        return;
    f->chirp = at;
    at = split_pairs(at, exact.chirp, f->points);
    f->spectrum = at;
    (void)split_pairs(at, exact.spectrum, f->length);
}

// ---- threads ----

typedef struct fast_fourier_job {
    float *y;
    const float *x;
    const ot__fouriers *by;
    const ot__fast_fourier *f;
    const ot__fourier_lines *l;
    int64_t n_parts;
    float *scratch;
} fast_fourier_job;

static void fast_fourier_parts(void *context, int64_t first, int64_t last)
{
    const fast_fourier_job *j = context;
    const int64_t step = j->f->is_folded ? 1 : j->f->lanes;
    const int64_t n_groups = (j->l->outer * j->l->inner + step - 1) / step;

    for (int64_t part = first; part < last; part++)
        j->by->run(j->f, j->l, j->y, j->x, n_groups * part / j->n_parts,
                   n_groups * (part + 1) / j->n_parts,
                   j->scratch + part * ot__fast_fourier_scratch_size(j->f));
}

void ot__fast_fourier_run(float *y, const float *x, const ot__fouriers *by,
                          const ot__fast_fourier *f, const ot__fourier_lines *l, int64_t n_parts,
                          float *scratch)
{
    fast_fourier_job j = {y, x, by, f, l, n_parts, scratch};

    ot__parallel_for(n_parts, 1, fast_fourier_parts, &j);
}
