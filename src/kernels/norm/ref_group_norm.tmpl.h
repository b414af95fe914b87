// SPDX-License-Identifier: Apache-2.0

// One group: y = (x - mean) * inv * scale + b.
static void FN(group_norm)(T *y, double *mean, double *inv, const T *x, const T *scale, const T *b,
                           const ot__group_norm *p)
{
    const int64_t n = p->channels * p->inner;
    double sum = 0, squares = 0;

    for (int64_t k = 0; k < n; k++)
        sum += (double)x[k];
    *mean = sum / (double)n;
    for (int64_t k = 0; k < n; k++)
        squares += ((double)x[k] - *mean) * ((double)x[k] - *mean);
    *inv = 1 / sqrt(squares / (double)n + p->epsilon);
    for (int64_t k = 0; k < n; k++) {
        const int64_t c = k / p->inner;
        const double factor = scale == NULL ? *inv : *inv * (double)scale[c];

        y[k] = (T)(((double)x[k] - *mean) * factor + (b == NULL ? 0 : (double)b[c]));
    }
}

void FN(ot__ref_group_norm)(T *y, T *mean, T *inv, const T *x, const T *scale, const T *b,
                            const ot__group_norm *p)
{
    for (int64_t i = 0; i < p->n * p->groups; i++) {
        const int64_t channel = i % p->groups * p->channels, at = i * p->channels * p->inner;
        double group_mean, group_inv;

        FN(group_norm)
        (y + at, &group_mean, &group_inv, x + at, scale == NULL ? NULL : scale + channel,
         b == NULL ? NULL : b + channel, p);
        if (mean != NULL)
            mean[i] = (T)group_mean;
        if (inv != NULL)
            inv[i] = (T)group_inv;
    }
}

// With xh = (x - mean) * inv and g = dy * scale: dx = inv * (g - mean(g) - xh * mean(g * xh)).
static void FN(group_norm_dx)(T *dx, const T *dy, const T *x, const T *scale, double mean,
                              double inv, const ot__group_norm *p)
{
    const int64_t n = p->channels * p->inner;
    double sum = 0, sum_xh = 0;

    for (int64_t k = 0; k < n; k++) {
        const double g = (double)dy[k] * (scale == NULL ? 1 : (double)scale[k / p->inner]);

        sum += g;
        sum_xh += g * ((double)x[k] - mean) * inv;
    }
    for (int64_t k = 0; k < n; k++) {
        const double g = (double)dy[k] * (scale == NULL ? 1 : (double)scale[k / p->inner]);

        dx[k] =
            (T)(inv * (g - sum / (double)n - ((double)x[k] - mean) * inv * (sum_xh / (double)n)));
    }
}

void FN(ot__ref_group_norm_grad)(T *dx, T *dscale, T *db, const T *dy, const T *x, const T *scale,
                                 const T *mean, const T *inv, const ot__group_norm *p)
{
    const int64_t n_channels = p->groups * p->channels;

    for (int64_t c = 0; c < n_channels; c++) {
        double sum = 0, sum_xh = 0;

        for (int64_t i = 0; i < p->n; i++) {
            const int64_t group = i * p->groups + c / p->channels;
            const int64_t at = (i * n_channels + c) * p->inner;

            for (int64_t k = at; k < at + p->inner; k++) {
                sum += (double)dy[k];
                sum_xh += (double)dy[k] * ((double)x[k] - (double)mean[group]) * (double)inv[group];
            }
        }
        if (dscale != NULL)
            dscale[c] = (T)sum_xh;
        if (db != NULL)
            db[c] = (T)sum;
    }
    for (int64_t i = 0; dx != NULL && i < p->n * p->groups; i++) {
        const int64_t channel = i % p->groups * p->channels, at = i * p->channels * p->inner;

        FN(group_norm_dx)
        (dx + at, dy + at, x + at, scale == NULL ? NULL : scale + channel, (double)mean[i],
         (double)inv[i], p);
    }
}
