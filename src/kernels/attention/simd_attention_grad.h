// SPDX-License-Identifier: Apache-2.0
// Part of simd_attention.c: the gradients. With P = exp(scores - lse), delta = sum(dY * Y) of a
// query, and dS = P * (D * dY V^T - delta) * scale, where D is what dropout multiplies by:
//
//     dV = (D * P)^T dY,  dK = dS^T Q,  dQ = dS K
#ifndef OT_KERNELS_SIMD_ATTENTION_GRAD_H
#define OT_KERNELS_SIMD_ATTENTION_GRAD_H

#include "kernels/attention/simd_attention_scores.h"

// Panels are those of a block of QUERIES queries: q, dq (head_size) and dy (value_size).
typedef struct grad_scratch {
    float *q_panel, *dy_panel, *dq_panel;
    float *q, *dy;      // its rows; q is scaled
    float *scores, *ds; // (KEYS, QUERIES)
    float *dk, *dv;     // of all keys of the part
    float *lse, *delta; // QUERIES
    float *rows;
    ahead *ahead;
} grad_scratch;

// What is computed of a head.
typedef struct grad_job {
    const ot__attention *a;
    const ot__attention_data *d;
    int64_t batch, head, query, query_end, key, key_end;
    bool dq, dk, dv;
    int64_t q_pitch, v_pitch;
    rows rows;
    grad_scratch s;
} grad_job;

static int64_t panels_floats(int64_t size)
{
    return QUERIES * size;
}

static int64_t gradient_floats(const ot__attention_plan *plan)
{
    const ot__attention *a = &plan->a;
    const int64_t q_pitch = pitch_of(a->head_size), v_pitch = pitch_of(a->value_size);

    return 2 * panels_floats(a->head_size) + panels_floats(a->value_size) +
           QUERIES * (q_pitch + v_pitch) + 2 * KEYS * QUERIES + a->keys * (q_pitch + v_pitch) +
           2 * QUERIES + rows_floats(plan);
}

static grad_scratch grad_scratch_of(const ot__attention *a, float *scratch)
{
    const int64_t q_pitch = pitch_of(a->head_size), v_pitch = pitch_of(a->value_size);
    grad_scratch s = {.q_panel = scratch};

    s.dy_panel = s.q_panel + panels_floats(a->head_size);
    s.dq_panel = s.dy_panel + panels_floats(a->value_size);
    s.q = s.dq_panel + panels_floats(a->head_size);
    s.dy = s.q + QUERIES * q_pitch;
    s.scores = s.dy + QUERIES * v_pitch;
    s.ds = s.scores + KEYS * QUERIES;
    s.lse = s.ds + KEYS * QUERIES;
    s.delta = s.lse + QUERIES;
    s.dk = s.delta + QUERIES;
    s.dv = s.dk + a->keys * q_pitch;
    s.rows = s.dv + a->keys * v_pitch;
    return s;
}

// ---- a block of queries ----

// n rows, also as panels with zeros in the lanes behind them.
static void read_block(float *panels, float *copy, const float *from, const ot__heads *lies,
                       int64_t n, int64_t size, float factor)
{
    const int64_t pitch = pitch_of(size), whole = (n + PANEL - 1) / PANEL * PANEL;

    copy_positions(copy, pitch, from, lies, n, size, factor);
    memset(copy + n * pitch, 0, (size_t)((whole - n) * pitch) * sizeof *copy);
    for (int64_t i = 0; i < whole; i += PANEL)
        ot__transpose_floats(&OT_ISA_NAME(ot__moves), panels + i * size, PANEL, copy + i * pitch,
                             pitch, size, PANEL);
}

static void read_statistics(const grad_job *j, int64_t query, int64_t n)
{
    const ot__attention *a = j->a;
    const float *y =
        (const float *)j->d->y + ot__heads_at(&a->y, j->batch, j->head) + query * a->y.position;
    const float *lse =
        (const float *)j->d->lse + (j->batch * a->heads + j->head) * a->queries + query;

    for (int64_t i = 0; i < QUERIES; i++)
        j->s.delta[i] = j->s.lse[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *dy = j->s.dy + i * j->v_pitch, *yi = y + i * a->y.position;
        float lanes[LANES] = {0}, sum = 0;
        int64_t e = 0;

        fetch_row(yi, &a->y, a->value_size, false);
        for (; a->y.element == 1 && e + LANES <= a->value_size; e += LANES)
            for (int l = 0; l < LANES; l++)
                lanes[l] += dy[e + l] * yi[e + l];
        for (; e < a->value_size; e++)
            sum += dy[e] * yi[e * a->y.element];
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++)
                lanes[l] += lanes[l + half];
        sum += lanes[0];
        j->s.delta[i] = sum;
        // Where nothing took part, e^(score - infinity) is 0.
        j->s.lse[i] = a->has_zero_rows && lse[i] == -INFINITY ? INFINITY : lse[i];
    }
}

static void read_queries(const grad_job *j, int64_t query, int64_t n)
{
    const ot__attention *a = j->a;
    const float *q =
        (const float *)j->d->q + ot__heads_at(&a->q, j->batch, j->head) + query * a->q.position;
    const float *dy =
        (const float *)j->d->dy + ot__heads_at(&a->y, j->batch, j->head) + query * a->y.position;

    read_block(j->s.q_panel, j->s.q, q, &a->q, n, a->head_size, a->scale);
    read_block(j->s.dy_panel, j->s.dy, dy, &a->y, n, a->value_size, 1);
    read_statistics(j, query, n);
    if (j->dq && keys_of(a, query + n - 1) == 0)
        memset(j->s.dq_panel, 0, (size_t)panels_floats(a->head_size) * sizeof *j->s.dq_panel);
}

static void write_dq(const grad_job *j, int64_t query, int64_t n)
{
    const ot__attention *a = j->a;
    float *dq = (float *)j->d->dq + ot__heads_at(&a->q, j->batch, j->head);

    for (int64_t i = 0; i < n; i += PANEL)
        store_panel(dq + (query + i) * a->q.position, &a->q, j->s.dq_panel + i * a->head_size,
                    j->s.q, OT_MIN(n - i, (int64_t)PANEL), a->head_size, a->scale);
}

// ---- a block of scores ----

// dS of one panel, and its part of dQ.
static void panel_score_gradients(const grad_job *j, const score_block *b, int64_t lane,
                                  const kept_keys *kept)
{
    const ot__attention *a = j->a;
    float *ds = j->s.ds + lane;

    multiply_rows(&(product){.y = ds,
                             .y_row = QUERIES,
                             .a = j->rows.v + b->key * j->rows.v_row,
                             .a_row = j->rows.v_row,
                             .b = j->s.dy_panel + lane * a->value_size,
                             .b_k = PANEL,
                             .rows = b->n_keys,
                             .n_early = b->n_early,
                             .depth = a->value_size,
                             .ahead = j->s.ahead});
    drop_probabilities(b, ds, kept);
    score_gradients(b, ds, j->s.delta + lane);
    clear_late(b, ds);
    unmask_gradients(a, b, ds);
    if (j->dq)
        multiply_columns(&(product){.y = j->s.dq_panel + lane * a->head_size,
                                    .y_row = PANEL,
                                    .a = j->rows.k + b->key * j->rows.k_row,
                                    .a_k = j->rows.k_row,
                                    .b = ds,
                                    .b_k = QUERIES,
                                    .rows = a->head_size,
                                    .depth = b->n_keys,
                                    .n_early = b->n_early,
                                    .ahead = j->s.ahead},
                         b->key == 0 ? TILE_SET : TILE_ADD);
}

// One panel of the block: P, dS, and its part of dQ. Keys behind those that take part in it get
// zeros.
static void panel_gradients(const grad_job *j, const score_block *whole, int64_t lane)
{
    const ot__attention *a = j->a;
    const float *k = j->rows.k + whole->key * j->rows.k_row;
    float *ds = j->s.ds + lane;
    score_block b = *whole;
    kept_keys kept;

    b.scores = whole->scores + lane;
    b.query = whole->query + lane;
    b.n_queries = OT_MIN(whole->n_queries - lane, (int64_t)PANEL);
    b.n_keys =
        OT_MAX(OT_MIN(keys_of(a, b.query + b.n_queries - 1) - b.key, whole->n_keys), (int64_t)0);
    b.n_early = early_keys(a, b.query, b.key, b.n_keys);
    for (int64_t i = b.n_keys; i < whole->n_keys; i++)
        for (int l = 0; l < PANEL; l++)
            b.scores[i * QUERIES + l] = ds[i * QUERIES + l] = 0;
    multiply_rows(&(product){.y = b.scores,
                             .y_row = QUERIES,
                             .a = k,
                             .a_row = j->rows.k_row,
                             .b = j->s.q_panel + lane * a->head_size,
                             .b_k = PANEL,
                             .rows = b.n_keys,
                             .n_early = b.n_early,
                             .depth = a->head_size,
                             .ahead = j->s.ahead});
    mask_scores(a, &b);
    probabilities(&b, j->s.lse + lane);
    causal_scores(a, &b, 0);
    draw_kept(a, &b, &kept);
    if (j->dq || j->dk)
        panel_score_gradients(j, &b, lane, &kept);
    drop_probabilities(&b, b.scores, &kept);
}

// to (keys, size) += scores (keys, queries) * x (queries, size); causal: by tiles of rows, each
// from the first query on that its keys take part in.
static void add_over_queries(const grad_job *j, const score_block *b, float *to,
                             const float *scores, const float *x, int64_t pitch, int64_t size)
{
    const int64_t whole = (size + LANES - 1) / LANES * LANES;
    const int64_t n = j->a->is_causal ? n_tiles_of(b->n_keys) : 1;

    for (int64_t t = 0; t < n; t++) {
        const int64_t row = b->n_keys * t / n, end = b->n_keys * (t + 1) / n;
        const int64_t late = j->a->is_causal ? b->key + row - j->a->causal_offset - b->query : 0;
        const int64_t first = OT_MIN(OT_MAX(late, (int64_t)0), b->n_queries);

        multiply_scores(&(product){.y = to,
                                   .y_row = pitch,
                                   .a = scores + first,
                                   .b = x + first * pitch,
                                   .b_k = pitch,
                                   .depth = b->n_queries - first,
                                   .ahead = j->s.ahead},
                        row, end, whole);
    }
}

static void block_gradients(const grad_job *j, int64_t query, int64_t n)
{
    const int64_t key_end = OT_MIN(keys_of(j->a, query + n - 1), j->key_end);

    for (int64_t key = j->key; key < key_end; key += KEYS) {
        const score_block b = {.scores = j->s.scores,
                               .row = QUERIES,
                               .query = query,
                               .n_queries = n,
                               .key = key,
                               .n_keys = OT_MIN(key_end - key, (int64_t)KEYS),
                               .mask = j->d->mask,
                               .mask_at = ot__heads_at(&j->a->mask, j->batch, j->head),
                               .dropout = &j->d->dropout,
                               .drop_at = first_draw(j->a, j->batch, j->head)};

        for (int64_t lane = 0; lane < n; lane += PANEL)
            panel_gradients(j, &b, lane);
        if (j->dv)
            add_over_queries(j, &b, j->s.dv + (key - j->key) * j->v_pitch, b.scores, j->s.dy,
                             j->v_pitch, j->a->value_size);
        if (j->dk)
            add_over_queries(j, &b, j->s.dk + (key - j->key) * j->q_pitch, j->s.ds, j->s.q,
                             j->q_pitch, j->a->head_size);
    }
}

// ---- a part of a head ----

static void gradient_ahead(ahead *x, const ot__attention_plan *plan, const ot__attention_data *d,
                           const ot__attention_part *part)
{
    const ot__attention *a = &plan->a;
    const ot__attention_head *next = &part->next, head = {part->batch, part->head};

    if (!plan->fetches_ahead)
        return;
    if (part->has_next) {
        add_ahead(x, d->y, &a->y, next, a->queries, a->value_size);
        add_ahead(x, d->dy, &a->y, next, a->queries, a->value_size);
        add_next_head(x, a, d, next);
    }
    add_ahead(x, d->dv, &a->v, &head, a->keys, a->value_size);
    add_ahead(x, d->dk, &a->k, &head, a->keys, a->head_size);
    add_ahead(x, d->dq, &a->q, &head, a->queries, a->head_size);
    pace_ahead(x, tiles_of(a, GRADIENT_PRODUCTS));
}

static void run_grad_job(const ot__attention_plan *plan, grad_job *j,
                         const ot__attention_part *part, float *scratch)
{
    const ot__attention *a = &plan->a;
    const int64_t n_keys = j->key_end - j->key;
    ahead x = {.n_tensors = 0};

    j->a = a;
    j->batch = part->batch;
    j->head = part->head;
    j->q_pitch = pitch_of(a->head_size);
    j->v_pitch = pitch_of(a->value_size);
    j->s = grad_scratch_of(a, scratch);
    j->rows = read_rows(plan, j->d, part, j->s.rows);
    gradient_ahead(&x, plan, j->d, part);
    j->s.ahead = &x;
    if (j->dk)
        memset(j->s.dk, 0, (size_t)(n_keys * j->q_pitch) * sizeof *j->s.dk);
    if (j->dv)
        memset(j->s.dv, 0, (size_t)(n_keys * j->v_pitch) * sizeof *j->s.dv);
    for (int64_t query = j->query; query < j->query_end; query += QUERIES) {
        const int64_t n = OT_MIN(j->query_end - query, (int64_t)QUERIES);

        read_queries(j, query, n);
        block_gradients(j, query, n);
        if (j->dq)
            write_dq(j, query, n);
    }
    if (j->dk)
        store_positions((float *)j->d->dk + ot__heads_at(&a->k, j->batch, j->head) +
                            j->key * a->k.position,
                        &a->k, j->s.dk, j->q_pitch, n_keys, a->head_size, 1);
    if (j->dv)
        store_positions((float *)j->d->dv + ot__heads_at(&a->v, j->batch, j->head) +
                            j->key * a->v.position,
                        &a->v, j->s.dv, j->v_pitch, n_keys, a->value_size, 1);
    j->s.ahead = NULL; // x ends here
}

static void run_dq(const ot__attention_plan *plan, const ot__attention_data *d,
                   const ot__attention_part *part, float *scratch)
{
    grad_job j = {
        .d = d, .query = part->first, .query_end = part->last, .key_end = plan->a.keys, .dq = true};

    run_grad_job(plan, &j, part, scratch);
}

static void run_dkv(const ot__attention_plan *plan, const ot__attention_data *d,
                    const ot__attention_part *part, float *scratch)
{
    grad_job j = {.d = d,
                  .query_end = plan->a.queries,
                  .key = part->first,
                  .key_end = part->last,
                  .dk = d->dk != NULL,
                  .dv = d->dv != NULL};

    run_grad_job(plan, &j, part, scratch);
}

static void run_gradients(const ot__attention_plan *plan, const ot__attention_data *d,
                          const ot__attention_part *part, float *scratch)
{
    grad_job j = {.d = d,
                  .query_end = plan->a.queries,
                  .key_end = plan->a.keys,
                  .dq = d->dq != NULL,
                  .dk = d->dk != NULL,
                  .dv = d->dv != NULL};

    run_grad_job(plan, &j, part, scratch);
}

#endif
