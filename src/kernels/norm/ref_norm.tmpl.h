// SPDX-License-Identifier: Apache-2.0
void FN(ot__ref_batch_norm)(T *y, const T *x, const T *scale, const T *b, const T *mean,
                            const T *var, double epsilon, int64_t n, int64_t c, int64_t inner)
{
#pragma omp parallel for schedule(static) if (n * c * inner > OT_PAR_MIN)
    for (int64_t i = 0; i < n * c; i++) {
        const double factor = (double)scale[i % c] / sqrt((double)var[i % c] + epsilon);
        const double shift = (double)b[i % c] - (double)mean[i % c] * factor;
        for (int64_t k = i * inner; k < (i + 1) * inner; k++)
            y[k] = (T)((double)x[k] * factor + shift);
    }
}

void FN(ot__ref_batch_norm_relu)(T *y, const T *x, const T *z, const T *scale, const T *b,
                                 const T *mean, const T *inv, int64_t n, int64_t c, int64_t inner)
{
    for (int64_t i = 0; i < n * c * inner; i++) {
        const int64_t at = i / inner % c;
        const double normed =
            ((double)x[i] - (double)mean[at]) * (double)inv[at] * (double)scale[at] + (double)b[at];
        const double v = z != NULL ? normed + (double)z[i] : normed;

        y[i] = (T)(v < 0 ? 0 : v);
    }
}

void FN(ot__ref_channel_moments)(T *mean, T *var, const T *x, int64_t n, int64_t c, int64_t inner)
{
#pragma omp parallel for schedule(static) if (n * c * inner > OT_PAR_MIN)
    for (int64_t channel = 0; channel < c; channel++) {
        const double count = (double)(n * inner);
        double sum = 0, squares = 0, centre;

        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < inner; k++)
                sum += (double)x[(i * c + channel) * inner + k];
        centre = count > 0 ? sum / count : 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < inner; k++) {
                const double d = (double)x[(i * c + channel) * inner + k] - centre;
                squares += d * d;
            }
        mean[channel] = (T)centre;
        var[channel] = (T)(count > 0 ? squares / count : 0);
    }
}

void FN(ot__ref_inv_std)(T *inv, const T *var, double epsilon, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        inv[i] = (T)(1 / sqrt((double)var[i] + epsilon));
}

void FN(ot__ref_running)(T *running, const T *batch, double momentum, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        running[i] = (T)((double)running[i] * momentum + (double)batch[i] * (1 - momentum));
}

void FN(ot__ref_channel_sums)(double *sum, double *sum_xh, const T *dy, const T *x, const T *mean,
                              const T *inv, int64_t n, int64_t c, int64_t inner)
{
#pragma omp parallel for schedule(static) if (n * c * inner > OT_PAR_MIN)
    for (int64_t channel = 0; channel < c; channel++) {
        sum[channel] = sum_xh[channel] = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < inner; k++) {
                const int64_t at = (i * c + channel) * inner + k;

                sum[channel] += (double)dy[at];
                sum_xh[channel] +=
                    (double)dy[at] * ((double)x[at] - (double)mean[channel]) * (double)inv[channel];
            }
    }
}

void FN(ot__ref_batch_norm_dx)(T *dx, const T *dy, const T *x, const T *scale, const T *mean,
                               const T *inv, const double *sum, const double *sum_xh, double count,
                               int64_t n, int64_t c, int64_t inner)
{
#pragma omp parallel for schedule(static) if (n * c * inner > OT_PAR_MIN)
    for (int64_t i = 0; i < n * c; i++) {
        const int64_t at = i % c;

        for (int64_t k = i * inner; k < (i + 1) * inner; k++) {
            const double xh = ((double)x[k] - (double)mean[at]) * (double)inv[at];

            dx[k] = (T)((double)scale[at] * (double)inv[at] *
                        ((double)dy[k] - sum[at] / count - xh * sum_xh[at] / count));
        }
    }
}

void FN(ot__ref_layer_norm)(T *y, T *mean, T *inv, const T *x, const T *scale, const T *b,
                            double epsilon, bool centered, int64_t rows, int64_t columns)
{
#pragma omp parallel for schedule(static) if (rows * columns > OT_PAR_MIN)
    for (int64_t r = 0; r < rows; r++) {
        const T *xr = x + r * columns;
        double sum = 0, squares = 0, centre = 0, s;

        for (int64_t k = 0; centered && k < columns; k++)
            sum += (double)xr[k];
        centre = sum / (double)columns;
        for (int64_t k = 0; k < columns; k++)
            squares += ((double)xr[k] - centre) * ((double)xr[k] - centre);
        s = 1 / sqrt(squares / (double)columns + epsilon);
        for (int64_t k = 0; k < columns; k++)
            y[r * columns + k] =
                (T)(((double)xr[k] - centre) * s * (double)scale[k] + (b ? (double)b[k] : 0));
        if (mean)
            mean[r] = (T)centre;
        if (inv)
            inv[r] = (T)s;
    }
}

// Columns first, in an order of rows that no number of threads changes; then the rows.
void FN(ot__ref_layer_norm_grad)(T *dx, T *dscale, T *db, const T *dy, const T *x, const T *scale,
                                 const T *mean, const T *inv, int64_t rows, int64_t columns)
{
#pragma omp parallel for schedule(static) if (rows * columns > OT_PAR_MIN)
    for (int64_t first = 0; first < columns; first += COLUMNS) {
        const int64_t n = OT_MIN(columns - first, (int64_t)COLUMNS);
        double sum[COLUMNS] = {0}, sum_xh[COLUMNS] = {0};

        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < n; k++) {
                const int64_t at = r * columns + first + k;
                sum[k] += (double)dy[at];
                sum_xh[k] += (double)dy[at] * ((double)x[at] - (mean ? (double)mean[r] : 0)) *
                             (double)inv[r];
            }
        for (int64_t k = 0; k < n; k++) {
            if (dscale)
                dscale[first + k] = (T)sum_xh[k];
            if (db)
                db[first + k] = (T)sum[k];
        }
    }
    if (!dx)
        return;
#pragma omp parallel for schedule(static) if (rows * columns > OT_PAR_MIN)
    for (int64_t r = 0; r < rows; r++) {
        const double m = mean ? (double)mean[r] : 0, s = (double)inv[r];
        double sum = 0, sum_xh = 0;

        for (int64_t k = r * columns; k < (r + 1) * columns; k++) {
            const double b = (double)dy[k] * (double)scale[k - r * columns] * s;
            sum += b;
            sum_xh += b * ((double)x[k] - m) * s;
        }
        if (!mean)
            sum = 0;
        for (int64_t k = r * columns; k < (r + 1) * columns; k++) {
            const double b = (double)dy[k] * (double)scale[k - r * columns] * s;
            const double xh = ((double)x[k] - m) * s;
            dx[k] = (T)(b - sum / (double)columns - xh * sum_xh / (double)columns);
        }
    }
}
