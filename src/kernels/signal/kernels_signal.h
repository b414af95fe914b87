// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: Fourier transforms, windows. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_SIGNAL_H
#define OT_KERNELS_KERNELS_SIGNAL_H

#include "kernels/kernels_nn.h"

// ---- fourier.c, ref_fourier_passes.c: sums over n of x[n] * e^(-2 pi i k n / N), in f64 ----
//
// By the factors of N where all are small, else as a convolution with a chirp (Bluestein), whose
// length is a power of 2. Numbers of OT__FOURIER_LANES lines lie side by side.

enum { OT__FOURIER_LANES = 8, OT__FOURIER_FACTORS = 48, OT__FOURIER_FACTOR = 31 };
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

// x is used up; the result lies in what is given back, x or `other`. Both have room for f->length
// points. Of f->n points, and of f->length points:
ot__complex_lines ot__ref_fourier_points(const ot__fourier *f, ot__complex_lines x,
                                         ot__complex_lines other);
ot__complex_lines ot__ref_fourier_factors(const ot__fourier *f, ot__complex_lines x,
                                          ot__complex_lines other);
// Two lines of n points, of which the real part of the transform is wanted, become the one of
// which that of x is the real part and that of the second the imaginary one.
void ot__ref_fourier_join(ot__complex_lines x, ot__complex_lines second, int64_t n);
// The transform of a real line and i times another becomes those of both.
void ot__ref_fourier_part(ot__complex_lines x, ot__complex_lines second, int64_t n);

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
    bool is_windowed;
    const void *window; // of points that are read: what they are multiplied by
} ot__fourier_lines;

// Of what is computed by factors.
int64_t ot__fourier_length(int64_t n);
// Doubles that the tables take, and that each of several threads needs as scratch. n is at least 1
// and at most OT__FOURIER_MAX.
int64_t ot__fourier_table_size(int64_t n);
int64_t ot__fourier_scratch_size(int64_t n);
void ot__fourier_make(ot__fourier *f, int64_t n, double *tables, double *scratch);
// How many threads so many lines of n points are worth, of which `step` are transformed at once.
int64_t ot__fourier_parts(int64_t n, int64_t n_lines, int64_t step, int n_threads);
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_fourier_##suffix(T *y, const T *x, const ot__fourier *f,                          \
                                  const ot__fourier_lines *l, int64_t n_parts, double *scratch);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- fast_fourier.c, simd_fourier.c: the same of f32 and in f32 ----
//
// The lanes of a vector have a line each, or all have the same one (folded): lane i the points
// i, i + lanes, ... An even number of real points is half as many complex ones.

typedef struct ot__fast_fourier {
    int64_t n;
    int64_t points; // of the complex transform: n or n / 2
    int64_t length; // of what is computed by factors: `points`, or that of the convolution
    bool is_packed; // two real points are a complex one
    bool is_folded;
    bool is_windowed;
    int lanes;
    int64_t room; // floats of the real parts of all numbers in work
    int n_factors;
    uint8_t factor[OT__FOURIER_FACTORS]; // of `length`, or of what each lane has of it
    // Each a list of real parts and then one of imaginary parts, but for `roots`.
    const float *roots;      // of each factor: ot__fourier_pass_size()
    const float *lane_roots; // e^(-2 pi i k lane / length): for each k of each lane
    const float *pack_roots; // e^(-2 pi i k / n), of `points` + 1
    const float *chirp;      // e^(-pi i k k / points); NULL: there is no convolution
    const float *spectrum;   // of the chirp's conjugate, divided by `length`
} ot__fast_fourier;

// Floats: the roots of the factor where it is odd, and those of all but the first number of each
// group.
static inline int64_t ot__fourier_pass_size(int factor, int64_t groups)
{
    return (factor % 2 == 0 ? 0 : 2 * factor) + 2 * (factor - 1) * groups;
}

typedef struct ot__fouriers {
    int lanes;
    // Groups of lines from one on to another: as many lines as there are lanes, or one that is
    // folded.
    void (*run)(const ot__fast_fourier *f, const ot__fourier_lines *l, float *y, const float *x,
                int64_t first, int64_t last, float *scratch);
} ot__fouriers;

void ot__fast_fourier_plan(ot__fast_fourier *f, int64_t n, const ot__fourier_lines *l, int lanes);
// Floats, as above.
int64_t ot__fast_fourier_table_size(const ot__fast_fourier *f);
int64_t ot__fast_fourier_scratch_size(const ot__fast_fourier *f);
// `work` are ot__fourier_table_size(f->points) + ot__fourier_scratch_size(f->points) doubles.
void ot__fast_fourier_make(ot__fast_fourier *f, float *tables, double *work);
void ot__fast_fourier_run(float *y, const float *x, const ot__fouriers *by,
                          const ot__fast_fourier *f, const ot__fourier_lines *l, int64_t n_parts,
                          float *scratch);

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
