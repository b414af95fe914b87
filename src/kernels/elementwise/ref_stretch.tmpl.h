// SPDX-License-Identifier: Apache-2.0
// One element size of ref_stretch.c.

// n rows of `width` elements: what stands at x, and then every `step` elements, again and again.
static void FN(repeat_elements)(T *y, const T *x, int64_t step, int64_t n, int64_t width)
{
#define REPEAT(width_)                                                                             \
    for (int64_t i = 0; i < n; i++, y += (width_)) {                                               \
        const T element = x[i * step]; /* which the loop would load again */                       \
                                                                                                   \
        for (int64_t k = 0; k < (width_); k++)                                                     \
            y[k] = element;                                                                        \
    }
    if (width == 2) // compiled for the usual widths of short rows
        REPEAT(2)
    else if (width == 4)
        REPEAT(4)
    else if (width == 8)
        REPEAT(8)
    else if (width == 16)
        REPEAT(16)
    else
        REPEAT(width)
#undef REPEAT
}

static void FN(stretch)(void *to, const void *from, int ndim, const int64_t *dim,
                        const int64_t *stride, int64_t start, int64_t n)
{
    const int last = ndim - 1;
    int64_t at = 0, rest = start, index[OT_MAX_NDIM];
    const T *x = from;
    T *y = to;

    for (int k = last; k >= 0; k--) {
        index[k] = rest % dim[k];
        rest /= dim[k];
        at += index[k] * stride[k];
    }
    while (n > 0) {
        const int64_t run = last < 0 ? n : OT_MIN(n, dim[last] - index[last]);
        int64_t lines = 1;

        if (last >= 0 && stride[last] == 1) {
            memcpy(y, x + at, (size_t)run * sizeof(*y));
        } else if (last > 0 && run == dim[last]) {
            lines = OT_MIN(n / run, dim[last - 1] - index[last - 1]);
            FN(repeat_elements)(y, x + at, stride[last - 1], lines, run);
        } else {
            FN(repeat_elements)(y, x + at, 0, 1, run);
        }
        y += lines * run;
        n -= lines * run;
        if (last < 0)
            continue;
        // Step to the start of the next line.
        at -= index[last] * stride[last];
        index[last] = 0;
        for (int k = last - 1; k >= 0; k--, lines = 1) {
            at += lines * stride[k];
            index[k] += lines;
            if (index[k] < dim[k])
                break;
            at -= index[k] * stride[k];
            index[k] = 0;
        }
    }
}
