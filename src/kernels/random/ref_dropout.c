// SPDX-License-Identifier: Apache-2.0
// Dropout: a mask drawn element by element from a counter-based generator, so that any part can be
// drawn alone.
#include "kernels/kernels.h"

enum { WORDS = 4, DRAWS = 1024 }; // of the generator per index; at once

void ot__dropout_draw(uint8_t *mask, int64_t first, int64_t count, double ratio, ot__rng_key key)
{
    const double limit = ratio * 0x1p32; // a word w is kept when w / 2^32 >= ratio
    uint32_t words[WORDS];

    for (int64_t i = first; i < first + count; i++) {
        if (i == first || i % WORDS == 0)
            ot__rng_block(key, (uint64_t)(i / WORDS), words);
        mask[i - first] = (double)words[i % WORDS] >= limit;
    }
}

void ot__ref_dropout_mask(uint8_t *mask, int64_t count, double ratio, ot__rng_key key)
{
#pragma omp parallel for schedule(static) if (count > OT_PAR_MIN)
    for (int64_t block = 0; block < (count + DRAWS - 1) / DRAWS; block++)
        ot__dropout_draw(mask + block * DRAWS, block * DRAWS,
                         OT_MIN(count - block * DRAWS, (int64_t)DRAWS), ratio, key);
}

#define TEMPLATE "kernels/random/ref_dropout.tmpl.h"
#include "kernels/by_float.tmpl.h"
