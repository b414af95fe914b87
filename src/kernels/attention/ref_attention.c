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

// What the probability of key j in query i is multiplied by. `at` is that of key 0 in query 0.
static double dropout_factor(const ot__attention *a, const ot__attention_dropout *dropout,
                             int64_t at, int64_t i, int64_t j)
{
    uint8_t is_kept;

    if (dropout->ratio == 0)
        return 1;
    ot__dropout_draw(&is_kept, at + i * a->keys + j, 1, dropout->ratio, dropout->key);
    return is_kept ? 1 / (1 - dropout->ratio) : 0;
}

#define TEMPLATE "kernels/attention/ref_attention.tmpl.h"
#include "kernels/by_float.tmpl.h"
