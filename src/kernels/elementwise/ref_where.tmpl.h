// SPDX-License-Identifier: Apache-2.0
// One element size of ref_where.c.

static void FN(where)(void *to, const uint8_t *condition, const void *x0, const void *x1, int64_t n)
{
    const T *a = x0, *b = x1;
    T *y = to;

    for (int64_t k = 0; k < n; k++)
        y[k] = condition[k] ? a[k] : b[k];
}
