// SPDX-License-Identifier: Apache-2.0
// One element type of ref_grid_sample.c.

// What is weighted with 0 counts for nothing, also where it is not finite: it may be outside.
static double FN(weighted_sum)(const T *plane, const taps *t, const double *weight)
{
    double sum = 0;

    for (int k = 0; k < t->n; k++)
        if (weight[k] != 0)
            sum += weight[k] * (double)plane[t->offset[k]];
    return sum;
}

static void FN(sample_positions)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__grid_sample *s = j->s;
    const int64_t channels = s->channels;
    taps t;

    for (int64_t i = first; i < last; i++) {
        const int64_t image = i / s->n_out;
        const T *x = (const T *)j->x + image * channels * s->n_in;
        T *y = (T *)j->to + image * channels * s->n_out + i % s->n_out;

        find_taps(j, i, &t);
        for (int64_t c = 0; c < channels; c++)
            y[c * s->n_out] = (T)FN(weighted_sum)(x + c * s->n_in, &t, t.weight);
    }
}

void FN(ot__ref_grid_sample)(T *y, const T *x, const void *grid, const ot__grid_sample *s)
{
    job j = make_grid_job(s, grid);

    j.to = y;
    j.x = x;
    ot__parallel_for(s->batch * s->n_out, OT_PAR_MIN / (4 * s->channels + 1) + 1,
                     FN(sample_positions), &j);
}

// Planes first .. last - 1: each gets what its own image has at every position.
static void FN(spread_planes)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__grid_sample *s = j->s;
    T *dx = j->to;
    const T *dy = j->dy;
    taps t;

    for (int64_t i = first * s->n_in; i < last * s->n_in; i++)
        dx[i] = 0;
    while (first < last) {
        const int64_t image = first / s->channels;
        const int64_t behind = OT_MIN(last, (image + 1) * s->channels);

        for (int64_t o = 0; o < s->n_out; o++) {
            find_taps(j, image * s->n_out + o, &t);
            for (int64_t plane = first; plane < behind; plane++)
                for (int k = 0; k < t.n; k++)
                    if (t.weight[k] != 0)
                        dx[plane * s->n_in + t.offset[k]] +=
                            (T)(t.weight[k] * (double)dy[plane * s->n_out + o]);
        }
        first = behind;
    }
}

void FN(ot__ref_grid_sample_dx)(T *dx, const T *dy, const void *grid, const ot__grid_sample *s)
{
    job j = make_grid_job(s, grid);

    j.to = dx;
    j.dy = dy;
    ot__parallel_for(s->batch * s->channels, OT_PAR_MIN / (4 * s->n_out + 1) + 1, FN(spread_planes),
                     &j);
}

static void FN(slope_positions)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__grid_sample *s = j->s;
    const int64_t channels = s->channels;
    taps t;

    for (int64_t i = first; i < last; i++) {
        const int64_t image = i / s->n_out;
        const T *x = (const T *)j->x + image * channels * s->n_in;
        const T *dy = (const T *)j->dy + image * channels * s->n_out + i % s->n_out;
        double sum[OT__WINDOW_AXES] = {0};

        find_taps(j, i, &t);
        for (int64_t c = 0; c < channels; c++)
            for (int a = OT__WINDOW_AXES - s->n_axes; a < OT__WINDOW_AXES; a++)
                sum[a] +=
                    (double)dy[c * s->n_out] * FN(weighted_sum)(x + c * s->n_in, &t, t.slope[a]);
        for (int a = 0; a < s->n_axes; a++) {
            const double slope = sum[OT__WINDOW_AXES - 1 - a];

            if (s->is_grid_wide)
                ((double *)j->to)[i * s->n_axes + a] = slope;
            else
                ((float *)j->to)[i * s->n_axes + a] = (float)slope;
        }
    }
}

void FN(ot__ref_grid_sample_dgrid)(void *dgrid, const T *dy, const T *x, const void *grid,
                                   const ot__grid_sample *s)
{
    job j = make_grid_job(s, grid);

    j.to = dgrid;
    j.dy = dy;
    j.x = x;
    ot__parallel_for(s->batch * s->n_out, OT_PAR_MIN / (8 * s->channels + 1) + 1,
                     FN(slope_positions), &j);
}
