// SPDX-License-Identifier: Apache-2.0
// Misuse of handles that can be told without a lock: none, of another kind, destroyed, or in use by
// another thread. Nothing waits: a second thread gets an error instead of a race.
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"

// Its address is the name of the thread: no two that run have the same.
static _Thread_local char here;

void ot__guard_init(ot__guard *guard, const char *kind)
{
    memset(guard, 0, sizeof *guard);
    snprintf(guard->kind, sizeof guard->kind, "%s", kind);
    ot__handle_enter(guard, kind);
}

void ot__guard_deinit(ot__guard *guard)
{
    guard->kind[0] = '\0';
    ot__handle_leave(guard);
}

ot_status ot__guard_check(const void *handle, const char *kind)
{
    if (!handle)
        return ot__error(OT_ERR_INVALID, "the %s is NULL", kind);
    OT_TRY(ot__handle_check(handle, kind));
    if (strncmp(((const ot__guard *)handle)->kind, kind, sizeof(((ot__guard *)0)->kind)) != 0)
        return ot__error(OT_ERR_INVALID, "invalid or destroyed %s handle", kind);
    return OT_OK;
}

ot_status ot__guard_enter(const void *handle, const char *kind)
{
    const uintptr_t me = (uintptr_t)&here;
    uintptr_t owner = 0;
    ot__guard *guard;

    OT_TRY(ot__guard_check(handle, kind));
    guard = (ot__guard *)(uintptr_t)handle; // looking at a handle enters it, too
    if (!atomic_compare_exchange_strong(&guard->owner, &owner, me) && owner != me)
        return ot__error(OT_ERR_STATE, "another thread uses the %s: one at a time may", kind);
    guard->depth++;
    return OT_OK;
}

void ot__guard_leave(const void *handle)
{
    ot__guard *guard = (ot__guard *)(uintptr_t)handle;

    if (--guard->depth == 0)
        atomic_store(&guard->owner, 0);
}
