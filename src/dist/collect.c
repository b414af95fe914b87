// SPDX-License-Identifier: Apache-2.0
// Small collectives: an agreement on what is exchanged, then the exchange.
#include <string.h>

#include "dist/dist.h"

// ---- without an agreement ----

enum { SPREAD_PIECE = 256 * 1024, TREE_HEIGHT_MAX = 32 };

// A binomial tree: a rank has it from the one that lacks its lowest bit, seen from the root.
static ot_status spread_piece(ot_comm *comm, int kind, int root, void *bytes, size_t n_bytes,
                              const char *what)
{
    const int n = comm->world_size, place = (comm->rank - root + n) % n;
    ot_request requests[TREE_HEIGHT_MAX];
    int peers[TREE_HEIGHT_MAX], bit = 1, count = 0;
    ot_status st = OT_OK;

    while (bit < n && (place & bit) == 0)
        bit *= 2;
    if (place != 0)
        OT_TRY(ot__comm_exchange(comm, kind, 0, NULL, 0, (place - bit + root) % n, bytes, n_bytes,
                                 what));
    for (bit /= 2; bit > 0 && st == OT_OK; bit /= 2)
        if (place + bit < n) {
            peers[count] = (place + bit + root) % n;
            st = ot__comm_send(comm, peers[count], kind, bytes, n_bytes, &requests[count]);
            count++;
        }
    return ot__comm_await(comm, requests, peers, count, what);
}

ot_status ot__comm_spread(ot_comm *comm, int kind, int root, void *bytes, size_t n_bytes,
                          const char *what)
{
    for (size_t at = 0; at < n_bytes; at += SPREAD_PIECE)
        OT_TRY(spread_piece(comm, kind, root, (char *)bytes + at,
                            OT_MIN(n_bytes - at, (size_t)SPREAD_PIECE), what));
    return OT_OK;
}

// Blocks `first` to `first + count` of n in a circle: the part before the end of the array, or that
// after it.
typedef struct arc {
    size_t offset, n_bytes;
} arc;

static arc part_of_arc(int first, int count, int n, size_t block, int part)
{
    const int before = OT_MIN(count, n - first);

    if (part == 0)
        return (arc){(size_t)first * block, (size_t)before * block};
    return (arc){0, (size_t)(count - before) * block};
}

// After every round a rank has twice as many blocks: its own and those behind it, in a circle.
ot_status ot__comm_gather(ot_comm *comm, void *all, size_t n_bytes, const char *what)
{
    const int n = comm->world_size, rank = comm->rank;

    for (int have = 1; have < n && n_bytes > 0; have *= 2) {
        const int count = OT_MIN(have, n - have);
        const int to = (rank - have + n) % n, from = (rank + have) % n;

        for (int part = 0; part < 2; part++) {
            const arc out = part_of_arc(rank, count, n, n_bytes, part);
            const arc in = part_of_arc(from, count, n, n_bytes, part);

            OT_TRY(ot__comm_exchange(comm, OT_TAG_GATHER, to, (char *)all + out.offset, out.n_bytes,
                                     from, (char *)all + in.offset, in.n_bytes, what));
        }
    }
    return OT_OK;
}

// ---- public ----

ot_status ot_comm_barrier(ot_comm *comm)
{
    OT_TRY(ot__comm_check(comm));
    return ot__comm_agree_on(comm, OT_OK, "barrier", NULL, 0);
}

ot_status ot_comm_broadcast(ot_comm *comm, int root, void *bytes, size_t n_bytes)
{
    const ot_agree_field fields[] = {{"the root", (uint64_t)root}, {"the size", n_bytes}};
    ot_status st = OT_OK;

    OT_TRY(ot__comm_check(comm));
    if (root < 0 || root >= comm->world_size)
        st = ot__error(OT_ERR_INVALID, "broadcast: root is %d, expected 0 to %d", root,
                       comm->world_size - 1);
    if (n_bytes > 0)
        OT_THEN(st, OT_GIVEN(bytes));
    OT_TRY(ot__comm_agree_on(comm, st, "broadcast", fields, (int)OT_COUNT(fields)));
    return ot__comm_spread(comm, OT_TAG_BROADCAST, root, bytes, n_bytes, "broadcast");
}

ot_status ot_comm_all_gather(ot_comm *comm, const void *bytes, size_t n_bytes, void *all)
{
    const ot_agree_field fields[] = {{"the size", n_bytes}};
    size_t total;
    ot_status st = OT_OK;

    OT_TRY(ot__comm_check(comm));
    if (ot__size_mul_overflows(n_bytes, (size_t)comm->world_size, &total))
        st = ot__error(OT_ERR_INVALID, "all_gather: %zu bytes of each rank are too many", n_bytes);
    if (n_bytes > 0) {
        OT_THEN(st, OT_GIVEN(bytes));
        OT_THEN(st, OT_GIVEN(all));
    }
    OT_TRY(ot__comm_agree_on(comm, st, "all_gather", fields, (int)OT_COUNT(fields)));
    if (n_bytes > 0)
        memmove((char *)all + (size_t)comm->rank * n_bytes, bytes, n_bytes);
    return ot__comm_gather(comm, all, n_bytes, "all_gather");
}

// ---- sums ----

// Sums wrap around.
static int64_t combine_i64(ot_comm_op op, int64_t a, int64_t b)
{
    switch (op) {
    case OT_COMM_MIN:
        return OT_MIN(a, b);
    case OT_COMM_MAX:
        return OT_MAX(a, b);
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

// NaN stays NaN.
static double combine_f64(ot_comm_op op, double a, double b)
{
    switch (op) {
    case OT_COMM_MIN:
        return a != a || a < b ? a : b;
    case OT_COMM_MAX:
        return a != a || a > b ? a : b;
    default:
        return a + b;
    }
}

// values: those of rank 0; behind them, n at a time, those of the others.
static void combine_blocks(ot_comm_op op, ot_dtype dtype, void *values, int n, int world_size)
{
    for (int r = 1; r < world_size; r++)
        for (int i = 0; i < n; i++)
            if (dtype == OT_I64) {
                int64_t *v = values;

                v[i] = combine_i64(op, v[i], v[(int64_t)r * n + i]);
            } else {
                double *v = values;

                v[i] = combine_f64(op, v[i], v[(int64_t)r * n + i]);
            }
}

enum { REDUCE_ROOM = 64 * 1024, ELEMENT = 8 }; // elements of all ranks at a time; bytes of one

static ot_status check_reduce(ot_comm_op op, ot_dtype dtype, const void *values, int64_t count)
{
    OT_TRY(OT_GIVEN_MANY(values, count));
    if ((int)op < OT_COMM_SUM || op > OT_COMM_MAX)
        return ot__error(OT_ERR_INVALID, "all_reduce: unknown operation %d", (int)op);
    if (dtype != OT_I64 && dtype != OT_F64)
        return ot__error(OT_ERR_INVALID, "all_reduce: element type %s, expected i64 or f64",
                         ot_dtype_name(dtype));
    return OT_OK;
}

static int64_t piece_of_all_reduce(int world_size, int64_t count)
{
    return OT_MIN(count, OT_MAX(REDUCE_ROOM / world_size, 1));
}

size_t ot__all_reduce_bytes(int world_size, int64_t count)
{
    return (size_t)piece_of_all_reduce(world_size, count) * (size_t)world_size * ELEMENT;
}

ot_status ot_comm_all_reduce(ot_comm *comm, ot_comm_op op, ot_dtype dtype, void *values,
                             int64_t count)
{
    const ot_agree_field fields[] = {{"the operation", (uint64_t)op},
                                     {"the element type", (uint64_t)dtype},
                                     {"the number of elements", (uint64_t)count}};
    int64_t piece = 0;
    char *all = NULL;
    ot_status st;

    OT_TRY(ot__comm_check(comm));
    st = check_reduce(op, dtype, values, count);
    if (st == OT_OK && count > 0) {
        piece = piece_of_all_reduce(comm->world_size, count);
        all = ot__alloc(ot__all_reduce_bytes(comm->world_size, count));
        st = ot__made(all);
    }
    st = ot__comm_agree_on(comm, st, "all_reduce", fields, (int)OT_COUNT(fields));
    for (int64_t at = 0; st == OT_OK && at < count; at += piece) {
        const int n = (int)OT_MIN(piece, count - at);
        const size_t n_bytes = (size_t)n * ELEMENT;
        char *to = (char *)values + at * ELEMENT;

        memcpy(all + (size_t)comm->rank * n_bytes, to, n_bytes);
        st = ot__comm_gather(comm, all, n_bytes, "all_reduce");
        if (st == OT_OK) {
            combine_blocks(op, dtype, all, n, comm->world_size);
            memcpy(to, all, n_bytes);
        }
    }
    ot__free(all);
    return st;
}
