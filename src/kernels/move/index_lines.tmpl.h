// SPDX-License-Identifier: Apache-2.0
// One element type of index_lines.c: elements are combined with what is there.

static void FN(combine)(void *y_, const void *u_, const int64_t *offset, int64_t n,
                        ot__scatter_op op)
{
    T *y = y_;
    const T *u = u_;

    if (op == OT__SCATTER_ADD) {
        for (int64_t i = 0; i < n; i++)
            y[offset[i]] = ADD(y[offset[i]], u[i]);
    } else if (op == OT__SCATTER_MUL) {
        for (int64_t i = 0; i < n; i++)
            y[offset[i]] = MUL(y[offset[i]], u[i]);
    } else if (op == OT__SCATTER_MIN) {
        for (int64_t i = 0; i < n; i++)
            y[offset[i]] = u[i] < y[offset[i]] || IS_NAN(u[i]) ? u[i] : y[offset[i]];
    } else {
        for (int64_t i = 0; i < n; i++)
            y[offset[i]] = u[i] > y[offset[i]] || IS_NAN(u[i]) ? u[i] : y[offset[i]];
    }
}
