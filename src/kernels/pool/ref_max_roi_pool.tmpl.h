// SPDX-License-Identifier: Apache-2.0
// One element type of ref_max_roi_pool.c.

int64_t FN(ot__ref_max_roi_check)(const T *rois, const ot__roi_pool *p)
{
    for (int64_t r = 0; r < p->n_rois; r++)
        if (!(rois[5 * r] >= 0 && rois[5 * r] < (T)p->batch))
            return r;
    return -1;
}

static part FN(find_roi_part)(const T *roi, const ot__roi_pool *p, int a, int64_t i)
{
    const T scale = (T)p->scale;
    const double from = round((double)(roi[2 - a] * scale));
    const double to = round((double)(roi[4 - a] * scale));

    return find_region_part(from, OT_MAX(to - from + 1, 1.0), i, p->out[a], p->in[a]);
}

// Of equal ones the first; -1 where there is none.
static int64_t FN(find_maximum)(const T *plane, int64_t row, part h, part w)
{
    int64_t best = -1;

    for (int64_t i = h.first; i < h.behind; i++)
        for (int64_t k = w.first; k < w.behind; k++) {
            const T value = plane[i * row + k];

            if (best < 0 || value > plane[best] || value != value)
                best = i * row + k;
        }
    return best;
}

// Rows of regions' results.
static void FN(max_roi_rows)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__roi_pool *p = j->p;
    const int64_t n_in = p->in[0] * p->in[1];

    for (int64_t i = first; i < last; i++) {
        const int64_t r = i / p->out[0];
        const T *roi = (const T *)j->rois + 5 * r;
        const T *x = (const T *)j->x + (int64_t)roi[0] * p->channels * n_in;
        const part h = FN(find_roi_part)(roi, p, 0, i % p->out[0]);

        for (int64_t k = 0; k < p->out[1]; k++) {
            const part w = FN(find_roi_part)(roi, p, 1, k);

            for (int64_t c = 0; c < p->channels; c++) {
                const int64_t best = FN(find_maximum)(x + c * n_in, p->in[1], h, w);
                T *y = (T *)j->to +
                       ((r * p->channels + c) * p->out[0] + i % p->out[0]) * p->out[1] + k;

                *y = best < 0 ? 0 : x[c * n_in + best];
            }
        }
    }
}

void FN(ot__ref_max_roi_pool)(T *y, const T *x, const T *rois, const ot__roi_pool *p)
{
    job j = {.p = p, .to = y, .x = x, .rois = rois};

    ot__parallel_for(p->n_rois * p->out[0], OT_PAR_MIN / (4 * p->out[1] * p->channels + 1) + 1,
                     FN(max_roi_rows), &j);
}

// Channels of all images: each goes through the regions in their order.
static void FN(spread_max_roi)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__roi_pool *p = j->p;
    const int64_t n_in = p->in[0] * p->in[1], n_out = p->out[0] * p->out[1];
    T *dx = j->to;

    for (int64_t n = 0; n < p->batch; n++)
        for (int64_t i = (n * p->channels + first) * n_in; i < (n * p->channels + last) * n_in; i++)
            dx[i] = 0;
    for (int64_t r = 0; r < p->n_rois; r++) {
        const T *roi = (const T *)j->rois + 5 * r;
        const int64_t image = (int64_t)roi[0] * p->channels * n_in;

        for (int64_t o = 0; o < n_out; o++) {
            const part h = FN(find_roi_part)(roi, p, 0, o / p->out[1]);
            const part w = FN(find_roi_part)(roi, p, 1, o % p->out[1]);

            for (int64_t c = first; c < last; c++) {
                const int64_t plane = image + c * n_in;
                const int64_t best = FN(find_maximum)((const T *)j->x + plane, p->in[1], h, w);

                if (best >= 0)
                    dx[plane + best] += ((const T *)j->dy)[(r * p->channels + c) * n_out + o];
            }
        }
    }
}

void FN(ot__ref_max_roi_pool_grad)(T *dx, const T *dy, const T *x, const T *rois,
                                   const ot__roi_pool *p)
{
    job j = {.p = p, .to = dx, .dy = dy, .x = x, .rois = rois};

    ot__parallel_for(p->channels, OT_PAR_MIN / (p->batch * p->in[0] * p->in[1] + 1) + 1,
                     FN(spread_max_roi), &j);
}
