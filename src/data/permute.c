// SPDX-License-Identifier: Apache-2.0
// Rows in random order without a table: a Feistel network over the next power of four, walked until
// it falls below count. Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
#include "data/data.h"

enum { ROUNDS = 6 };

int64_t ot__permute(uint64_t seed, uint64_t epoch, int64_t count, int64_t position)
{
    const ot__rng_key key = ot__rng_key_make(seed, epoch, 0, "row order");
    int half = 1;
    uint64_t x = (uint64_t)position, mask;

    while (half < 31 && (UINT64_C(1) << (2 * half)) < (uint64_t)count)
        half++;
    mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint32_t words[4];
            uint64_t next;
            ot__rng_block(key, round << 32 | right, words);
            next = left ^ (words[0] & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= (uint64_t)count);
    return (int64_t)x;
}
