// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <string.h>

#include "base/base.h"

// A model has many arenas, most of them small: each block is twice the one before.
enum { BLOCK_MIN = 8 << 10, BLOCK_MAX = 64 << 10, ALIGNMENT = 16 };

typedef struct block {
    struct block *next;
    size_t size, used; // of the bytes behind this header
} block;

typedef struct inside {
    struct inside *next;
    const void *handle;
} inside;

struct ot__arena {
    block *blocks; // the first one is being filled
    inside *handles;
    size_t n_bytes, max_bytes;
};

static const size_t header_size = (sizeof(block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

ot__arena *ot__arena_create(void)
{
    ot__arena *arena = ot__alloc_zero(1, sizeof(*arena));

    if (arena)
        arena->max_bytes = SIZE_MAX;
    return arena;
}

void ot__arena_destroy(ot__arena *arena)
{
    if (!arena)
        return;
    for (const inside *i = arena->handles; i; i = i->next)
        ot__handle_leave(i->handle);
    while (arena->blocks) {
        block *next = arena->blocks->next;
        ot__free(arena->blocks);
        arena->blocks = next;
    }
    ot__free(arena);
}

// A block with room for n_bytes; large requests get their own, behind the one being filled.
static block *add_block(ot__arena *arena, size_t n_bytes)
{
    const size_t usual =
        arena->blocks ? OT_MIN(arena->blocks->size * 2, (size_t)BLOCK_MAX) : (size_t)BLOCK_MIN;
    const size_t size = OT_MAX(n_bytes, usual);
    size_t with_header;
    block *added;

    if (ot__size_add_overflows(header_size, size, &with_header))
        return ot__no_memory(n_bytes);
    added = ot__alloc_zero(1, with_header);
    if (!added)
        return NULL;
    added->size = size;
    if (arena->blocks && n_bytes > usual / 2) {
        added->next = arena->blocks->next;
        arena->blocks->next = added;
    } else {
        added->next = arena->blocks;
        arena->blocks = added;
    }
    return added;
}

bool ot__arena_charge(ot__arena *arena, size_t n_bytes)
{
    if (n_bytes > arena->max_bytes - OT_MIN(arena->n_bytes, arena->max_bytes)) {
        ot__error(OT_ERR_NO_MEMORY, "needs more than the %zu bytes allowed", arena->max_bytes);
        return false;
    }
    arena->n_bytes += n_bytes;
    return true;
}

void *ot__arena_alloc(ot__arena *arena, size_t n_bytes)
{
    block *b = arena->blocks;
    size_t rounded;
    char *result;

    if (ot__size_add_overflows(n_bytes, ALIGNMENT - 1, &rounded))
        return ot__no_memory(n_bytes);
    rounded = rounded / ALIGNMENT * ALIGNMENT;
    if (!ot__arena_charge(arena, rounded))
        return NULL;
    if (!b || b->size - b->used < rounded)
        b = add_block(arena, rounded);
    if (!b)
        return NULL;
    result = (char *)b + header_size + b->used;
    b->used += rounded;
    return result; // zero, since blocks start so and no byte is given out twice
}

void *ot__arena_memdup(ot__arena *arena, const void *bytes, size_t n_bytes)
{
    void *copy = ot__arena_alloc(arena, n_bytes);

    if (copy && n_bytes)
        memcpy(copy, bytes, n_bytes);
    return copy;
}

char *ot__arena_strndup(ot__arena *arena, const char *text, size_t length)
{
    size_t n = strnlen(text, length);
    char *copy = ot__arena_alloc(arena, n + 1);

    if (copy && n)
        memcpy(copy, text, n);
    return copy;
}

bool ot__arena_enter(ot__arena *arena, const void *handle, const char *kind)
{
    inside *entry;

    if (!OT_KNOWS_HANDLES)
        return true;
    entry = ot__arena_alloc(arena, sizeof *entry);
    if (!entry)
        return false;
    *entry = (inside){arena->handles, handle};
    arena->handles = entry;
    ot__handle_enter(handle, kind);
    return true;
}

char *ot__arena_strdup(ot__arena *arena, const char *text)
{
    return ot__arena_memdup(arena, text, strlen(text) + 1);
}

char *ot__arena_vprintf(ot__arena *arena, const char *format, va_list args)
{
    va_list again;
    int length;
    char *text;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) // longer than an int can say
        return ot__no_memory(SIZE_MAX);
    text = ot__arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *ot__arena_printf(ot__arena *arena, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = ot__arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

bool ot__arena_grow(ot__arena *arena, void *array_pointer, int *capacity, int count,
                    size_t item_size)
{
    int wanted = *capacity > 0 ? *capacity : 4;
    size_t n_bytes;
    void *old, *grown;

    if (count < *capacity)
        return true;
    while (wanted <= count) {
        if (wanted > INT_MAX / 2)
            return ot__no_memory(SIZE_MAX);
        wanted *= 2;
    }
    if (ot__size_mul_overflows((size_t)wanted, item_size, &n_bytes))
        return ot__no_memory(SIZE_MAX);
    grown = ot__arena_alloc(arena, n_bytes);
    if (!grown)
        return false;
    memcpy(&old, array_pointer, sizeof(old));
    if (count > 0)
        memcpy(grown, old, (size_t)count * item_size);
    memcpy(array_pointer, &grown, sizeof(grown));
    *capacity = wanted;
    return true;
}

bool ot__arena_push(ot__arena *arena, void *array_pointer, int *capacity, int *count,
                    const void *item, size_t item_size)
{
    char *array;

    if (!ot__arena_grow(arena, array_pointer, capacity, *count, item_size))
        return false;
    memcpy(&array, array_pointer, sizeof array);
    memcpy(array + (size_t)(*count)++ * item_size, item, item_size);
    return true;
}

size_t ot__arena_bytes(const ot__arena *arena)
{
    return arena->n_bytes;
}

size_t ot__arena_taken(const ot__arena *arena)
{
    size_t n = 0;

    for (const block *b = arena ? arena->blocks : NULL; b; b = b->next)
        n += header_size + b->size;
    return arena ? n + sizeof *arena : 0;
}

void ot__arena_limit(ot__arena *arena, size_t max_bytes)
{
    arena->max_bytes = max_bytes;
}
