// SPDX-License-Identifier: Apache-2.0
// Reductions are made: who contributes what, in which pieces, and the memory in which those of
// others arrive.
#include <string.h>

#include "dist/reduce.h"

enum {
    PIECE_MIN = 4096,      // bytes of a message, of many ranks
    STAGING_MAX = 2 << 20, // bytes of a slot for contributions of others
};
static const size_t piece_max = 1 << 20; // bytes

// ---- memory of the lanes ----

static size_t lane_requests(const ot__reduce *r)
{
    const size_t n_others = (size_t)r->comm->world_size - 1;
    const size_t scatter = (size_t)(r->n_parts - r->n_own) + n_others * (size_t)r->n_own;

    return OT_MAX(scatter, 2 * n_others);
}

// Staging, requests and peers of a lane, one after the other.
static size_t lane_bytes(const ot__reduce *r, size_t *staging, size_t *requests)
{
    *staging = ot__align_up((size_t)(r->n_parts - r->n_own) * (size_t)(r->piece * r->element));
    *requests = ot__align_up(lane_requests(r) * sizeof(ot_request));
    return *staging + *requests + ot__align_up(lane_requests(r) * sizeof(int));
}

static ot_status take_lanes(ot__reduce *r)
{
    struct ot__reducer *all = r->comm->reducer;
    size_t staging, requests;
    const size_t n_bytes = lane_bytes(r, &staging, &requests);
    void *memory[OT_REDUCE_SLOTS] = {NULL};
    ot_status st = OT_OK;

    if (all->first)
        return ot__error(OT_ERR_STATE,
                         "reductions are under way: they must end before one is made");
    if (n_bytes <= all->lane_bytes)
        return OT_OK;
    for (int i = 0; i < OT_REDUCE_SLOTS && st == OT_OK; i++) {
        memory[i] = ot__alloc_aligned(n_bytes * OT_LANES);
        st = ot__made(memory[i]);
    }
    for (int i = 0; i < OT_REDUCE_SLOTS; i++) {
        void **drop = st == OT_OK ? &all->memory[i] : &memory[i];

        ot__free_aligned(*drop);
        *drop = NULL;
    }
    if (st != OT_OK)
        return st;
    memcpy(all->memory, memory, sizeof memory);
    all->lane_bytes = n_bytes;
    return OT_OK;
}

// The largest user's lanes are everybody's, cut anew for each.
void ot__reduce_cut_lanes(const ot__reduce *r, ot__slot *s)
{
    struct ot__reducer *all = r->comm->reducer;
    size_t staging, requests;

    s->memory = all->memory[all->n_taken++];
    for (int i = 0; i < OT_LANES && s->memory != NULL; i++) { // of one rank alone there is none
        char *at = (char *)s->memory + (size_t)i * lane_bytes(r, &staging, &requests);

        s->lanes[i].staging = at;
        s->lanes[i].requests = (ot_request *)(void *)(at + staging);
        s->lanes[i].peers = (int *)(void *)(at + staging + requests);
    }
}

// ---- making ----

static int64_t first_slice(int n_slices, int rank, int world_size)
{
    return (int64_t)n_slices * rank / world_size;
}

// Parts of all ranks, in the order of their slices, which is that of the ranks.
static void collect_parts(ot__reduce *r, int n_slices, ot__tree_node *nodes)
{
    const int n = r->comm->world_size;

    for (int rank = 0; rank < n; rank++) {
        const int count =
            ot__tree_cover(n_slices, (int)first_slice(n_slices, rank, n),
                           (int)first_slice(n_slices, rank + 1, n), nodes + r->n_parts);

        if (rank == r->comm->rank) {
            r->first_own = r->n_parts;
            r->n_own = count;
        }
        for (int i = 0; i < count; i++)
            r->owners[r->n_parts++] = rank;
    }
    r->n_adds = ot__tree_plan(n_slices, nodes, r->adds);
}

// All ranks find the same.
static void choose_pieces(ot__reduce *r, size_t piece_bytes)
{
    const size_t room = STAGING_MAX / OT_LANES / (size_t)OT_MAX(r->n_parts - 1, 1);
    const size_t wanted =
        OT_MAX(OT_MIN(piece_max, room / PIECE_MIN * PIECE_MIN), (size_t)PIECE_MIN);
    const size_t bytes = piece_bytes > 0 ? piece_bytes : wanted;
    int64_t largest = 0;

    for (int i = 0; i < r->comm->world_size; i++)
        largest = OT_MAX(largest, r->starts[i + 1] - r->starts[i]);
    r->piece = OT_MAX(OT_MIN((int64_t)bytes / r->element, largest), 1);
    r->n_pieces = (largest + r->piece - 1) / r->piece;
}

static ot_status check_reduce_options(const ot_comm *comm, const ot__reduce_options *o)
{
    if (o->dtype != OT_F32 && o->dtype != OT_F64)
        return ot__error(OT_ERR_INVALID, "a reduction of %s, expected f32 or f64",
                         ot_dtype_name(o->dtype));
    if (o->n_slices < 1 || o->n_slices > OT_SLICES_MAX)
        return ot__error(OT_ERR_INVALID, "%d slices, expected 1 to %d", o->n_slices, OT_SLICES_MAX);
    for (int i = 0; i < comm->world_size; i++)
        if (o->starts[i] < 0 || o->starts[i] > o->starts[i + 1])
            return ot__error(OT_ERR_INVALID,
                             "the share of rank %d goes from %" PRId64 " to %" PRId64, i,
                             o->starts[i], o->starts[i + 1]);
    return OT_OK;
}

static void free_reduce(ot__reduce *r)
{
    if (!r)
        return;
    ot__free(r->starts);
    ot__free(r->owners);
    ot__free(r->parts);
    ot__free(r->adds);
    ot__free(r);
}

static ot_status make_reduce(ot_comm *comm, const ot__reduce_options *o, ot__reduce **out)
{
    const size_t n_starts = (size_t)comm->world_size + 1, n_parts = (size_t)o->n_slices;
    ot__reduce *r = ot__alloc_zero(1, sizeof *r);
    ot__tree_node *nodes = ot__alloc_zero(n_parts, sizeof *nodes);
    ot_status st = ot__made(r && nodes);

    if (st == OT_OK) {
        r->comm = comm;
        r->dtype = o->dtype;
        r->element = o->dtype == OT_F32 ? sizeof(float) : sizeof(double);
        r->starts = ot__alloc_zero(n_starts, sizeof *r->starts);
        r->owners = ot__alloc_zero(n_parts, sizeof *r->owners);
        r->parts = ot__alloc_zero(n_parts, sizeof *r->parts);
        r->adds = ot__alloc_zero(n_parts, sizeof *r->adds);
        st = ot__made(r->starts && r->owners && r->parts && r->adds);
    }
    if (st == OT_OK) {
        memcpy(r->starts, o->starts, n_starts * sizeof *r->starts);
        collect_parts(r, o->n_slices, nodes);
        choose_pieces(r, o->piece_bytes);
    }
    ot__free(nodes);
    return OT_HAND_OUT(st, out, r, free_reduce);
}

// And the memory that it needs of its communicator.
static ot_status make_reduce_and_lanes(ot_comm *comm, const ot__reduce_options *o, ot__reduce **out)
{
    ot__reduce *r = NULL;
    ot_status st = make_reduce(comm, o, &r);

    if (st == OT_OK && !comm->reducer) {
        comm->reducer = ot__alloc_zero(1, sizeof *comm->reducer);
        st = ot__made(comm->reducer);
    }
    OT_THEN(st, take_lanes(r));
    return OT_HAND_OUT(st, out, r, free_reduce);
}

ot_status ot__reduce_create(ot_comm *comm, const ot__reduce_options *options, ot__reduce **out)
{
    ot_agree_field fields[] = {{"the element type", (uint64_t)options->dtype},
                               {"the number of slices", (uint64_t)options->n_slices},
                               {"the number of elements", 0},
                               {"the shares", 0}};
    ot__reduce *r = NULL;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__comm_check(comm));
    fields[2].value = (uint64_t)options->starts[comm->world_size];
    fields[3].value =
        ot__id_mix(0, options->starts, ((size_t)comm->world_size + 1) * sizeof *options->starts);
    st = check_reduce_options(comm, options);
    OT_THEN(st, make_reduce_and_lanes(comm, options, &r));
    st = ot__comm_agree_on(comm, st, "reduction", fields, (int)OT_COUNT(fields));
    return OT_HAND_OUT(st, out, r, free_reduce);
}

ot_status ot__reduce_measure(int n_ranks, int rank, const ot__reduce_options *options,
                             ot__reduce_bytes *out)
{
    ot_comm ranks = {.world_size = n_ranks, .rank = rank}; // there are none
    const size_t n_parts = (size_t)options->n_slices;
    size_t staging, requests;
    ot__reduce *r;

    OT_TRY(check_reduce_options(&ranks, options));
    OT_TRY(make_reduce(&ranks, options, &r));
    out->lanes = lane_bytes(r, &staging, &requests) * OT_LANES * OT_REDUCE_SLOTS;
    out->structure = sizeof *r + ((size_t)n_ranks + 1) * sizeof *r->starts +
                     n_parts * (sizeof *r->owners + sizeof *r->parts + sizeof *r->adds);
    out->n_own = r->n_own;
    free_reduce(r);
    return OT_OK;
}

int ot__reduce_own_parts(const ot__reduce *r)
{
    return r->n_own;
}

void ot__reduce_destroy(ot__reduce *r)
{
    if (!r)
        return;
    if (r->is_started) { // of a communicator that is broken
        ot__slot *s = &r->comm->reducer->slots[r->slot];

        for (int i = 0; i < OT_LANES && s->user == r; i++)
            ot__comm_cancel(r->comm, s->lanes[i].requests, s->lanes[i].n_requests);
        ot__reduce_leave(r);
    }
    free_reduce(r);
}

void ot__reducer_destroy(struct ot__reducer *reducer)
{
    for (int i = 0; reducer && i < OT_REDUCE_SLOTS; i++)
        ot__free_aligned(reducer->memory[i]);
    ot__free(reducer);
}
