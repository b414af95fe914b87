// SPDX-License-Identifier: Apache-2.0
// What rank 0 and the others exchange: bytes of any length.
#include <string.h>

#include "dist/dist.h"
#include "shards/shards.h"

enum { MESSAGE_MAX = 256 * 1024 * 1024 };
static const char call_name[] = "checkpoint directory";

ot_status ot__team_of(ot_comm *comm, ot__team *team)
{
    *team = (ot__team){.comm = comm, .n = 1};
    if (comm == NULL)
        return OT_OK;
    OT_TRY(ot__comm_check(comm));
    team->rank = ot_comm_rank(comm);
    team->n = ot_comm_world_size(comm);
    return OT_OK;
}

ot_status ot__team_agree(const ot__team *team, ot_status st, const char *call,
                         const ot_agree_field *fields, int n_fields)
{
    return team->comm == NULL ? st : ot__comm_agree_on(team->comm, st, call, fields, n_fields);
}

static ot_status move_bytes(const ot__team *team, int to, const char *sent, size_t n_sent, int from,
                            char *received, size_t n_received)
{
    for (size_t at = 0; at < OT_MAX(n_sent, n_received); at += MESSAGE_MAX) {
        const size_t out = at < n_sent ? OT_MIN(n_sent - at, (size_t)MESSAGE_MAX) : 0;
        const size_t in = at < n_received ? OT_MIN(n_received - at, (size_t)MESSAGE_MAX) : 0;

        OT_TRY(ot__comm_exchange(team->comm, OT_TAG_SHARDS, to, out > 0 ? sent + at : NULL, out,
                                 from, in > 0 ? received + at : NULL, in, call_name));
    }
    return OT_OK;
}

// Room for n bytes, which count as being there.
static ot_status make_bytes(ot__buf *buf, size_t n)
{
    char *data = ot__realloc(buf->data, n + 1);

    OT_TRY(ot__made(data != NULL));
    data[n] = '\0';
    *buf = (ot__buf){.data = data, .length = n, .capacity = n + 1};
    return OT_OK;
}

// sizes[r]: what rank r says.
static ot_status gather_sizes(const ot__team *team, ot_status st, uint64_t own, uint64_t **sizes)
{
    *sizes = ot__alloc_zero((size_t)team->n, sizeof **sizes);
    OT_THEN(st, ot__made(*sizes != NULL));
    OT_TRY(ot__team_agree(team, st, call_name, NULL, 0));
    (*sizes)[team->rank] = own;
    return team->comm == NULL ? OT_OK
                              : ot__comm_gather(team->comm, *sizes, sizeof **sizes, call_name);
}

static ot_status gather_with(const ot__team *team, const ot__buf *own, ot__buf *all,
                             const uint64_t *sizes)
{
    ot_status st = OT_OK;

    for (int r = 0; team->rank == 0 && r < team->n && st == OT_OK; r++)
        st = make_bytes(&all[r], (size_t)sizes[r]);
    OT_TRY(ot__team_agree(team, st, call_name, NULL, 0));
    if (team->rank > 0)
        return move_bytes(team, 0, own->data, own->length, 0, NULL, 0);
    if (own->length > 0)
        memcpy(all[0].data, own->data, own->length);
    for (int r = 1; r < team->n; r++)
        OT_TRY(move_bytes(team, 0, NULL, 0, r, all[r].data, all[r].length));
    return OT_OK;
}

ot_status ot__team_gather(const ot__team *team, ot_status st, const ot__buf *own, ot__buf *all)
{
    uint64_t *sizes;

    OT_THEN(st, ot__buf_status(own));
    st = gather_sizes(team, st, own->length, &sizes);
    OT_THEN(st, gather_with(team, own, all, sizes));
    ot__free(sizes);
    return st;
}

// Sizes come first, from rank 0 to each.
ot_status ot__team_scatter(const ot__team *team, ot_status st, const ot__buf *all, ot__buf *own)
{
    uint64_t size = 0;

    for (int r = 0; team->rank == 0 && r < team->n; r++)
        OT_THEN(st, ot__buf_status(&all[r]));
    OT_TRY(ot__team_agree(team, st, call_name, NULL, 0));
    for (int r = 1; team->rank == 0 && r < team->n; r++) {
        size = all[r].length;
        OT_TRY(move_bytes(team, r, (const char *)&size, sizeof size, 0, NULL, 0));
    }
    if (team->rank > 0)
        OT_TRY(move_bytes(team, 0, NULL, 0, 0, (char *)&size, sizeof size));
    else
        size = all[0].length;
    st = make_bytes(own, (size_t)size);
    OT_TRY(ot__team_agree(team, st, call_name, NULL, 0));
    if (team->rank > 0)
        return move_bytes(team, 0, NULL, 0, 0, own->data, own->length);
    if (size > 0)
        memcpy(own->data, all[0].data, (size_t)size);
    for (int r = 1; r < team->n; r++)
        OT_TRY(move_bytes(team, r, all[r].data, all[r].length, 0, NULL, 0));
    return OT_OK;
}

ot_status ot__team_spread(const ot__team *team, ot_status st, ot__buf *bytes)
{
    uint64_t size = bytes->length;

    if (team->comm == NULL)
        return st;
    OT_TRY(ot__team_agree(team, st, call_name, NULL, 0));
    OT_TRY(ot__comm_spread(team->comm, OT_TAG_SHARDS, 0, &size, sizeof size, call_name));
    st = team->rank > 0 ? make_bytes(bytes, (size_t)size) : OT_OK;
    OT_TRY(ot__team_agree(team, st, call_name, NULL, 0));
    return ot__comm_spread(team->comm, OT_TAG_SHARDS, 0, bytes->data, (size_t)size, call_name);
}
