// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include <math.h>

#include "base/base.h"

static uint64_t rng_mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ (h >> 32);
}

ot__rng_key ot__rng_key_make(uint64_t seed, uint64_t counter, uint64_t rank, const char *name)
{
    uint64_t stream = rng_mix(rng_mix(UINT64_C(0x6f6e6e7874726169), counter), rank);

    for (; *name; name++)
        stream = rng_mix(stream, (uint8_t)*name);
    return (ot__rng_key){.seed = rng_mix(UINT64_C(0x5eed), seed), .stream = stream};
}

static void philox(const uint32_t key_words[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key_words[0], k1 = key_words[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void ot__rng_block(ot__rng_key key, uint64_t index, uint32_t out[4])
{
    const uint32_t key_words[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)key.stream,
                                 (uint32_t)(key.stream >> 32)};

    philox(key_words, counter, out);
}

static double unit(uint32_t high, uint32_t low)
{
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;

    return (double)bits * 0x1p-53;
}

double ot__rng_uniform(ot__rng_key key, uint64_t index)
{
    uint32_t words[4];

    ot__rng_block(key, index, words);
    return unit(words[0], words[1]);
}

double ot__rng_normal(ot__rng_key key, uint64_t index)
{
    const double two_pi = 6.283185307179586476925;
    uint32_t words[4];

    ot__rng_block(key, index, words);
    return sqrt(-2.0 * log(1.0 - unit(words[0], words[1]))) *
           cos(two_pi * unit(words[2], words[3]));
}
