// SPDX-License-Identifier: Apache-2.0
// One element size of index_lines.c: elements are moved.

static void FN(take)(void *y_, const void *x_, const int64_t *offset, int64_t n, ot__scatter_op op)
{
    T *y = y_;
    const T *x = x_;

    (void)op;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[offset[i]];
}

static void FN(put)(void *y_, const void *u_, const int64_t *offset, int64_t n, ot__scatter_op op)
{
    T *y = y_;
    const T *u = u_;

    (void)op;
    for (int64_t i = 0; i < n; i++)
        y[offset[i]] = u[i];
}
