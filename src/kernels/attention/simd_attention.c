// SPDX-License-Identifier: Apache-2.0
// Attention in f32, compiled once per instruction set (OT_ISA).
//
// The scores of a block of keys and a panel of queries stand with a key a row and a query a lane.
// So what belongs to a query (the largest score so far, the sum of exponentials, lse, delta) is a
// lane of a vector, and the block is what the next product reads, as it lies: V^T * P and K^T * dS
// have it on the right, P * dY and dS * Q on the left.
#include <math.h>

#include "kernels/attention/simd_attention_scores.h"
#include "kernels/attention/simd_attention_tiles.h"

// ---- what both directions read of a head ----

// Keys and values of a head, row by row.
typedef struct rows {
    const float *k, *v;
    int64_t k_row, v_row;
} rows;

static rows read_rows(const ot__attention_plan *plan, const ot__attention_data *d,
                      const ot__attention_part *part, float *scratch)
{
    const ot__attention *a = &plan->a;
    const float *k = (const float *)d->k + ot__heads_at(&a->k, part->batch, part->head);
    const float *v = (const float *)d->v + ot__heads_at(&a->v, part->batch, part->head);
    const int64_t k_row = pitch_of(a->head_size), v_row = pitch_of(a->value_size);
    float *k_copy = scratch, *v_copy = scratch + a->keys * k_row;

    if (!plan->is_packed)
        return (rows){k, v, a->k.position, a->v.position};
    copy_positions(k_copy, k_row, k, &a->k, a->keys, a->head_size, 1);
    copy_positions(v_copy, v_row, v, &a->v, a->keys, a->value_size, 1);
    return (rows){k_copy, v_copy, k_row, v_row};
}

static int64_t rows_floats(const ot__attention_plan *plan)
{
    const ot__attention *a = &plan->a;

    return plan->is_packed ? a->keys * (pitch_of(a->head_size) + pitch_of(a->value_size)) : 0;
}

// Keys that take part in any of the queries up to `last`.
static int64_t keys_of(const ot__attention *a, int64_t last)
{
    if (!a->is_causal)
        return a->keys;
    return OT_MAX(OT_MIN(last + a->causal_offset + 1, a->keys), (int64_t)0);
}

static int64_t first_draw(const ot__attention *a, int64_t batch, int64_t head)
{
    return (batch * a->heads + head) * a->queries * a->keys;
}

// Tiles, about: blocks of scores are n times read or written by products.
enum { FORWARD_PRODUCTS = 2, GRADIENT_PRODUCTS = 5 };

static int64_t tiles_of(const ot__attention *a, int64_t n)
{
    const int64_t n_blocks =
        (a->queries + PANEL - 1) / PANEL * ((a->keys + KEYS - 1) / KEYS) / (a->is_causal ? 2 : 1);

    return OT_MAX(n_blocks, (int64_t)1) * n * n_tiles_of(KEYS);
}

// What both directions read of the next head.
static void add_next_head(ahead *x, const ot__attention *a, const ot__attention_data *d,
                          const ot__attention_head *next)
{
    add_ahead(x, d->q, &a->q, next, a->queries, a->head_size);
    add_ahead(x, d->v, &a->v, next, a->keys, a->value_size);
    add_ahead(x, d->k, &a->k, next, a->keys, a->head_size);
}

// ---- forward ----

typedef struct forward_scratch {
    float *q, *scores, *y, *copy, *rows; // panels: q (head_size), scores (KEYS), y (value_size)
    ahead *ahead;
} forward_scratch;

static int64_t widest(const ot__attention *a)
{
    return OT_MAX(pitch_of(a->head_size), pitch_of(a->value_size));
}

static int64_t forward_floats(const ot__attention_plan *plan)
{
    const ot__attention *a = &plan->a;

    return PANEL * (a->head_size + KEYS + a->value_size + widest(a)) + rows_floats(plan);
}

static forward_scratch forward_scratch_of(const ot__attention *a, float *scratch)
{
    forward_scratch s = {.q = scratch};

    s.scores = s.q + PANEL * a->head_size;
    s.y = s.scores + PANEL * KEYS;
    s.copy = s.y + PANEL * a->value_size;
    s.rows = s.copy + PANEL * widest(a);
    return s;
}

// n_keys keys from `key` on. state: of each lane.
static void attend_block(const ot__attention *a, const rows *r, const forward_scratch *s,
                         const score_block *block, online *state)
{
    float factor[PANEL];
    kept_keys kept;

    multiply_rows(&(product){.y = s->scores,
                             .y_row = PANEL,
                             .a = r->k + block->key * r->k_row,
                             .a_row = r->k_row,
                             .b = s->q,
                             .b_k = PANEL,
                             .rows = block->n_keys,
                             .n_early = block->n_early,
                             .depth = a->head_size,
                             .ahead = s->ahead});
    mask_scores(a, block);
    causal_scores(a, block, -INFINITY);
    online_softmax(block, state, factor);
    draw_kept(a, block, &kept);
    drop_probabilities(block, s->scores, &kept);
    multiply_columns(&(product){.y = s->y,
                                .y_row = PANEL,
                                .factor = factor,
                                .a = r->v + block->key * r->v_row,
                                .a_k = r->v_row,
                                .b = s->scores,
                                .b_k = PANEL,
                                .rows = a->value_size,
                                .depth = block->n_keys,
                                .n_early = block->n_early,
                                .ahead = s->ahead},
                     block->key == 0 ? TILE_SET : TILE_SCALE_ADD);
}

static void finish_panel(const ot__attention *a, const forward_scratch *s, const online *state,
                         float *y, float *lse, int64_t n)
{
    float inverse[PANEL];

    for (int l = 0; l < PANEL; l++)
        inverse[l] = state->sum[l] == 0 ? (a->has_zero_rows ? 0 : NAN) : 1 / state->sum[l];
    for (int64_t e = 0; e < a->value_size; e++)
        for (int l = 0; l < PANEL; l++)
            s->y[e * PANEL + l] *= inverse[l];
    store_panel(y, &a->y, s->y, s->copy, n, a->value_size, 1);
    if (lse == NULL)
        return;
    OT_SIMD_LOOP
    for (int l = 0; l < PANEL; l++)
        inverse[l] = state->largest[l] + ot__vlog(state->sum[l]);
    memcpy(lse, inverse, (size_t)n * sizeof *lse);
}

static void attend_panel(const ot__attention_plan *plan, const ot__attention_data *d,
                         const ot__attention_part *part, const rows *r, const forward_scratch *s,
                         int64_t query, int64_t n)
{
    const ot__attention *a = &plan->a;
    const int64_t keys = keys_of(a, query + n - 1);
    const int64_t y_at = ot__heads_at(&a->y, part->batch, part->head) + query * a->y.position;
    const int64_t lse_at = (part->batch * a->heads + part->head) * a->queries + query;
    online state;

    for (int l = 0; l < PANEL; l++) {
        state.largest[l] = -INFINITY;
        state.sum[l] = 0;
    }
    read_panel(s->q, s->copy,
               (const float *)d->q + ot__heads_at(&a->q, part->batch, part->head) +
                   query * a->q.position,
               &a->q, n, a->head_size, a->scale);
    if (keys == 0)
        memset(s->y, 0, (size_t)(PANEL * a->value_size) * sizeof *s->y);
    for (int64_t key = 0; key < keys; key += KEYS) {
        const int64_t n_keys = OT_MIN(keys - key, (int64_t)KEYS);
        const score_block block = {.scores = s->scores,
                                   .row = PANEL,
                                   .query = query,
                                   .n_queries = n,
                                   .key = key,
                                   .n_keys = n_keys,
                                   .n_early = early_keys(a, query, key, n_keys),
                                   .mask = d->mask,
                                   .mask_at = ot__heads_at(&a->mask, part->batch, part->head),
                                   .dropout = &d->dropout,
                                   .drop_at = first_draw(a, part->batch, part->head)};

        attend_block(a, r, s, &block, &state);
    }
    finish_panel(a, s, &state, (float *)d->y + y_at,
                 d->lse == NULL ? NULL : (float *)d->lse + lse_at, n);
}

static void forward_ahead(ahead *x, const ot__attention_plan *plan, const ot__attention_data *d,
                          const ot__attention_part *part)
{
    const ot__attention *a = &plan->a;
    const ot__attention_head head = {part->batch, part->head};

    if (!plan->fetches_ahead)
        return;
    if (part->has_next)
        add_next_head(x, a, d, &part->next);
    add_ahead(x, d->y, &a->y, &head, a->queries, a->value_size);
    pace_ahead(x, tiles_of(a, FORWARD_PRODUCTS));
}

static void run_forward(const ot__attention_plan *plan, const ot__attention_data *d,
                        const ot__attention_part *part, float *scratch)
{
    forward_scratch s = forward_scratch_of(&plan->a, scratch);
    const rows r = read_rows(plan, d, part, s.rows);
    ahead x = {.n_tensors = 0};

    forward_ahead(&x, plan, d, part);
    s.ahead = &x;
    for (int64_t i = part->first; i < part->last; i += PANEL)
        attend_panel(plan, d, part, &r, &s, i, OT_MIN(part->last - i, (int64_t)PANEL));
}

#include "kernels/attention/simd_attention_grad.h"

const ot__attentions OT_ISA_NAME(ot__attentions) = {
    .forward = run_forward,
    .dq = run_dq,
    .dkv = run_dkv,
    .gradients = run_gradients,
    .queries = QUERIES,
    .keys = KEYS,
    .reads_near = OT_ISA_LEVEL == 2,
    .forward_floats = forward_floats,
    .gradient_floats = gradient_floats,
};
