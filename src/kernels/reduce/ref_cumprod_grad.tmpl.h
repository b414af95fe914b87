// SPDX-License-Identifier: Apache-2.0
// One element type of ref_cumulative.c: the gradient of running products, without dividing by
// elements, which may be 0. With y_k = x_0 ... x_k,
//
//     dx_j = sum over k >= j of dy_k * (product of x_i, i <= k, but x_j) = P_j * S_j,
//     P_j = x_0 ... x_(j-1),    S_j = dy_j + x_(j+1) * S_(j+1).
//
// Exclusive products y_k = x_0 ... x_(k-1) have S_j = dy_(j+1) + x_(j+1) * S_(j+1).

static void FN(cumprod_grad_lines)(void *context, int64_t first, int64_t last)
{
    const cumulative_job *j = context;
    const int64_t step = j->is_reverse ? -j->inner : j->inner;

    for (int64_t line = first; line < last; line++) {
        const int64_t start = line / j->inner * j->n * j->inner + line % j->inner +
                              (j->is_reverse ? (j->n - 1) * j->inner : 0);
        const T *x = (const T *)j->x + start, *dy = (const T *)j->dy + start;
        T *dx = (T *)j->y + start;
        double before = 1, behind = 0;

        for (int64_t i = 0; i < j->n; i++) {
            dx[i * step] = (T)before;
            before *= (double)x[i * step];
        }
        for (int64_t i = j->n - 1; i >= 0; i--) {
            if (i < j->n - 1)
                behind *= (double)x[(i + 1) * step];
            if (!j->is_exclusive)
                behind += (double)dy[i * step];
            else if (i < j->n - 1)
                behind += (double)dy[(i + 1) * step];
            dx[i * step] = (T)((double)dx[i * step] * behind);
        }
    }
}

void FN(ot__ref_cumprod_grad)(void *dx, const void *dy, const void *x, int64_t outer, int64_t n,
                              int64_t inner, bool is_exclusive, bool is_reverse)
{
    cumulative_job j = {dx, x, dy, n, inner, is_exclusive, is_reverse};

    if (n > 0)
        ot__parallel_for(outer * inner, OT_PAR_MIN / n + 1, FN(cumprod_grad_lines), &j);
}
