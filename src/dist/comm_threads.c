// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process. Nothing is buffered: a message is copied when both its
// ends have been started, so that who counts on buffers is found out.
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "dist/dist.h"

typedef struct port port;

// One end of a message, in its ot_request.
typedef struct end {
    struct end *next;
    port *at; // the receiver's, where the two ends meet
    void *bytes;
    size_t n_bytes;
    int from, tag;
    double done, there; // of a network that is modelled: when this end is done, the message there
    _Atomic int state;
} end;

enum { NO_END, UNDER_WAY, COPIED };
_Static_assert(sizeof(end) <= sizeof(ot_request), "an end lies in a request");

typedef struct hub {
    pthread_mutex_t lock;
    int n_all, n_ports; // n_ports of them are in use
    bool is_modelled;
    ot__network network;
    port *ports;
} hub;

struct port {
    hub *hub;
    int rank;
    double line_free; // of the sender's side, which only its thread uses
    pthread_mutex_t lock;
    end *sends, *receives; // at this rank, without the other end so far
};

// ---- where ends meet ----

static end *end_of(ot_request *request)
{
    return (end *)(void *)request;
}

static void append_end(end **list, end *e)
{
    while (*list)
        list = &(*list)->next;
    e->next = NULL;
    *list = e;
}

// The first that fits leaves the list.
static end *take_end(end **list, const end *other)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->from == other->from && (*list)->tag == other->tag) {
            end *found = *list;

            *list = found->next;
            return found;
        }
    return NULL;
}

// Whoever sees that an end is copied may reuse its memory.
static void copy_message(end *send, end *receive)
{
    assert(send->n_bytes == receive->n_bytes);
    memcpy(receive->bytes, send->bytes, OT_MIN(send->n_bytes, receive->n_bytes));
    receive->done = send->there;
    atomic_store(&receive->state, COPIED);
    atomic_store(&send->state, COPIED);
}

static ot_status threads_send(void *context, int to, int tag, const void *bytes, size_t n_bytes,
                              ot_request *out)
{
    port *own = context, *at = &own->hub->ports[to];
    end *send = end_of(out), *receive;

    *send = (end){.at = at,
                  .bytes = (void *)(uintptr_t)bytes,
                  .n_bytes = n_bytes,
                  .from = own->rank,
                  .tag = tag,
                  .state = UNDER_WAY};
    if (own->hub->is_modelled) {
        const ot__arrival arrival =
            ot__network_send(&own->hub->network, own->rank, n_bytes, &own->line_free);

        send->done = arrival.sent;
        send->there = arrival.there;
    }
    pthread_mutex_lock(&at->lock);
    receive = take_end(&at->receives, send);
    if (receive)
        copy_message(send, receive);
    else
        append_end(&at->sends, send);
    pthread_mutex_unlock(&at->lock);
    return OT_OK;
}

static ot_status threads_receive(void *context, int from, int tag, void *bytes, size_t n_bytes,
                                 ot_request *out)
{
    port *own = context;
    end *receive = end_of(out), *send;

    *receive = (end){.at = own,
                     .bytes = bytes,
                     .n_bytes = n_bytes,
                     .from = from,
                     .tag = tag,
                     .state = UNDER_WAY};
    pthread_mutex_lock(&own->lock);
    send = take_end(&own->sends, receive);
    if (send)
        copy_message(send, receive);
    else
        append_end(&own->receives, receive);
    pthread_mutex_unlock(&own->lock);
    return OT_OK;
}

static ot_status threads_test(void *context, ot_request *requests, int n, int *n_done)
{
    const hub *h = ((port *)context)->hub;
    const double now = h->is_modelled ? ot__network_now(&h->network) : 0.0;

    *n_done = 0;
    for (int i = 0; i < n; i++) {
        end *e = end_of(&requests[i]);

        if (atomic_load(&e->state) == COPIED && e->done <= now)
            memset(e, 0, sizeof *e);
        *n_done += atomic_load(&e->state) == NO_END;
    }
    return OT_OK;
}

static void drop_end(end **list, const end *e)
{
    while (*list && *list != e)
        list = &(*list)->next;
    if (*list)
        *list = e->next;
}

static void threads_cancel(void *context, ot_request *requests, int n)
{
    (void)context;
    for (int i = 0; i < n; i++) {
        end *e = end_of(&requests[i]);

        if (atomic_load(&e->state) != NO_END) {
            pthread_mutex_lock(&e->at->lock);
            drop_end(&e->at->sends, e);
            drop_end(&e->at->receives, e);
            pthread_mutex_unlock(&e->at->lock);
            memset(e, 0, sizeof *e);
        }
    }
}

// ---- making and ending ----

static const char *threads_message(void *context)
{
    (void)context;
    return ""; // nothing fails
}

static void destroy_hub(hub *h, int n_ports)
{
    for (int i = 0; i < n_ports; i++)
        pthread_mutex_destroy(&h->ports[i].lock);
    pthread_mutex_destroy(&h->lock);
    ot__free(h->ports);
    ot__free(h);
}

static void threads_destroy(void *context)
{
    hub *h = ((port *)context)->hub;
    const int world_size = h->n_all;
    bool is_last;

    pthread_mutex_lock(&h->lock);
    is_last = --h->n_ports == 0;
    pthread_mutex_unlock(&h->lock);
    if (is_last)
        destroy_hub(h, world_size);
}

ot_status ot__threads_open(int n, const ot__network *network, ot_transport *transports)
{
    hub *h = ot__alloc_zero(1, sizeof *h);

    OT_TRY(ot__made(h));
    h->ports = ot__alloc_zero((size_t)n, sizeof *h->ports);
    if (!h->ports) {
        ot__free(h);
        return OT_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&h->lock, NULL);
    h->n_all = h->n_ports = n;
    if (network) {
        h->is_modelled = true;
        h->network = *network;
    }
    for (int i = 0; i < n; i++) {
        h->ports[i] = (port){.hub = h, .rank = i};
        pthread_mutex_init(&h->ports[i].lock, NULL);
        transports[i] = (ot_transport){
            .size = sizeof transports[i],
            .context = &h->ports[i],
            .name = "threads",
            .rank = i,
            .world_size = n,
            .tag_max = INT32_MAX,
            .send = threads_send,
            .receive = threads_receive,
            .test = threads_test,
            .cancel = threads_cancel,
            .message = threads_message,
            .destroy = threads_destroy,
        };
    }
    return OT_OK;
}
