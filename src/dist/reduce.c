// SPDX-License-Identifier: Apache-2.0
// Sums of what all ranks have, in an order that does not depend on how many they are. Each rank
// owns a share of the elements: contributions to it come straight to it (scatter), are added in the
// order of the tree, and the sum goes to all (gather). Both are cut into pieces, several of which
// are under way at a time: each has a lane, which goes through both phases with one piece and then
// takes the next. Nothing here waits but ot__reduce_wait().
#include <string.h>

#include "dist/reduce.h"

// ---- what there is ----

static int64_t piece_count(const ot__reduce *r, int rank, int64_t piece)
{
    const int64_t left = r->starts[rank + 1] - r->starts[rank] - piece * r->piece;

    return OT_MAX(OT_MIN(left, r->piece), 0);
}

static char *piece_place(const ot__reduce *r, void *buffer, int rank, int64_t piece)
{
    return (char *)buffer + (r->starts[rank] + piece * r->piece) * r->element;
}

static size_t bytes_of_piece(const ot__reduce *r, int rank, int64_t piece)
{
    return (size_t)(piece_count(r, rank, piece) * r->element);
}

static int lane_tag(const ot__reduce *r, int lane_index, ot__lane_phase phase)
{
    return OT_TAG_REDUCE + (r->slot * OT_LANES + lane_index) * 2 + (phase == OT_LANE_GATHER);
}

static ot__slot *slot_of_reduce(const ot__reduce *r)
{
    return &r->comm->reducer->slots[r->slot];
}

// ---- a piece on its way ----

static void expect(ot__lane *l, int peer)
{
    l->peers[l->n_requests++] = peer;
}

static ot_status start_scatter(ot__reduce *r, ot__lane *l, int tag)
{
    const int n = r->comm->world_size, me = r->comm->rank;
    const size_t stride = (size_t)(r->piece * r->element);
    char *staging = l->staging;

    l->phase = OT_LANE_SCATTER;
    l->n_requests = 0;
    for (int i = 0; i < r->n_parts; i++)
        if (r->owners[i] != me) {
            ot_request *request = &l->requests[l->n_requests];

            expect(l, r->owners[i]);
            OT_TRY(ot__comm_receive(r->comm, r->owners[i], tag, staging,
                                    bytes_of_piece(r, me, l->piece), request));
            staging += stride;
        }
    for (int step = 1; step < n; step++)
        for (int b = 0; b < r->n_own; b++) {
            const int to = (me + step) % n;
            ot_request *request = &l->requests[l->n_requests];

            expect(l, to);
            OT_TRY(ot__comm_send(r->comm, to, tag, piece_place(r, r->buffers[b], to, l->piece),
                                 bytes_of_piece(r, to, l->piece), request));
        }
    return OT_OK;
}

// The others' parts lie in the staging memory in their order, own ones where they are.
static void sum_piece(ot__reduce *r, ot__lane *l)
{
    const int me = r->comm->rank;
    const size_t stride = (size_t)(r->piece * r->element);
    char *staging = l->staging;

    for (int i = 0; i < r->n_parts; i++)
        if (r->owners[i] == me) {
            r->parts[i] = piece_place(r, r->buffers[i - r->first_own], me, l->piece);
        } else {
            r->parts[i] = staging;
            staging += stride;
        }
    ot__tree_sum(r->dtype, r->adds, r->n_adds, r->parts,
                 piece_place(r, r->buffers[0], me, l->piece), piece_count(r, me, l->piece));
}

static ot_status start_gather(ot__reduce *r, ot__lane *l, int tag)
{
    const int n = r->comm->world_size, me = r->comm->rank;

    l->phase = OT_LANE_GATHER;
    l->n_requests = 0;
    for (int step = 1; step < n; step++) {
        const int from = (me - step + n) % n;
        ot_request *request = &l->requests[l->n_requests];

        expect(l, from);
        OT_TRY(ot__comm_receive(r->comm, from, tag, piece_place(r, r->buffers[0], from, l->piece),
                                bytes_of_piece(r, from, l->piece), request));
    }
    for (int step = 1; step < n; step++) {
        const int to = (me + step) % n;
        ot_request *request = &l->requests[l->n_requests];

        expect(l, to);
        OT_TRY(ot__comm_send(r->comm, to, tag, piece_place(r, r->buffers[0], me, l->piece),
                             bytes_of_piece(r, me, l->piece), request));
    }
    return OT_OK;
}

static ot_status start_piece(ot__reduce *r, int lane_index, int64_t piece)
{
    ot__lane *l = &slot_of_reduce(r)->lanes[lane_index];

    l->piece = piece;
    l->phase = OT_LANE_DONE;
    l->n_requests = 0;
    if (piece >= r->n_pieces)
        return OT_OK;
    if (r->phases & OT_REDUCE_SCATTER)
        return start_scatter(r, l, lane_tag(r, lane_index, OT_LANE_SCATTER));
    return start_gather(r, l, lane_tag(r, lane_index, OT_LANE_GATHER));
}

// As far as it goes without waiting.
static ot_status advance_lane(ot__reduce *r, int lane_index)
{
    ot__lane *l = &slot_of_reduce(r)->lanes[lane_index];

    while (l->phase != OT_LANE_DONE) {
        int n_done;

        OT_TRY(ot__comm_test(r->comm, l->requests, l->n_requests, &n_done));
        if (n_done < l->n_requests)
            return OT_OK;
        if (l->phase == OT_LANE_SCATTER)
            sum_piece(r, l);
        if (l->phase == OT_LANE_SCATTER && (r->phases & OT_REDUCE_GATHER))
            OT_TRY(start_gather(r, l, lane_tag(r, lane_index, OT_LANE_GATHER)));
        else
            OT_TRY(start_piece(r, lane_index, l->piece + OT_LANES));
    }
    return OT_OK;
}

// ---- reductions under way ----

void ot__reduce_leave(ot__reduce *r)
{
    struct ot__reducer *all = r->comm->reducer;
    ot__slot *s = slot_of_reduce(r);
    ot__reduce **link = &all->first;

    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    if (s->user == r) {
        all->memory[--all->n_taken] = s->memory;
        s->memory = s->user = NULL;
    }
    r->is_started = false;
}

static ot_status advance_reduce(ot__reduce *r)
{
    ot__slot *s = slot_of_reduce(r);
    bool is_done = true;

    if (!s->user) {
        s->user = r;
        ot__reduce_cut_lanes(r, s);
        for (int i = 0; i < OT_LANES; i++)
            OT_TRY(start_piece(r, i, i));
    }
    if (s->user != r)
        return OT_OK; // the slot is taken by one that was started before
    for (int i = 0; i < OT_LANES; i++) {
        OT_TRY(advance_lane(r, i));
        is_done = is_done && s->lanes[i].phase == OT_LANE_DONE;
    }
    if (is_done)
        ot__reduce_leave(r);
    return OT_OK;
}

ot_status ot__comm_poke(ot_comm *comm)
{
    ot__reduce *next = comm->reducer ? comm->reducer->first : NULL;

    while (next) {
        ot__reduce *r = next;

        next = r->next;
        OT_TRY(advance_reduce(r));
    }
    return OT_OK;
}

ot_status ot__reduce_start(ot__reduce *r, int phases, void *const *buffers)
{
    struct ot__reducer *all = r->comm->reducer;
    ot__reduce **link = &all->first;

    if (r->is_started)
        return ot__error(OT_ERR_STATE, "the reduction is under way already");
    memcpy(r->buffers, buffers, (size_t)OT_MAX(r->n_own, 1) * sizeof *buffers);
    r->phases = phases;
    r->slot = (int)(all->n_started++ % OT_REDUCE_SLOTS);
    r->is_started = true;
    r->next = NULL;
    while (*link)
        link = &(*link)->next;
    *link = r;
    return ot__comm_poke(r->comm);
}

// Of one that has a slot, or of the one before it that has.
static int rank_waited_for(ot__reduce *r)
{
    const ot__slot *s = slot_of_reduce(r);

    for (int i = 0; i < OT_LANES; i++)
        for (int k = 0; s->user && k < s->lanes[i].n_requests; k++)
            if (!ot__comm_is_done(r->comm, &s->lanes[i].requests[k]))
                return s->lanes[i].peers[k];
    return r->comm->rank;
}

ot_status ot__reduce_wait(ot__reduce *r)
{
    ot__patience patience = {0};
    ot_status st = OT_OK;

    while (r->is_started && (st = ot__comm_poke(r->comm)) == OT_OK && r->is_started)
        if (!ot__comm_wait_on(r->comm, &patience)) {
            st = ot__comm_silent(r->comm, rank_waited_for(r), "a reduction");
            break;
        }
    ot__comm_waited(r->comm, &patience);
    return st;
}

bool ot__reduce_is_done(const ot__reduce *r)
{
    return !r->is_started;
}
