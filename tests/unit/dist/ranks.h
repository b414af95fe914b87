// SPDX-License-Identifier: Apache-2.0
// For tests: threads as ranks. What a rank finds wrong is kept for the main thread, which alone may
// end a test.
#ifndef TESTS_UNIT_DIST_RANKS_H
#define TESTS_UNIT_DIST_RANKS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "dist/dist.h"
#include "onnxtrain/comm.h"

enum { RANKS_MAX = 16, FINDING_LENGTH = 1200 };

typedef struct rank_thread {
    pthread_t thread;
    ot_transport transport;
    double timeout;
    void (*work)(ot_comm *comm, void *context);
    void *context;
    char finding[FINDING_LENGTH];
} rank_thread;

static _Thread_local char *rank_finding;

// In a rank: the first that does not hold is what the test says.
#define RANK_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition) && rank_finding[0] == '\0') {                                             \
            const int n_ = snprintf(rank_finding, FINDING_LENGTH, "%s:%d: %s: ", __FILE__,         \
                                    __LINE__, #condition);                                         \
            snprintf(rank_finding + n_, (size_t)(FINDING_LENGTH - n_), __VA_ARGS__);               \
        }                                                                                          \
    } while (0)
#define RANK_MUST(call)                                                                            \
    do {                                                                                           \
        const ot_status st_ = (call);                                                              \
        RANK_CHECK(st_ == OT_OK, "%s: %s", ot_status_name(st_), ot_error_message());               \
    } while (0)

static void *run_rank(void *argument)
{
    rank_thread *own = argument;
    ot_comm_options options = OT_COMM_OPTIONS_INIT;
    ot_comm *comm = NULL;
    ot_status st;

    rank_finding = own->finding;
    options.timeout = own->timeout;
    st = ot_comm_create(&own->transport, &options, &comm);
    RANK_CHECK(st == OT_OK, "%s", ot_error_message());
    if (st == OT_OK)
        own->work(comm, own->context);
    else
        own->transport.destroy(own->transport.context);
    ot_comm_destroy(comm);
    return NULL;
}

// `work` on n ranks; `timeout` in seconds.
static inline void run_ranks_over(int n, const ot__network *network, double timeout,
                                  void (*work)(ot_comm *comm, void *context), void *context)
{
    static rank_thread ranks[RANKS_MAX];
    ot_transport transports[RANKS_MAX];

    assert_int_equal(ot__threads_open(n, network, transports), OT_OK);
    for (int i = 0; i < n; i++) {
        ranks[i] = (rank_thread){
            .transport = transports[i], .timeout = timeout, .work = work, .context = context};
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < n; i++)
        if (ranks[i].finding[0] != '\0')
            fail_msg("rank %d of %d: %s", i, n, ranks[i].finding);
}

static const double rank_timeout = 40.0; // below CTest's

static inline void run_ranks(int n, void (*work)(ot_comm *comm, void *context), void *context)
{
    run_ranks_over(n, NULL, rank_timeout, work, context);
}

static const int rank_counts[] = {1, 2, 3, 4, 5, 8};

static inline void run_all_ranks(void (*work)(ot_comm *comm, void *context))
{
    for (size_t i = 0; i < OT_COUNT(rank_counts); i++)
        run_ranks(rank_counts[i], work, NULL);
}

#endif
