// SPDX-License-Identifier: Apache-2.0
// Elements stored in files beside the model.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "onnx/onnx.h"

static bool has_parent_step(const char *location)
{
    for (const char *at = location; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
    }
    return false;
}

static ot_status open_file(ot_model *model, const char *location, const ot__file_map **out)
{
    ot__file_map map = {0};

    *out = ot__model_find_map(model, location);
    if (*out)
        return OT_OK;
    if (!model->folder)
        return ot__error(OT_ERR_FORMAT,
                         "external data file '%s' of a model that was not read from a directory",
                         location);
    if (!*location || *location == '/' || has_parent_step(location))
        return ot__error(OT_ERR_FORMAT, "external data file '%s' leaves the model's directory",
                         location);
    OT_TRY(ot__external_open(&map, model->folder, location));
    OT_TRY(ot__model_hold_map(model, location, &map));
    *out = ot__model_find_map(model, location);
    return OT_OK;
}

// ---- the whole file ----

// Digits of the first checksum of a file are kept with it: all tensors in it state the same.
static ot_status check_sum(ot__external *all, const ot__file_map *map, const ot__stored *s)
{
    char found[OT_SHA1_LENGTH + 1];
    int i = 0;

    if (!s->checksum)
        return OT_OK;
    while (i < all->n_sums && all->sums[i].map != map)
        i++;
    if (i == all->n_sums) {
        OT_TRY(ot__made(ot__arena_grow(all->arena, &all->sums, &all->sums_capacity, all->n_sums,
                                       sizeof *all->sums)));
        ot__sha1_text(map->data, map->size, found);
        all->sums[i].map = map;
        memcpy(all->sums[i].text, found, sizeof found);
        all->n_sums++;
    }
    if (strcasecmp(all->sums[i].text, s->checksum) == 0)
        return OT_OK;
    return ot__error(OT_ERR_FORMAT,
                     "the checksum (SHA-1) of external data file '%s' is %s, expected %s",
                     s->location, all->sums[i].text, s->checksum);
}

// ---- ranges ----

static int by_place(const void *left, const void *right)
{
    const ot__stored_range *a = left, *b = right;
    const uintptr_t x = (uintptr_t)a->first, y = (uintptr_t)b->first;

    return x != y ? (x > y) - (x < y) : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

ot_status ot__external_finish(ot__external *all)
{
    if (all->n_ranges > 0)
        qsort(all->ranges, (size_t)all->n_ranges, sizeof *all->ranges, by_place);
    for (int i = 1; i < all->n_ranges; i++) {
        const ot__stored_range *a = &all->ranges[i - 1], *b = &all->ranges[i];
        const bool is_same = a->first == b->first && a->n_bytes == b->n_bytes;

        if (!is_same && (size_t)(b->first - a->first) < a->n_bytes)
            return ot__error(OT_ERR_FORMAT,
                             "external data file '%s': %zu bytes from byte %" PRId64
                             " on and %zu from byte %" PRId64 " overlap",
                             b->location, a->n_bytes, a->offset, b->n_bytes, b->offset);
    }
    return OT_OK;
}

static ot_status note_range(ot__external *all, const ot__stored *s, const uint8_t *first,
                            size_t n_bytes)
{
    if (n_bytes == 0)
        return OT_OK;
    OT_TRY(ot__made(ot__arena_grow(all->arena, &all->ranges, &all->ranges_capacity, all->n_ranges,
                                   sizeof *all->ranges)));
    all->ranges[all->n_ranges] =
        (ot__stored_range){first, n_bytes, ot__arena_strdup(all->arena, s->location), s->offset};
    return ot__made(all->ranges[all->n_ranges++].location);
}

ot_status ot__external_read(ot_model *model, ot__external *all, const ot__stored *s,
                            size_t expected, const void **data)
{
    const ot__file_map *map;

    *data = NULL;
    if (s->offset < 0)
        return ot__error(OT_ERR_FORMAT, "external data starts at byte %" PRId64, s->offset);
    if (s->length >= 0 && (uint64_t)s->length != expected)
        return ot__error(OT_ERR_FORMAT, "external data has length %" PRId64 ", expected %zu",
                         s->length, expected);
    OT_TRY(open_file(model, s->location, &map));
    if ((uint64_t)s->offset > map->size || expected > map->size - (size_t)s->offset)
        return ot__error(OT_ERR_FORMAT,
                         "external data ends at byte %" PRId64 " + %zu, but '%s' has %zu bytes",
                         s->offset, expected, s->location, map->size);
    OT_TRY(check_sum(all, map, s));
    OT_TRY(note_range(all, s, map->data + s->offset, expected));
    *data = map->data + s->offset;
    return OT_OK;
}
