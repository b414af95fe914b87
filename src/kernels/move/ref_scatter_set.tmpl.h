// SPDX-License-Identifier: Apache-2.0
// One element size of ref_scatter.c: slices replace what is there; the last one stays.

static void FN(set_part)(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    copy_share(j, first, last);
    for (int64_t i = 0; i < j->n; i++) {
        const part p = part_of_slice(j, i, first, last);

        for (int64_t k = p.from; k < p.to; k++)
            ((T *)j->y)[j->offset[i] + k] = ((const T *)j->u)[i * j->slice + k];
    }
}

static void FN(set)(void *y, const void *x, const int64_t *offset, const void *u, int64_t n,
                    int64_t slice, int64_t count, ot__scatter_op op)
{
    job j = {y, x, u, offset, n, slice, count, sizeof(T), op, false};

    scatter_job(&j, FN(set_part));
}
