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

#endif
