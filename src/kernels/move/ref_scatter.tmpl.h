// SPDX-License-Identifier: Apache-2.0
// One element type of ref_scatter.c: slices are combined with what is there.

static void FN(scatter_part)(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    copy_share(j, first, last);
    for (int64_t i = 0; i < j->n; i++) {
        const part p = part_of_slice(j, i, first, last);
        T *y = (T *)j->y + j->offset[i];
        const T *u = (const T *)j->u + i * j->slice;

        if (j->op == OT__SCATTER_ADD) {
            for (int64_t k = p.from; k < p.to; k++)
                y[k] = ADD(y[k], u[k]);
        } else if (j->op == OT__SCATTER_MUL) {
            for (int64_t k = p.from; k < p.to; k++)
                y[k] = MUL(y[k], u[k]);
        } else if (j->op == OT__SCATTER_MIN) {
            for (int64_t k = p.from; k < p.to; k++)
                y[k] = u[k] < y[k] || IS_NAN(u[k]) ? u[k] : y[k];
        } else {
            for (int64_t k = p.from; k < p.to; k++)
                y[k] = u[k] > y[k] || IS_NAN(u[k]) ? u[k] : y[k];
        }
    }
}

static void FN(scatter)(void *y, const void *x, const int64_t *offset, const void *u, int64_t n,
                        int64_t slice, int64_t count, ot__scatter_op op)
{
    job j = {y, x, u, offset, n, slice, count, sizeof(T), op, false};

    scatter_job(&j, FN(scatter_part));
}
