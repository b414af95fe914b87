// SPDX-License-Identifier: Apache-2.0
// Which handles there are, in debug builds: a handle is looked for here before its memory is looked
// at, which may be gone, or somebody else's.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

// The address is stored inverted, so that the leak checker does not take it for a reference.
typedef struct slot {
    uintptr_t inverted; // 0: free; NULL is no handle
    const char *kind;
} slot;

// Open addressing; at most three quarters are taken.
static struct {
    pthread_mutex_t lock;
    slot *slots;
    size_t n_slots, count;
    bool is_partial; // memory for it ran out: from then on everything passes for a handle
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t home_of(uintptr_t inverted)
{
    return (size_t)((inverted * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (table.n_slots - 1);
}

// The slot of a handle, or the free one where it would go.
static slot *find_handle(const void *handle)
{
    const uintptr_t inverted = ~(uintptr_t)handle;
    size_t i = home_of(inverted);

    while (table.slots[i].inverted != 0 && table.slots[i].inverted != inverted)
        i = (i + 1) & (table.n_slots - 1);
    return &table.slots[i];
}

// Not by ot__alloc, whose calls tests count and let fail: release builds have none of this.
static bool grow_handles(void)
{
    const size_t least = 1024, n_old = table.n_slots;
    const size_t n = n_old == 0 ? least : 2 * n_old;
    slot *old = table.slots, *slots = calloc(n, sizeof *slots);

    if (!slots)
        return false;
    table.slots = slots;
    table.n_slots = n;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].inverted != 0)
            *find_handle((const void *)~old[i].inverted) = old[i];
    free(old);
    return true;
}

static bool is_entered(const void *handle, const char *kind)
{
    const slot *s = table.n_slots > 0 ? find_handle(handle) : NULL;

    return s && s->inverted != 0 && strcmp(s->kind, kind) == 0;
}

// What stands behind the slot moves up where its search would stop at the gap.
static void remove_slot(size_t gap)
{
    const size_t mask = table.n_slots - 1;

    for (size_t i = (gap + 1) & mask; table.slots[i].inverted != 0; i = (i + 1) & mask) {
        const size_t from_home = (i - home_of(table.slots[i].inverted)) & mask;

        if (from_home >= ((i - gap) & mask)) {
            table.slots[gap] = table.slots[i];
            gap = i;
        }
    }
    table.slots[gap] = (slot){0};
    table.count--;
}

void ot__handle_enter(const void *handle, const char *kind)
{
    if (!OT_KNOWS_HANDLES)
        return;
    pthread_mutex_lock(&table.lock);
    if (4 * (table.count + 1) > 3 * table.n_slots && !grow_handles()) {
        table.is_partial = true;
    } else {
        slot *s = find_handle(handle);

        table.count += s->inverted == 0;
        *s = (slot){~(uintptr_t)handle, kind};
    }
    pthread_mutex_unlock(&table.lock);
}

void ot__handle_leave(const void *handle)
{
    if (!OT_KNOWS_HANDLES)
        return;
    pthread_mutex_lock(&table.lock);
    if (table.n_slots > 0 && find_handle(handle)->inverted != 0)
        remove_slot((size_t)(find_handle(handle) - table.slots));
    pthread_mutex_unlock(&table.lock);
}

ot_status ot__handle_check(const void *handle, const char *kind)
{
    bool is_live = true;

    if (OT_KNOWS_HANDLES) {
        pthread_mutex_lock(&table.lock);
        is_live = table.is_partial || is_entered(handle, kind);
        pthread_mutex_unlock(&table.lock);
    }
    return is_live ? OT_OK : ot__error(OT_ERR_INVALID, "invalid or destroyed %s handle", kind);
}

bool ot__handle_is_live(const void *handle, const char *kind)
{
    return handle && ot__handle_check(handle, kind) == OT_OK;
}

ot_status ot__handle_optional(const void *handle, const char *kind, const char *what)
{
    if (!handle || ot__handle_check(handle, kind) == OT_OK)
        return OT_OK;
    return ot__error_prefix(OT_ERR_INVALID, "%s", what);
}

bool ot__handle_ends(const void *handle, const char *kind)
{
    if (!handle)
        return false;
    if (ot__handle_check(handle, kind) != OT_OK) {
        ot__log(OT_LOG_WARNING, "destroying an %s", ot_error_message());
        return false;
    }
    ot__handle_leave(handle);
    return true;
}

// ---- fork ----

static void handles_before_fork(void)
{
    pthread_mutex_lock(&table.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&table.lock);
}

// Before the constructor of parallel.c, so that this lock is taken behind the one there: whoever
// holds forks off may make handles meanwhile.
__attribute__((constructor(200))) static void watch_forks(void)
{
    if (OT_KNOWS_HANDLES)
        pthread_atfork(handles_before_fork, after_fork, after_fork);
}
