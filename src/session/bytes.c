// SPDX-License-Identifier: Apache-2.0
// Byte strings of the program, which are part of the state of its model.
#include <string.h>

#include "session/state_dict.h"

const ot__named_bytes *ot__bytes_find(const ot_session *session, const char *name)
{
    const ot__named_bytes *b = session->bytes;

    while (b != NULL && strcmp(b->name, name) != 0)
        b = b->next;
    return b;
}

static void free_one(ot__named_bytes *b)
{
    ot__free(b->name);
    ot__free(b->data);
    ot__free(b);
}

void ot__bytes_free(ot__named_bytes *list)
{
    while (list != NULL) {
        ot__named_bytes *next = list->next;

        free_one(list);
        list = next;
    }
}

ot_status ot__bytes_put(ot__named_bytes **list, const char *name, const void *data, size_t n_bytes)
{
    ot__named_bytes *b = ot__alloc_zero(1, sizeof *b);

    OT_TRY(ot__made(b != NULL));
    b->name = ot__strdup(name);
    b->data = ot__alloc(n_bytes + 1);
    b->n_bytes = n_bytes;
    if (b->name == NULL || b->data == NULL) {
        free_one(b);
        return OT_ERR_NO_MEMORY;
    }
    if (n_bytes > 0)
        memcpy(b->data, data, n_bytes);
    while (*list != NULL && strcmp((*list)->name, name) < 0)
        list = &(*list)->next;
    if (*list != NULL && strcmp((*list)->name, name) == 0) {
        ot__named_bytes *old = *list;

        b->next = old->next;
        free_one(old);
    } else {
        b->next = *list;
    }
    *list = b;
    return OT_OK;
}

static ot_status set_named_bytes(ot_session *session, const char *name, const void *bytes,
                                 size_t n_bytes)
{
    ot__named_bytes **list = &session->bytes, *old;

    if (*name == '\0')
        return ot__error(OT_ERR_INVALID, "the name of a byte string is empty");
    if (ot__ckpt_find(session->checkpoint, name) != NULL)
        return ot__error(OT_ERR_INVALID, "'%s' is a parameter", name);
    if (bytes != NULL || n_bytes > 0)
        return ot__bytes_put(list, name, bytes, n_bytes);
    while (*list != NULL && strcmp((*list)->name, name) != 0)
        list = &(*list)->next;
    old = *list;
    if (old != NULL) {
        *list = old->next;
        free_one(old);
    }
    return OT_OK;
}

ot_status ot_session_set_bytes(ot_session *session, const char *name, const void *bytes,
                               size_t n_bytes)
{
    OT_TRY(OT_GIVEN(name));
    if (n_bytes > 0)
        OT_TRY(OT_GIVEN(bytes));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, set_named_bytes(session, name, bytes, n_bytes));
}

ot_status ot_session_get_bytes(const ot_session *session, const char *name, const void **bytes,
                               size_t *n_bytes)
{
    const ot__named_bytes *found;

    OT_TRY(OT_OUT(bytes));
    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(n_bytes));
    *n_bytes = 0;
    OT_TRY(ot__session_enter(session));
    found = ot__bytes_find(session, name);
    if (found == NULL)
        return ot__session_leave(
            session, ot__error(OT_ERR_NOT_FOUND, "the session has no byte string '%s'", name));
    *bytes = found->data;
    *n_bytes = found->n_bytes;
    return ot__session_leave(session, OT_OK);
}
