// SPDX-License-Identifier: Apache-2.0
// Which thread computes what of a linear attention.
#include <math.h>

#include "kernels/kernels.h"

typedef struct linear_job {
    const ot__linear_attentions *kernel;
    const ot__linear_attention *a;
    const ot__linear_attention_data *d;
    int64_t n_tasks, n_parts, part_bytes;
    char *scratch;
} linear_job;

int64_t ot__linear_attention_blocks(const ot__linear_attention *a)
{
    return (a->value_size + OT__LINEAR_COLUMNS - 1) / OT__LINEAR_COLUMNS;
}

// There are length / segment states of all blocks, and `segment` of one.
void ot__linear_attention_choose_segment(ot__linear_attention *a)
{
    const int64_t n_blocks = OT_MAX(ot__linear_attention_blocks(a), 1);

    a->segment = (int64_t)ceil(sqrt((double)a->length * (double)n_blocks));
    a->segment = OT_MAX(OT_MIN(a->segment, a->length), 1);
}

static void run_linear_blocks(void *context, int64_t first, int64_t last)
{
    const linear_job *j = context;
    const int64_t n_blocks = ot__linear_attention_blocks(j->a);

    for (int64_t part = first; part < last; part++)
        for (int64_t task = j->n_tasks * part / j->n_parts;
             task < j->n_tasks * (part + 1) / j->n_parts; task++) {
            const int64_t head = task / n_blocks;

            j->kernel->block(j->a, j->d, head / j->a->kv_heads, head % j->a->kv_heads,
                             task % n_blocks, j->scratch + part * j->part_bytes);
        }
}

static void run_linear_heads(void *context, int64_t first, int64_t last)
{
    const linear_job *j = context;

    for (int64_t part = first; part < last; part++)
        for (int64_t head = j->n_tasks * part / j->n_parts;
             head < j->n_tasks * (part + 1) / j->n_parts; head++)
            j->kernel->head_grad(j->a, j->d, head / j->a->kv_heads, head % j->a->kv_heads,
                                 j->scratch + part * j->part_bytes);
}

void ot__linear_attention_run(const ot__linear_attentions *kernel, const ot__linear_attention *a,
                              const ot__linear_attention_data *d, int64_t n_parts, char *scratch)
{
    linear_job j = {.kernel = kernel, .a = a, .d = d, .n_parts = n_parts, .scratch = scratch};

    j.n_tasks = a->batch * a->kv_heads * ot__linear_attention_blocks(a);
    j.part_bytes = kernel->block_bytes(a);
    ot__parallel_for(n_parts, 1, run_linear_blocks, &j);
}

void ot__linear_attention_grad_run(const ot__linear_attentions *kernel,
                                   const ot__linear_attention *a,
                                   const ot__linear_attention_data *d, int64_t n_parts,
                                   char *scratch)
{
    linear_job j = {.kernel = kernel, .a = a, .d = d, .n_parts = n_parts, .scratch = scratch};

    j.n_tasks = a->batch * a->kv_heads;
    j.part_bytes = kernel->head_grad_bytes(a);
    ot__parallel_for(n_parts, 1, run_linear_heads, &j);
}
