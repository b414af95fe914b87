// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: softmax(scale * q k^T + mask) v of many heads, and its
// gradients. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_ATTENTION_H
#define OT_KERNELS_KERNELS_ATTENTION_H

#include "kernels/kernels_nn.h"

// Where heads lie in the tensor that holds them, in elements: an offset and the distances between
// batches, heads, positions, and the elements of a position (of the mask: keys).
typedef struct ot__heads {
    int64_t offset, batch, head, position, element;
} ot__heads;

typedef enum ot__attention_mask {
    OT__MASK_NONE,
    OT__MASK_ADDED, // to the scores
    OT__MASK_KEPT,  // of bool: where it is false the score is `fill`
} ot__attention_mask;

typedef struct ot__attention {
    int64_t batch, heads, queries, keys, head_size, value_size;
    ot__heads q, k, v, y, mask;
    ot__attention_mask mask_kind;
    float scale, fill;
    // Key j takes part in query i where j <= i + causal_offset; else all keys do.
    bool is_causal;
    int64_t causal_offset;
    bool has_zero_rows; // a query whose scores are all -infinity gives 0; else it gives NaN
} ot__attention;

// Probabilities that are dropped; the others are divided by 1 - ratio. Those of (batch, heads,
// queries, keys) are drawn in this order, again wherever they are needed.
typedef struct ot__attention_dropout {
    double ratio; // 0: none is
    ot__rng_key key;
} ot__attention_dropout;

// Tensors as the views lie in them; of the gradients q's, k's and v's. A gradient that is NULL is
// not wanted.
typedef struct ot__attention_data {
    const void *q, *k, *v, *mask;
    void *y, *lse; // lse (batch, heads, queries) is log(sum(exp(score))), NULL in forward: not kept
    const void *dy;
    void *dq, *dk, *dv;
    ot__attention_dropout dropout;
} ot__attention_data;

static inline int64_t ot__heads_at(const ot__heads *h, int64_t batch, int64_t head)
{
    return h->offset + batch * h->batch + head * h->head;
}

// ---- ref_attention.c: `row` holds as many doubles as the function beside it says ----

int64_t ot__ref_attention_row(const ot__attention *a);
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_attention_##suffix(const ot__attention *a, const ot__attention_data *d,           \
                                    double *row);                                                  \
    void ot__ref_attention_grad_##suffix(const ot__attention *a, const ot__attention_data *d,      \
                                         double *row);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- simd_attention.c, attention.c: f32, a block of scores at a time ----
//
// Scores are never kept: the gradient computes them again, and the probabilities from lse. No sum
// is shared between threads, and its order does not depend on their number.

typedef struct ot__attention_plan {
    ot__attention a;
    int64_t n_parts;    // of the queries (in the gradient also of the keys) of a head, for threads
    bool is_packed;     // k and v are copied first
    bool fetches_ahead; // what the next head reads, and what this one writes, while it is computed
    size_t scratch_bytes; // per thread
} ot__attention_plan;

typedef struct ot__attention_head {
    int64_t batch, head;
} ot__attention_head;

// Queries first .. last - 1 of one head, or keys; and the head that the thread computes next.
typedef struct ot__attention_part {
    int64_t batch, head, first, last;
    bool has_next;
    ot__attention_head next;
} ot__attention_part;

// One table per instruction set.
typedef struct ot__attentions {
    void (*forward)(const ot__attention_plan *plan, const ot__attention_data *d,
                    const ot__attention_part *part, float *scratch);
    // Gradients of those queries, of those keys and their values, or of the whole head.
    void (*dq)(const ot__attention_plan *plan, const ot__attention_data *d,
               const ot__attention_part *part, float *scratch);
    void (*dkv)(const ot__attention_plan *plan, const ot__attention_data *d,
                const ot__attention_part *part, float *scratch);
    void (*gradients)(const ot__attention_plan *plan, const ot__attention_data *d,
                      const ot__attention_part *part, float *scratch);
    int64_t queries, keys; // computed at once
    bool reads_near;       // keys and values where they lie, if they are fetched ahead
    // Floats of scratch.
    int64_t (*forward_floats)(const ot__attention_plan *plan);
    int64_t (*gradient_floats)(const ot__attention_plan *plan);
} ot__attentions;

// No size is 0. The plan of the gradients is another one.
void ot__attention_plan_make(ot__attention_plan *plan, const ot__attentions *kernel,
                             const ot__attention *a, int n_threads, bool is_gradient);
// `scratch` has plan->scratch_bytes for each thread.
void ot__attention_run(const ot__attention_plan *plan, const ot__attentions *kernel,
                       const ot__attention_data *data, float *scratch, int n_threads);
void ot__attention_grad_run(const ot__attention_plan *plan, const ot__attentions *kernel,
                            const ot__attention_data *data, float *scratch, int n_threads);

// ---- linear attention: ref_linear_attention.c, simd_linear_attention.c, linear_attention.c ----
//
// Each head of keys and values has a state (key_size, value_size), which goes from step to step:
// it decays, what it holds for the key is corrected or added to, and queries read it. Columns of
// the state do not depend on each other.

enum { OT__LINEAR_COLUMNS = 32 }; // of a state that are computed together

typedef struct ot__linear_attention {
    int64_t batch, length, q_heads, kv_heads, key_size, value_size;
    double scale;
    int64_t decay_size; // for each head: 1, or key_size; 0: there is no decay
    int64_t beta_heads; // kv_heads, or 1 for all of them; 0: nothing is corrected
    int64_t segment;    // steps whose states the gradient keeps at a time
} ot__linear_attention;

// query, key, value, decay, beta and y are (batch, length, heads * elements), states (batch,
// kv_heads, key_size, value_size). What is not there is NULL; a gradient that is NULL is not
// wanted. dbeta has all kv_heads.
typedef struct ot__linear_attention_data {
    const void *query, *key, *value, *past, *decay, *beta;
    void *y, *present;
    const void *dy, *dpresent;
    void *dquery, *dkey, *dvalue, *dpast, *ddecay, *dbeta;
} ot__linear_attention_data;

// Tables for f32 and f64, with sums in f64, and one per instruction set for f32.
typedef struct ot__linear_attentions {
    // OT__LINEAR_COLUMNS columns of a head, from number `block` of so many on, through all steps.
    void (*block)(const ot__linear_attention *a, const ot__linear_attention_data *d, int64_t batch,
                  int64_t head, int64_t block, void *scratch);
    // The gradients of a head of keys and values, and of the queries that read it.
    void (*head_grad)(const ot__linear_attention *a, const ot__linear_attention_data *d,
                      int64_t batch, int64_t head, void *scratch);
    // Scratch.
    int64_t (*block_bytes)(const ot__linear_attention *a);
    int64_t (*head_grad_bytes)(const ot__linear_attention *a);
} ot__linear_attentions;
extern const ot__linear_attentions ot__ref_linear_attentions_f32, ot__ref_linear_attentions_f64;

int64_t ot__linear_attention_blocks(const ot__linear_attention *a);
// Sets `segment`, so that states that are kept take least memory.
void ot__linear_attention_choose_segment(ot__linear_attention *a);
// `scratch` is for n_parts, which threads share.
void ot__linear_attention_run(const ot__linear_attentions *kernel, const ot__linear_attention *a,
                              const ot__linear_attention_data *d, int64_t n_parts, char *scratch);
void ot__linear_attention_grad_run(const ot__linear_attentions *kernel,
                                   const ot__linear_attention *a,
                                   const ot__linear_attention_data *d, int64_t n_parts,
                                   char *scratch);

#endif
