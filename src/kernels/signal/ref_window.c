// SPDX-License-Identifier: Apache-2.0
// Windows that are sums of cosines, and triangles over frequencies.
#include <math.h>

#include "kernels/kernels.h"

enum { WINDOW_PIECE = 256 }; // elements that are computed before they are converted

typedef struct window_job {
    void *y;
    ot_dtype dtype;
    ot__window_terms terms;
    double period;
} window_job;

static void window_pieces(void *context, int64_t first, int64_t last)
{
    static const double turn = 6.283185307179586476925;
    const window_job *j = context;
    char *y = (char *)j->y + (size_t)first * ot_dtype_size(j->dtype);
    double piece[WINDOW_PIECE];

    for (int64_t n; first < last; first += n, y += (size_t)n * ot_dtype_size(j->dtype)) {
        n = OT_MIN(last - first, (int64_t)WINDOW_PIECE);
        for (int64_t i = 0; i < n; i++) {
            const double angle = j->period > 0 ? turn * (double)(first + i) / j->period : turn / 2;

            piece[i] = j->terms.a0 - j->terms.a1 * cos(angle) + j->terms.a2 * cos(2 * angle);
        }
        (void)ot__convert(y, j->dtype, piece, OT_F64, n);
    }
}

void ot__ref_window(void *y, ot_dtype dtype, const ot__window_terms *terms, int64_t period,
                    int64_t n)
{
    window_job j = {y, dtype, *terms, (double)period};

    ot__parallel_for(n, OT_PAR_MIN, window_pieces, &j);
}

// ---- triangles ----

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

static double hertz_of(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}

// Corners of the triangles: points of the spectrum, as are all tops; the last one is behind them.
bool ot__ref_mel_corners(double *corners, const ot__mel *m)
{
    const double low = mel_of(m->low), step = (mel_of(m->high) - low) / (double)(m->n_mels + 2);

    for (int64_t i = 0; i < m->n_mels + 2; i++)
        corners[i] = floor((double)(m->n_dft + 1) * hertz_of(low + (double)i * step) / m->rate);
    return corners[0] >= 0 && corners[m->n_mels] <= (double)(m->n_dft / 2) &&
           corners[m->n_mels + 1] <= (double)(m->n_dft / 2 + 1);
}

// The triangle from `left` over `top` to `right`, at x.
static double triangle_at(double x, double left, double top, double right)
{
    if (x == top)
        return 1;
    if (x >= left && x < top)
        return (x - left) / (top - left);
    return x > top && x < right ? (right - x) / (right - top) : 0;
}

void ot__ref_mel(void *y, ot_dtype dtype, const double *corners, const ot__mel *m)
{
    double piece[WINDOW_PIECE];
    char *to = y;

    for (int64_t point = 0; point <= m->n_dft / 2; point++)
        for (int64_t i = 0, n; i < m->n_mels; i += n) {
            n = OT_MIN(m->n_mels - i, (int64_t)WINDOW_PIECE);
            for (int64_t k = 0; k < n; k++)
                piece[k] = triangle_at((double)point, corners[i + k], corners[i + k + 1],
                                       corners[i + k + 2]);
            (void)ot__convert(to, dtype, piece, OT_F64, n);
            to += (size_t)n * ot_dtype_size(dtype);
        }
}
