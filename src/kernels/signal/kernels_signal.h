// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: Fourier transforms, windows. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_SIGNAL_H
#define OT_KERNELS_KERNELS_SIGNAL_H

#include "kernels/kernels_nn.h"

// ---- fourier.c, simd_fourier.c: sums over n of x[n] * e^(-2 pi i k n / N), in f64 ----
//
// By the factors of N where all are small, else as a convolution with a chirp (Bluestein), whose
// length is a power of 2. Numbers of OT__FOURIER_LANES lines lie side by side.

enum { OT__FOURIER_LANES = 8, OT__FOURIER_FACTORS = 48 };
#define OT__FOURIER_MAX ((int64_t)1 << 36) // of N

typedef struct ot__fourier {
    int64_t n;
    int64_t length; // of what is computed by factors: n, or that of the convolution
    int n_factors;
    uint8_t factor[OT__FOURIER_FACTORS]; // of `length`
    // Complex numbers as pairs.
    double *roots;    // e^(-2 pi i k / length)
    double *chirp;    // e^(-pi i k k / n); NULL: there is no convolution
    double *spectrum; // of the chirp's conjugate, divided by `length`
} ot__fourier;

// Real and imaginary parts, each (points, OT__FOURIER_LANES).
typedef struct ot__complex_lines {
    double *re, *im;
} ot__complex_lines;

// One table per instruction set. x is used up; the result lies in what is given back, x or `other`.
// Both have room for f->length points.
typedef struct ot__fouriers {
    // Of f->n points.
    ot__complex_lines (*run)(const ot__fourier *f, ot__complex_lines x, ot__complex_lines other);
    // Of f->length points.
    ot__complex_lines (*factors)(const ot__fourier *f, ot__complex_lines x,
                                 ot__complex_lines other);
    // Two lines of n points, of which the real part of the transform is wanted, become the one of
    // which that of x is the real part and that of the second the imaginary one.
    void (*join_halves)(ot__complex_lines x, ot__complex_lines second, int64_t n);
    // The transform of a real line and i times another becomes those of both.
    void (*part_lines)(ot__complex_lines x, ot__complex_lines second, int64_t n);
} ot__fouriers;

// Lines of an array (outer, inner) of them: distances are in elements of f32 or f64.
typedef struct ot__fourier_side {
    int64_t outer, inner, point; // distances
    int64_t used;                // points that are read or made
    int64_t points;              // of a line to write: those that are not made become 0
    int parts;                   // of a point: 1 is its real part alone
    bool is_doubled;             // points stand for their conjugates too: all but 0 and n / 2 count
                                 // twice
} ot__fourier_side;
typedef struct ot__fourier_lines {
    int64_t outer, inner; // lines
    ot__fourier_side from, to;
    bool is_inverse; // e^(+2 pi i k n / N)
    double scale;    // of the result
} ot__fourier_lines;

// Doubles that the tables take, and that each of several threads needs as scratch. n is at least 1
// and at most OT__FOURIER_MAX.
int64_t ot__fourier_table_size(int64_t n);
int64_t ot__fourier_scratch_size(int64_t n);
void ot__fourier_make(ot__fourier *f, int64_t n, double *tables, double *scratch);
// How many threads so many lines are worth.
int64_t ot__fourier_parts(int64_t n, int64_t n_lines, int n_threads);
// By the table `by`.
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_fourier_##suffix(T *y, const T *x, const ot__fouriers *by, const ot__fourier *f,  \
                                  const ot__fourier_lines *l, int64_t n_parts, double *scratch);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_window.c ----

// a0 - a1 * cos(2 pi k / period) + a2 * cos(4 pi k / period); where the period is 0, its middle.
typedef struct ot__window_terms {
    double a0, a1, a2;
} ot__window_terms;
void ot__ref_window(void *y, ot_dtype dtype, const ot__window_terms *terms, int64_t period,
                    int64_t n);

// Triangles of equal width on the mel scale from `low` to `high` hertz, over the n_dft / 2 + 1
// points of a spectrum.
typedef struct ot__mel {
    int64_t n_mels, n_dft;
    double rate, low, high; // samples a second; hertz
} ot__mel;
// The n_mels + 2 corners; false: some are not in the spectrum.
bool ot__ref_mel_corners(double *corners, const ot__mel *m);
// (n_dft / 2 + 1, n_mels)
void ot__ref_mel(void *y, ot_dtype dtype, const double *corners, const ot__mel *m);

#endif
