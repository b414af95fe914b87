// SPDX-License-Identifier: Apache-2.0
// Communicators: made over a transport, split into groups, ended.
#include <stdlib.h>
#include <string.h>

#include "dist/dist.h"

static const double timeout_default = 1800.0; // seconds

// ---- questions ----

ot_status ot__comm_check(const ot_comm *comm)
{
    OT_TRY(OT_GIVEN(comm));
    if (!pthread_equal(comm->job->thread, pthread_self()))
        return ot__error(OT_ERR_STATE, "the communicator belongs to the thread that made it");
    return ot__comm_check_unbroken(comm);
}

int ot_comm_rank(const ot_comm *comm)
{
    return OT_IS_LIVE(comm) ? comm->rank : 0;
}

int ot_comm_world_size(const ot_comm *comm)
{
    return OT_IS_LIVE(comm) ? comm->world_size : 0;
}

int ot_comm_local_rank(const ot_comm *comm)
{
    return OT_IS_LIVE(comm) ? comm->local_rank : 0;
}

int ot_comm_local_size(const ot_comm *comm)
{
    return OT_IS_LIVE(comm) ? comm->local_size : 0;
}

int ot_comm_threads(const ot_comm *comm)
{
    return OT_IS_LIVE(comm) ? comm->job->n_threads : 0;
}

ot_status ot_comm_get_counters(const ot_comm *comm, ot_comm_counters *counters)
{
    ot_comm_counters own;

    OT_TRY(OT_GIVEN(comm));
    OT_TRY(OT_GIVEN(counters));
    OT_TRY(OT_OPTIONS_READ(ot_comm_counters, OT_COMM_COUNTERS_INIT, counters, &own));
    ot__options_write(counters, &comm->counters, sizeof comm->counters);
    return OT_OK;
}

// ---- making and ending ----

static ot_status read_timeout(double given, double *out)
{
    const char *text = getenv("OT_COMM_TIMEOUT");

    *out = timeout_default;
    if (given != given)
        return ot__error(OT_ERR_INVALID, "ot_comm_options: timeout is no number");
    if (given < 0.0 && text && !(ot__parse_float(text, out) && *out >= 0.0)) {
        *out = timeout_default;
        return ot__error(OT_ERR_INVALID,
                         "OT_COMM_TIMEOUT is '%s', expected seconds, or 0 for no limit", text);
    }
    if (given >= 0.0)
        *out = given;
    return OT_OK;
}

double ot_comm_timeout(const ot_comm_options *options)
{
    ot_comm_options own;
    double timeout = timeout_default;

    if (OT_OPTIONS_READ(ot_comm_options, OT_COMM_OPTIONS_INIT, options, &own) == OT_OK)
        (void)read_timeout(own.timeout, &timeout);
    return timeout;
}

static ot_status check_transport(const ot_transport *t)
{
    if (!t->name || !t->send || !t->receive || !t->test || !t->cancel || !t->message || !t->destroy)
        return ot__error(OT_ERR_INVALID, "ot_transport: a function or the name is NULL");
    if (t->world_size < 1 || t->rank < 0 || t->rank >= t->world_size)
        return ot__error(OT_ERR_INVALID, "ot_transport: rank %d of %d", t->rank, t->world_size);
    if (t->tag_max < 1 << OT_TAG_BITS)
        return ot__error(OT_ERR_INVALID, "ot_transport: tag_max is %d, expected at least %d",
                         t->tag_max, 1 << OT_TAG_BITS);
    return OT_OK;
}

// Ranks of a group on this rank's machine.
static void count_local(ot_comm *comm)
{
    const ot__processors *places = comm->job->places;
    const int64_t node = places[ot__comm_member(comm, comm->rank)].node;

    comm->local_rank = comm->local_size = 0;
    for (int i = 0; i < comm->world_size; i++)
        if (places[ot__comm_member(comm, i)].node == node) {
            comm->local_rank += i < comm->rank;
            comm->local_size++;
        }
}

static void free_comm(ot_comm *comm)
{
    if (!comm)
        return;
    ot__reducer_destroy(comm->reducer);
    ot__free(comm->members);
    ot__free(comm);
}

// All but the transport.
static void free_job(ot__job *job)
{
    if (!job)
        return;
    ot__free(job->notes);
    ot__free(job->places);
    ot__free(job);
}

// What this rank needs is there or is not, on all ranks alike; then they say where they are.
static ot_status join_ranks(ot_comm *first, ot_status st, ot__processors *places)
{
    const ot_agree_field fields[] = {
        {"the version of onnxtrain",
         OT_VERSION_MAJOR * 1000000 + OT_VERSION_MINOR * 1000 + OT_VERSION_PATCH},
    };

    OT_TRY(ot__comm_agree_on(first, st, "ot_comm_create", fields, (int)OT_COUNT(fields)));
    ot__processors_here(&places[first->rank]);
    places[first->rank].node = first->job->transport.node;
    return ot__comm_gather(first, places, sizeof *places, "ot_comm_create");
}

ot_status ot_comm_create(const ot_transport *transport, const ot_comm_options *options,
                         ot_comm **out)
{
    // A rank without memory takes part as well: it has these.
    ot__job first_job = {.thread = pthread_self(), .next_group = 1};
    ot_comm first = {.job = &first_job};
    ot_comm_options own = OT_COMM_OPTIONS_INIT;
    ot__job *job;
    ot_comm *comm;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(transport));
    OT_TRY(OT_OPTIONS_READ(ot_transport, OT_TRANSPORT_INIT, transport, &first_job.transport));
    OT_TRY(check_transport(&first_job.transport));
    first.rank = first_job.transport.rank;
    first.world_size = first_job.transport.world_size;
    st = OT_OPTIONS_READ(ot_comm_options, OT_COMM_OPTIONS_INIT, options, &own);
    OT_THEN(st, read_timeout(own.timeout, &first_job.timeout));
    job = ot__alloc(sizeof *job);
    comm = ot__alloc(sizeof *comm);
    first_job.places = ot__alloc_zero((size_t)first.world_size, sizeof *first_job.places);
    OT_THEN(st, ot__made(job && comm && first_job.places));
    st = join_ranks(&first, st, first_job.places);
    ot__free(first_job.notes);
    first_job.notes = NULL;
    if (st != OT_OK) {
        ot__free(first_job.places);
        ot__free(job);
        ot__free(comm);
        return st;
    }
    first_job.n_threads = ot__processors_threads(first_job.places, first.world_size, first.rank);
    first_job.is_crowded =
        ot__processors_are_crowded(first_job.places, first.world_size, first.rank);
    first_job.n_users = 1;
    *job = first_job;
    *comm = first;
    comm->job = job;
    count_local(comm);
    OT_ENTER(comm);
    *out = comm;
    return OT_OK;
}

void ot_comm_destroy(ot_comm *comm)
{
    ot__job *job;

    if (!OT_ENDS(comm))
        return;
    job = comm->job;
    free_comm(comm);
    if (--job->n_users > 0)
        return;
    job->transport.destroy(job->transport.context);
    free_job(job);
}

void ot_comm_abort(ot_comm *comm, int code)
{
    if (OT_IS_LIVE(comm) && comm->job->transport.abort)
        comm->job->transport.abort(comm->job->transport.context, code);
}

static ot_status open_transport(const char *kind, const ot_comm_options *options,
                                ot_transport *transport)
{
    if (options->mpi_comm != NULL && strcmp(kind, "mpi") != 0)
        return ot__error(OT_ERR_INVALID,
                         "mpi_comm is given, and the kind of communicator is '%s', expected 'mpi'",
                         kind);
    if (strcmp(kind, "mpi") == 0 || (strcmp(kind, "auto") == 0 && ot__launched_many()))
        return ot__plugin_open(options, transport);
    if (strcmp(kind, "self") == 0 || strcmp(kind, "auto") == 0)
        return ot__threads_open(1, NULL, transport);
    return ot__error(OT_ERR_INVALID,
                     "unknown kind of communicator '%s', expected 'auto', 'self' or 'mpi'", kind);
}

ot_status ot_comm_open(const char *kind, const ot_comm_options *options, ot_comm **out)
{
    ot_transport transport;
    ot_comm_options own;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(kind));
    if (OT_OPTIONS_READ(ot_comm_options, OT_COMM_OPTIONS_INIT, options, &own) != OT_OK)
        own = (ot_comm_options)OT_COMM_OPTIONS_INIT; // ot_comm_create() says it on all ranks
    OT_TRY(open_transport(kind, &own, &transport));
    st = ot_comm_create(&transport, options, out);
    if (st != OT_OK)
        transport.destroy(transport.context);
    else
        ot__memory_share((size_t)ot_comm_local_size(*out));
    return st;
}

// ---- groups ----

typedef struct wish {
    int64_t color, key, next_group;
} wish;

// Whether no rank below has the colour.
static bool is_first_of_color(const wish *wishes, int rank)
{
    for (int i = 0; i < rank; i++)
        if (wishes[i].color == wishes[rank].color)
            return false;
    return true;
}

// The group of every colour has a number that none has in which two of these ranks are together.
static ot_status number_group(ot_comm *parent, const wish *wishes, int *group)
{
    int64_t next = 0, n_colors = 0, below = 0;
    const int64_t most = parent->job->transport.tag_max >> OT_TAG_BITS;

    for (int i = 0; i < parent->world_size; i++) {
        next = OT_MAX(next, wishes[i].next_group);
        if (wishes[i].color >= 0 && is_first_of_color(wishes, i)) {
            n_colors++;
            below += wishes[i].color < wishes[parent->rank].color;
        }
    }
    if (next + n_colors > most)
        return ot__error(OT_ERR_UNSUPPORTED, "%" PRId64 " groups, %s has tags for %" PRId64,
                         next + n_colors, parent->job->transport.name, most);
    parent->job->next_group = (int)(next + n_colors);
    *group = (int)(next + below);
    return OT_OK;
}

// Members in the order of their keys; equal ones in that of their ranks.
static void collect_members(const ot_comm *parent, const wish *wishes, ot_comm *sub)
{
    const wish *mine = &wishes[parent->rank];

    for (int i = 0; i < parent->world_size; i++) {
        int at = sub->world_size;

        if (wishes[i].color != mine->color)
            continue;
        for (; at > 0 && wishes[sub->members[at - 1]].key > wishes[i].key; at--)
            sub->members[at] = sub->members[at - 1];
        sub->members[at] = i;
        sub->world_size++;
    }
    for (int i = 0; i < sub->world_size; i++) {
        if (sub->members[i] == parent->rank)
            sub->rank = i;
        sub->members[i] = ot__comm_member(parent, sub->members[i]);
    }
}

static ot_status make_group(ot_comm *parent, int color, int key, wish *wishes, ot_comm *sub)
{
    wishes[parent->rank] = (wish){color, key, parent->job->next_group};
    OT_TRY(ot__comm_gather(parent, wishes, sizeof *wishes, "split"));
    OT_TRY(number_group(parent, wishes, &sub->group));
    collect_members(parent, wishes, sub);
    sub->job = parent->job;
    count_local(sub);
    return OT_OK;
}

ot_status ot_comm_split(ot_comm *comm, int color, int key, ot_comm **out)
{
    ot_comm *sub;
    wish *wishes;
    ot_status st;

    OT_TRY(ot__comm_check(comm));
    st = OT_OUT(out);
    sub = ot__alloc_zero(1, sizeof *sub);
    wishes = ot__alloc_zero((size_t)comm->world_size, sizeof *wishes);
    if (sub)
        sub->members = ot__alloc_zero((size_t)comm->world_size, sizeof *sub->members);
    OT_THEN(st, ot__made(wishes && sub && sub->members));
    st = ot__comm_agree_on(comm, st, "split", NULL, 0);
    OT_THEN(st, make_group(comm, color, key, wishes, sub));
    ot__free(wishes);
    if (st != OT_OK || color < 0) {
        free_comm(sub);
        return st;
    }
    comm->job->n_users++;
    OT_ENTER(sub);
    *out = sub;
    return OT_OK;
}
