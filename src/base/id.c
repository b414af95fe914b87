// SPDX-License-Identifier: Apache-2.0
// Ids made from contents.
#include <string.h>

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
