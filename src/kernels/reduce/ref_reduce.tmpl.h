// SPDX-License-Identifier: Apache-2.0
// One reduction of one element type, for ref_reduce.c: y[o] = FINISH(STEP(... STEP(START, x0) ...,
// xn)). T stored, ACC accumulated, LOAD and STORE between them.

static ACC OP(row_total)(const T *x, int64_t n)
{
    ACC lane[LANES], total = START;
    int64_t i = 0;

    for (int l = 0; l < LANES; l++)
        lane[l] = START;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            const ACC v = LOAD(x[i + l]);

            lane[l] = STEP(lane[l], v);
        }
    }
    for (; i < n; i++) {
        const ACC v = LOAD(x[i]);

        total = STEP(total, v);
    }
    for (int l = 0; l < LANES; l++)
        total = JOIN(total, lane[l]);
    return total;
}

// Outputs first .. last - 1, each over contiguous rows.
static void OP(rows)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__reduction *r = j->r;

    for (int64_t o = first; o < last; o++) {
        const T *x = (const T *)j->x + offset_of(o, r->kept_dim, r->kept_stride, r->n_kept);
        ACC total = START;

        for (int64_t s = 0; s < j->n_steps; s++) {
            const int64_t at = offset_of(s, r->reduced_dim, r->reduced_stride, j->n_outer);
            const ACC part = OP(row_total)(x + at, j->row);

            total = JOIN(total, part);
        }
        ((T *)j->y)[o] = STORE(FINISH(total));
    }
}

// Items first .. last - 1: blocks of neighbouring outputs, each down its column.
static void OP(columns)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__reduction *r = j->r;

    for (int64_t item = first; item < last; item++) {
        const int64_t outer = item / j->n_blocks, from = item % j->n_blocks * COLUMNS;
        const int64_t n = OT_MIN(COLUMNS, j->columns - from);
        const T *x =
            (const T *)j->x + from + offset_of(outer, r->kept_dim, r->kept_stride, r->n_kept - 1);
        T *y = (T *)j->y + outer * j->columns + from;
        ACC total[COLUMNS];

        for (int64_t c = 0; c < n; c++)
            total[c] = START;
        for (int64_t s = 0; s < j->n_steps; s++) {
            const T *xs = x + offset_of(s, r->reduced_dim, r->reduced_stride, j->n_outer);

            for (int64_t c = 0; c < n; c++) {
                const ACC v = LOAD(xs[c]);

                total[c] = STEP(total[c], v);
            }
        }
        for (int64_t c = 0; c < n; c++)
            y[c] = STORE(FINISH(total[c]));
    }
}

static void OP(reduce)(job *j)
{
    const int64_t n_items =
        j->is_row ? j->r->n_out : j->r->n_out / OT_MAX(j->columns, 1) * j->n_blocks;
    const int64_t per_item = j->r->n_each * (j->is_row ? 1 : OT_MIN(COLUMNS, j->columns)) + 1;

    ot__parallel_for(n_items, OT_PAR_MIN / per_item + 1, j->is_row ? OP(rows) : OP(columns), j);
}

#undef OP
#undef START
#undef STEP
#undef JOIN
#undef FINISH
