// SPDX-License-Identifier: Apache-2.0
// The product in f32 by its plan: who computes what.
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/kernels.h"

// Part number i of n of the range 0 .. count - 1, in whole tiles.
static void cut_tiles(int64_t count, int64_t tile, int64_t i, int64_t n, int64_t *first,
                      int64_t *end)
{
    const int64_t n_tiles = (count + tile - 1) / tile;

    *first = OT_MIN(n_tiles * i / n * tile, count);
    *end = OT_MIN(n_tiles * (i + 1) / n * tile, count);
}

static void run_item(const ot__gemm_kernel *kernel, const ot__gemm_plan *plan,
                     const ot__gemm_batches *batches, int64_t item, float *scratch)
{
    const int64_t n_parts = (int64_t)plan->n_row_parts * plan->n_col_parts;
    const int64_t i = item % n_parts;
    ot__gemm_part part;
    ot__gemm_data data;

    batches->at(batches->context, item / n_parts, &data);
    cut_tiles(plan->g.m, plan->row_cut, i / plan->n_col_parts, plan->n_row_parts, &part.row,
              &part.row_end);
    cut_tiles(plan->g.n, plan->col_cut, i % plan->n_col_parts, plan->n_col_parts, &part.column,
              &part.column_end);
    kernel->run(plan, &data, &part, scratch);
}

void ot__gemm_run(const ot__gemm_kernel *kernel, const ot__gemm_plan *plan,
                  const ot__gemm_batches *batches, float *scratch, int n_threads)
{
    const int64_t n_items = batches->n_batches * plan->n_row_parts * plan->n_col_parts;
    const size_t stride = plan->scratch_bytes / sizeof(float);

#ifdef _OPENMP
    if (n_items > 1 && n_threads > 1) {
#pragma omp parallel for schedule(static) num_threads((int)OT_MIN((int64_t)n_threads, n_items))
        for (int64_t item = 0; item < n_items; item++)
            run_item(kernel, plan, batches, item, scratch + (size_t)omp_get_thread_num() * stride);
        return;
    }
#else
    (void)n_threads;
    (void)stride;
#endif
    for (int64_t item = 0; item < n_items; item++)
        run_item(kernel, plan, batches, item, scratch);
}
