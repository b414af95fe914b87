// SPDX-License-Identifier: Apache-2.0
// The p-norm of each window: a row of windows reads rows of the image one by one.
#include <math.h>

#include "kernels/kernels.h"

enum { LP_PIECE = 64 }; // windows of a row at once

static int64_t steps_to(int64_t distance, int64_t step)
{
    return distance <= 0 ? 0 : (distance + step - 1) / step;
}

// Of some windows those that have element k in the image, from window `first` on, and where that
// element of the first of them is.
typedef struct lp_span {
    int64_t first, n, from;
} lp_span;

static lp_span lp_span_of(const ot__window *w, int64_t k, int64_t first, int64_t n)
{
    const int64_t stride = w->stride[2], shift = w->pad[2] - k * w->dilation[2];
    const int64_t reach = w->in[2] - 1 + shift; // of the last element, in strides
    const int64_t low = OT_MAX(steps_to(shift, stride), first);
    const int64_t high = OT_MIN(reach < 0 ? 0 : reach / stride + 1, first + n);

    if (low >= high)
        return (lp_span){0};
    return (lp_span){low - first, high - low, low * stride - shift};
}

// Of n windows of a row, which begin at `start`: their rows in the image, and along the last axis
// the elements of a window that are in the image for some of them.
typedef struct lp_range {
    int64_t first[OT__WINDOW_AXES], last[OT__WINDOW_AXES];
} lp_range;

static lp_range lp_range_of(const ot__window *w, const int64_t *start, int64_t first, int64_t n)
{
    const int64_t at = first * w->stride[2] - w->pad[2], end = at + (n - 1) * w->stride[2];
    lp_range r;

    for (int a = 0; a < 2; a++) {
        r.first[a] = start[a] + steps_to(-start[a], w->dilation[a]) * w->dilation[a];
        r.last[a] = OT_MIN(start[a] + w->kernel[a] * w->dilation[a], w->in[a]);
    }
    r.first[2] = steps_to(-end, w->dilation[2]);
    r.last[2] = OT_MIN(steps_to(w->in[2] - at, w->dilation[2]), w->kernel[2]);
    return r;
}

#define TEMPLATE "kernels/pool/ref_lp_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"
