// SPDX-License-Identifier: Apache-2.0
// Who does not answer. The rank that another waits for may itself be waiting for a third: so ranks
// whose time is over tell each other, and those that say nothing are named.
#include "dist/dist.h"

static const double grace_part = 0.1; // of the time limit, in which the others' time ends
static const double grace_min = 0.5, grace_max = 30.0; // seconds

typedef struct notes {
    char out, in; // what is sent, and where all that comes goes
    int n;
    ot_request requests[]; // of every rank one that is received, then one that is sent
} notes;

static notes *make_notes(const ot_comm *comm)
{
    const size_t n = (size_t)comm->world_size;
    notes *own = ot__alloc_zero(1, sizeof *own + 2 * n * sizeof own->requests[0]);

    if (own)
        own->n = comm->world_size;
    return own;
}

static ot_status send_notes(ot_comm *comm, notes *own)
{
    for (int i = 0; i < own->n; i++)
        if (i != comm->rank) {
            OT_TRY(ot__comm_receive(comm, i, OT_TAG_NOTE, &own->in, 1, &own->requests[i]));
            OT_TRY(ot__comm_send(comm, i, OT_TAG_NOTE, &own->out, 1, &own->requests[own->n + i]));
        }
    return OT_OK;
}

// Until all have answered, or the grace is over.
static ot_status await_notes(ot_comm *comm, notes *own)
{
    const double grace = OT_MIN(OT_MAX(comm->job->timeout * grace_part, grace_min), grace_max);
    const double until = ot__clock_seconds() + grace;
    ot__patience patience = {0};
    int n_done = 0;

    do {
        OT_TRY(ot__comm_test(comm, own->requests, own->n, &n_done));
        (void)ot__comm_wait_on(comm, &patience);
    } while (n_done < own->n && ot__clock_seconds() < until);
    return OT_OK;
}

// "rank 3", "ranks 1, 3"; of many the first ones.
static int name_silent(ot_comm *comm, notes *own, ot__buf *text)
{
    enum { NAMED_MAX = 8 };
    int count = 0;

    for (int i = 0; i < own->n; i++)
        if (!ot__comm_is_done(comm, &own->requests[i]) && count++ < NAMED_MAX)
            ot__buf_printf(text, "%s%d", count > 1 ? ", " : "", ot__comm_member(comm, i));
    if (count > NAMED_MAX)
        ot__buf_printf(text, " and %d more", count - NAMED_MAX);
    return count;
}

ot_status ot__comm_silent(ot_comm *comm, int peer, const char *what)
{
    const double limit = comm->job->timeout;
    notes *own = comm->job->notes ? NULL : make_notes(comm);
    ot__buf text = {0};
    int count = 0;
    ot_status st = ot__made(own);

    OT_THEN(st, send_notes(comm, own));
    OT_THEN(st, await_notes(comm, own));
    if (st == OT_OK)
        count = name_silent(comm, own, &text);
    if (own)
        ot__comm_cancel(comm, own->requests, 2 * own->n);
    comm->job->notes = own ? own : comm->job->notes;
    if (count > 0 && !text.failed)
        ot__error(OT_ERR_TIMEOUT, "rank%s %s: silent for %g s in %s (OT_COMM_TIMEOUT)",
                  count > 1 ? "s" : "", text.data, limit, what);
    else if (st == OT_OK)
        ot__error(OT_ERR_TIMEOUT,
                  "all ranks wait for each other since %g s, rank %d for rank %d in %s "
                  "(OT_COMM_TIMEOUT)",
                  limit, ot__comm_member(comm, comm->rank), ot__comm_member(comm, peer), what);
    else
        ot__error(OT_ERR_TIMEOUT, "rank %d: silent for %g s in %s (OT_COMM_TIMEOUT)",
                  ot__comm_member(comm, peer), limit, what);
    ot__buf_deinit(&text);
    return ot__comm_break(comm, OT_ERR_TIMEOUT);
}
