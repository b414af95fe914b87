// SPDX-License-Identifier: Apache-2.0
// Attention row by row, as the formula says it. The oracle of simd_attention.c.
#include <math.h>

#include "kernels/kernels.h"

int64_t ot__ref_attention_row(const ot__attention *a)
{
    return 2 * OT_MAX(a->keys, a->queries);
}

static bool takes_part(const ot__attention *a, int64_t i, int64_t j)
{
    return !a->is_causal || j - i <= a->causal_offset;
}

#define TEMPLATE "kernels/attention/ref_attention.tmpl.h"
#include "kernels/by_float.tmpl.h"
