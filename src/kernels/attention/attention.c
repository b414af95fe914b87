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
//
// With AVX-512 they are read where they lie if they are in the second cache by then, and at most
// half of it, unless the rows of a tile fall on the same lines of the first. By bench kernels,
// Zen 4, heads of 64, forward / gradients, without and with fetching ahead:
//
//   batch heads queries  copied    fetched, copied  fetched, read where they lie
//   8 4 128              72 / 78   82 / 86          83 / 90
//   8 4 128 causal       53 / 59   62 / 72          69 / 72
//   8 4 256              80 / 88   86 / 94          88 / 95
//   8 4 256 causal       66 / 74   74 / 83          78 / 84
//   8 4 512              87 / 94   90 / 96          90 / 94
//   8 4 1024             91 / 98   88 / 95
//   2 16 128 (4 KiB)     73 / 82   82 / 88          80 / 85
enum { ALIGNMENT_FLOATS = 16, HEADS_PER_THREAD = 2, QUERIES_TO_PACK = 64 };

// Bytes of a head in all tensors.
static int64_t head_bytes(const ot__attention *a, bool is_gradient)
{
    return (a->queries + a->keys) * (a->head_size + a->value_size) * (int64_t)sizeof(float) *
           (is_gradient ? 2 : 1);
}

static bool clashes(const ot__heads *lies)
{
    return lies->position % OT__CLASH == 0;
}

static bool packs_keys(const ot__attention *a, bool reads_near)
{
    const bool lies_together = a->k.position == a->head_size && a->v.position == a->value_size;

    if (a->k.element != 1 || a->v.element != 1)
        return true;
    if (reads_near && !clashes(&a->k) && !clashes(&a->v))
        return false;
    return !lies_together && a->queries >= (int64_t)QUERIES_TO_PACK;
}

void ot__attention_plan_make(ot__attention_plan *plan, const ot__attentions *kernel,
                             const ot__attention *a, int n_threads, bool is_gradient)
{
    const int64_t n_heads = a->batch * a->heads, wanted = (int64_t)HEADS_PER_THREAD * n_threads;
    const int64_t n_blocks = (a->queries + kernel->queries - 1) / kernel->queries;
    const int64_t n_bytes = head_bytes(a, is_gradient);
    int64_t n_floats;

    *plan = (ot__attention_plan){.a = *a, .n_parts = 1};
    // Parts of a gradient compute the scores twice.
    if (n_threads > 1 && n_heads < (is_gradient ? n_threads : wanted))
        plan->n_parts = OT_MIN((wanted + n_heads - 1) / n_heads, n_blocks);
    plan->fetches_ahead = plan->n_parts == 1 && n_bytes <= ot__second_cache();
    plan->is_packed = packs_keys(a, kernel->reads_near && plan->fetches_ahead &&
                                        2 * n_bytes <= ot__second_cache());
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

// A part is followed by the next one.
static void run_attention_item(const attention_run *r, int64_t item, float *scratch)
{
    const ot__attention *a = &r->plan->a;
    const int64_t n_items = a->batch * a->heads * r->plan->n_parts;
    ot__attention_part queries =
        attention_part_of(r->plan, item % n_items, a->queries, r->kernel->queries);
    const ot__attention_part keys =
        attention_part_of(r->plan, item % n_items, a->keys, r->kernel->keys);

    queries.has_next = r->plan->n_parts == 1 && item + 1 < n_items;
    queries.next = (ot__attention_head){(item + 1) / a->heads, (item + 1) % a->heads};
    if (!r->is_gradient)
        r->kernel->forward(r->plan, r->data, &queries, scratch);
    else if (r->plan->n_parts == 1)
        r->kernel->gradients(r->plan, r->data, &queries, scratch);
    else if (item < n_items && (r->data->dk != NULL || r->data->dv != NULL))
        r->kernel->dkv(r->plan, r->data, &keys, scratch);
    else if (item >= n_items && r->data->dq != NULL)
        r->kernel->dq(r->plan, r->data, &queries, scratch);
}

// Heads that follow each other are one thread's: their rows lie side by side, and those of a batch
// are where the product that made them left them (8 4 128 64, two threads, Zen 4: 171 / 172
// GFLOP/s; in turns 143 / 134). Parts take different times.
static void run_items(const attention_run *r, float *scratch, int n_threads)
{
    const ot__attention_plan *plan = r->plan;
    const int64_t n_heads = plan->a.batch * plan->a.heads;
    const int64_t n_items = n_heads * plan->n_parts * (r->is_gradient && plan->n_parts > 1 ? 2 : 1);
    const size_t stride = plan->scratch_bytes / sizeof(float);
    const int n = (int)OT_MIN((int64_t)n_threads, n_items);

#ifdef _OPENMP
    if (n > 1 && plan->n_parts == 1) {
#pragma omp parallel for schedule(static) num_threads(n)
        for (int64_t item = 0; item < n_items; item++)
            run_attention_item(r, item, scratch + (size_t)omp_get_thread_num() * stride);
        return;
    }
    if (n > 1) {
#pragma omp parallel for schedule(dynamic) num_threads(n)
        for (int64_t item = 0; item < n_items; item++)
            run_attention_item(r, item, scratch + (size_t)omp_get_thread_num() * stride);
        return;
    }
#else
    (void)n;
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
