// SPDX-License-Identifier: Apache-2.0
// Stockham's fast Fourier transform in f64: each stage takes one factor out of the length and
// leaves everything in order. What is done to the numbers of a run is the same, so that loops are
// long.
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd.h"

enum { LANES = OT__FOURIER_LANES };

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

        OT_SIMD_LOOP
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

        OT_SIMD_LOOP
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
static void run_any_factor(const stage *s, ot__complex_lines y, ot__complex_lines x)
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

                OT_SIMD_LOOP
                for (int64_t c = 0; c < run; c++) {
                    yr[c] += xr[c] * wr - xi[c] * wi;
                    yi[c] += xr[c] * wi + xi[c] * wr;
                }
                root += step;
                root -= root >= s->length ? s->length : 0;
            }
        }
}

enum { MOST_ODD = 7 }; // of the factors that have loops of their own

// The same where the factor, a constant where this is called, is odd: numbers at the same distance
// from the first and the last are taken together.
OT_SIMD_INLINE void run_odd_factor(const stage *s, ot__complex_lines y, ot__complex_lines x,
                                   int factor)
{
    enum { PAIRS = MOST_ODD / 2 };
    const int64_t run = s->stride * LANES, apart = s->groups * run;
    const int n_pairs = factor / 2;
    double c_of[MOST_ODD], s_of[MOST_ODD]; // cos and sin of 2 pi k / factor

    for (int k = 0; k < factor; k++) {
        c_of[k] = s->roots[2 * (s->length / factor * k)];
        s_of[k] = -s->roots[2 * (s->length / factor * k) + 1];
    }
    for (int64_t p = 0; p < s->groups; p++) {
        const double *xr = x.re + p * run, *xi = x.im + p * run;
        double *yr = y.re + factor * p * run, *yi = y.im + factor * p * run;
        double wr[MOST_ODD], wi[MOST_ODD];

        for (int j = 0; j < factor; j++) {
            wr[j] = s->roots[2 * j * p * s->stride];
            wi[j] = s->roots[2 * j * p * s->stride + 1];
        }
        OT_SIMD_LOOP
        for (int64_t c = 0; c < run; c++) {
            double sum_r[PAIRS], sum_i[PAIRS], off_r[PAIRS], off_i[PAIRS];
            double all_r = xr[c], all_i = xi[c];

            OT_SIMD_UNROLL
            for (int k = 1; k <= n_pairs; k++) {
                const int64_t low = c + k * apart, high = c + (factor - k) * apart;

                sum_r[k - 1] = xr[low] + xr[high];
                sum_i[k - 1] = xi[low] + xi[high];
                off_r[k - 1] = xr[low] - xr[high];
                off_i[k - 1] = xi[low] - xi[high];
                all_r += sum_r[k - 1];
                all_i += sum_i[k - 1];
            }
            yr[c] = all_r;
            yi[c] = all_i;
            OT_SIMD_UNROLL
            for (int j = 1; j <= n_pairs; j++) {
                double even_r = xr[c], even_i = xi[c], odd_r = 0, odd_i = 0;
                double r, i;

                OT_SIMD_UNROLL
                for (int k = 1; k <= n_pairs; k++) {
                    even_r += sum_r[k - 1] * c_of[j * k % factor];
                    even_i += sum_i[k - 1] * c_of[j * k % factor];
                    odd_r += off_i[k - 1] * s_of[j * k % factor]; // by -i
                    odd_i -= off_r[k - 1] * s_of[j * k % factor];
                }
                r = even_r + odd_r;
                i = even_i + odd_i;
                yr[c + j * run] = r * wr[j] - i * wi[j];
                yi[c + j * run] = r * wi[j] + i * wr[j];
                r = even_r - odd_r;
                i = even_i - odd_i;
                yr[c + (factor - j) * run] = r * wr[factor - j] - i * wi[factor - j];
                yi[c + (factor - j) * run] = r * wi[factor - j] + i * wr[factor - j];
            }
        }
    }
}

static void run_factor(const stage *s, ot__complex_lines y, ot__complex_lines x)
{
    if (s->factor == 2)
        run_factor_2(s, y, x);
    else if (s->factor == 3)
        run_odd_factor(s, y, x, 3);
    else if (s->factor == 4)
        run_factor_4(s, y, x);
    else if (s->factor == 5)
        run_odd_factor(s, y, x, 5);
    else if (s->factor == 7)
        run_odd_factor(s, y, x, 7);
    else
        run_any_factor(s, y, x);
}

ot__complex_lines ot__ref_fourier_factors(const ot__fourier *f, ot__complex_lines x,
                                          ot__complex_lines other)
{
    stage s = {f->roots, f->length, 1, f->length, 1};

    for (int i = 0; i < f->n_factors; i++) {
        const ot__complex_lines from = x;

        s.factor = f->factor[i];
        s.groups /= s.factor;
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
ot__complex_lines ot__ref_fourier_points(const ot__fourier *f, ot__complex_lines x,
                                         ot__complex_lines other)
{
    ot__complex_lines y;
    size_t rest;

    if (f->chirp == NULL)
        return ot__ref_fourier_factors(f, x, other);
    rest = (size_t)((f->length - f->n) * LANES) * sizeof(double);
    multiply_points(x, f->chirp, f->n);
    memset(x.re + f->n * LANES, 0, rest);
    memset(x.im + f->n * LANES, 0, rest);
    y = ot__ref_fourier_factors(f, x, other);
    multiply_points(y, f->spectrum, f->length);
    other = y.re == x.re ? other : x;
    y = swapped_parts(ot__ref_fourier_factors(f, swapped_parts(y), swapped_parts(other)));
    multiply_points(y, f->chirp, f->n);
    return y;
}

// ---- real lines ----

// Lines x and `second` of which the real part of the transform is wanted become one: with h, the
// mean of c_k and the conjugate of c_-k, whose transform is the real part of c's, h of x and i * h
// of the second.
void ot__ref_fourier_join(ot__complex_lines x, ot__complex_lines second, int64_t n)
{
    for (int64_t k = 0; k <= n / 2; k++) {
        const int64_t other = (k == 0 ? 0 : n - k) * LANES;

        OT_SIMD_LOOP
        for (int l = 0; l < LANES; l++) {
            const int64_t i = k * LANES + l, o = other + l;
            const double re = (x.re[i] + x.re[o]) / 2, im = (x.im[i] - x.im[o]) / 2;
            const double second_re = (second.re[i] + second.re[o]) / 2;
            const double second_im = (second.im[i] - second.im[o]) / 2;

            x.re[o] = re + second_im;
            x.im[o] = second_re - im;
            x.re[i] = re - second_im;
            x.im[i] = second_re + im;
        }
    }
}

// The transform of two real lines as one becomes that of each.
void ot__ref_fourier_part(ot__complex_lines x, ot__complex_lines second, int64_t n)
{
    for (int64_t k = 0; k <= n / 2; k++) {
        const int64_t other = (k == 0 ? 0 : n - k) * LANES;

        OT_SIMD_LOOP
        for (int l = 0; l < LANES; l++) {
            const int64_t i = k * LANES + l, o = other + l;
            const double re = (x.re[i] + x.re[o]) / 2, im = (x.im[i] - x.im[o]) / 2;
            const double second_re = (x.im[i] + x.im[o]) / 2;
            const double second_im = (x.re[o] - x.re[i]) / 2;

            x.re[o] = x.re[i] = re;
            x.im[o] = -im;
            x.im[i] = im;
            second.re[o] = second.re[i] = second_re;
            second.im[o] = -second_im;
            second.im[i] = second_im;
        }
    }
}
