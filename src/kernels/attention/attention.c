// SPDX-License-Identifier: Apache-2.0
// Attention for the processor at hand: who computes what.
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/kernels.h"

// QUERIES_TO_PACK: with so many it pays to copy keys and values whose rows lie apart. Where their
// distance is a multiple of a large power of two, as that of heads in a tensor of all, they push
// each other out of the cache. On Zen 3 with one thread, 8 x 4 heads of 64 (and 8 x 8 of 32) in one
// tensor (tokens, batch, q and k and v), both in turns, GFLOP/s forward / gradients:
//
//   queries  read where they lie   copied          queries  read where they lie   copied
//   128      56 / 69               64 / 71         1024     52 / 71               67 / 78
//   512      58 / 75               70 / 79         64 (32)  39 / 53               49 / 59
enum { ALIGNMENT_FLOATS = 16, HEADS_PER_THREAD = 2, QUERIES_TO_PACK = 64 };

static bool packs_keys(const ot__attention *a)
{
    const bool lies_together = a->k.position == a->head_size && a->v.position == a->value_size;

    if (a->k.element != 1 || a->v.element != 1)
        return true;
    return !lies_together && a->queries >= (int64_t)QUERIES_TO_PACK;
}

void ot__attention_plan_make(ot__attention_plan *plan, const ot__attentions *kernel,
                             const ot__attention *a, int n_threads, bool is_gradient)
{
    const int64_t n_heads = a->batch * a->heads, wanted = (int64_t)HEADS_PER_THREAD * n_threads;
    const int64_t n_blocks = (a->queries + kernel->queries - 1) / kernel->queries;
    int64_t n_floats;

    *plan = (ot__attention_plan){.a = *a, .n_parts = 1, .is_packed = packs_keys(a)};
    // Parts of a gradient compute the scores twice.
    if (n_threads > 1 && n_heads < (is_gradient ? n_threads : wanted))
        plan->n_parts = OT_MIN((wanted + n_heads - 1) / n_heads, n_blocks);
    n_floats = is_gradient ? kernel->gradient_floats(plan) : kernel->forward_floats(plan);
    plan->scratch_bytes =
        (size_t)((n_floats + ALIGNMENT_FLOATS - 1) / ALIGNMENT_FLOATS * ALIGNMENT_FLOATS) *
        sizeof(float);
}

typedef struct attention_run {
    const ot__attention_plan *plan;
    const ot__attentions *kernel;
    const ot__attention_data *data;
    bool is_gradient;
} attention_run;

// Whole blocks, so that every sum has the same terms in the same order however many parts there
// are.
static ot__attention_part attention_part_of(const ot__attention_plan *plan, int64_t item,
                                            int64_t count, int64_t block)
{
    const int64_t n = plan->n_parts, i = item % n, head = item / n;
    const int64_t n_blocks = (count + block - 1) / block;

    return (ot__attention_part){.batch = head / plan->a.heads,
                                .head = head % plan->a.heads,
                                .first = OT_MIN(n_blocks * i / n * block, count),
                                .last = OT_MIN(n_blocks * (i + 1) / n * block, count)};
}

static void run_attention_item(const attention_run *r, int64_t item, float *scratch)
{
    const ot__attention *a = &r->plan->a;
    const int64_t n_items = a->batch * a->heads * r->plan->n_parts;
    const ot__attention_part queries =
        attention_part_of(r->plan, item % n_items, a->queries, r->kernel->queries);
    const ot__attention_part keys =
        attention_part_of(r->plan, item % n_items, a->keys, r->kernel->keys);

    if (!r->is_gradient)
        r->kernel->forward(r->plan, r->data, &queries, scratch);
    else if (r->plan->n_parts == 1)
        r->kernel->gradients(r->plan, r->data, &queries, scratch);
    else if (item < n_items && (r->data->dk != NULL || r->data->dv != NULL))
        r->kernel->dkv(r->plan, r->data, &keys, scratch);
    else if (item >= n_items && r->data->dq != NULL)
        r->kernel->dq(r->plan, r->data, &queries, scratch);
}

static void run_items(const attention_run *r, float *scratch, int n_threads)
{
    const ot__attention_plan *plan = r->plan;
    const int64_t n_items = plan->a.batch * plan->a.heads * plan->n_parts *
                            (r->is_gradient && plan->n_parts > 1 ? 2 : 1);
    const size_t stride = plan->scratch_bytes / sizeof(float);

#ifdef _OPENMP
    if (n_items > 1 && n_threads > 1) {
#pragma omp parallel for schedule(dynamic) num_threads((int)OT_MIN((int64_t)n_threads, n_items))
        for (int64_t item = 0; item < n_items; item++)
            run_attention_item(r, item, scratch + (size_t)omp_get_thread_num() * stride);
        return;
    }
#else
    (void)n_threads;
    (void)stride;
#endif
    for (int64_t item = 0; item < n_items; item++)
        run_attention_item(r, item, scratch);
}

void ot__attention_run(const ot__attention_plan *plan, const ot__attentions *kernel,
                       const ot__attention_data *data, float *scratch, int n_threads)
{
    run_items(&(attention_run){plan, kernel, data, false}, scratch, n_threads);
}

void ot__attention_grad_run(const ot__attention_plan *plan, const ot__attentions *kernel,
                            const ot__attention_data *data, float *scratch, int n_threads)
{
    run_items(&(attention_run){plan, kernel, data, true}, scratch, n_threads);
}
