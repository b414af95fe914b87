// SPDX-License-Identifier: Apache-2.0
// The loops of index_sums.c, compiled once per instruction set (OT_ISA).
#include "kernels/kernels.h"

#include "kernels/simd.h"

// What elements [from, to) of a line have of a run.
OT_SIMD_INLINE ot__index_run clip_run(const ot__index_run *r, int64_t from, int64_t to)
{
    const int64_t first = OT_MAX(from - r->to, (int64_t)0), last = OT_MIN(to - r->to, r->n);

    return (ot__index_run){r->to + first, r->from + first, last - first};
}

#define TEMPLATE "kernels/move/simd_index_sums.tmpl.h"
#include "kernels/by_float.tmpl.h"

const ot__index_sums OT_ISA_NAME(ot__index_sums) = {add_lines_f32, add_lines_f64};
