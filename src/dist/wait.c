// SPDX-License-Identifier: Apache-2.0
// Messages of a communicator, and waiting for them.
#include <sched.h>
#include <time.h>

#include "dist/dist.h"

static const double spin_seconds = 50e-6;  // most answers of ranks that run come within
static const double yield_seconds = 10e-3; // after that a nap costs nothing that counts
static const double crowded_yield_seconds = 0.5e-3;
static const long nap_nanoseconds = 100000;

// ---- failures ----

ot_status ot__comm_break(ot_comm *comm, ot_status status)
{
    ot__job *job = comm->job;

    if (job->broken == OT_OK) {
        job->broken = status;
        snprintf(job->broken_message, sizeof job->broken_message, "%s", ot_error_message());
    }
    return status;
}

ot_status ot__comm_check_unbroken(const ot_comm *comm)
{
    if (comm->job->broken == OT_OK)
        return OT_OK;
    return ot__error(comm->job->broken, "%s", comm->job->broken_message);
}

static ot_status transport_status(ot_comm *comm, ot_status st)
{
    const ot_transport *t = &comm->job->transport;

    if (st == OT_OK)
        return OT_OK;
    return ot__comm_break(comm, ot__error(st, "%s: %s", t->name, t->message(t->context)));
}

// ---- messages ----

static int tag_of(const ot_comm *comm, int kind)
{
    return comm->group << OT_TAG_BITS | kind;
}

int ot__comm_member(const ot_comm *comm, int rank)
{
    return comm->members ? comm->members[rank] : rank;
}

ot_status ot__comm_send(ot_comm *comm, int to, int kind, const void *bytes, size_t n_bytes,
                        ot_request *out)
{
    const ot_transport *t = &comm->job->transport;

    *out = (ot_request){0};
    OT_TRY(ot__comm_check_unbroken(comm));
    if (n_bytes == 0)
        return OT_OK;
    comm->counters.messages_sent++;
    comm->counters.bytes_sent += (int64_t)n_bytes;
    return transport_status(comm, t->send(t->context, ot__comm_member(comm, to), tag_of(comm, kind),
                                          bytes, n_bytes, out));
}

ot_status ot__comm_receive(ot_comm *comm, int from, int kind, void *bytes, size_t n_bytes,
                           ot_request *out)
{
    const ot_transport *t = &comm->job->transport;

    *out = (ot_request){0};
    OT_TRY(ot__comm_check_unbroken(comm));
    if (n_bytes == 0)
        return OT_OK;
    return transport_status(comm, t->receive(t->context, ot__comm_member(comm, from),
                                             tag_of(comm, kind), bytes, n_bytes, out));
}

ot_status ot__comm_test(ot_comm *comm, ot_request *requests, int n, int *n_done)
{
    const ot_transport *t = &comm->job->transport;

    *n_done = 0;
    OT_TRY(ot__comm_check_unbroken(comm));
    return transport_status(comm, t->test(t->context, requests, n, n_done));
}

void ot__comm_cancel(ot_comm *comm, ot_request *requests, int n)
{
    const ot_transport *t = &comm->job->transport;

    t->cancel(t->context, requests, n);
}

// ---- waiting ----

static void take_nap(void)
{
    const struct timespec nap = {0, nap_nanoseconds};

    (void)nanosleep(&nap, NULL);
}

bool ot__comm_wait_on(const ot_comm *comm, ot__patience *patience)
{
    const ot__job *job = comm->job;
    const double now = ot__clock_seconds();
    double waited;

    if (patience->n_polls++ == 0)
        patience->began = now;
    waited = now - patience->began;
    if (waited > (job->is_crowded ? crowded_yield_seconds : yield_seconds))
        take_nap();
    else if (job->is_crowded || waited > spin_seconds)
        (void)sched_yield();
    return job->timeout <= 0.0 || waited <= job->timeout;
}

void ot__comm_waited(ot_comm *comm, const ot__patience *patience)
{
    if (patience->n_polls > 0)
        comm->counters.seconds_waited += ot__clock_seconds() - patience->began;
}

bool ot__comm_is_done(ot_comm *comm, ot_request *request)
{
    int n_done;

    return ot__comm_test(comm, request, 1, &n_done) == OT_OK && n_done == 1;
}

// The rank of the first request that is not done.
static int first_open(ot_comm *comm, ot_request *requests, const int *peers, int n)
{
    int i = 0;

    while (i < n - 1 && ot__comm_is_done(comm, &requests[i]))
        i++;
    return peers[i];
}

ot_status ot__comm_await(ot_comm *comm, ot_request *requests, const int *peers, int n,
                         const char *what)
{
    ot__patience patience = {0};
    int n_done = 0;
    ot_status st;

    for (;;) {
        st = ot__comm_test(comm, requests, n, &n_done);
        if (st != OT_OK || n_done == n)
            break;
        if (!ot__comm_wait_on(comm, &patience)) {
            st = ot__comm_silent(comm, first_open(comm, requests, peers, n), what);
            break;
        }
    }
    if (st != OT_OK)
        ot__comm_cancel(comm, requests, n);
    ot__comm_waited(comm, &patience);
    return st;
}

// ---- two messages at once ----

static const size_t message_max = (size_t)1 << 30; // of transports

static size_t message_piece(size_t n_bytes, size_t offset)
{
    return offset < n_bytes ? OT_MIN(n_bytes - offset, message_max) : 0;
}

ot_status ot__comm_exchange(ot_comm *comm, int kind, int to, const void *sent, size_t n_sent,
                            int from, void *received, size_t n_received, const char *what)
{
    const int peers[] = {from, to};

    for (size_t at = 0; at < OT_MAX(n_sent, n_received); at += message_max) {
        const size_t n_out = message_piece(n_sent, at), n_in = message_piece(n_received, at);
        ot_request requests[2] = {{{0}}};
        ot_status st = OT_OK;

        if (n_in > 0)
            st = ot__comm_receive(comm, from, kind, (char *)received + at, n_in, &requests[0]);
        if (n_out > 0)
            OT_THEN(st,
                    ot__comm_send(comm, to, kind, (const char *)sent + at, n_out, &requests[1]));
        OT_TRY(ot__comm_await(comm, requests, peers, 2, what));
    }
    return OT_OK;
}
