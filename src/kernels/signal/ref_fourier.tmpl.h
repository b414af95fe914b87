// SPDX-License-Identifier: Apache-2.0
// One element type of ref_fourier.c.

// Points that are not used are 0.
static void FN(load_lines)(ot__complex_lines to, const fourier_job *j, const line_group *g)
{
    const ot__fourier_side *from = &j->l->from;
    const int64_t lanes = OT__FOURIER_LANES;
    const size_t rest = (size_t)((j->f->n - from->used) * lanes) * sizeof(double);

    for (int64_t p = 0; p < from->used; p++) {
        const double count = point_count(from, p, j->f->n);
        const T *x = (const T *)j->x + p * from->point;

        for (int64_t i = 0; i < lanes; i++)
            to.re[p * lanes + i] = count * (double)x[g->from[i]];
        for (int64_t i = 0; i < lanes; i++)
            to.im[p * lanes + i] = from->parts == 2 ? count * (double)x[g->from[i] + 1] : 0;
    }
    memset(to.re + from->used * lanes, 0, rest);
    memset(to.im + from->used * lanes, 0, rest);
}

static void FN(store_lines)(const fourier_job *j, const line_group *g, ot__complex_lines from)
{
    const ot__fourier_side *to = &j->l->to;

    for (int64_t p = 0; p < to->points; p++) {
        const double scale = j->l->scale * point_count(to, p, j->f->n);
        const int64_t at = p * OT__FOURIER_LANES;
        const bool is_made = p < to->used;
        T *y = (T *)j->y + p * to->point;

        for (int64_t i = 0; i < g->n; i++) {
            y[g->to[i]] = is_made ? (T)(scale * from.re[at + i]) : 0;
            if (to->parts == 2)
                y[g->to[i] + 1] = is_made ? (T)(scale * from.im[at + i]) : 0;
        }
    }
}

static void FN(fourier_parts)(void *context, int64_t first, int64_t last)
{
    const fourier_job *j = context;
    const int64_t n_groups = (j->n_lines + OT__FOURIER_LANES - 1) / OT__FOURIER_LANES;
    const int64_t size = j->f->length * OT__FOURIER_LANES;

    for (int64_t part = first; part < last; part++) {
        double *at = j->scratch + part * 4 * size;
        const ot__complex_lines x = {at, at + size}, other = {at + 2 * size, at + 3 * size};

        for (int64_t k = n_groups * part / j->n_parts; k < n_groups * (part + 1) / j->n_parts;
             k++) {
            const line_group g = group_at(j, k * OT__FOURIER_LANES);
            ot__complex_lines y;

            FN(load_lines)(x, j, &g);
            if (j->l->is_inverse) {
                y = ot__fourier_run(j->f, (ot__complex_lines){x.im, x.re},
                                    (ot__complex_lines){other.im, other.re});
                y = (ot__complex_lines){y.im, y.re};
            } else {
                y = ot__fourier_run(j->f, x, other);
            }
            FN(store_lines)(j, &g, y);
        }
    }
}

void FN(ot__ref_fourier)(T *y, const T *x, const ot__fourier *f, const ot__fourier_lines *l,
                         int64_t n_parts, double *scratch)
{
    fourier_job j = {y, x, f, l, l->outer * l->inner, n_parts, scratch};

    ot__parallel_for(n_parts, 1, FN(fourier_parts), &j);
}
