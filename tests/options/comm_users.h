// SPDX-License-Identifier: Apache-2.0
// Who takes the structs of communicators.
#ifndef TESTS_OPTIONS_COMM_USERS_H
#define TESTS_OPTIONS_COMM_USERS_H

#include "options/users.h"

static inline ot_status use_comm(world *w, void *options)
{
    ot_comm *comm;
    const ot_status st = ot_comm_open("self", options, &comm);

    (void)w;
    ot_comm_destroy(comm);
    return st;
}

static inline ot_status use_agreement(world *w, void *agreement)
{
    ot_comm *comm;
    ot_status st;

    (void)w;
    must(ot_comm_open("self", NULL, &comm));
    st = ot_comm_agree(comm, agreement);
    ot_comm_destroy(comm);
    return st;
}

static inline ot_status fill_counters(world *w, void *counters)
{
    ot_comm *comm;
    ot_status st;

    (void)w;
    must(ot_comm_open("self", NULL, &comm));
    st = ot_comm_get_counters(comm, counters);
    ot_comm_destroy(comm);
    return st;
}

static inline ot_status use_parallel(world *w, void *parallel)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_session *session = NULL;
    ot_status st;

    options.parallel = parallel;
    must(ot_artifacts_generate(w->model, &how, &artifacts));
    st = ot_session_create_from_artifacts(artifacts, &options, &session);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    return st;
}

// ---- a transport of one rank, which sends nothing ----

static inline ot_status send_nothing(void *context, int to, int tag, const void *bytes,
                                     size_t n_bytes, ot_request *out)
{
    (void)context, (void)to, (void)tag, (void)bytes, (void)n_bytes, (void)out;
    return OT_ERR_INTERNAL;
}

static inline ot_status receive_nothing(void *context, int from, int tag, void *bytes,
                                        size_t n_bytes, ot_request *out)
{
    (void)context, (void)from, (void)tag, (void)bytes, (void)n_bytes, (void)out;
    return OT_ERR_INTERNAL;
}

static inline ot_status test_nothing(void *context, ot_request *requests, int n, int *n_done)
{
    (void)context, (void)requests;
    *n_done = n;
    return OT_OK;
}

static inline void cancel_nothing(void *context, ot_request *requests, int n)
{
    (void)context, (void)requests, (void)n;
}

static inline const char *say_nothing(void *context)
{
    (void)context;
    return "";
}

static inline void destroy_nothing(void *context)
{
    (void)context;
}

static const ot_transport transport_init = {
    .size = sizeof(ot_transport),
    .name = "nothing",
    .world_size = 1,
    .tag_max = INT32_MAX,
    .send = send_nothing,
    .receive = receive_nothing,
    .test = test_nothing,
    .cancel = cancel_nothing,
    .message = say_nothing,
    .destroy = destroy_nothing,
};

static inline ot_status use_transport(world *w, void *transport)
{
    ot_comm *comm;
    const ot_status st = ot_comm_create(transport, NULL, &comm);

    (void)w;
    ot_comm_destroy(comm);
    return st;
}

#endif
