// SPDX-License-Identifier: Apache-2.0
// SHA-1 (FIPS 180-4), by which ONNX names the content of external data. It tells damage, and is no
// protection against forgery.
#include <string.h>

#include "base/base.h"

enum { BLOCK = 64, N_ROUNDS = 80 };

static uint32_t turn(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void sha1_mix(uint32_t h[5], const uint8_t *block)
{
    uint32_t w[N_ROUNDS], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < N_ROUNDS; i++)
        w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < N_ROUNDS; i++) {
        const uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999u
                           : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
                           : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                                    : (b ^ c ^ d) + 0xca62c1d6u;
        const uint32_t next = turn(a, 5) + f + e + w[i];

        e = d;
        d = c;
        c = turn(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void ot__sha1_text(const void *bytes, size_t n_bytes, char text[OT_SHA1_LENGTH + 1])
{
    uint32_t h[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    const uint8_t *at = bytes;
    const uint64_t n_bits = (uint64_t)n_bytes * 8;
    uint8_t end[2 * BLOCK] = {0};
    size_t n_end = n_bytes % BLOCK;

    for (size_t i = 0; i < n_bytes / BLOCK; i++)
        sha1_mix(h, at + i * BLOCK);
    if (n_end > 0)
        memcpy(end, at + (n_bytes - n_end), n_end);
    end[n_end] = 0x80;
    n_end = n_end + 9 > BLOCK ? 2 * BLOCK : BLOCK; // a bit, and the number of bits in eight bytes
    for (int i = 0; i < 8; i++)
        end[n_end - 8 + (size_t)i] = (uint8_t)(n_bits >> (56 - 8 * i));
    for (size_t i = 0; i < n_end; i += BLOCK)
        sha1_mix(h, end + i);
    for (int i = 0; i < 5; i++)
        snprintf(text + 8 * i, 9, "%08" PRIx32, h[i]);
}
