// SPDX-License-Identifier: Apache-2.0

// sum[k] += |x[k * stride]|^p
static inline void FN(add_powers)(double *sum, const T *x, int64_t stride, int64_t n, double p)
{
    if (p == 2)
        for (int64_t k = 0; k < n; k++)
            sum[k] += (double)x[k * stride] * (double)x[k * stride];
    else if (p == 1)
        for (int64_t k = 0; k < n; k++)
            sum[k] += fabs((double)x[k * stride]);
    else
        for (int64_t k = 0; k < n; k++)
            sum[k] += pow(fabs((double)x[k * stride]), p);
}

// The windows `first` .. `first` + n - 1 of a row of them, whose element rows begin at `start`.
static void FN(lp_pool_piece)(T *y, const T *image, const int64_t *start, int64_t first, int64_t n,
                              const ot__pool *pool)
{
    const ot__window *w = &pool->window;
    const lp_range r = lp_range_of(w, start, first, n);
    double sum[LP_PIECE] = {0};

    for (int64_t a = r.first[0]; a < r.last[0]; a += w->dilation[0])
        for (int64_t b = r.first[1]; b < r.last[1]; b += w->dilation[1])
            for (int64_t k = r.first[2]; k < r.last[2]; k++) {
                const lp_span s = lp_span_of(w, k, first, n);
                const T *x = image + (a * w->in[1] + b) * w->in[2] + s.from;

                if (w->stride[2] == 1)
                    FN(add_powers)(sum + s.first, x, 1, s.n, pool->p);
                else
                    FN(add_powers)(sum + s.first, x, w->stride[2], s.n, pool->p);
            }
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)(pool->p == 2 ? sqrt(sum[k]) : pool->p == 1 ? sum[k] : pow(sum[k], 1 / pool->p));
}

void FN(ot__ref_lp_pool)(T *y, const T *x, const ot__pool *pool)
{
    const ot__window *w = &pool->window;
    const int64_t rows = w->out[0] * w->out[1];

#pragma omp parallel for schedule(static) if (pool->n * w->n_out * w->n_kernel > OT_PAR_MIN)
    for (int64_t i = 0; i < pool->n * rows; i++) {
        const int64_t row = i % rows;
        const int64_t start[] = {row / w->out[1] * w->stride[0] - w->pad[0],
                                 row % w->out[1] * w->stride[1] - w->pad[1]};

        for (int64_t first = 0; first < w->out[2]; first += LP_PIECE)
            FN(lp_pool_piece)
        (y + i * w->out[2] + first, x + i / rows * w->n_in, start, first,
         OT_MIN(w->out[2] - first, (int64_t)LP_PIECE), pool);
    }
}

// Adds to dx what n windows of a row give: dy / y for p = 2 and dy for p = 1, which one factor an
// element completes; else the whole, dy * sign(x) * (|x| / y)^(p - 1).
static void FN(lp_pool_grad_piece)(T *dx, const T *dy, const T *y, const T *image,
                                   const int64_t *start, int64_t first, int64_t n,
                                   const ot__pool *pool)
{
    const ot__window *w = &pool->window;
    const lp_range r = lp_range_of(w, start, first, n);
    double share[LP_PIECE];

    for (int64_t k = 0; k < n; k++)
        share[k] = pool->p != 2 ? (double)dy[k] : y[k] == 0 ? 0 : (double)dy[k] / (double)y[k];
    for (int64_t a = r.first[0]; a < r.last[0]; a += w->dilation[0])
        for (int64_t b = r.first[1]; b < r.last[1]; b += w->dilation[1])
            for (int64_t k = r.first[2]; k < r.last[2]; k++) {
                const lp_span s = lp_span_of(w, k, first, n);
                const int64_t at = (a * w->in[1] + b) * w->in[2] + s.from;

                if (pool->p == 1 || pool->p == 2) {
                    for (int64_t o = 0; o < s.n; o++)
                        dx[at + o * w->stride[2]] += (T)share[s.first + o];
                    continue;
                }
                for (int64_t o = 0; o < s.n; o++) {
                    const double v = (double)image[at + o * w->stride[2]];
                    const double norm = (double)y[s.first + o];

                    if (v != 0 && norm != 0)
                        dx[at + o * w->stride[2]] +=
                            (T)(share[s.first + o] * pow(fabs(v) / norm, pool->p - 1) *
                                (v < 0 ? -1 : 1));
                }
            }
}

void FN(ot__ref_lp_pool_grad)(T *dx, const T *dy, const T *x, const T *y, const ot__pool *pool)
{
    const ot__window *w = &pool->window;
    const int64_t rows = w->out[0] * w->out[1];

#pragma omp parallel for schedule(static) if (pool->n * w->n_out * w->n_kernel > OT_PAR_MIN)
    for (int64_t i = 0; i < pool->n; i++) {
        const T *image = x + i * w->n_in;
        T *to = dx + i * w->n_in;

        for (int64_t k = 0; k < w->n_in; k++)
            to[k] = 0;
        for (int64_t row = 0; row < rows; row++) {
            const int64_t start[] = {row / w->out[1] * w->stride[0] - w->pad[0],
                                     row % w->out[1] * w->stride[1] - w->pad[1]};

            for (int64_t first = 0; first < w->out[2]; first += LP_PIECE) {
                const int64_t at = (i * rows + row) * w->out[2] + first;

                FN(lp_pool_grad_piece)
                (to, dy + at, y + at, image, start, first,
                 OT_MIN(w->out[2] - first, (int64_t)LP_PIECE), pool);
            }
        }
        for (int64_t k = 0; pool->p == 2 && k < w->n_in; k++)
            to[k] *= image[k];
        for (int64_t k = 0; pool->p == 1 && k < w->n_in; k++)
            to[k] = image[k] == 0 ? 0 : image[k] < 0 ? -to[k] : to[k];
    }
}
