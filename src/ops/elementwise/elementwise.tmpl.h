// SPDX-License-Identifier: Apache-2.0
// One element size of elementwise.c: elements start .. start + n - 1 of y's index range, read
// through x's strides.

static void FN(gather)(const ot__elementwise *e, const ot__operand *o, void *to, const void *from,
                       int64_t start, int64_t n)
{
    const int last = e->ndim - 1;
    int64_t at = 0, rest = start, index[OT_MAX_NDIM];
    const T *x = from;
    T *y = to;

    for (int k = last; k >= 0; k--) {
        index[k] = rest % e->dim[k];
        rest /= e->dim[k];
        at += index[k] * o->stride[k];
    }
    while (n > 0) {
        const int64_t run = last < 0 ? n : OT_MIN(n, e->dim[last] - index[last]);

        if (last >= 0 && o->stride[last] == 1)
            memcpy(y, x + at, (size_t)run * sizeof(*y));
        else
            for (int64_t k = 0; k < run; k++)
                y[k] = x[at];
        y += run;
        n -= run;
        if (last < 0)
            continue;
        // Step to the start of the next line.
        at -= index[last] * o->stride[last];
        index[last] = 0;
        for (int k = last - 1; k >= 0; k--) {
            at += o->stride[k];
            if (++index[k] < e->dim[k])
                break;
            at -= index[k] * o->stride[k];
            index[k] = 0;
        }
    }
}
