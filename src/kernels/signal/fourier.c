// SPDX-License-Identifier: Apache-2.0
// What the Fourier transforms of ref_fourier_passes.c take from tables.
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { LANES = OT__FOURIER_LANES };

// ---- tables ----

// Factors of n, 4 first; false where one of them is large.
static bool find_factors(int64_t n, ot__fourier *f)
{
    f->n_factors = 0;
    while (n % 4 == 0) {
        f->factor[f->n_factors++] = 4;
        n /= 4;
    }
    for (int factor = 2; factor <= OT__FOURIER_FACTOR; factor++)
        for (; n % factor == 0; n /= factor)
            f->factor[f->n_factors++] = (uint8_t)factor;
    return n == 1;
}

// Of what is computed by factors.
static int64_t choose_length(int64_t n, ot__fourier *f)
{
    int64_t length = 1;

    if (find_factors(n, f))
        return n;
    while (length < 2 * n - 1)
        length *= 2;
    (void)find_factors(length, f);
    return length;
}

int64_t ot__fourier_length(int64_t n)
{
    ot__fourier f;

    return choose_length(n, &f);
}

int64_t ot__fourier_table_size(int64_t n)
{
    ot__fourier f;
    const int64_t length = choose_length(n, &f);

    return length == n ? 2 * n : 4 * length + 2 * n;
}

int64_t ot__fourier_scratch_size(int64_t n)
{
    ot__fourier f;

    return 4 * LANES * choose_length(n, &f);
}

static void fill_roots(double *to, int64_t length)
{
    static const double turn = 6.283185307179586476925;

    for (int64_t k = 0; k < length; k++) {
        const double angle = turn * (double)k / (double)length;

        to[2 * k] = cos(angle);
        to[2 * k + 1] = -sin(angle);
    }
}

// k * k counts in turns of 2 n.
static void fill_chirp(double *to, int64_t n)
{
    static const double half_turn = 3.141592653589793238463;
    int64_t square = 0;

    for (int64_t k = 0; k < n; k++) {
        const double angle = half_turn * (double)square / (double)n;

        to[2 * k] = cos(angle);
        to[2 * k + 1] = -sin(angle);
        square = (square + 2 * k + 1) % (2 * n);
    }
}

// The chirp's conjugate reaches to both sides of 0.
static void fill_spectrum(const ot__fourier *f, double *scratch)
{
    const int64_t size = f->length * LANES;
    ot__complex_lines x = {scratch, scratch + size}, other = {x.im + size, x.im + 2 * size};

    memset(scratch, 0, (size_t)(2 * size) * sizeof(double));
    for (int64_t k = 0; k < f->n; k++) {
        x.re[k * LANES] = f->chirp[2 * k];
        x.im[k * LANES] = -f->chirp[2 * k + 1];
        if (k > 0) {
            x.re[(f->length - k) * LANES] = f->chirp[2 * k];
            x.im[(f->length - k) * LANES] = -f->chirp[2 * k + 1];
        }
    }
    x = ot__ref_fourier_factors(f, x, other);
    for (int64_t k = 0; k < f->length; k++) {
        f->spectrum[2 * k] = x.re[k * LANES] / (double)f->length;
        f->spectrum[2 * k + 1] = x.im[k * LANES] / (double)f->length;
    }
}

void ot__fourier_make(ot__fourier *f, int64_t n, double *tables, double *scratch)
{
    *f = (ot__fourier){.n = n, .roots = tables};
    f->length = choose_length(n, f);
    fill_roots(f->roots, f->length);
    if (f->length == n)
        return;
    f->chirp = f->roots + 2 * f->length;
    f->spectrum = f->chirp + 2 * n;
    fill_chirp(f->chirp, n);
    fill_spectrum(f, scratch);
}

// ---- threads ----

int64_t ot__fourier_parts(int64_t n, int64_t n_lines, int64_t step, int n_threads)
{
    enum { LEAST = OT_PAR_MIN / 4 }; // points of a thread: each takes many operations
    const int64_t n_groups = (n_lines + step - 1) / step;
    const int64_t least = LEAST / OT_MIN(n * step, (int64_t)LEAST); // groups of a part

    return OT_MAX(OT_MIN(n_groups / OT_MAX(least, 1), (int64_t)n_threads), 1);
}
