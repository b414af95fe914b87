// SPDX-License-Identifier: Apache-2.0
// What the plans of products by tiles and of those of few rows or columns share.
#ifndef OT_KERNELS_GEMM_PLAN_H
#define OT_KERNELS_GEMM_PLAN_H

#include "kernels/kernels.h"

enum { OT__LINE_FLOATS = 16, OT__MOST_VECTORS_OF_DOTS = 2 };

// Elements that no cache of most processors keeps.
static const double OT__UNCACHED = 0x1p22;

static inline int64_t ot__whole_tiles(int64_t extent, int64_t tile)
{
    return (extent + tile - 1) / tile * tile;
}

static inline int64_t ot__whole_lines(int64_t n_floats)
{
    return ot__whole_tiles(n_floats, OT__LINE_FLOATS);
}

// Floats that the second cache holds.
static inline int64_t ot__second_cache_floats(void)
{
    return ot__second_cache() / (int64_t)sizeof(float);
}

// Vectors of a line of the cache, on Intel: what was measured with AVX-512 there alone.
static inline bool ot__is_avx512_on_intel(const ot__gemm_kernel *kernel)
{
    return kernel->lanes == OT__LINE_FLOATS && ot__is_intel();
}

// Results are rounded, or what is added to them is widened.
static inline bool ot__gemm_is_staged(const ot__gemm *g)
{
    return ot__dtype_is_narrow(g->y_type) || ot__dtype_is_narrow(g->c_type);
}

// Anything is of 16 bits.
static inline bool ot__gemm_has_narrow(const ot__gemm *g)
{
    return ot__dtype_is_narrow(g->a_type) || ot__dtype_is_narrow(g->b_type) ||
           ot__gemm_is_staged(g);
}

// Where lanes go along k or rows of b pass by: all of the plan but the parts of y. Else false.
bool ot__gemm_plan_few(ot__gemm_plan *plan, const ot__gemm_kernel *kernel);

// Where b is read in slices: is_sliced, and how deep they are. Else false.
bool ot__gemm_plan_slices(ot__gemm_plan *plan, const ot__gemm_kernel *kernel);
// What of b is read where it lies, copied and fetched, of a plan that has its depth and says what
// is copied of `a`.
void ot__gemm_plan_reading_b(ot__gemm_plan *plan, const ot__gemm_kernel *kernel);

#endif
