// SPDX-License-Identifier: Apache-2.0
// Fast Fourier transforms of lines of f32, compiled once per instruction set (OT_ISA).
#include "kernels/kernels.h"
#include "kernels/signal/simd_fourier_lines.h"

enum { LANES = OT_VECTOR_LANES };

// Lists of numbers of a group: floats of each number, and from a list of roots' real parts to that
// of the imaginary ones.
static int64_t width_of(const ot__fast_fourier *f)
{
    return f->is_folded ? 1 : LANES;
}

static int64_t behind_list(int64_t n)
{
    enum { ALIGNED = 16 };

    return (n + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static complex_rows with_parts_swapped(complex_rows x)
{
    return (complex_rows){x.im, x.re};
}

static complex_rows other_of(complex_rows y, complex_rows x, complex_rows other)
{
    return y.re == x.re || y.re == x.im ? other : x;
}

static void scale_floats(float *x, float by, int64_t first, int64_t last)
{
    OT_SIMD_LOOP
    for (int64_t i = first; i < last; i++)
        x[i] *= by;
}

// ---- a window ----

// A list of what real parts are multiplied by, then one for imaginary ones.
static void spread_window(const ot__fast_fourier *f, float *to, const float *window)
{
    float *to_im = to + behind_list(f->points);

    memset(to, 0, (size_t)(2 * behind_list(f->points)) * sizeof(float));
    for (int64_t k = 0; k < f->points; k++) {
        to[k] = window[f->is_packed ? 2 * k : k];
        to_im[k] = window[f->is_packed ? 2 * k + 1 : k];
    }
}

OT_SIMD_INLINE void weigh_at(complex_rows x, int64_t at, ot__vector re, ot__vector im)
{
    ot__vector_store(x.re + at, ot__vector_load(x.re + at) * re);
    ot__vector_store(x.im + at, ot__vector_load(x.im + at) * im);
}

static void weigh_numbers(const ot__fast_fourier *f, complex_rows x, const float *by)
{
    const float *by_im = by + behind_list(f->points);

    if (f->is_folded) {
        for (int64_t k = 0; k < f->points; k += LANES)
            weigh_at(x, k, ot__vector_load(by + k), ot__vector_load(by_im + k));
        return;
    }
    for (int64_t k = 0; k < f->points; k++)
        weigh_at(x, k * LANES, ot__vector_of(by[k]), ot__vector_of(by_im[k]));
}

// ---- a convolution with the chirp ----

OT_SIMD_INLINE void multiply_at(complex_rows x, int64_t at, ot__vector wr, ot__vector wi)
{
    ot__vector re = ot__vector_load(x.re + at), im = ot__vector_load(x.im + at);

    multiply_by(&re, &im, wr, wi);
    ot__vector_store(x.re + at, re);
    ot__vector_store(x.im + at, im);
}

// n numbers, each by its own; behind them up to a vector's are multiplied too.
static void multiply_numbers(const ot__fast_fourier *f, complex_rows x, const float *by, int64_t n)
{
    const float *by_im = by + behind_list(n);

    if (f->is_folded) {
        for (int64_t k = 0; k < n; k += LANES)
            multiply_at(x, k, ot__vector_load(by + k), ot__vector_load(by_im + k));
        return;
    }
    for (int64_t k = 0; k < n; k++)
        multiply_at(x, k * LANES, ot__vector_of(by[k]), ot__vector_of(by_im[k]));
}

static void clear_numbers(const ot__fast_fourier *f, complex_rows x, int64_t first, int64_t last)
{
    const int64_t width = width_of(f);

    memset(x.re + first * width, 0, (size_t)((last - first) * width) * sizeof(float));
    memset(x.im + first * width, 0, (size_t)((last - first) * width) * sizeof(float));
}

// Of f->points numbers. With real and imaginary parts in each other's place a transform is its
// inverse.
static complex_rows transform_numbers(const ot__fast_fourier *f, complex_rows x, complex_rows other,
                                      const direct_numbers *d)
{
    static const direct_numbers none = {0};
    complex_rows y;

    if (f->chirp == NULL)
        return run_passes(f, x, other, d);
    multiply_numbers(f, x, f->chirp, f->points);
    clear_numbers(f, x, f->points, f->length);
    y = run_passes(f, x, other, &none);
    multiply_numbers(f, y, f->spectrum, f->length);
    other = other_of(y, x, other);
    y = with_parts_swapped(run_passes(f, with_parts_swapped(y), with_parts_swapped(other), &none));
    multiply_numbers(f, y, f->chirp, f->points);
    return y;
}

static complex_rows transform_by_sign(const ot__fast_fourier *f, complex_rows x, complex_rows other,
                                      bool is_inverse, direct_numbers d)
{
    d.is_swapped = is_inverse;
    return is_inverse ? with_parts_swapped(transform_numbers(f, with_parts_swapped(x),
                                                             with_parts_swapped(other), &d))
                      : transform_numbers(f, x, other, &d);
}

// ---- an even number of real points as half as many complex ones ----

// Numbers k and `points` - k, the latter in the order of the former.
typedef struct number_pair {
    ot__vector re, im, far_re, far_im;
} number_pair;

OT_SIMD_INLINE number_pair load_pair(complex_rows x, int64_t k, int64_t far, bool is_folded)
{
    number_pair p;

    if (is_folded) {
        p.re = ot__vector_load(x.re + k);
        p.im = ot__vector_load(x.im + k);
        p.far_re = reverse_lanes(ot__vector_load(x.re + far - LANES + 1));
        p.far_im = reverse_lanes(ot__vector_load(x.im + far - LANES + 1));
    } else {
        p.re = ot__vector_load(x.re + k * LANES);
        p.im = ot__vector_load(x.im + k * LANES);
        p.far_re = ot__vector_load(x.re + far * LANES);
        p.far_im = ot__vector_load(x.im + far * LANES);
    }
    return p;
}

OT_SIMD_INLINE void store_pair(complex_rows y, int64_t k, int64_t far, number_pair p,
                               bool is_folded)
{
    if (is_folded) {
        ot__vector_store(y.re + k, p.re);
        ot__vector_store(y.im + k, p.im);
        ot__vector_store(y.re + far - LANES + 1, reverse_lanes(p.far_re));
        ot__vector_store(y.im + far - LANES + 1, reverse_lanes(p.far_im));
    } else {
        ot__vector_store(y.re + k * LANES, p.re);
        ot__vector_store(y.im + k * LANES, p.im);
        ot__vector_store(y.re + far * LANES, p.far_re);
        ot__vector_store(y.im + far * LANES, p.far_im);
    }
}

// To memory, a line that is folded.
OT_SIMD_INLINE void store_pair_direct(float *y, int64_t k, int64_t far, number_pair p)
{
    store_parts(y + 2 * k, p.re, p.im);
    store_parts(y + 2 * (far - LANES + 1), reverse_lanes(p.far_re), reverse_lanes(p.far_im));
}

OT_SIMD_INLINE ot__vector root_at(const float *roots, int64_t k, bool is_folded)
{
    return is_folded ? ot__vector_load(roots + k) : ot__vector_of(roots[k]);
}

// With z the transform of x[2 j] + i x[2 j + 1], the sum of the even and of the odd points is
// s = (z_k + conjugate of z_-k) / 2 and d = -i (z_k - conjugate of z_-k) / 2, and the transform of
// s + e^(-2 pi i k / n) d. y, or memory in its place: all of it up to the middle, by twice the
// scale.
OT_SIMD_INLINE void unpack_pairs(const ot__fast_fourier *f, complex_rows y, complex_rows z,
                                 float re_scale, float im_scale, bool is_folded, float *direct)
{
    const float *roots_re = f->pack_roots, *roots_im = roots_re + behind_list(f->points + 1);

    for (int64_t k = 0; k <= f->points / 2; k += is_folded ? LANES : 1) {
        const ot__vector wr = root_at(roots_re, k, is_folded);
        const ot__vector wi = root_at(roots_im, k, is_folded);
        const number_pair p = load_pair(z, k, f->points - k, is_folded);
        const ot__vector sum_r = p.re + p.far_re, sum_i = p.im - p.far_im;
        const ot__vector off_r = p.re - p.far_re, off_i = p.im + p.far_im;
        const ot__vector turned_r = off_i * wr + off_r * wi, turned_i = off_i * wi - off_r * wr;
        const number_pair found = {.re = (sum_r + turned_r) * re_scale,
                                   .im = (sum_i + turned_i) * im_scale,
                                   .far_re = (sum_r - turned_r) * re_scale,
                                   .far_im = (turned_i - sum_i) * im_scale};

        if (direct != NULL)
            store_pair_direct(direct, k, f->points - k, found);
        else
            store_pair(y, k, f->points - k, found, is_folded);
    }
}

// The other way: x is half a spectrum, z is transformed with e^(+2 pi i k / n).
OT_SIMD_INLINE void pack_pairs(const ot__fast_fourier *f, complex_rows z, complex_rows x,
                               float re_scale, float im_scale, bool is_folded)
{
    const float *roots_re = f->pack_roots, *roots_im = roots_re + behind_list(f->points + 1);

    for (int64_t k = 0; k <= f->points / 2; k += is_folded ? LANES : 1) {
        const ot__vector wr = root_at(roots_re, k, is_folded);
        const ot__vector wi = root_at(roots_im, k, is_folded);
        const number_pair p = load_pair(x, k, f->points - k, is_folded);
        const ot__vector sum_r = (p.re + p.far_re) * re_scale;
        const ot__vector sum_i = (p.im - p.far_im) * im_scale;
        const ot__vector off_r = (p.re - p.far_re) * re_scale;
        const ot__vector off_i = (p.im + p.far_im) * im_scale;
        const ot__vector turned_r = off_r * wr + off_i * wi, turned_i = off_i * wr - off_r * wi;
        const number_pair found = {.re = sum_r - turned_i,
                                   .im = sum_i + turned_r,
                                   .far_re = sum_r + turned_i,
                                   .far_im = turned_r - sum_i};

        store_pair(z, k, f->points - k, found, is_folded);
    }
}

static void copy_number(const ot__fast_fourier *f, complex_rows x, int64_t to, int64_t from)
{
    const int64_t width = width_of(f);

    for (int64_t i = 0; i < width; i++) {
        x.re[to * width + i] = x.re[from * width + i];
        x.im[to * width + i] = x.im[from * width + i];
    }
}

// The second half of a spectrum: the conjugate of the first one, the other way round.
static void mirror_spectrum(const ot__fast_fourier *f, complex_rows x)
{
    const int64_t width = width_of(f);
    int64_t first = f->points + 1;

    for (; f->is_folded && first + LANES <= f->n; first += LANES) {
        const int64_t from = f->n - first - LANES + 1;

        ot__vector_store(x.re + first, reverse_lanes(ot__vector_load(x.re + from)));
        ot__vector_store(x.im + first, -reverse_lanes(ot__vector_load(x.im + from)));
    }
    for (int64_t k = first; k < f->n; k++)
        for (int64_t i = 0; i < width; i++) {
            x.re[k * width + i] = x.re[(f->n - k) * width + i];
            x.im[k * width + i] = -x.im[(f->n - k) * width + i];
        }
}

// Twice the half of a spectrum of which the transform is the real part of that of x: the mean of
// x_k and the conjugate of x_-k.
static void make_symmetric(const ot__fast_fourier *f, complex_rows x)
{
    const int64_t width = width_of(f);

    copy_number(f, x, f->n, 0);
    for (int64_t k = 0; k <= f->points; k++)
        for (int64_t i = 0; i < width; i++) {
            x.re[k * width + i] += x.re[(f->n - k) * width + i];
            x.im[k * width + i] -= x.im[(f->n - k) * width + i];
        }
}

// Of half a spectrum the first and the last number count so often, and are real.
static void make_ends_real(const ot__fast_fourier *f, complex_rows x, float count)
{
    const int64_t width = width_of(f), last = f->points * width;

    for (int64_t i = 0; i < width; i++) {
        x.re[i] *= count;
        x.re[last + i] *= count;
        x.im[i] = x.im[last + i] = 0;
    }
}

// ---- groups of lines ----

static void double_inner(const ot__fast_fourier *f, complex_rows x, int64_t last)
{
    scale_floats(x.re, 2, width_of(f), last * width_of(f));
    scale_floats(x.im, 2, width_of(f), last * width_of(f));
}

// What lies in memory as the passes want it is not in x, or not to be given back.
static complex_rows run_real_to_complex(const ot__fast_fourier *f, const ot__fourier_lines *l,
                                        complex_rows x, complex_rows other, direct_numbers d)
{
    const direct_numbers in = {.from = d.from};
    const complex_rows z = transform_numbers(f, x, other, &in), y = other_of(z, x, other);
    float *direct = d.to;
    const float scale = (float)(l->scale / 2), im_scale = l->is_inverse ? -scale : scale;

    copy_number(f, z, f->points, 0);
    if (direct != NULL)
        unpack_pairs(f, y, z, scale, im_scale, true, direct);
    else if (f->is_folded)
        unpack_pairs(f, y, z, scale, im_scale, true, NULL);
    else
        unpack_pairs(f, y, z, scale, im_scale, false, NULL);
    if (l->to.is_doubled)
        double_inner(f, y, f->points);
    if (l->to.used > f->points + 1)
        mirror_spectrum(f, y);
    return y;
}

static complex_rows run_complex_to_real(const ot__fast_fourier *f, const ot__fourier_lines *l,
                                        complex_rows x, complex_rows other, direct_numbers d)
{
    const float scale = (float)(l->from.is_doubled ? l->scale : l->scale / 2);
    const float im_scale = l->is_inverse ? scale : -scale;

    if (l->from.used > f->points + 1)
        make_symmetric(f, x);
    else
        make_ends_real(f, x, l->from.is_doubled ? 1 : 2);
    if (f->is_folded)
        pack_pairs(f, other, x, scale, im_scale, true);
    else
        pack_pairs(f, other, x, scale, im_scale, false);
    return transform_by_sign(f, other, x, true, d);
}

static complex_rows run_complex(const ot__fast_fourier *f, const ot__fourier_lines *l,
                                complex_rows x, complex_rows other, direct_numbers d)
{
    complex_rows y;

    if (l->from.is_doubled)
        double_inner(f, x, f->n);
    y = transform_by_sign(f, x, other, l->is_inverse, d);
    if (l->to.is_doubled)
        double_inner(f, y, l->to.used);
    return y;
}

// Numbers of a spectrum that are read.
static int64_t spectrum_size(const ot__fast_fourier *f, const ot__fourier_lines *l)
{
    return l->from.used > f->points + 1 ? f->n : f->points + 1;
}

static bool is_direct(const ot__fast_fourier *f, const ot__fourier_side *side, const line_places *p,
                      int64_t numbers)
{
    return can_pass_directly(f) && are_dense(p) && p->apart == 1 && p->whole == numbers &&
           !p->has_rest && side->used == side->points && !side->is_doubled;
}

// What becomes of a group: what of it the passes do not read or write in its place is loaded and
// stored here.
static void run_fourier_group(const ot__fast_fourier *f, const ot__fourier_lines *l, float *y,
                              const float *x, int64_t group, complex_rows a, complex_rows b,
                              const float *window)
{
    const bool to_real = f->is_packed && l->to.parts == 1;
    const bool from_real = f->is_packed && l->from.parts == 1;
    const line_places from = find_places(f, l, &l->from, group);
    const line_places to = find_places(f, l, &l->to, group);
    direct_numbers d = {.scale = f->is_packed ? 1 : (float)l->scale};
    complex_rows made;

    if (!to_real && !l->is_windowed && is_direct(f, &l->from, &from, f->points))
        d.from = x + from.at[0];
    else
        load_lines(a, x, &from, to_real ? spectrum_size(f, l) : f->points);
    if (is_direct(f, &l->to, &to, from_real ? f->points + 1 : f->points))
        d.to = y + to.at[0];
    if (l->is_windowed)
        weigh_numbers(f, a, window);
    if (to_real)
        made = run_complex_to_real(f, l, a, b, d);
    else if (from_real)
        made = run_real_to_complex(f, l, a, b, d);
    else
        made = run_complex(f, l, a, b, d);
    if (d.to == NULL)
        store_lines(y, made, &to, &l->to, d.scale);
}

static void run_fourier_groups(const ot__fast_fourier *f, const ot__fourier_lines *l, float *y,
                               const float *x, int64_t first, int64_t last, float *scratch)
{
    float *at = (float *)(((uintptr_t)scratch + 63) / 64 * 64);
    const complex_rows a = {at, at + f->room}, b = {at + 2 * f->room, at + 3 * f->room};
    float *window = at + 4 * f->room;

    if (l->is_windowed)
        spread_window(f, window, l->window);
    for (int64_t group = first; group < last; group++)
        run_fourier_group(f, l, y, x, group, a, b, window);
}

const ot__fouriers OT_ISA_NAME(ot__fouriers) = {.lanes = LANES, .run = run_fourier_groups};
