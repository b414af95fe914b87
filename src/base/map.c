#include <string.h>

#include "base/base.h"

// Open addressing with linear probing; at most three quarters full; removal shifts back, so there
// are no tombstones.
struct ot__map_slot {
    const char *key; // NULL: empty
    uint64_t hash;
    void *value;
};

// FNV-1a, then a finaliser that spreads the low bits.
static uint64_t hash_of(const char *key)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *key; key++)
        h = (h ^ (uint8_t)*key) * UINT64_C(0x100000001b3);
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    return h;
}

static struct ot__map_slot *find(const ot__map *map, const char *key, uint64_t hash)
{
    size_t i = hash & (map->n_slots - 1);

    while (map->slots[i].key && (map->slots[i].hash != hash || strcmp(map->slots[i].key, key) != 0))
        i = (i + 1) & (map->n_slots - 1);
    return &map->slots[i];
}

void *ot__map_get(const ot__map *map, const char *key)
{
    return map->n_slots ? find(map, key, hash_of(key))->value : NULL;
}

static bool grow(ot__map *map)
{
    ot__map grown = {.n_slots = map->n_slots ? map->n_slots * 2 : 16, .count = map->count};

    grown.slots = ot__alloc_zero(grown.n_slots, sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].key)
            *find(&grown, map->slots[i].key, map->slots[i].hash) = map->slots[i];
    ot__free(map->slots);
    *map = grown;
    return true;
}

bool ot__map_put(ot__map *map, const char *key, void *value)
{
    uint64_t hash = hash_of(key);
    struct ot__map_slot *slot;

    if ((map->count + 1) * 4 > map->n_slots * 3 && !grow(map))
        return false;
    slot = find(map, key, hash);
    if (!slot->key) {
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
    slot = find(map, key, hash_of(key));
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
