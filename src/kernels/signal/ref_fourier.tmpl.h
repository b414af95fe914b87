// SPDX-License-Identifier: Apache-2.0
// One element type of ref_fourier.c.

// ---- loading ----

// block (points, parts, LANES): the next points of the lines.
static void FN(read_block)(T *block, const fourier_job *j, const lane_places *places, int64_t first,
                           int64_t n)
{
    const ot__fourier_side *from = &j->l->from;
    const T *x = (const T *)j->x + first * from->point;
    const int parts = from->parts;

    if (places->are_even && from->point == parts) {
        ot__moves_best()->transpose[sizeof(T) == sizeof(float) ? OT__MOVE_4 : OT__MOVE_8](
            &(ot__move){.y = block,
                        .x = x + places->from[0],
                        .rows = n * parts,
                        .cols = LANES,
                        .y_row = LANES,
                        .y_col = 1,
                        .x_row = 1,
                        .x_col = places->from[1] - places->from[0]});
        return;
    }
    for (int64_t p = 0; p < n; p++)
        for (int part = 0; part < parts; part++)
            for (int64_t i = 0; i < LANES; i++)
                block[(p * parts + part) * LANES + i] = x[places->from[i] + p * from->point + part];
}

// Lines of complex numbers, or of real ones (im is NULL). Points that are not used are 0.
static void FN(load_lanes)(double *re, double *im, const fourier_job *j, const lane_places *places)
{
    const ot__fourier_side *from = &j->l->from;
    const T *window = j->l->is_windowed ? j->l->window : NULL;
    const int parts = im == NULL ? 1 : 2;
    const size_t rest = (size_t)((j->f->n - from->used) * LANES) * sizeof(double);
    T block[2 * POINTS * LANES];

    for (int64_t first = 0, n; first < from->used; first += n) {
        n = OT_MIN(from->used - first, (int64_t)POINTS);
        FN(read_block)(block, j, places, first, n);
        for (int64_t p = 0; p < n; p++) {
            const double weight = window == NULL ? 1 : (double)window[first + p];
            const double count = weight * point_count(from, first + p, j->f->n);
            const T *x = block + p * parts * LANES;
            const int64_t at = (first + p) * LANES;

            for (int64_t i = 0; i < LANES; i++)
                re[at + i] = count * (double)x[i];
            for (int64_t i = 0; im != NULL && i < LANES; i++)
                im[at + i] = count * (double)x[LANES + i];
        }
    }
    memset(re + from->used * LANES, 0, rest);
    if (im != NULL)
        memset(im + from->used * LANES, 0, rest);
}

static void FN(load_group)(ot__complex_lines x, ot__complex_lines other, const fourier_job *j,
                           const lane_places *places)
{
    if (j->l->from.parts == 1) {
        FN(load_lanes)(x.re, NULL, j, &places[0]);
        FN(load_lanes)(x.im, NULL, j, &places[1]);
        return;
    }
    FN(load_lanes)(x.re, x.im, j, &places[0]);
    if (!are_joined(j->l))
        return;
    FN(load_lanes)(other.re, other.im, j, &places[1]);
    ot__ref_fourier_join(x, other, j->f->n);
}

// ---- storing ----

static void FN(write_block)(const T *block, const fourier_job *j, const lane_places *places,
                            int64_t first, int64_t n)
{
    const ot__fourier_side *to = &j->l->to;
    T *y = (T *)j->y + first * to->point;
    const int parts = to->parts;

    if (places->are_even && to->point == parts) {
        ot__moves_best()->transpose[sizeof(T) == sizeof(float) ? OT__MOVE_4 : OT__MOVE_8](
            &(ot__move){.y = y + places->to[0],
                        .x = block,
                        .rows = LANES,
                        .cols = n * parts,
                        .y_row = places->to[1] - places->to[0],
                        .y_col = 1,
                        .x_row = 1,
                        .x_col = LANES});
        return;
    }
    for (int64_t i = 0; i < places->n; i++)
        for (int64_t p = 0; p < n; p++)
            for (int part = 0; part < parts; part++)
                y[places->to[i] + p * to->point + part] = block[(p * parts + part) * LANES + i];
}

// Lines of complex numbers, or of real ones (im is NULL). Points that are not made are 0.
static void FN(store_lanes)(const double *re, const double *im, const fourier_job *j,
                            const lane_places *places)
{
    const ot__fourier_side *to = &j->l->to;
    const int parts = im == NULL ? 1 : 2;
    T block[2 * POINTS * LANES];

    for (int64_t first = 0, n; first < to->points; first += n) {
        n = OT_MIN(to->points - first, (int64_t)POINTS);
        for (int64_t p = 0; p < n; p++) {
            const bool is_made = first + p < to->used;
            const double count = point_count(to, first + p, j->f->n);
            const double scale = is_made ? j->l->scale * count : 0;
            const int64_t at = is_made ? (first + p) * LANES : 0;
            T *y = block + p * parts * LANES;

            for (int64_t i = 0; i < LANES; i++)
                y[i] = is_made ? (T)(scale * re[at + i]) : 0;
            for (int64_t i = 0; im != NULL && i < LANES; i++)
                y[LANES + i] = is_made ? (T)(scale * im[at + i]) : 0;
        }
        FN(write_block)(block, j, places, first, n);
    }
}

static void FN(store_group)(ot__complex_lines y, ot__complex_lines other, const fourier_job *j,
                            const lane_places *places)
{
    const bool has_parts = j->l->to.parts == 2;

    if (j->l->from.parts == 2) {
        FN(store_lanes)(y.re, has_parts ? y.im : NULL, j, &places[0]);
        if (!has_parts)
            FN(store_lanes)(y.im, NULL, j, &places[1]);
        return;
    }
    ot__ref_fourier_part(y, other, j->f->n);
    FN(store_lanes)(y.re, has_parts ? y.im : NULL, j, &places[0]);
    FN(store_lanes)(other.re, has_parts ? other.im : NULL, j, &places[1]);
}

static void FN(fourier_parts)(void *context, int64_t first, int64_t last)
{
    const fourier_job *j = context;
    const int64_t step = lines_of_group(j->l), n_groups = (j->n_lines + step - 1) / step;
    const int64_t size = j->f->length * LANES;

    for (int64_t part = first; part < last; part++) {
        double *at = j->scratch + part * 4 * size;
        const ot__complex_lines x = {at, at + size}, other = {at + 2 * size, at + 3 * size};

        for (int64_t k = n_groups * part / j->n_parts; k < n_groups * (part + 1) / j->n_parts;
             k++) {
            const lane_places places[] = {places_at(j, k * step), places_at(j, k * step + LANES)};
            ot__complex_lines y;

            FN(load_group)(x, other, j, places);
            if (j->l->is_inverse) {
                y = ot__ref_fourier_points(j->f, (ot__complex_lines){x.im, x.re},
                                           (ot__complex_lines){other.im, other.re});
                y = (ot__complex_lines){y.im, y.re};
            } else {
                y = ot__ref_fourier_points(j->f, x, other);
            }
            FN(store_group)(y, y.re == x.re || y.re == x.im ? other : x, j, places);
        }
    }
}

void FN(ot__ref_fourier)(T *y, const T *x, const ot__fourier *f, const ot__fourier_lines *l,
                         int64_t n_parts, double *scratch)
{
    fourier_job j = {y, x, f, l, l->outer * l->inner, n_parts, scratch};

    ot__parallel_for(n_parts, 1, FN(fourier_parts), &j);
}
