// SPDX-License-Identifier: Apache-2.0
// Images as columns of what windows see, and back.
#include "kernels/kernels.h"

static void kernel_position(int64_t k[OT__WINDOW_AXES], int64_t at, const ot__window *w)
{
    for (int a = OT__WINDOW_AXES - 1; a >= 0; a--) {
        k[a] = at % w->kernel[a];
        at /= w->kernel[a];
    }
}

// Of the output positions along the last axis those that see an element of the image at a kernel
// position, and the first one's element; the others are a stride apart each. The rest is padding.
typedef struct seen_line {
    int64_t first, last, at;
} seen_line;

// Line number `o` of output positions.
static seen_line see_line(const ot__window *w, const int64_t k[OT__WINDOW_AXES], int64_t o)
{
    enum { LAST = OT__WINDOW_AXES - 1 };
    const int64_t shift = w->pad[LAST] - k[LAST] * w->dilation[LAST], stride = w->stride[LAST];
    const int64_t beyond = w->in[LAST] - 1 + shift; // the greatest multiple of the stride inside
    seen_line line = {0};
    int64_t row = 0, rows = 1;

    for (int a = LAST - 1; a >= 0; a--) {
        const int64_t i = o % w->out[a] * w->stride[a] - w->pad[a] + k[a] * w->dilation[a];

        if (i < 0 || i >= w->in[a])
            return line;
        row += i * rows;
        rows *= w->in[a];
        o /= w->out[a];
    }
    line.last = beyond < 0 ? 0 : OT_MIN(w->out[LAST], beyond / stride + 1);
    line.first = OT_MIN(shift > 0 ? (shift + stride - 1) / stride : 0, line.last);
    line.at = row * w->in[LAST] + line.first * stride - shift;
    return line;
}

#define TEMPLATE "kernels/conv/ref_from_columns.tmpl.h"
#include "kernels/by_float.tmpl.h"
#define TEMPLATE "kernels/conv/ref_to_columns.tmpl.h"
#include "kernels/by_float.tmpl.h"
#define TEMPLATE "kernels/conv/ref_to_columns.tmpl.h"
#define T int16_t
#define SUFFIX i16
#include "kernels/by_one.tmpl.h"
