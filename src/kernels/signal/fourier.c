// SPDX-License-Identifier: Apache-2.0
// Stockham's fast Fourier transform: each stage takes one factor out of the length and leaves
// everything in order. What is done to the numbers of a run is the same, so that loops are long.
#include "kernels/signal/fourier.h"

#include <math.h>
#include <string.h>

enum { LANES = OT__FOURIER_LANES, LARGEST_FACTOR = 31 };

// ---- tables ----

// Factors of n, 4 first; false where one of them is large.
static bool find_factors(int64_t n, ot__fourier *f)
{
    f->n_factors = 0;
    while (n % 4 == 0) {
        f->factor[f->n_factors++] = 4;
        n /= 4;
    }
    for (int factor = 2; factor <= LARGEST_FACTOR; factor++)
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

static ot__complex_lines run_factors(const ot__fourier *f, ot__complex_lines x,
                                     ot__complex_lines other);

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
    x = run_factors(f, x, other);
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

// ---- stages ----

// A stage: runs of `run` numbers. Number p of `groups` times `factor` runs of x becomes `factor`
// runs of y, one after the other.
typedef struct stage {
    const double *roots;
    int64_t length; // of the roots
    int factor;
    int64_t groups, stride; // stride: points of a run
} stage;

static void run_factor_2(const stage *s, ot__complex_lines y, ot__complex_lines x)
{
    const int64_t run = s->stride * LANES, apart = s->groups * run;

    for (int64_t p = 0; p < s->groups; p++) {
        const double wr = s->roots[2 * p * s->stride], wi = s->roots[2 * p * s->stride + 1];
        const double *xr = x.re + p * run, *xi = x.im + p * run;
        double *yr = y.re + 2 * p * run, *yi = y.im + 2 * p * run;

        for (int64_t c = 0; c < run; c++) {
            const double re = xr[c] - xr[c + apart], im = xi[c] - xi[c + apart];

            yr[c] = xr[c] + xr[c + apart];
            yi[c] = xi[c] + xi[c + apart];
            yr[c + run] = re * wr - im * wi;
            yi[c + run] = re * wi + im * wr;
        }
    }
}

static void run_factor_4(const stage *s, ot__complex_lines y, ot__complex_lines x)
{
    const int64_t run = s->stride * LANES, apart = s->groups * run;

    for (int64_t p = 0; p < s->groups; p++) {
        const double *w1 = s->roots + 2 * p * s->stride, *w2 = s->roots + 4 * p * s->stride;
        const double *w3 = s->roots + 6 * p * s->stride;
        const double w1r = w1[0], w1i = w1[1], w2r = w2[0], w2i = w2[1], w3r = w3[0], w3i = w3[1];
        const double *xr = x.re + p * run, *xi = x.im + p * run;
        double *yr = y.re + 4 * p * run, *yi = y.im + 4 * p * run;

        for (int64_t c = 0; c < run; c++) {
            const double even_r = xr[c] + xr[c + 2 * apart], odd_r = xr[c] - xr[c + 2 * apart];
            const double even_i = xi[c] + xi[c + 2 * apart], odd_i = xi[c] - xi[c + 2 * apart];
            const double sum_r = xr[c + apart] + xr[c + 3 * apart];
            const double sum_i = xi[c + apart] + xi[c + 3 * apart];
            const double turned_r = xi[c + apart] - xi[c + 3 * apart]; // by -i
            const double turned_i = xr[c + 3 * apart] - xr[c + apart];
            const double r1 = odd_r + turned_r, i1 = odd_i + turned_i;
            const double r2 = even_r - sum_r, i2 = even_i - sum_i;
            const double r3 = odd_r - turned_r, i3 = odd_i - turned_i;

            yr[c] = even_r + sum_r;
            yi[c] = even_i + sum_i;
            yr[c + run] = r1 * w1r - i1 * w1i;
            yi[c + run] = r1 * w1i + i1 * w1r;
            yr[c + 2 * run] = r2 * w2r - i2 * w2i;
            yi[c + 2 * run] = r2 * w2i + i2 * w2r;
            yr[c + 3 * run] = r3 * w3r - i3 * w3i;
            yi[c + 3 * run] = r3 * w3i + i3 * w3r;
        }
    }
}

// y_j = the sum over k of x_k * e^(-2 pi i (j k / factor + j p stride / length)).
static void run_factor(const stage *s, ot__complex_lines y, ot__complex_lines x)
{
    const int64_t run = s->stride * LANES, apart = s->groups * run;

    for (int64_t p = 0; p < s->groups; p++)
        for (int j = 0; j < s->factor; j++) {
            const int64_t step = s->length / s->factor * j;
            double *yr = y.re + (s->factor * p + j) * run, *yi = y.im + (s->factor * p + j) * run;
            int64_t root = p * s->stride * j;

            memset(yr, 0, (size_t)run * sizeof(double));
            memset(yi, 0, (size_t)run * sizeof(double));
            for (int k = 0; k < s->factor; k++) {
                const double wr = s->roots[2 * root], wi = s->roots[2 * root + 1];
                const double *xr = x.re + p * run + k * apart, *xi = x.im + p * run + k * apart;

                for (int64_t c = 0; c < run; c++) {
                    yr[c] += xr[c] * wr - xi[c] * wi;
                    yi[c] += xr[c] * wi + xi[c] * wr;
                }
                root += step;
                root -= root >= s->length ? s->length : 0;
            }
        }
}

static ot__complex_lines run_factors(const ot__fourier *f, ot__complex_lines x,
                                     ot__complex_lines other)
{
    stage s = {f->roots, f->length, 1, f->length, 1};

    for (int i = 0; i < f->n_factors; i++) {
        const ot__complex_lines from = x;

        s.factor = f->factor[i];
        s.groups /= s.factor;
        if (s.factor == 4)
            run_factor_4(&s, other, from);
        else if (s.factor == 2)
            run_factor_2(&s, other, from);
        else
            run_factor(&s, other, from);
        s.stride *= s.factor;
        x = other;
        other = from;
    }
    return x;
}

// ---- a convolution with the chirp ----

static void multiply_points(ot__complex_lines x, const double *by, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        for (int64_t c = k * LANES; c < (k + 1) * LANES; c++) {
            const double re = x.re[c], im = x.im[c];

            x.re[c] = re * by[2 * k] - im * by[2 * k + 1];
            x.im[c] = re * by[2 * k + 1] + im * by[2 * k];
        }
}

static ot__complex_lines swapped_parts(ot__complex_lines x)
{
    return (ot__complex_lines){x.im, x.re};
}

// With real and imaginary parts in each other's place a transform is its inverse.
ot__complex_lines ot__fourier_run(const ot__fourier *f, ot__complex_lines x,
                                  ot__complex_lines other)
{
    ot__complex_lines y;
    size_t rest;

    if (f->chirp == NULL)
        return run_factors(f, x, other);
    rest = (size_t)((f->length - f->n) * LANES) * sizeof(double);
    multiply_points(x, f->chirp, f->n);
    memset(x.re + f->n * LANES, 0, rest);
    memset(x.im + f->n * LANES, 0, rest);
    y = run_factors(f, x, other);
    multiply_points(y, f->spectrum, f->length);
    other = y.re == x.re ? other : x;
    y = swapped_parts(run_factors(f, swapped_parts(y), swapped_parts(other)));
    multiply_points(y, f->chirp, f->n);
    return y;
}

// ---- threads ----

int64_t ot__fourier_parts(int64_t n, int64_t n_lines, int n_threads)
{
    const int64_t n_groups = (n_lines + LANES - 1) / LANES;
    const int64_t least = OT_PAR_MIN / OT_MIN(n * LANES, (int64_t)OT_PAR_MIN); // groups of a part

    return OT_MAX(OT_MIN(n_groups / OT_MAX(least, 1), (int64_t)n_threads), 1);
}
