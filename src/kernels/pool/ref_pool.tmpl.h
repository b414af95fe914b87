// SPDX-License-Identifier: Apache-2.0
void FN(ot__ref_max_pool)(T *y, int64_t *indices, const T *x, const ot__pool *p)
{
    const ot__window *w = &p->window;

#pragma omp parallel for schedule(static) if (p->n * w->n_out * w->n_kernel > OT_PAR_MIN)
    for (int64_t i = 0; i < p->n * w->n_out; i++) {
        const T *image = x + i / w->n_out * w->n_in;
        ot__range r;
        int64_t best = -1;

        range_of_window(&r, i % w->n_out, w);
        for (int64_t a = r.first[0]; a < w->in[0] && a < r.last[0]; a += w->dilation[0])
            for (int64_t b = r.first[1]; b < w->in[1] && b < r.last[1]; b += w->dilation[1])
                for (int64_t c = r.first[2]; c < w->in[2] && c < r.last[2]; c += w->dilation[2]) {
                    const int64_t at = (a * w->in[1] + b) * w->in[2] + c;
                    if (best < 0 || image[at] > image[best] || image[at] != image[at])
                        best = at;
                }
        y[i] = best < 0 ? 0 : image[best];
        if (indices)
            indices[i] = i / w->n_out * w->n_in +
                         (p->column_major ? column_major(best, w) : OT_MAX(best, 0));
    }
}

void FN(ot__ref_max_pool_grad)(T *dx, const T *dy, const int64_t *indices, const ot__pool *p)
{
    const int64_t n_in = p->window.n_in, n_out = p->window.n_out;

#pragma omp parallel for schedule(static) if (p->n * n_out > OT_PAR_MIN)
    for (int64_t image = 0; image < p->n; image++) {
        for (int64_t i = 0; i < n_in; i++)
            dx[image * n_in + i] = 0;
        for (int64_t o = image * n_out; o < (image + 1) * n_out; o++)
            if (indices[o] >= 0)
                dx[indices[o]] += dy[o];
    }
}

void FN(ot__ref_average_pool)(T *y, const T *x, const ot__pool *p)
{
    const ot__window *w = &p->window;

#pragma omp parallel for schedule(static) if (p->n * w->n_out * w->n_kernel > OT_PAR_MIN)
    for (int64_t i = 0; i < p->n * w->n_out; i++) {
        const T *image = x + i / w->n_out * w->n_in;
        double sum = 0;
        ot__range r;

        range_of_window(&r, i % w->n_out, w);
        for (int64_t a = r.first[0]; a < w->in[0] && a < r.last[0]; a += w->dilation[0])
            for (int64_t b = r.first[1]; b < w->in[1] && b < r.last[1]; b += w->dilation[1])
                for (int64_t c = r.first[2]; c < w->in[2] && c < r.last[2]; c += w->dilation[2])
                    sum += (double)image[(a * w->in[1] + b) * w->in[2] + c];
        y[i] = (T)(sum / average_count(i % w->n_out, p));
    }
}

void FN(ot__ref_average_pool_grad)(T *dx, const T *dy, const ot__pool *p)
{
    const ot__window *w = &p->window;

#pragma omp parallel for schedule(static) if (p->n * w->n_out * w->n_kernel > OT_PAR_MIN)
    for (int64_t n = 0; n < p->n; n++) {
        T *image = dx + n * w->n_in;

        for (int64_t i = 0; i < w->n_in; i++)
            image[i] = 0;
        for (int64_t o = 0; o < w->n_out; o++) {
            const T share = (T)((double)dy[n * w->n_out + o] / average_count(o, p));
            ot__range r;

            range_of_window(&r, o, w);
            for (int64_t a = r.first[0]; a < w->in[0] && a < r.last[0]; a += w->dilation[0])
                for (int64_t b = r.first[1]; b < w->in[1] && b < r.last[1]; b += w->dilation[1])
                    for (int64_t c = r.first[2]; c < w->in[2] && c < r.last[2]; c += w->dilation[2])
                        image[(a * w->in[1] + b) * w->in[2] + c] += share;
        }
    }
}

void FN(ot__ref_plane_max)(T *y, const T *x, int64_t planes, int64_t inner)
{
#pragma omp parallel for schedule(static) if (planes * inner > OT_PAR_MIN)
    for (int64_t i = 0; i < planes; i++) {
        const T *plane = x + i * inner;
        T best = inner > 0 ? plane[0] : (T)-INFINITY;

        for (int64_t k = 1; k < inner; k++)
            if (plane[k] > best || isnan(plane[k]))
                best = plane[k];
        y[i] = best;
    }
}

void FN(ot__ref_plane_max_grad)(T *dx, const T *dy, const T *x, const T *y, int64_t planes,
                                int64_t inner)
{
#pragma omp parallel for schedule(static) if (planes * inner > OT_PAR_MIN)
    for (int64_t i = 0; i < planes; i++) {
        const T *plane = x + i * inner;
        int64_t first = 0;

        while (first < inner && !(plane[first] == y[i] || (isnan(y[i]) && isnan(plane[first]))))
            first++;
        for (int64_t k = 0; k < inner; k++)
            dx[i * inner + k] = k == first ? dy[i] : 0;
    }
}

void FN(ot__ref_plane_mean)(T *y, const T *x, int64_t planes, int64_t inner)
{
#pragma omp parallel for schedule(static) if (planes * inner > OT_PAR_MIN)
    for (int64_t i = 0; i < planes; i++) {
        double sum = 0;

        for (int64_t k = 0; k < inner; k++)
            sum += (double)x[i * inner + k];
        y[i] = (T)(sum / (double)inner);
    }
}
