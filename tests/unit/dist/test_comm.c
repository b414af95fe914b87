// SPDX-License-Identifier: Apache-2.0
#include "unit/dist/ranks.h"

// ---- this process alone ----

static void self_is_one_rank(void **state)
{
    ot_comm *comm;
    int64_t number = 7;

    (void)state;
    assert_int_equal(ot_comm_open("self", NULL, &comm), OT_OK);
    assert_int_equal(ot_comm_rank(comm), 0);
    assert_int_equal(ot_comm_world_size(comm), 1);
    assert_int_equal(ot_comm_local_rank(comm), 0);
    assert_int_equal(ot_comm_local_size(comm), 1);
    assert_int_equal(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, &number, 1), OT_OK);
    assert_int_equal(number, 7);
    ot_comm_abort(comm, 1); // there are no others
    ot_comm_destroy(comm);
}

static void senseless_limits_are_refused(void **state)
{
    static const char *const senseless[] = {"soon", "", "-1", "nan", "3s"};
    ot_comm_options options = OT_COMM_OPTIONS_INIT;
    ot_comm *comm;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(senseless); i++) {
        setenv("OT_COMM_TIMEOUT", senseless[i], 1);
        assert_int_equal(ot_comm_open("self", NULL, &comm), OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), "OT_COMM_TIMEOUT is '"));
        assert_null(comm);
        assert_true(ot_comm_timeout(NULL) == 1800);
    }
    setenv("OT_COMM_TIMEOUT", "0.5", 1);
    assert_int_equal(ot_comm_open("self", NULL, &comm), OT_OK);
    assert_true(comm->job->timeout == 0.5);
    ot_comm_destroy(comm);
    assert_true(ot_comm_timeout(NULL) == 0.5);
    options.timeout = 3;
    assert_true(ot_comm_timeout(&options) == 3);
    unsetenv("OT_COMM_TIMEOUT");
    assert_int_equal(ot_comm_open("self", NULL, &comm), OT_OK);
    assert_true(comm->job->timeout == 1800.0);
    ot_comm_destroy(comm);
}

static void *use_from_another_thread(void *comm)
{
    return (void *)(intptr_t)ot_comm_barrier(comm);
}

static void another_thread_is_refused(void **state)
{
    pthread_t thread;
    ot_comm *comm;
    void *status;

    (void)state;
    assert_int_equal(ot_comm_open("self", NULL, &comm), OT_OK);
    assert_int_equal(pthread_create(&thread, NULL, use_from_another_thread, comm), 0);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, OT_ERR_STATE);
    ot_comm_destroy(comm);
}

// ---- groups ----

static void split_by_parity(ot_comm *comm, void *context)
{
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm), parity = rank % 2;
    ot_comm *half = NULL, *again = NULL;
    int64_t sum = rank, ranks[RANKS_MAX];

    (void)context;
    RANK_MUST(ot_comm_split(comm, parity, -rank, &half)); // the highest comes first
    RANK_CHECK(ot_comm_world_size(half) == (n + 1 - parity) / 2, "%d", ot_comm_world_size(half));
    RANK_CHECK(ot_comm_local_rank(half) == ot_comm_rank(half), "%d", ot_comm_local_rank(half));
    RANK_CHECK(ot_comm_local_size(half) == ot_comm_world_size(half), "%d",
               ot_comm_local_size(half));
    RANK_MUST(ot_comm_all_gather(half, &sum, sizeof sum, ranks));
    for (int i = 0; i < ot_comm_world_size(half); i++)
        RANK_CHECK(ranks[i] == (n - 1 - parity) / 2 * 2 + parity - 2 * i, "place %d has %d", i,
                   (int)ranks[i]);
    // A group of a group, while calls of the whole go on.
    RANK_MUST(ot_comm_split(half, 0, rank, &again));
    RANK_CHECK(ot_comm_rank(again) == rank / 2, "%d", ot_comm_rank(again));
    RANK_MUST(ot_comm_all_reduce(again, OT_COMM_SUM, OT_I64, &sum, 1));
    RANK_MUST(ot_comm_barrier(comm));
    ot_comm_destroy(half);
    RANK_MUST(ot_comm_barrier(again));
    ot_comm_destroy(again);
}

static void groups_are_those_of_one_color_ordered_by_key(void **state)
{
    (void)state;
    for (int n = 2; n <= RANKS_MAX; n++)
        run_ranks(n, split_by_parity, NULL);
}

static void leave_one_out(ot_comm *comm, void *context)
{
    const int rank = ot_comm_rank(comm);
    ot_comm *rest;
    ot_agreement a = OT_AGREEMENT_INIT;

    (void)context;
    RANK_MUST(ot_comm_split(comm, rank == 0 ? -1 : 5, 0, &rest));
    RANK_CHECK((rest == NULL) == (rank == 0), "rank %d", rank);
    if (rest) { // ranks are named as those of the job
        if (rank == 2)
            a.status = ot__error(OT_ERR_IO, "lost");
        RANK_CHECK(ot_comm_agree(rest, &a) == OT_ERR_IO, "%s", ot_error_message());
        RANK_CHECK(strcmp(ot_error_message(), "rank 2: lost") == 0, "'%s'", ot_error_message());
    }
    ot_comm_destroy(rest);
    RANK_MUST(ot_comm_barrier(comm));
}

static void a_rank_may_be_in_no_group(void **state)
{
    (void)state;
    run_ranks(4, leave_one_out, NULL);
}

static void make_many_groups(ot_comm *comm, void *context)
{
    const int most = INT32_MAX >> OT_TAG_BITS;
    ot_comm *group;

    (void)context;
    comm->job->next_group = most - 1; // as after so many
    RANK_MUST(ot_comm_split(comm, 0, 0, &group));
    ot_comm_destroy(group);
    RANK_CHECK(ot_comm_split(comm, 0, 0, &group) == OT_ERR_UNSUPPORTED, "%s", ot_error_message());
    RANK_CHECK(group == NULL, "a group");
    RANK_MUST(ot_comm_barrier(comm));
}

static void groups_beyond_the_transports_tags_are_refused(void **state)
{
    (void)state;
    run_ranks(3, make_many_groups, NULL);
}

// ---- another version ----

static void *join_with_this_version(void *argument)
{
    ot_comm *comm;

    assert_int_equal(ot_comm_create(argument, NULL, &comm), OT_ERR_MISMATCH);
    assert_non_null(
        strstr(ot_error_message(), "ranks 0 and 1 differ in the version of onnxtrain: "));
    return NULL;
}

// Says what ot_comm_create() of an earlier version would.
static void ranks_of_other_versions_do_not_join(void **state)
{
    const ot_agree_field earlier = {"the version of onnxtrain", 1};
    ot_transport transports[2];
    pthread_t thread;
    ot__job job = {.thread = pthread_self(), .next_group = 1};
    ot_comm own = {.job = &job, .rank = 1, .world_size = 2};

    (void)state;
    assert_int_equal(ot__threads_open(2, NULL, transports), OT_OK);
    job.transport = transports[1];
    assert_int_equal(pthread_create(&thread, NULL, join_with_this_version, &transports[0]), 0);
    assert_int_equal(ot__comm_agree_on(&own, OT_OK, "ot_comm_create", &earlier, 1),
                     OT_ERR_MISMATCH);
    pthread_join(thread, NULL);
    ot__free(job.notes);
    for (int i = 0; i < 2; i++)
        transports[i].destroy(transports[i].context);
}

// ---- no memory on one rank ----

static ot_status split_all(ot_comm *comm)
{
    ot_comm *group = NULL;
    const ot_status st = ot_comm_split(comm, 0, 0, &group);

    RANK_CHECK((st == OT_OK) == (group != NULL), "%s", ot_status_name(st));
    ot_comm_destroy(group);
    return st;
}

static ot_status reduce_some(ot_comm *comm)
{
    double numbers[5] = {1, 2, 3, 4, 5};

    return ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, numbers, 5);
}

static ot_status broadcast_some(ot_comm *comm)
{
    char bytes[100] = {0};

    return ot_comm_broadcast(comm, 1, bytes, sizeof bytes);
}

static ot_status gather_some(ot_comm *comm)
{
    char byte = 1, all[RANKS_MAX];

    return ot_comm_all_gather(comm, &byte, 1, all);
}

static void lack_memory(ot_comm *comm, void *context)
{
    static ot_status (*const calls[])(ot_comm * comm) = {split_all, reduce_some, broadcast_some,
                                                         gather_some};
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);

    (void)context;
    for (size_t i = 0; i < OT_COUNT(calls); i++)
        for (int poor = 0; poor < n; poor++) {
            int64_t n_failed = 0;
            ot_status st;

            do {
                ot__alloc_fail_after(rank == poor ? n_failed : -1);
                st = calls[i](comm);
                ot__alloc_fail_after(-1);
                if (st != OT_OK) {
                    RANK_CHECK(st == OT_ERR_NO_MEMORY, "call %zu: %s", i, ot_error_message());
                    RANK_CHECK(ot__starts_with(ot_error_message(), "rank "), "'%s'",
                               ot_error_message());
                    n_failed++;
                }
                RANK_MUST(ot_comm_barrier(comm));
            } while (st == OT_ERR_NO_MEMORY);
            RANK_CHECK(n_failed == (i == 0 ? 3 : i == 1), "call %zu: %d allocations", i,
                       (int)n_failed);
        }
}

static void without_memory_on_one_rank_all_fail_and_go_on(void **state)
{
    (void)state;
    run_ranks(3, lack_memory, NULL);
}

static void create_poorly(ot_comm *comm, void *context)
{
    const int poor = *(const int *)context, rank = ot_comm_rank(comm);
    static ot_transport transports[RANKS_MAX]; // of a second job
    ot_comm *second = NULL;
    int64_t n_failed = 0;
    ot_status st;

    if (rank == 0)
        RANK_MUST(ot__threads_open(ot_comm_world_size(comm), NULL, transports));
    RANK_MUST(ot_comm_barrier(comm));
    do {
        ot__alloc_fail_after(rank == poor ? n_failed : -1);
        st = ot_comm_create(&transports[rank], NULL, &second);
        ot__alloc_fail_after(-1);
        if (st != OT_OK)
            RANK_CHECK(st == OT_ERR_NO_MEMORY && ot__starts_with(ot_error_message(), "rank "),
                       "'%s'", ot_error_message());
        n_failed += st != OT_OK;
        RANK_CHECK((st == OT_OK) == (second != NULL), "%s", ot_status_name(st));
        RANK_MUST(ot_comm_barrier(comm));
    } while (st == OT_ERR_NO_MEMORY);
    RANK_CHECK(n_failed == 3, "%d allocations", (int)n_failed);
    ot_comm_destroy(second);
}

static void without_memory_on_one_rank_none_has_a_communicator(void **state)
{
    (void)state;
    for (int poor = 0; poor < 3; poor++)
        run_ranks(3, create_poorly, &poor);
}

// ---- silence ----

static const double short_limit = 0.3;

typedef struct silence {
    int silent;
    atomic_int n_gone; // ranks that have given up
} silence;

static void wait_for_the_silent(ot_comm *comm, void *context)
{
    silence *s = context;
    const int rank = ot_comm_rank(comm);
    char expected[64];

    RANK_MUST(ot_comm_barrier(comm));
    if (rank == s->silent) {
        while (atomic_load(&s->n_gone) < ot_comm_world_size(comm) - 1)
            usleep(1000);
        return;
    }
    RANK_CHECK(ot_comm_barrier(comm) == OT_ERR_TIMEOUT, "%s", ot_error_message());
    snprintf(expected, sizeof expected, "rank %d: silent for 0.3 s in barrier (OT_COMM_TIMEOUT)",
             s->silent);
    RANK_CHECK(strcmp(ot_error_message(), expected) == 0, "'%s'", ot_error_message());
    ot__error_clear();
    RANK_CHECK(ot_comm_barrier(comm) == OT_ERR_TIMEOUT, "a broken communicator works");
    RANK_CHECK(strcmp(ot_error_message(), expected) == 0, "'%s'", ot_error_message());
    atomic_fetch_add(&s->n_gone, 1);
}

static void the_silent_rank_is_named_by_all_others(void **state)
{
    (void)state;
    for (int silent = 0; silent < 3; silent++) {
        silence s = {.silent = silent};

        run_ranks_over(3, NULL, short_limit, wait_for_the_silent, &s);
    }
}

static void come_late(ot_comm *comm, void *context)
{
    (void)context;
    if (ot_comm_rank(comm) == 1)
        usleep(100000);
    RANK_MUST(ot_comm_barrier(comm));
}

static void a_slow_rank_is_waited_for(void **state)
{
    (void)state;
    run_ranks(3, come_late, NULL);
    run_ranks_over(3, NULL, 0.0, come_late, NULL); // no limit
}

static void wait_crosswise(ot_comm *comm, void *context)
{
    char byte;
    ot_status st;

    (void)context;
    st = ot__comm_exchange(comm, OT_TAG_GATHER, 0, NULL, 0, 1 - ot_comm_rank(comm), &byte, 1,
                           "a test");
    RANK_CHECK(st == OT_ERR_TIMEOUT, "%s", ot_status_name(st));
    RANK_CHECK(ot__starts_with(ot_error_message(), "all ranks wait for each other"), "'%s'",
               ot_error_message());
}

static void ranks_that_wait_for_each_other_say_so(void **state)
{
    (void)state;
    run_ranks_over(2, NULL, short_limit, wait_crosswise, NULL);
}

// ---- a transport that fails ----

static ot_status fail_to_send(void *context, int to, int tag, const void *bytes, size_t n_bytes,
                              ot_request *out)
{
    (void)context, (void)to, (void)tag, (void)bytes, (void)n_bytes, (void)out;
    return OT_ERR_IO;
}

static const char *explain_failure(void *context)
{
    (void)context;
    return "no route";
}

static void lose_the_network(ot_comm *comm, void *context)
{
    (void)context;
    comm->job->transport.send = fail_to_send;
    comm->job->transport.message = explain_failure;
    RANK_CHECK(ot_comm_barrier(comm) == OT_ERR_IO, "%s", ot_error_message());
    RANK_CHECK(strcmp(ot_error_message(), "threads: no route") == 0, "'%s'", ot_error_message());
    RANK_CHECK(ot_comm_barrier(comm) == OT_ERR_IO, "a broken communicator works");
}

static void what_the_transport_says_is_final(void **state)
{
    (void)state;
    run_ranks(2, lose_the_network, NULL);
}

// ---- more bytes than a transport takes at once ----

static const size_t transport_max = (size_t)1 << 30; // ot_transport
static _Thread_local struct {
    const char *next; // what comes after the pieces so far; nobody reads it
    int n;
} sent, received;

static ot_status note_sent(void *context, int to, int tag, const void *bytes, size_t n_bytes,
                           ot_request *out)
{
    (void)context, (void)to, (void)tag, (void)out;
    RANK_CHECK(n_bytes > 0 && n_bytes <= transport_max && bytes == sent.next, "piece %d", sent.n);
    sent.next += n_bytes;
    sent.n++;
    return OT_OK;
}

static ot_status note_received(void *context, int from, int tag, void *bytes, size_t n_bytes,
                               ot_request *out)
{
    (void)context, (void)from, (void)tag, (void)out;
    RANK_CHECK(n_bytes > 0 && n_bytes <= transport_max && bytes == received.next, "piece %d",
               received.n);
    received.next += n_bytes;
    received.n++;
    return OT_OK;
}

static ot_status all_are_done(void *context, ot_request *requests, int n, int *n_done)
{
    (void)context, (void)requests;
    *n_done = n;
    return OT_OK;
}

static void exchange_much(ot_comm *comm, void *context)
{
    static char first_sent, first_received;
    const size_t n_sent = 2 * transport_max + 1, n_received = 5 * transport_max;

    (void)context;
    comm->job->transport.send = note_sent;
    comm->job->transport.receive = note_received;
    comm->job->transport.test = all_are_done;
    sent.next = &first_sent;
    received.next = &first_received;
    sent.n = received.n = 0;
    RANK_MUST(ot__comm_exchange(comm, OT_TAG_GATHER, 1, &first_sent, n_sent, 1, &first_received,
                                n_received, "a test"));
    RANK_CHECK(sent.n == 3 && (uintptr_t)sent.next == (uintptr_t)&first_sent + n_sent,
               "%d pieces are sent", sent.n);
    RANK_CHECK(received.n == 5 &&
                   (uintptr_t)received.next == (uintptr_t)&first_received + n_received,
               "%d pieces are received", received.n);
}

static void what_is_large_is_sent_in_pieces(void **state)
{
    (void)state;
    run_ranks(1, exchange_much, NULL);
}

static void incomplete_transports_are_refused(void **state)
{
    ot_transport transport;
    ot_comm *comm;

    (void)state;
    assert_int_equal(ot__threads_open(1, NULL, &transport), OT_OK);
    for (int i = 0; i < 4; i++) {
        ot_transport bad = transport;

        if (i == 0)
            bad.test = NULL;
        else if (i == 1)
            bad.rank = 1;
        else if (i == 2)
            bad.world_size = 0;
        else
            bad.tag_max = 100;
        assert_int_equal(ot_comm_create(&bad, NULL, &comm), OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), "ot_transport: "));
    }
    transport.destroy(transport.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_is_one_rank),
        cmocka_unit_test(senseless_limits_are_refused),
        cmocka_unit_test(another_thread_is_refused),
        cmocka_unit_test(groups_are_those_of_one_color_ordered_by_key),
        cmocka_unit_test(a_rank_may_be_in_no_group),
        cmocka_unit_test(groups_beyond_the_transports_tags_are_refused),
        cmocka_unit_test(ranks_of_other_versions_do_not_join),
        cmocka_unit_test(without_memory_on_one_rank_all_fail_and_go_on),
        cmocka_unit_test(without_memory_on_one_rank_none_has_a_communicator),
        cmocka_unit_test(the_silent_rank_is_named_by_all_others),
        cmocka_unit_test(a_slow_rank_is_waited_for),
        cmocka_unit_test(ranks_that_wait_for_each_other_say_so),
        cmocka_unit_test(what_the_transport_says_is_final),
        cmocka_unit_test(what_is_large_is_sent_in_pieces),
        cmocka_unit_test(incomplete_transports_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
