// SPDX-License-Identifier: Apache-2.0
// One element size of ref_stretch.c.

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

        if (last >= 0 && stride[last] == 1) {
            memcpy(y, x + at, (size_t)run * sizeof(*y));
        } else {
            const T element = x[at]; // which the loop would load again

            for (int64_t k = 0; k < run; k++)
                y[k] = element;
        }
        y += run;
        n -= run;
        if (last < 0)
            continue;
        // Step to the start of the next line.
        at -= index[last] * stride[last];
        index[last] = 0;
        for (int k = last - 1; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < dim[k])
                break;
            at -= index[k] * stride[k];
            index[k] = 0;
        }
    }
}
