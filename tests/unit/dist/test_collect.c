// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "unit/dist/ranks.h"

// ---- what arrives ----

static void broadcast_from_each(ot_comm *comm, void *context)
{
    enum { N = 600001 }; // more than a piece
    static const size_t sizes[] = {0, 1, 1000, N};
    const int rank = ot_comm_rank(comm);
    unsigned char *bytes = malloc(N);

    (void)context;
    for (int root = 0; root < ot_comm_world_size(comm); root++)
        for (size_t s = 0; s < OT_COUNT(sizes); s++) {
            size_t wrong = 0;

            for (size_t i = 0; i < sizes[s]; i++)
                bytes[i] = rank == root ? (unsigned char)(i * 7 + (size_t)root) : 0;
            RANK_MUST(ot_comm_broadcast(comm, root, bytes, sizes[s]));
            for (size_t i = 0; i < sizes[s]; i++)
                wrong += bytes[i] != (unsigned char)(i * 7 + (size_t)root);
            RANK_CHECK(wrong == 0, "%zu of %zu bytes from %d", wrong, sizes[s], root);
        }
    free(bytes);
}

static void all_get_what_the_root_has(void **state)
{
    (void)state;
    run_all_ranks(broadcast_from_each);
}

static void gather_blocks(ot_comm *comm, void *context)
{
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    int32_t own[3] = {rank, 10 * rank, -rank}, all[3 * RANKS_MAX];

    (void)context;
    memset(all, 0, sizeof all);
    RANK_MUST(ot_comm_all_gather(comm, own, sizeof own, all));
    for (int i = 0; i < n; i++)
        RANK_CHECK(all[3 * i] == i && all[3 * i + 1] == 10 * i && all[3 * i + 2] == -i, "block %d",
                   i);
    for (int i = 3 * n; i < 3 * RANKS_MAX; i++)
        RANK_CHECK(all[i] == 0, "behind the end");
    RANK_MUST(ot_comm_all_gather(comm, NULL, 0, NULL));
}

static void blocks_lie_in_the_order_of_ranks(void **state)
{
    (void)state;
    run_all_ranks(gather_blocks);
}

static void reduce_integers(ot_comm *comm, void *context)
{
    enum { N = 70000 }; // more than is combined at a time
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    int64_t *v = malloc(N * sizeof *v), wrong = 0;

    (void)context;
    for (int64_t i = 0; i < N; i++)
        v[i] = i * (rank + 1);
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, v, N));
    for (int64_t i = 0; i < N; i++)
        wrong += v[i] != i * n * (n + 1) / 2;
    RANK_CHECK(wrong == 0, "%d wrong sums", (int)wrong);
    v[0] = rank == n - 1 ? -5 : rank;
    v[1] = rank == n - 1 ? INT64_MAX : rank;
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_MIN, OT_I64, v, 1));
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_MAX, OT_I64, v + 1, 1));
    RANK_CHECK(v[0] == -5 && v[1] == INT64_MAX, "%lld %lld", (long long)v[0], (long long)v[1]);
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, NULL, 0));
    free(v);
}

static void integers_are_combined(void **state)
{
    (void)state;
    run_all_ranks(reduce_integers);
}

// In the order of the ranks: any other order has other bits for some.
static void reduce_floats(ot_comm *comm, void *context)
{
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    double v[3] = {0.1 * (rank + 1), 1e16 * (rank % 2 ? -1 : 1) + rank, (double)rank};
    double sum[2] = {0.1, 1e16};

    (void)context;
    for (int i = 1; i < n; i++) {
        sum[0] += 0.1 * (i + 1);
        sum[1] += 1e16 * (i % 2 ? -1 : 1) + i;
    }
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, v, 2));
    RANK_CHECK(memcmp(v, sum, sizeof sum) == 0, "%.17g %.17g", v[0], v[1]);
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_MAX, OT_F64, v + 2, 1));
    RANK_CHECK(v[2] == n - 1, "%g", v[2]);
    v[2] = rank == n / 2 ? (double)NAN : 1.0;
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_MIN, OT_F64, v + 2, 1));
    RANK_CHECK(isnan(v[2]), "%g", v[2]);
}

static void floats_are_summed_in_the_order_of_ranks(void **state)
{
    (void)state;
    run_all_ranks(reduce_floats);
}

static atomic_int n_there;

static void meet_at_a_barrier(ot_comm *comm, void *context)
{
    (void)context;
    for (int round = 1; round <= 20; round++) {
        atomic_fetch_add(&n_there, 1);
        RANK_MUST(ot_comm_barrier(comm));
        RANK_CHECK(atomic_load(&n_there) >= round * ot_comm_world_size(comm), "round %d", round);
    }
}

static void nobody_passes_a_barrier_before_all_have_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(rank_counts); i++) {
        atomic_store(&n_there, 0);
        run_ranks(rank_counts[i], meet_at_a_barrier, NULL);
    }
}

static void count_messages(ot_comm *comm, void *context)
{
    enum { VERDICT = 40 };
    ot_comm_counters before = OT_COMM_COUNTERS_INIT, after = OT_COMM_COUNTERS_INIT;
    char block[1000], all[4000] = {0};

    (void)context;
    memset(block, 1, sizeof block);
    RANK_MUST(ot_comm_get_counters(comm, &before));
    RANK_MUST(ot_comm_all_gather(comm, block, sizeof block, all));
    RANK_MUST(ot_comm_get_counters(comm, &after));
    // Two rounds to agree; then three blocks, in two messages or, around the end, three.
    RANK_CHECK(after.bytes_sent - before.bytes_sent == 2 * VERDICT + 3000, "%d bytes",
               (int)(after.bytes_sent - before.bytes_sent));
    RANK_CHECK(after.messages_sent - before.messages_sent <= 2 + 3, "%d messages",
               (int)(after.messages_sent - before.messages_sent));
    RANK_CHECK(after.agreements - before.agreements == 1, "%d agreements",
               (int)(after.agreements - before.agreements));
    RANK_CHECK(after.seconds_waited >= before.seconds_waited, "negative time");
}

static void what_is_sent_is_counted(void **state)
{
    (void)state;
    run_ranks(4, count_messages, NULL);
}

// ---- what is refused ----

static void call_wrongly(ot_comm *comm, void *context)
{
    const bool odd = ot_comm_rank(comm) == 2;
    double v[2] = {1, 2};
    char bytes[4] = {0}, all[4 * RANKS_MAX];

    (void)context;
    RANK_CHECK(ot_comm_broadcast(comm, odd ? 3 : 0, bytes, 4) == OT_ERR_INVALID, "root");
    RANK_CHECK(strcmp(ot_error_message(), "rank 2: broadcast: root is 3, expected 0 to 2") == 0,
               "'%s'", ot_error_message());
    RANK_CHECK(ot_comm_broadcast(comm, 0, odd ? NULL : bytes, 4) == OT_ERR_INVALID, "no bytes");
    RANK_CHECK(ot_comm_all_gather(comm, bytes, 4, odd ? NULL : all) == OT_ERR_INVALID, "no room");
    RANK_CHECK(ot_comm_all_gather(comm, bytes, odd ? SIZE_MAX / 2 + 1 : 4, all) == OT_ERR_INVALID,
               "too many bytes");
    RANK_CHECK(ot_comm_all_reduce(comm, OT_COMM_SUM, odd ? OT_F32 : OT_F64, v, 2) == OT_ERR_INVALID,
               "element type");
    RANK_CHECK(ot_comm_all_reduce(comm, odd ? (ot_comm_op)7 : OT_COMM_SUM, OT_F64, v, 2) ==
                   OT_ERR_INVALID,
               "operation");
    RANK_CHECK(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, v, odd ? -1 : 2) == OT_ERR_INVALID,
               "count");
    RANK_CHECK(v[0] == 1 && v[1] == 2, "changed");
    RANK_MUST(ot_comm_barrier(comm));
}

static void a_wrong_argument_on_one_rank_fails_on_all(void **state)
{
    (void)state;
    run_ranks(3, call_wrongly, NULL);
}

static void differ_in_arguments(ot_comm *comm, void *context)
{
    const bool odd = ot_comm_rank(comm) == 1;
    double v[2] = {1, 2};
    char bytes[8] = {0}, all[24];

    (void)context;
    RANK_CHECK(ot_comm_broadcast(comm, odd, bytes, 4) == OT_ERR_MISMATCH, "root");
    RANK_CHECK(ot_comm_broadcast(comm, 0, bytes, odd ? 8 : 4) == OT_ERR_MISMATCH, "size");
    RANK_CHECK(
        strcmp(ot_error_message(), "ranks 0 and 1 differ in the size: 4 and 8 (broadcast)") == 0,
        "'%s'", ot_error_message());
    RANK_CHECK(ot_comm_all_gather(comm, bytes, odd ? 8 : 4, all) == OT_ERR_MISMATCH, "size");
    RANK_CHECK(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, v, odd ? 1 : 2) == OT_ERR_MISMATCH,
               "count");
    RANK_CHECK(ot_comm_all_reduce(comm, odd ? OT_COMM_MAX : OT_COMM_SUM, OT_F64, v, 2) ==
                   OT_ERR_MISMATCH,
               "operation");
    RANK_MUST(ot_comm_barrier(comm));
}

static void different_arguments_are_a_mismatch(void **state)
{
    (void)state;
    run_ranks(3, differ_in_arguments, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_get_what_the_root_has),
        cmocka_unit_test(blocks_lie_in_the_order_of_ranks),
        cmocka_unit_test(integers_are_combined),
        cmocka_unit_test(floats_are_summed_in_the_order_of_ranks),
        cmocka_unit_test(nobody_passes_a_barrier_before_all_have_come),
        cmocka_unit_test(what_is_sent_is_counted),
        cmocka_unit_test(a_wrong_argument_on_one_rank_fails_on_all),
        cmocka_unit_test(different_arguments_are_a_mismatch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
