// SPDX-License-Identifier: Apache-2.0
// Ids made from contents.
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

uint64_t ot__id_mix_word(uint64_t id, uint64_t word)
{
    id = (id ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return id ^ id >> 29;
}

uint64_t ot__id_mix(uint64_t id, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    uint64_t word;

    id = ot__id_mix_word(id, n_bytes);
    for (; n_bytes >= sizeof(word); at += sizeof(word), n_bytes -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        id = ot__id_mix_word(id, word);
    }
    word = 0;
    if (n_bytes > 0)
        memcpy(&word, at, n_bytes);
    return ot__id_mix_word(id, word);
}

void ot__id_text(uint64_t id, char text[OT_HEX_ID_LENGTH + 1])
{
    snprintf(text, OT_HEX_ID_LENGTH + 1, "%0*" PRIx64, OT_HEX_ID_LENGTH, id);
}

bool ot__is_hex_id(const char *text)
{
    return strspn(text, "0123456789abcdef") >= OT_HEX_ID_LENGTH;
}

uint64_t ot__id_fresh(void)
{
    static _Atomic uint64_t n_made;
    struct timespec now;
    ot__rng_key key;
    uint32_t words[4];

    clock_gettime(CLOCK_REALTIME, &now);
    key = ot__rng_key_make((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(), "");
    ot__rng_block(key, atomic_fetch_add(&n_made, 1), words);
    return (uint64_t)words[0] << 32 | words[1];
}
