// SPDX-License-Identifier: Apache-2.0
// Both ends of a message by one thread, which nothing here waits in.
#include "unit/dist/ranks.h"

enum { TAG = 3 };

static int n_done(const ot_transport *t, ot_request *requests, int n)
{
    int count;

    assert_int_equal(t->test(t->context, requests, n, &count), OT_OK);
    return count;
}

static void start(const ot_transport *from, const ot_transport *to, int tag, const int *sent,
                  int *received, ot_request requests[2])
{
    assert_int_equal(
        to->receive(to->context, from->rank, tag, received, sizeof *received, &requests[0]), OT_OK);
    assert_int_equal(from->send(from->context, to->rank, tag, sent, sizeof *sent, &requests[1]),
                     OT_OK);
}

static void a_message_is_sent_when_it_is_received(void **state)
{
    const int sent = 42;
    int received = 0;
    ot_transport t[2];
    ot_request out = {{0}}, in = {{0}};

    (void)state;
    assert_int_equal(ot__threads_open(2, NULL, t), OT_OK);
    assert_int_equal(t[0].send(t[0].context, 1, TAG, &sent, sizeof sent, &out), OT_OK);
    assert_int_equal(n_done(&t[0], &out, 1), 0); // nothing is buffered
    assert_int_equal(t[1].receive(t[1].context, 0, TAG, &received, sizeof received, &in), OT_OK);
    assert_int_equal(n_done(&t[1], &in, 1), 1);
    assert_int_equal(n_done(&t[0], &out, 1), 1);
    assert_int_equal(received, 42);
    t[0].destroy(t[0].context);
    t[1].destroy(t[1].context);
}

static void messages_of_one_tag_keep_their_order(void **state)
{
    const int sent[] = {1, 2, 3, 4};
    int received[4] = {0};
    ot_transport t[2];
    ot_request out[4], in[4];

    (void)state;
    assert_int_equal(ot__threads_open(2, NULL, t), OT_OK);
    for (int i = 0; i < 2; i++) // two that wait for their receiver, two that come to it
        (void)t[0].send(t[0].context, 1, TAG, &sent[i], sizeof sent[i], &out[i]);
    for (int i = 0; i < 4; i++)
        (void)t[1].receive(t[1].context, 0, TAG, &received[i], sizeof received[i], &in[i]);
    for (int i = 2; i < 4; i++)
        (void)t[0].send(t[0].context, 1, TAG, &sent[i], sizeof sent[i], &out[i]);
    assert_int_equal(n_done(&t[1], in, 4), 4);
    assert_int_equal(n_done(&t[0], out, 4), 4);
    assert_memory_equal(received, sent, sizeof sent);
    t[0].destroy(t[0].context);
    t[1].destroy(t[1].context);
}

static void tags_and_senders_are_told_apart(void **state)
{
    const int sent[] = {1, 2, 3};
    int received[3] = {0};
    ot_transport t[3];
    ot_request out[3], in[3];

    (void)state;
    assert_int_equal(ot__threads_open(3, NULL, t), OT_OK);
    (void)t[0].send(t[0].context, 2, TAG, &sent[0], sizeof sent[0], &out[0]);
    (void)t[0].send(t[0].context, 2, TAG + 1, &sent[1], sizeof sent[1], &out[1]);
    (void)t[1].send(t[1].context, 2, TAG, &sent[2], sizeof sent[2], &out[2]);
    (void)t[2].receive(t[2].context, 1, TAG, &received[2], sizeof received[2], &in[2]);
    (void)t[2].receive(t[2].context, 0, TAG + 1, &received[1], sizeof received[1], &in[1]);
    (void)t[2].receive(t[2].context, 0, TAG, &received[0], sizeof received[0], &in[0]);
    assert_int_equal(n_done(&t[2], in, 3), 3);
    assert_memory_equal(received, sent, sizeof sent);
    for (int i = 0; i < 3; i++)
        t[i].destroy(t[i].context);
}

static void what_is_cancelled_is_never_matched(void **state)
{
    const int sent[] = {1, 2};
    int received = 0;
    ot_transport t[2];
    ot_request out[2], in;

    (void)state;
    assert_int_equal(ot__threads_open(2, NULL, t), OT_OK);
    (void)t[0].send(t[0].context, 1, TAG, &sent[0], sizeof sent[0], &out[0]);
    t[0].cancel(t[0].context, out, 1);
    assert_int_equal(n_done(&t[0], out, 1), 1);
    (void)t[0].send(t[0].context, 1, TAG, &sent[1], sizeof sent[1], &out[1]);
    (void)t[1].receive(t[1].context, 0, TAG, &received, sizeof received, &in);
    assert_int_equal(received, 2);
    t[0].destroy(t[0].context);
    t[1].destroy(t[1].context);
}

// ---- a modelled network ----

static double virtual_time(void *context)
{
    return *(const double *)context;
}

// 2 s for the way, 0.25 s a byte: 4 bytes leave within 1 s and are there after 3.
static void messages_take_their_time(void **state)
{
    double now = 10.0;
    const ot__network network = {.latency = 2.0,
                                 .seconds_per_byte = 0.25,
                                 .slow_rank = -1,
                                 .now = virtual_time,
                                 .context = &now};
    const int sent = 42;
    int received[3] = {0};
    ot_transport t[3];
    ot_request first[2], second[2], other[2];

    (void)state;
    assert_int_equal(ot__threads_open(3, &network, t), OT_OK);
    start(&t[0], &t[1], TAG, &sent, &received[0], first);
    start(&t[0], &t[2], TAG, &sent, &received[1], second); // behind the first on the line
    start(&t[1], &t[0], TAG, &sent, &received[2], other);  // on a line of its own
    assert_int_equal(n_done(&t[0], &first[1], 1), 0);
    now = 11.0;
    assert_int_equal(n_done(&t[0], &first[1], 1), 1);
    assert_int_equal(n_done(&t[0], &second[1], 1), 0);
    assert_int_equal(n_done(&t[1], &first[0], 1), 0);
    now = 13.0;
    assert_int_equal(n_done(&t[1], &first[0], 1), 1);
    assert_int_equal(n_done(&t[0], &other[0], 1), 1);
    assert_int_equal(n_done(&t[0], &second[1], 1), 1);
    assert_int_equal(n_done(&t[2], &second[0], 1), 0);
    now = 14.0;
    assert_int_equal(n_done(&t[2], &second[0], 1), 1);
    for (int i = 0; i < 3; i++)
        t[i].destroy(t[i].context);
}

static void a_slow_ranks_messages_come_later(void **state)
{
    double now = 0.0;
    const ot__network network = {
        .slow_rank = 1, .slowness = 5.0, .now = virtual_time, .context = &now};
    const int sent = 42;
    int received[2] = {0};
    ot_transport t[2];
    ot_request slow[2], quick[2];

    (void)state;
    assert_int_equal(ot__threads_open(2, &network, t), OT_OK);
    start(&t[1], &t[0], TAG, &sent, &received[0], slow);
    start(&t[0], &t[1], TAG, &sent, &received[1], quick);
    assert_int_equal(n_done(&t[1], &quick[0], 1), 1);
    assert_int_equal(n_done(&t[0], &slow[0], 1), 0);
    now = 5.0;
    assert_int_equal(n_done(&t[0], &slow[0], 1), 1);
    t[0].destroy(t[0].context);
    t[1].destroy(t[1].context);
}

static void sum_over_a_network(ot_comm *comm, void *context)
{
    ot_comm_counters counters = OT_COMM_COUNTERS_INIT;
    int64_t number = ot_comm_rank(comm);

    (void)context;
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, &number, 1));
    RANK_CHECK(number == 3, "%d", (int)number);
    RANK_MUST(ot_comm_get_counters(comm, &counters));
    // Created, agreed and gathered: two ways each at least.
    RANK_CHECK(counters.seconds_waited >= 6 * 0.002, "%g s waited", counters.seconds_waited);
}

static void a_network_only_makes_it_slower(void **state)
{
    const ot__network network = {.latency = 0.002, .slow_rank = -1};

    (void)state;
    run_ranks_over(3, &network, rank_timeout, sum_over_a_network, NULL);
}

static void open_without_memory(void **state)
{
    ot_transport t[2];
    int64_t n = 0;

    (void)state;
    do
        ot__alloc_fail_after(n++);
    while (ot__threads_open(2, NULL, t) == OT_ERR_NO_MEMORY);
    ot__alloc_fail_after(-1);
    assert_int_equal(n, 3);
    t[0].destroy(t[0].context);
    t[1].destroy(t[1].context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_sent_when_it_is_received),
        cmocka_unit_test(messages_of_one_tag_keep_their_order),
        cmocka_unit_test(tags_and_senders_are_told_apart),
        cmocka_unit_test(what_is_cancelled_is_never_matched),
        cmocka_unit_test(messages_take_their_time),
        cmocka_unit_test(a_slow_ranks_messages_come_later),
        cmocka_unit_test(a_network_only_makes_it_slower),
        cmocka_unit_test(open_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
