// SPDX-License-Identifier: Apache-2.0
// One element type of ref_deform.c.

static void FN(find_deform_taps)(taps *t, const job *j, const place *p)
{
    const ot__deform *d = j->d;
    const ot__window *w = &d->window;
    const T *offset =
        (const T *)j->offset + (p->group * w->n_kernel + p->k) * d->n_axes * w->n_out + p->from;
    const int first = OT__WINDOW_AXES - d->n_axes;
    int64_t k[OT__WINDOW_AXES];

    split_window_position(k, p->k, w->kernel);
    for (int i = 0; i < p->n; i++) {
        int64_t o[OT__WINDOW_AXES];

        split_window_position(o, p->from + i, w->out);
        t->n = 1;
        t->offset[0][i] = 0;
        t->weight[0][i] = 1;
        for (int a = first; a < OT__WINDOW_AXES; a++) {
            const double most = OT__GRID_AXIS_MAX + 8.0;
            const grid_axis axis = {.in = (double)w->in[a]};
            const double at = (double)(o[a] * w->stride[a] - w->pad[a] + k[a] * w->dilation[a]) +
                              (double)offset[(a - first) * w->n_out + i];
            const grid_place x = {clamp_between(at, -most, most), 1};
            grid_tap tap[2];

            for (int m = 0; m < 2; m++)
                tap[m] = find_tap(&axis, OT__GRID_LINEAR, OT__GRID_ZEROS, x, m);
            add_axis(t, tap, i, a - first, w->in[a]);
            t->n *= 2;
        }
    }
}

static double FN(deformed_sum)(const T *plane, const taps *t, const double (*weight)[PIECE], int i)
{
    double sum = 0;

    for (int k = 0; k < t->n; k++)
        if (weight[k][i] != 0)
            sum += weight[k][i] * (double)plane[t->offset[k][i]];
    return sum;
}

static const T *FN(mask_at)(const job *j, const place *p)
{
    const ot__window *w = &j->d->window;

    return j->mask == NULL
               ? NULL
               : (const T *)j->mask + (p->group * w->n_kernel + p->k) * w->n_out + p->from;
}

static place FN(next_place)(const ot__deform *d, int64_t row, int64_t from)
{
    const ot__window *w = &d->window;

    return (place){row / w->n_kernel, row % w->n_kernel, from,
                   (int)OT_MIN((int64_t)PIECE, w->n_out - from)};
}

// Where the columns of the first channel of the place's group are; each further one is n_kernel *
// n_out elements on.
static int64_t FN(columns_at)(const ot__deform *d, const place *p)
{
    const ot__window *w = &d->window;

    return (p->group * d->channels * w->n_kernel + p->k) * w->n_out + p->from;
}

// Rows count kernel positions of all offset groups.
static void FN(walk_rows)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    taps t;

    for (int64_t row = first; row < last; row++)
        for (int64_t from = 0; from < j->d->window.n_out; from += PIECE) {
            const place p = FN(next_place)(j->d, row, from);

            FN(find_deform_taps)(&t, j, &p);
            j->at(j, &p, &t);
        }
}

static void FN(for_rows)(job *j)
{
    const ot__window *w = &j->d->window;

    ot__parallel_for(j->d->groups * w->n_kernel,
                     OT_PAR_MIN / (4 * j->d->channels * w->n_out + 1) + 1, FN(walk_rows), j);
}

// ---- columns ----

static void FN(fill_columns)(const job *j, const place *p, const taps *t)
{
    const ot__deform *d = j->d;
    const ot__window *w = &d->window;
    const T *mask = FN(mask_at)(j, p);
    const T *x = (const T *)j->x + p->group * d->channels * w->n_in;
    T *to = (T *)j->to + FN(columns_at)(d, p);

    for (int64_t c = 0; c < d->channels; c++, x += w->n_in, to += w->n_kernel * w->n_out)
        for (int i = 0; i < p->n; i++)
            to[i] =
                (T)(FN(deformed_sum)(x, t, t->weight, i) * (mask == NULL ? 1 : (double)mask[i]));
}

void FN(ot__ref_deform_columns)(T *columns, const T *x, const T *offset, const T *mask,
                                const ot__deform *d)
{
    job j = {.to = columns, .x = x, .offset = offset, .mask = mask, .d = d, .at = FN(fill_columns)};

    FN(for_rows)(&j);
}

// ---- gradient of the images ----

static void FN(spread_columns)(const job *j, const place *p, const taps *t)
{
    const ot__window *w = &j->d->window;
    const T *mask = FN(mask_at)(j, p);

    for (int64_t plane = j->first; plane < j->last; plane++) {
        T *to = (T *)j->to + plane * w->n_in;
        const T *dy = (const T *)j->dcolumns + (plane * w->n_kernel + p->k) * w->n_out + p->from;

        for (int k = 0; k < t->n; k++)
            for (int i = 0; i < p->n; i++)
                if (t->weight[k][i] != 0)
                    to[t->offset[k][i]] +=
                        (T)(t->weight[k][i] * (double)dy[i] * (mask == NULL ? 1 : (double)mask[i]));
    }
}

// Planes first .. last - 1: those of a group together.
static void FN(spread_deformed)(void *context, int64_t first, int64_t last)
{
    const ot__window *w = &((const job *)context)->d->window;
    const int64_t channels = ((const job *)context)->d->channels;
    job j = *(const job *)context;

    memset((T *)j.to + first * w->n_in, 0, (size_t)((last - first) * w->n_in) * sizeof(T));
    for (j.first = first; j.first < last; j.first = j.last) {
        const int64_t group = j.first / channels;

        j.last = OT_MIN(last, (group + 1) * channels);
        FN(walk_rows)(&j, group * w->n_kernel, (group + 1) * w->n_kernel);
    }
}

void FN(ot__ref_deform_dx)(T *dx, const T *dcolumns, const T *offset, const T *mask,
                           const ot__deform *d)
{
    job j = {.to = dx,
             .dcolumns = dcolumns,
             .offset = offset,
             .mask = mask,
             .d = d,
             .at = FN(spread_columns)};
    const ot__window *w = &d->window;

    ot__parallel_for(d->groups * d->channels, OT_PAR_MIN / (w->n_kernel * w->n_out + 1) + 1,
                     FN(spread_deformed), &j);
}

// ---- gradients of offset and mask ----

// Sums of all channels for output position i: along each axis, and last without a slope.
static void FN(sum_slopes)(double sum[OT__WINDOW_AXES + 1], const job *j, const place *p,
                           const taps *t, int i)
{
    const ot__deform *d = j->d;
    const ot__window *w = &d->window;
    const T *x = (const T *)j->x + p->group * d->channels * w->n_in;
    const T *dy = (const T *)j->dcolumns + FN(columns_at)(d, p) + i;

    for (int a = 0; a <= OT__WINDOW_AXES; a++)
        sum[a] = 0;
    for (int64_t c = 0; c < d->channels; c++, x += w->n_in, dy += w->n_kernel * w->n_out) {
        for (int a = 0; a < d->n_axes; a++)
            sum[a] += (double)*dy * FN(deformed_sum)(x, t, t->slope[a], i);
        if (j->dmask != NULL)
            sum[OT__WINDOW_AXES] += (double)*dy * FN(deformed_sum)(x, t, t->weight, i);
    }
}

static void FN(fill_slopes)(const job *j, const place *p, const taps *t)
{
    const ot__deform *d = j->d;
    const ot__window *w = &d->window;
    const int64_t row = p->group * w->n_kernel + p->k;
    const T *mask = FN(mask_at)(j, p);

    for (int i = 0; i < p->n; i++) {
        double sum[OT__WINDOW_AXES + 1];

        FN(sum_slopes)(sum, j, p, t, i);
        for (int a = 0; j->to != NULL && a < d->n_axes; a++)
            ((T *)j->to)[(row * d->n_axes + a) * w->n_out + p->from + i] =
                (T)(sum[a] * (mask == NULL ? 1 : (double)mask[i]));
        if (j->dmask != NULL)
            ((T *)j->dmask)[row * w->n_out + p->from + i] = (T)sum[OT__WINDOW_AXES];
    }
}

void FN(ot__ref_deform_doffset)(T *doffset, T *dmask, const T *dcolumns, const T *x,
                                const T *offset, const T *mask, const ot__deform *d)
{
    job j = {.to = doffset,
             .dmask = dmask,
             .dcolumns = dcolumns,
             .x = x,
             .offset = offset,
             .mask = mask,
             .d = d,
             .at = FN(fill_slopes)};

    FN(for_rows)(&j);
}
