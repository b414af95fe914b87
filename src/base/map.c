// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/base.h"

// Open addressing with linear probing; at most three quarters full; removal shifts back, so there
// are no tombstones.
struct ot__map_slot {
    const char *key; // NULL: empty
    uint64_t hash;
    void *value;
};

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

// SipHash-1-3 (Aumasson and Bernstein): names come from files, and those of a hostile one must not
// all meet in one place. The key is fixed, so that the order of iteration is the same in every run.
static uint64_t hash_of(const char *key)
{
    const size_t length = strlen(key);
    const uint64_t k0 = UINT64_C(0x243f6a8885a308d3), k1 = UINT64_C(0x13198a2e03707344);
    uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                     k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};

    for (size_t i = 0; i <= length; i += 8) { // the last word holds the length too
        size_t n = OT_MIN(length - i, (size_t)8);
        uint64_t word = n < 8 ? (uint64_t)length << 56 : 0;

        for (size_t k = 0; k < n; k++)
            word |= (uint64_t)(uint8_t)key[i + k] << 8 * k;
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct ot__map_slot *map_find(const ot__map *map, const char *key, uint64_t hash)
{
    size_t i = hash & (map->n_slots - 1);

    while (map->slots[i].key && (map->slots[i].hash != hash || strcmp(map->slots[i].key, key) != 0))
        i = (i + 1) & (map->n_slots - 1);
    return &map->slots[i];
}

void *ot__map_get(const ot__map *map, const char *key)
{
    return map->n_slots ? map_find(map, key, hash_of(key))->value : NULL;
}

static bool map_grow(ot__map *map)
{
    ot__map grown = {.n_slots = map->n_slots ? map->n_slots * 2 : 16, .count = map->count};

    grown.slots = ot__alloc_zero(grown.n_slots, sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].key)
            *map_find(&grown, map->slots[i].key, map->slots[i].hash) = map->slots[i];
    ot__free(map->slots);
    *map = grown;
    return true;
}

bool ot__map_put(ot__map *map, const char *key, void *value)
{
    uint64_t hash = hash_of(key);
    struct ot__map_slot *slot = map->n_slots ? map_find(map, key, hash) : NULL;

    if (!slot || !slot->key) {
        if (map->count + 1 > map->n_slots / 4 * 3) {
            if (!map_grow(map))
                return false;
            slot = map_find(map, key, hash);
        }
        slot->key = key;
        slot->hash = hash;
        map->count++;
    }
    slot->value = value;
    return true;
}

void *ot__map_remove(ot__map *map, const char *key)
{
    size_t mask = map->n_slots - 1, hole, i;
    struct ot__map_slot *slot;
    void *value;

    if (!map->n_slots)
        return NULL;
    slot = map_find(map, key, hash_of(key));
    if (!slot->key)
        return NULL;
    value = slot->value;
    hole = (size_t)(slot - map->slots);
    for (i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) { // its probe passes the hole
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct ot__map_slot){0};
    map->count--;
    return value;
}

void ot__map_deinit(ot__map *map)
{
    ot__free(map->slots);
    *map = (ot__map){0};
}

bool ot__map_next(const ot__map *map, size_t *position, const char **key, void **value)
{
    while (*position < map->n_slots) {
        const struct ot__map_slot *slot = &map->slots[(*position)++];
        if (slot->key) {
            *key = slot->key;
            *value = slot->value;
            return true;
        }
    }
    return false;
}

size_t ot__map_taken(const ot__map *map)
{
    return map->n_slots * sizeof *map->slots;
}
