// SPDX-License-Identifier: Apache-2.0
// One element type of ref_det.c.

static void FN(load_matrix)(elimination *e, const void *x, int64_t index)
{
    const int64_t count = e->n * e->n;

    for (int64_t i = 0; i < count; i++)
        e->lu[i] = (double)((const T *)x)[index * count + i];
    e->sign = 1.0;
    eliminate(e);
}

static void FN(det_parts)(void *context, int64_t first, int64_t last)
{
    const det_job *j = context;

    for (int64_t part = first; part < last; part++) {
        elimination e = elimination_at(j, part);

        for (int64_t m = j->batch * part / j->n_parts; m < j->batch * (part + 1) / j->n_parts;
             m++) {
            double det;

            FN(load_matrix)(&e, j->x, m);
            det = e.sign;
            for (int64_t k = 0; k < j->n; k++)
                det *= e.lu[k * j->n + k];
            ((T *)j->y)[m] = (T)det;
        }
    }
}

// dx = dy * the transpose of adjoint(x): with P x Q = L U, adjoint(x) = sign Q adjoint(U) L^-1 P.
static void FN(det_grad_parts)(void *context, int64_t first, int64_t last)
{
    const det_job *j = context;
    const int64_t n = j->n;

    for (int64_t part = first; part < last; part++) {
        elimination e = elimination_at(j, part);

        for (int64_t m = j->batch * part / j->n_parts; m < j->batch * (part + 1) / j->n_parts;
             m++) {
            T *dx = (T *)j->y + m * n * n;
            const double dy = (double)((const T *)j->dy)[m];
            bool is_zero;

            FN(load_matrix)(&e, j->x, m);
            is_zero = !find_adjoint(&e);
            if (!is_zero)
                divide_by_lower(&e);
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = 0; c < n; c++)
                    dx[e.row[c] * n + e.col[i]] =
                        (T)(is_zero ? 0 : dy * e.sign * e.adjoint[i * n + c]);
        }
    }
}

void FN(ot__ref_det)(void *y, const void *x, int64_t batch, int64_t n, int n_parts, void *scratch)
{
    det_job j = {y, x, NULL, batch, n, n_parts, scratch};

    ot__parallel_for(n_parts, 1, FN(det_parts), &j);
}

void FN(ot__ref_det_grad)(void *dx, const void *dy, const void *x, int64_t batch, int64_t n,
                          int n_parts, void *scratch)
{
    det_job j = {dx, x, dy, batch, n, n_parts, scratch};

    ot__parallel_for(n_parts, 1, FN(det_grad_parts), &j);
}
