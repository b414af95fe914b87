// SPDX-License-Identifier: Apache-2.0
// One reduction for simd_reduce.c: y[o] = FINISH(JOIN(... JOIN(START, TERM(x0)) ..., TERM(xn))).
// VECTOR accumulates elements that LOAD reads, ACC is one lane of it; TERM_1 and JOIN_1 are TERM
// and JOIN of a lane.
#ifndef TERM
#define TERM(v) (v)
#define TERM_1(v) (v)
#endif
#ifndef FINISH
#define FINISH(a) (a)
#endif

enum { OP(lanes) = sizeof(VECTOR) / sizeof(ACC) };

OT_SIMD_INLINE ACC OP(row_total)(const float *x, int64_t n)
{
    enum { N = OP(lanes) };
    ACC total = START;
    int64_t i = 0;

    if (n >= N) {
        VECTOR a[CHAINS], v;

        OT_SIMD_UNROLL
        for (int l = 0; l < CHAINS; l++)
            a[l] = (VECTOR){0} + (ACC)START;
        for (; i + CHAINS * N <= n; i += CHAINS * N) {
            OT_SIMD_UNROLL
            for (int l = 0; l < CHAINS; l++) {
                v = LOAD(x + i + l * N);
                a[l] = JOIN(a[l], TERM(v));
            }
        }
        for (; i + N <= n; i += N) {
            v = LOAD(x + i);
            a[0] = JOIN(a[0], TERM(v));
        }
        OT_SIMD_UNROLL
        for (int l = 1; l < CHAINS; l++)
            a[0] = JOIN(a[0], a[l]);
        for (int l = 0; l < N; l++)
            total = JOIN_1(total, a[0][l]);
    }
    for (; i < n; i++) {
        const ACC v = (ACC)x[i];

        total = JOIN_1(total, TERM_1(v));
    }
    return total;
}

// An output in each lane: from x on, `apart` elements from the one before, or from `place` on.
OT_SIMD_INLINE VECTOR OP(each_total)(const float *x, int64_t apart, const float *const *place,
                                     const ot__reduction *r)
{
    enum { N = OP(lanes) };
    VECTOR a = (VECTOR){0} + (ACC)START;

    for (int64_t s = 0; s < r->n_steps; s++) {
        const int64_t at = ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer);

        for (int64_t i = at; i < at + r->row; i++) {
            VECTOR v;

            OT_SIMD_UNROLL
            for (int l = 0; l < N; l++)
                v[l] = (ACC)(place == NULL ? x[l * apart + i] : place[l][i]);
            a = JOIN(a, TERM(v));
        }
    }
    return a;
}

// Outputs first .. last - 1, each in a lane.
static void OP(outputs)(void *context, int64_t first, int64_t last)
{
    enum { N = OP(lanes) };
    const job *j = context;
    const ot__reduction *r = j->r;

    for (; first < last; first += N) {
        const int n = (int)OT_MIN((int64_t)N, last - first);
        const float *place[N];
        VECTOR a;

        if (r->n_kept == 1 && n == N) {
            a = OP(each_total)(j->x + first * r->kept_stride[0], r->kept_stride[0], NULL, r);
        } else {
            for (int l = 0; l < N; l++)
                place[l] = j->x + ot__reduction_offset(first + (l < n ? l : 0), r->kept_dim,
                                                       r->kept_stride, r->n_kept);
            a = OP(each_total)(NULL, 0, place, r);
        }
        for (int l = 0; l < n; l++)
            j->y[first + l] = (float)FINISH(a[l]);
    }
}

// Outputs first .. last - 1, each over contiguous rows.
static void OP(rows)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__reduction *r = j->r;

    for (int64_t o = first; o < last; o++) {
        const float *x = j->x + ot__reduction_offset(o, r->kept_dim, r->kept_stride, r->n_kept);
        ACC total = START;

        for (int64_t s = 0; s < r->n_steps; s++) {
            const int64_t at =
                ot__reduction_offset(s, r->reduced_dim, r->reduced_stride, r->n_outer);
            const ACC part = OP(row_total)(x + at, r->row);

            total = JOIN_1(total, part);
        }
        j->y[o] = (float)FINISH(total);
    }
}

// total[c] of n columns and STEPS elements of each; those at `next` are fetched meanwhile.
OT_SIMD_INLINE void OP(join_steps)(ACC *total, const float *const *x, const float *const *next,
                                   int64_t n, int n_steps)
{
    enum { N = OP(lanes) };
    int64_t c = 0;

    for (; c + N <= n; c += N) {
        VECTOR a = *(const VECTOR *)(const void *)(total + c);

        OT_SIMD_UNROLL
        for (int s = 0; s < n_steps; s++) {
            const VECTOR v = LOAD(x[s] + c);

            if (c % LINE == 0)
                __builtin_prefetch(next[s] + c);
            a = JOIN(a, TERM(v));
        }
        *(VECTOR *)(void *)(total + c) = a;
    }
    for (; c < n; c++)
        for (int s = 0; s < n_steps; s++) {
            const ACC v = (ACC)x[s][c];

            total[c] = JOIN_1(total[c], TERM_1(v));
        }
}

// Items first .. last - 1: blocks of neighbouring outputs, each down its column.
static void OP(columns)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__reduction *r = j->r;

    for (int64_t item = first; item < last; item++) {
        const column_block b = find_columns(j, item);
        ACC total[COLUMNS];
        const float *x[STEPS], *next[STEPS];

        for (int64_t c = 0; c < b.n; c++)
            total[c] = START;
        place_steps(next, r, b.x, 0);
        for (int64_t s = 0; s < r->n_steps; s += STEPS) {
            const int n_steps = (int)OT_MIN((int64_t)STEPS, r->n_steps - s);

            memcpy(x, next, sizeof x);
            place_steps(next, r, b.x, s + STEPS);
            if (n_steps == STEPS)
                OP(join_steps)(total, x, next, b.n, STEPS);
            else
                OP(join_steps)(total, x, next, b.n, n_steps);
        }
        for (int64_t c = 0; c < b.n; c++)
            b.y[c] = (float)FINISH(total[c]);
    }
}

static void OP(reduce)(float *y, const float *x, const ot__reduction *r)
{
    run_reduction(y, x, r, is_narrow(r, OP(lanes)) ? OP(outputs) : NULL, OP(rows), OP(columns));
}

#undef OP
#undef TERM
#undef TERM_1
#undef FINISH
