// SPDX-License-Identifier: Apache-2.0
// Dropout: a mask drawn element by element from a counter-based generator, so that any part can be
// drawn alone.
#include "kernels/kernels.h"

enum { WORDS = 4 }; // of the generator per index

void ot__ref_dropout_mask(uint8_t *mask, int64_t count, double ratio, ot__rng_key key)
{
    // A word w is kept when w / 2^32 >= ratio.
    const double limit = ratio * 0x1p32;

#pragma omp parallel for schedule(static) if (count > OT_PAR_MIN)
    for (int64_t block = 0; block < (count + WORDS - 1) / WORDS; block++) {
        uint32_t words[WORDS];

        ot__rng_block(key, (uint64_t)block, words);
        for (int64_t i = block * WORDS; i < OT_MIN(block * WORDS + WORDS, count); i++)
            mask[i] = (double)words[i - block * WORDS] >= limit;
    }
}

#define TEMPLATE "kernels/random/ref_dropout.tmpl.h"
#include "kernels/by_float.tmpl.h"
