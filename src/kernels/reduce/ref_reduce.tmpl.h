// SPDX-License-Identifier: Apache-2.0
// One reduction of one element type, for ref_reduce.c: y[o] = FINISH(JOIN(... JOIN(START,
// TERM(x0)) ..., TERM(xn))), a sum but for what is defined. T stored, ACC accumulated, LOAD between
// them, STORE to OUT. WIDEN: the narrower type that T holds, of which LOAD reads lines in f32.
#ifndef START
#define START 0
#endif
#ifndef TERM
#define TERM(v) (v)
#endif
#ifndef JOIN
#define JOIN(a, b) ((a) + (b))
#endif
#ifndef FINISH
#define FINISH(a) (a)
#endif

static ACC OP(row_total)(const reduce_job *j, const T *x, int64_t n)
{
    ACC lane[LANES], total = START;
    int64_t i = 0;

    for (int l = 0; l < LANES; l++)
        lane[l] = START;
#ifdef WIDEN
    float line[COLUMNS];

    while (i + LANES <= n) {
        const int64_t m = OT_MIN((int64_t)COLUMNS, (n - i) / LANES * LANES);

        j->widen(line, x + i, m);
        for (int64_t k = 0; k < m; k += LANES)
            for (int l = 0; l < LANES; l++) {
                const ACC term = TERM(LOAD(line[k + l]));

                lane[l] = JOIN(lane[l], term);
            }
        i += m;
    }
    j->widen(line, x + i, n - i);
    for (int64_t k = 0; k < n - i; k++) {
        const ACC term = TERM(LOAD(line[k]));

        total = JOIN(total, term);
    }
#else
    (void)j;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            const ACC term = TERM(LOAD(x[i + l]));

            lane[l] = JOIN(lane[l], term);
        }
    }
    for (; i < n; i++) {
        const ACC term = TERM(LOAD(x[i]));

        total = JOIN(total, term);
    }
#endif
    for (int l = 0; l < LANES; l++)
        total = JOIN(total, lane[l]);
    return total;
}

// Outputs first .. last - 1, each over contiguous rows.
static void OP(rows)(void *context, int64_t first, int64_t last)
{
    const reduce_job *j = context;
    const ot__reduction *r = j->r;

    for (int64_t o = first; o < last; o++) {
        const T *x =
            (const T *)j->x + ot__reduction_offset(o, r->kept_dim, r->kept_stride, r->n_kept);
        ACC total = START;

        for (int64_t s = 0; s < r->n_steps; s++) {
            const int64_t at =
                ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer);
            const ACC part = OP(row_total)(j, x + at, r->row);

            total = JOIN(total, part);
        }
        ((OUT *)j->y)[o] = STORE(FINISH(total));
    }
}

// Items first .. last - 1: blocks of neighbouring outputs, each down its column.
static void OP(columns)(void *context, int64_t first, int64_t last)
{
    const reduce_job *j = context;
    const ot__reduction *r = j->r;

    for (int64_t item = first; item < last; item++) {
        const int64_t outer = item / r->n_blocks, from = item % r->n_blocks * COLUMNS;
        const int64_t n = OT_MIN(COLUMNS, r->columns - from);
        const T *x = (const T *)j->x + from +
                     ot__reduction_offset(outer, r->kept_dim, r->kept_stride, r->n_kept - 1);
        OUT *y = (OUT *)j->y + outer * r->columns + from;
        ACC total[COLUMNS];

        for (int64_t c = 0; c < n; c++)
            total[c] = START;
        for (int64_t s = 0; s < r->n_steps; s++) {
            const T *xs =
                x + ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer);
#ifdef WIDEN
            float line[COLUMNS];

            j->widen(line, xs, n);
#else
            const T *line = xs;
#endif

            for (int64_t c = 0; c < n; c++) {
                const ACC term = TERM(LOAD(line[c]));

                total[c] = JOIN(total[c], term);
            }
        }
        for (int64_t c = 0; c < n; c++)
            y[c] = STORE(FINISH(total[c]));
    }
}

void OP(ot__ref_reduce)(void *y, const void *x, const ot__reduction *r)
{
    reduce_job j = {.y = y, .x = x, .r = r};
    const int64_t n_items = r->is_row ? r->n_out : r->n_out / OT_MAX(r->columns, 1) * r->n_blocks;
    const int64_t per_item = r->n_each * (r->is_row ? 1 : OT_MIN(COLUMNS, r->columns)) + 1;

#ifdef WIDEN
    j.widen = ot__floats_best()->widen[WIDEN];
#endif
    ot__parallel_for(n_items, OT_PAR_MIN / per_item + 1, r->is_row ? OP(rows) : OP(columns), &j);
}

#undef OP
#undef START
#undef TERM
#undef JOIN
#undef FINISH
