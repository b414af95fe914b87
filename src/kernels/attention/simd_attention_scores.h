// SPDX-License-Identifier: Apache-2.0
// Part of simd_attention.c: what is done to a block of scores, a key a row and a query a lane.
#ifndef OT_KERNELS_SIMD_ATTENTION_SCORES_H
#define OT_KERNELS_SIMD_ATTENTION_SCORES_H

#include <float.h>
#include <math.h>

#include "kernels/attention/simd_attention_tiles.h"

// Keys key .. key + n_keys - 1 in rows, queries query .. query + n_queries - 1 in the lanes of one
// panel.
typedef struct score_block {
    float *scores;
    int64_t row; // floats from one key to the next
    int64_t query, n_queries, key, n_keys;
    int64_t n_early; // keys that not only queries in the later half of the lanes take part in
    const void *mask;
    int64_t mask_at; // of the head
    const ot__attention_dropout *dropout;
    int64_t drop_at; // draw of the head's first query and key
} score_block;

static int64_t early_keys(const ot__attention *a, int64_t query, int64_t key, int64_t n_keys)
{
    if (!a->is_causal)
        return n_keys;
    return OT_MAX(OT_MIN(query + LATE + a->causal_offset - key, n_keys), (int64_t)0);
}

// ---- masks ----

static void mask_scores(const ot__attention *a, const score_block *b)
{
    const int64_t at = b->mask_at + b->query * a->mask.position + b->key * a->mask.element;
    const float *added = (const float *)b->mask + at;
    const uint8_t *kept = (const uint8_t *)b->mask + at;

    if (a->mask_kind == OT__MASK_NONE)
        return;
    for (int64_t j = 0; j < b->n_keys; j++) {
        float *scores = b->scores + j * b->row;

        for (int64_t l = 0; l < b->n_queries; l++) {
            const int64_t m = l * a->mask.position + j * a->mask.element;

            if (a->mask_kind == OT__MASK_ADDED)
                scores[l] += added[m];
            else if (kept[m] == 0)
                scores[l] = a->fill;
        }
    }
}

// Gradients of scores that were replaced are 0.
static void unmask_gradients(const ot__attention *a, const score_block *b, float *ds)
{
    const uint8_t *kept = (const uint8_t *)b->mask + b->mask_at + b->query * a->mask.position +
                          b->key * a->mask.element;

    if (a->mask_kind != OT__MASK_KEPT)
        return;
    for (int64_t j = 0; j < b->n_keys; j++)
        for (int64_t l = 0; l < b->n_queries; l++)
            if (kept[l * a->mask.position + j * a->mask.element] == 0)
                ds[j * b->row + l] = 0;
}

// `value` where a key comes too late for a query.
static void causal_scores(const ot__attention *a, const score_block *b, float value)
{
    const int64_t first = b->key - a->causal_offset - b->query; // lane that has the first key
    float lanes[PANEL];

    if (!a->is_causal)
        return;
    for (int l = 0; l < PANEL; l++)
        lanes[l] = (float)l;
    for (int64_t j = OT_MAX(1 - first, (int64_t)0); j < b->n_keys; j++) {
        const ot__vector end = ot__vector_of((float)OT_MIN(first + j, (int64_t)PANEL));

        for (int lane = 0; lane < PANEL; lane += LANES) {
            const ot__vector_bits late = (ot__vector_bits)(ot__vector_load(lanes + lane) < end);
            float *scores = b->scores + j * b->row + lane;

            ot__vector_store(scores,
                             (ot__vector)(((ot__vector_bits)ot__vector_load(scores) & ~late) |
                                          ((ot__vector_bits)ot__vector_of(value) & late)));
        }
    }
}

// Lanes that no product was computed for.
static void clear_late(const score_block *b, float *scores)
{
    for (int64_t j = b->n_early; j < b->n_keys; j++)
        memset(scores + j * b->row, 0, LATE * sizeof *scores);
}

// ---- softmax ----

enum { EXPS = 4 }; // vectors at once

// Of n vectors, a constant where this is called: e^x for x up to 88; 0 below -87.7. 2^t, t = x *
// log2(e), as 2^n * 2^r, n the integer next to t. All of them step by step, because each step waits
// for the one before.
OT_SIMD_INLINE void block_exps(ot__vector *x, int n)
{
    // 2^r for r from -0.5 to 0.5, exact at 0: relative errors up to 9.2e-8.
    static const float terms[] = {1.3264727247e-3F, 9.6715126881e-3F, 5.5507337436e-2F,
                                  2.4022242085e-1F, 6.9314697760e-1F, 1.0F};
    static const float log2_e = 1.44269504F;
    const ot__vector round = ot__vector_of(12582912.0F + 127); // 1.5 * 2^23
    ot__vector t[EXPS], r[EXPS], p[EXPS];

    OT_SIMD_UNROLL
    for (int i = 0; i < n; i++)
        x[i] = ot__vector_max(ot__vector_of(-88.0F), x[i]);
    OT_SIMD_UNROLL
    for (int i = 0; i < n; i++)
        t[i] = x[i] * log2_e + round;
    OT_SIMD_UNROLL
    for (int i = 0; i < n; i++)
        r[i] = x[i] * log2_e - (t[i] - round);
    OT_SIMD_UNROLL
    for (int i = 0; i < n; i++)
        p[i] = ot__vector_of(terms[0]);
    OT_SIMD_UNROLL
    for (int term = 1; term < (int)OT_COUNT(terms); term++)
        OT_SIMD_UNROLL
    for (int i = 0; i < n; i++)
        p[i] = p[i] * r[i] + terms[term];
    // 2^n: n + 127 is in the low bits of t, and 0 gives 0.
    OT_SIMD_UNROLL
    for (int i = 0; i < n; i++)
        x[i] = p[i] * (ot__vector)((ot__vector_bits)t[i] << 23);
}

// A vector of each of n keys, n a constant where this is called: scores become e^(score - shift).
// The sum of them and of `sum`.
OT_SIMD_INLINE ot__vector exp_keys(float *scores, int64_t row, int n, ot__vector shift,
                                   ot__vector sum)
{
    ot__vector p[EXPS];

    OT_SIMD_UNROLL
    for (int i = 0; i < n; i++)
        p[i] = ot__vector_load(scores + i * row) - shift;
    block_exps(p, n);
    OT_SIMD_UNROLL
    for (int i = 0; i < n; i++) {
        ot__vector_store(scores + i * row, p[i]);
        sum += p[i];
    }
    return sum;
}

static ot__vector exp_scores(float *scores, int64_t row, int64_t n_keys, ot__vector shift)
{
    ot__vector sum = {0};
    int64_t j = 0;

    for (; j + EXPS <= n_keys; j += EXPS)
        sum = exp_keys(scores + j * row, row, EXPS, shift, sum);
    for (; j < n_keys; j++)
        sum = exp_keys(scores + j * row, row, 1, shift, sum);
    return sum;
}

// Of each lane, over the blocks so far: the largest score, and the sum of e^(score - largest).
typedef struct online {
    float largest[PANEL], sum[PANEL];
} online;

enum { MAXIMA = 8 }; // at once, because each waits for the one before

// The largest of n_keys scores of each lane, and of `before`.
static ot__vector largest_score(const float *scores, int64_t row, int64_t n_keys, ot__vector before)
{
    ot__vector largest[MAXIMA];
    int64_t j = 0;

    OT_SIMD_UNROLL
    for (int i = 0; i < MAXIMA; i++)
        largest[i] = before;
    for (; j + MAXIMA <= n_keys; j += MAXIMA)
        OT_SIMD_UNROLL
    for (int i = 0; i < MAXIMA; i++)
        largest[i] = ot__vector_max(ot__vector_load(scores + (j + i) * row), largest[i]);
    for (; j < n_keys; j++)
        largest[0] = ot__vector_max(ot__vector_load(scores + j * row), largest[0]);
    OT_SIMD_UNROLL
    for (int i = 1; i < MAXIMA; i++)
        largest[0] = ot__vector_max(largest[i], largest[0]);
    return largest[0];
}

// Scores become e^(score - largest). factor: what older results are multiplied by.
static void online_softmax(const score_block *b, online *state, float *factor)
{
    for (int lane = 0; lane < PANEL; lane += LANES) {
        const int64_t n_keys = lane < LATE ? b->n_early : b->n_keys;
        float *scores = b->scores + lane;
        const ot__vector before = ot__vector_load(state->largest + lane);
        const ot__vector largest = largest_score(scores, b->row, n_keys, before);
        ot__vector shift, sum, scale;

        shift = ot__vector_max(largest, ot__vector_of(-FLT_MAX)); // -infinity less itself is NaN
        sum = exp_scores(scores, b->row, n_keys, shift);
        scale = before - shift;
        block_exps(&scale, 1);
        ot__vector_store(state->largest + lane, largest);
        ot__vector_store(state->sum + lane, ot__vector_load(state->sum + lane) * scale + sum);
        ot__vector_store(factor + lane, scale);
    }
}

// Scores become e^(score - lse).
static void probabilities(const score_block *b, const float *lse)
{
    for (int lane = 0; lane < PANEL; lane += LANES)
        (void)exp_scores(b->scores + lane, b->row, lane < LATE ? b->n_early : b->n_keys,
                         ot__vector_load(lse + lane));
}

// ds: the gradient of the probabilities, which becomes that of the scores.
static void score_gradients(const score_block *b, float *ds, const float *delta)
{
    for (int lane = 0; lane < PANEL; lane += LANES) {
        const int64_t n_keys = lane < LATE ? b->n_early : b->n_keys;
        const ot__vector centre = ot__vector_load(delta + lane);

        for (int64_t j = 0; j < n_keys; j++) {
            float *to = ds + j * b->row + lane;

            ot__vector_store(to, ot__vector_load(b->scores + j * b->row + lane) *
                                     (ot__vector_load(to) - centre));
        }
    }
}

// ---- dropout ----

// Per key, a bit for each query of a panel.
typedef struct kept_keys {
    uint64_t queries[KEYS];
} kept_keys;

static void draw_kept(const ot__attention *a, const score_block *b, kept_keys *kept)
{
    uint8_t of_query[KEYS];

    if (b->dropout->ratio == 0)
        return;
    memset(kept, 0, sizeof *kept);
    for (int64_t l = 0; l < b->n_queries; l++) {
        ot__dropout_draw(of_query, b->drop_at + (b->query + l) * a->keys + b->key, b->n_keys,
                         b->dropout->ratio, b->dropout->key);
        for (int64_t j = 0; j < b->n_keys; j++)
            kept->queries[j] |= (uint64_t)of_query[j] << l;
    }
}

// x lies as the scores do.
static void drop_probabilities(const score_block *b, float *x, const kept_keys *kept)
{
    const float factor = (float)(1 / (1 - b->dropout->ratio));

    if (b->dropout->ratio == 0)
        return;
    for (int64_t j = 0; j < b->n_keys; j++)
        for (int l = 0; l < PANEL; l++)
            x[j * b->row + l] =
                (kept->queries[j] >> l & 1) != 0 ? x[j * b->row + l] * factor : 0.0F;
}

#endif
