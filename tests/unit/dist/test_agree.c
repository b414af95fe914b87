// SPDX-License-Identifier: Apache-2.0
#include "unit/dist/ranks.h"

// ---- the same on all ranks ----

static void agree_on_flags(ot_comm *comm, void *context)
{
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    ot_agreement a = OT_AGREEMENT_INIT;

    (void)context;
    a.any = UINT64_C(1) << rank;
    a.all = UINT64_C(6) | UINT64_C(1) << (8 + rank);
    RANK_MUST(ot_comm_agree(comm, &a));
    RANK_CHECK(a.any == (UINT64_C(1) << n) - 1, "any is %llx", (unsigned long long)a.any);
    RANK_CHECK(a.all == (n == 1 ? 0x106 : 6), "all is %llx", (unsigned long long)a.all);
    RANK_CHECK(a.rank == -1 && a.status == OT_OK, "rank %d", (int)a.rank);
}

static void flags_are_those_of_any_rank_and_of_all(void **state)
{
    (void)state;
    run_all_ranks(agree_on_flags);
}

static void fail_on_each(ot_comm *comm, void *context)
{
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);

    (void)context;
    for (int bad = 0; bad < n; bad++) {
        ot_agreement a = OT_AGREEMENT_INIT;
        char expected[64];
        ot_status st;

        if (rank == bad)
            a.status = ot__error(OT_ERR_FORMAT, "row %d is bad", bad);
        st = ot_comm_agree(comm, &a);
        if (n == 1)
            snprintf(expected, sizeof expected, "row %d is bad", bad);
        else
            snprintf(expected, sizeof expected, "rank %d: row %d is bad", bad, bad);
        RANK_CHECK(st == OT_ERR_FORMAT && a.status == OT_ERR_FORMAT, "%s", ot_status_name(st));
        RANK_CHECK(a.rank == bad, "rank %d", (int)a.rank);
        RANK_CHECK(strcmp(ot_error_message(), expected) == 0, "'%s'", ot_error_message());
        RANK_MUST(ot_comm_barrier(comm)); // the next call works
    }
}

static void a_failure_on_any_rank_is_that_of_all(void **state)
{
    (void)state;
    run_all_ranks(fail_on_each);
}

static void fail_on_several(ot_comm *comm, void *context)
{
    static const ot_status statuses[] = {OT_OK, OT_ERR_FORMAT, OT_ERR_NOT_FINITE, OT_ERR_NOT_FINITE,
                                         OT_ERR_INVALID};
    const int rank = ot_comm_rank(comm);
    ot_agreement a = OT_AGREEMENT_INIT;

    (void)context;
    a.status = ot__error(statuses[rank], "%d", rank);
    RANK_CHECK(ot_comm_agree(comm, &a) == OT_ERR_NOT_FINITE, "%s", ot_error_message());
    RANK_CHECK(strcmp(ot_error_message(), "rank 2: 2") == 0, "'%s'", ot_error_message());
}

static void the_worst_status_counts_and_its_lowest_rank(void **state)
{
    (void)state;
    run_ranks(5, fail_on_several, NULL);
}

static void agree_twice_on_a_failure(ot_comm *comm, void *context)
{
    ot_agreement a = OT_AGREEMENT_INIT;

    (void)context;
    if (ot_comm_rank(comm) == 1)
        a.status = ot__error(OT_ERR_IO, "no file");
    a.status = ot_comm_agree(comm, &a);
    RANK_CHECK(ot_comm_agree(comm, &a) == OT_ERR_IO, "%s", ot_error_message());
    RANK_CHECK(strcmp(ot_error_message(), "rank 1: no file") == 0, "'%s'", ot_error_message());
}

static void a_message_names_its_rank_once(void **state)
{
    (void)state;
    run_ranks(3, agree_twice_on_a_failure, NULL);
}

// ---- differences ----

static void differ_in_a_field(ot_comm *comm, void *context)
{
    const int odd = *(const int *)context, rank = ot_comm_rank(comm);
    const ot_agree_field fields[] = {{"the model", UINT64_C(0x123456789abc)},
                                     {"the batch size", rank == odd ? 31 : 32}};
    ot_agreement a = OT_AGREEMENT_INIT;
    char expected[128];
    ot_status st;

    a.call = "train step";
    a.fields = fields;
    a.n_fields = 2;
    st = ot_comm_agree(comm, &a);
    snprintf(expected, sizeof expected,
             "ranks 0 and %d differ in the batch size: 32 and 31 (train step)", odd);
    RANK_CHECK(st == OT_ERR_MISMATCH && a.status == OT_ERR_MISMATCH, "%s", ot_status_name(st));
    // Of several that differ from rank 0 any may be named.
    if (odd > 0)
        RANK_CHECK(strcmp(ot_error_message(), expected) == 0, "'%s'", ot_error_message());
    RANK_CHECK(strstr(ot_error_message(), "the batch size: 3") != NULL, "'%s'", ot_error_message());
    RANK_MUST(ot_comm_barrier(comm));
}

static void a_difference_names_the_field_and_two_ranks(void **state)
{
    (void)state;
    for (int n = 2; n <= RANKS_MAX; n++)
        for (int odd = 0; odd < n; odd++)
            run_ranks(n, differ_in_a_field, &odd);
}

static void make_other_calls(ot_comm *comm, void *context)
{
    int64_t number = 1;
    ot_status st;

    (void)context;
    st = ot_comm_rank(comm) == 2 ? ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, &number, 1)
                                 : ot_comm_barrier(comm);
    RANK_CHECK(st == OT_ERR_MISMATCH, "%s", ot_status_name(st));
    RANK_CHECK(strcmp(ot_error_message(),
                      "ranks 0 and 2 make different calls, 'barrier' and 'all_reduce': all ranks "
                      "must make the same calls in the same order") == 0,
               "'%s'", ot_error_message());
    RANK_MUST(ot_comm_barrier(comm));
}

static void different_calls_are_told_apart(void **state)
{
    (void)state;
    run_ranks(3, make_other_calls, NULL);
}

static void agree_on_nonsense(ot_comm *comm, void *context)
{
    static const ot_agree_field nameless[] = {{NULL, 1}};
    const ot_agreement senseless[] = {
        {sizeof(ot_agreement), NULL, OT_OK, -1, 0, 0, NULL, 0},
        {sizeof(ot_agreement), "x", -1, -1, 0, 0, NULL, 0},
        {sizeof(ot_agreement), "x", OT_OK, -1, 0, 0, NULL, 1},
        {sizeof(ot_agreement), "x", OT_OK, -1, 0, 0, NULL, OT_AGREE_FIELDS_MAX + 1},
        {sizeof(ot_agreement), "x", OT_OK, -1, 0, 0, nameless, 1},
        {3, "x", OT_OK, -1, 0, 0, NULL, 0},
    };

    (void)context;
    for (size_t i = 0; i < OT_COUNT(senseless); i++) {
        ot_agreement a = OT_AGREEMENT_INIT;

        if (ot_comm_rank(comm) == 1)
            a = senseless[i];
        RANK_CHECK(ot_comm_agree(comm, &a) == OT_ERR_INVALID, "case %zu", i);
        RANK_CHECK(ot__starts_with(ot_error_message(), "rank 1: ot_agreement: "), "'%s'",
                   ot_error_message());
    }
}

static void a_rank_that_asks_for_nonsense_takes_part(void **state)
{
    (void)state;
    run_ranks(3, agree_on_nonsense, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_those_of_any_rank_and_of_all),
        cmocka_unit_test(a_failure_on_any_rank_is_that_of_all),
        cmocka_unit_test(the_worst_status_counts_and_its_lowest_rank),
        cmocka_unit_test(a_message_names_its_rank_once),
        cmocka_unit_test(a_difference_names_the_field_and_two_ranks),
        cmocka_unit_test(different_calls_are_told_apart),
        cmocka_unit_test(a_rank_that_asks_for_nonsense_takes_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
