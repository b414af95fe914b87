// SPDX-License-Identifier: Apache-2.0
// One element type of ref_softmax.c.

static double FN(largest)(const T *x, int64_t n, int64_t stride)
{
    double largest = (double)x[0];

    for (int64_t k = 1; k < n; k++)
        largest = OT_MAX(largest, (double)x[k * stride]);
    return largest;
}

void FN(ot__ref_softmax)(T *y, const T *x, const ot__lines *l)
{
    const int64_t n = l->n, inner = l->inner, n_lines = l->outer * inner;

#pragma omp parallel for schedule(static) if (n_lines * n > OT_PAR_MIN)
    for (int64_t r = 0; r < n_lines; r++) {
        const int64_t at = r / inner * n * inner + r % inner;
        const double shift =
            n > 0 ? FN(largest)(x + at, n, inner) : 0; // exp(x - max) cannot overflow
        double sum = 0;

        for (int64_t k = 0; k < n; k++)
            sum += exp((double)x[at + k * inner] - shift);
        for (int64_t k = 0; k < n; k++)
            y[at + k * inner] = (T)(exp((double)x[at + k * inner] - shift) / sum);
    }
}

void FN(ot__ref_log_softmax)(T *y, const T *x, const ot__lines *l)
{
    const int64_t n = l->n, inner = l->inner, n_lines = l->outer * inner;

#pragma omp parallel for schedule(static) if (n_lines * n > OT_PAR_MIN)
    for (int64_t r = 0; r < n_lines; r++) {
        const int64_t at = r / inner * n * inner + r % inner;
        const double shift = n > 0 ? FN(largest)(x + at, n, inner) : 0;
        double sum = 0, log_sum;

        for (int64_t k = 0; k < n; k++)
            sum += exp((double)x[at + k * inner] - shift);
        log_sum = log(sum);
        for (int64_t k = 0; k < n; k++)
            y[at + k * inner] = (T)((double)x[at + k * inner] - shift - log_sum);
    }
}

void FN(ot__ref_softmax_grad)(T *dx, const T *dy, const T *y, const ot__lines *l)
{
    const int64_t n = l->n, inner = l->inner, n_lines = l->outer * inner;

#pragma omp parallel for schedule(static) if (n_lines * n > OT_PAR_MIN)
    for (int64_t r = 0; r < n_lines; r++) {
        const int64_t at = r / inner * n * inner + r % inner;
        double sum = 0;

        for (int64_t k = 0; k < n; k++)
            sum += (double)y[at + k * inner] * (double)dy[at + k * inner];
        for (int64_t k = 0; k < n; k++)
            dx[at + k * inner] =
                (T)((double)y[at + k * inner] * ((double)dy[at + k * inner] - sum));
    }
}

void FN(ot__ref_log_softmax_grad)(T *dx, const T *dy, const T *y, const ot__lines *l)
{
    const int64_t n = l->n, inner = l->inner, n_lines = l->outer * inner;

#pragma omp parallel for schedule(static) if (n_lines * n > OT_PAR_MIN)
    for (int64_t r = 0; r < n_lines; r++) {
        const int64_t at = r / inner * n * inner + r % inner;
        double sum = 0;

        for (int64_t k = 0; k < n; k++)
            sum += (double)dy[at + k * inner];
        for (int64_t k = 0; k < n; k++)
            dx[at + k * inner] =
                (T)((double)dy[at + k * inner] - exp((double)y[at + k * inner]) * sum);
    }
}
