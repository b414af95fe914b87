// SPDX-License-Identifier: Apache-2.0
// What may go wrong in a save and in a load, on one of the ranks: the same for all, and nothing is
// lost.
#include "base/file_calls.h"
#include "forked.h"
#include "shards_fixture.h"

static void expect(const char *path, int n_ranks, int64_t add)
{
    call c = CALL_INIT;

    c.path = path;
    c.how = SPREAD_RANGE;
    c.add = add;
    run_ranks(n_ranks, load_rank, &c);
}

static void save(const char *path, int n_ranks, int64_t add)
{
    call c = CALL_INIT;

    c.path = path;
    c.how = SPREAD_ROWS;
    c.add = add;
    c.options.replaces = 1;
    run_ranks(n_ranks, save_rank, &c);
}

// Which of two saves is there, whole.
static int64_t step_at(const char *path)
{
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;

    if (ot_shards_open(path, &reader) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
    if (ot_shards_reader_verify(reader) != OT_OK)
        fail_msg("%s", ot_error_message());
    ot_shards_reader_destroy(reader);
    expect(path, 1, info.step);
    return info.step;
}

// ---- faults of files on one rank ----

typedef struct fault {
    call call;
    int rank;
    int64_t n;
    ot__file_fault kind;
    int n_failed;
    int64_t n_calls; // of that rank
} fault;

static void save_with_fault(ot_comm *comm, void *context)
{
    fault *f = context;
    const bool is_it = ot_comm_rank(comm) == f->rank;
    ot_status st;

    if (is_it)
        ot__file_fault_after(f->n, f->kind);
    st = save_call(comm, &f->call);
    if (is_it) {
        f->n_calls = ot__file_fault_after(-1, OT_FILE_FAIL);
        f->n_failed = st != OT_OK;
    }
    RANK_CHECK(st == OT_OK || st == OT_ERR_IO, "%s: %s", ot_status_name(st), ot_error_message());
    if (st != OT_OK) {
        char named[32];

        snprintf(named, sizeof named, "rank %d: ", f->rank);
        RANK_CHECK(strstr(ot_error_message(), named) == ot_error_message(), "%s",
                   ot_error_message());
    }
}

// Nothing is left of what failed, what was there is there, and the next save works.
static void a_failing_call_on_one_rank_fails_on_all(void **state)
{
    static const ot__file_fault kinds[] = {OT_FILE_FAIL, OT_FILE_FULL, OT_FILE_TOO_LARGE,
                                           OT_FILE_SHORT};
    char path[PATH_LENGTH_MAX];

    snprintf(path, sizeof path, "%s/a", (const char *)*state);
    save(path, 2, 1);
    for (size_t k = 0; k < OT_COUNT(kinds); k++)
        for (int rank = 0; rank < 2; rank++) {
            fault f = {.call = CALL_INIT, .rank = rank, .kind = kinds[k], .n_calls = INT64_MAX};
            int n_failures = 0;

            for (; f.n_calls >= f.n; f.n++) { // until the fault does not come any more
                f.call.path = path;
                f.call.options.replaces = 1;
                f.call.add = 2;
                run_ranks(2, save_with_fault, &f);
                n_failures += f.n_failed;
                if (f.n_failed)
                    assert_in_range(step_at(path), 1, 2);
                else
                    assert_int_equal(step_at(path), 2);
                assert_in_range(count_entries(*state), 1, 2); // one that is replaced may be left
                save(path, 1, 1);
                assert_int_equal(count_entries(*state), 1);
            }
            if (kinds[k] == OT_FILE_FAIL || kinds[k] == OT_FILE_FULL)
                assert_true(n_failures > 2);
            if (kinds[k] == OT_FILE_SHORT)
                assert_int_equal(n_failures, 0);
        }
}

// ---- kills ----

typedef struct killing {
    call call;
    int rank, n_ranks;
    int64_t n;
    bool has_no_exchange;
} killing;

static void save_and_be_killed(ot_comm *comm, void *context)
{
    const killing *k = context;

    ot__file_no_exchange(k->has_no_exchange);
    if (ot_comm_rank(comm) == k->rank)
        ot__file_fault_after(k->n, OT_FILE_KILL);
    RANK_MUST(save_call(comm, &k->call));
    ot__file_fault_after(-1, OT_FILE_FAIL);
    ot__file_no_exchange(false);
}

static int save_in_child(void *context)
{
    killing *k = context;

    run_ranks(k->n_ranks, save_and_be_killed, k);
    return 0;
}

// All threads of the child end with it, wherever they are.
static void kill_at_every_call(void **state, bool has_older, bool has_no_exchange)
{
    enum { RANKS = 3 };
    char path[PATH_LENGTH_MAX];

    skip_under_an_emulator();
    snprintf(path, sizeof path, "%s/a", (const char *)*state);
    for (int rank = 0; rank < RANKS; rank++) {
        killing k = {
            .call = CALL_INIT, .rank = rank, .n_ranks = RANKS, .has_no_exchange = has_no_exchange};
        int result = -1;

        k.call.path = path;
        k.call.how = SPREAD_COLUMNS;
        k.call.add = 2;
        k.call.options.replaces = 1;
        k.call.options.sets_latest = 1;
        for (; result != 0; k.n++) {
            remove_below(path);
            if (has_older)
                save(path, 1, 1);
            result = in_child(save_in_child, &k);
            assert_true(result == 0 || result == -1);
            if (has_older) {
                assert_in_range(step_at(path), result == 0 ? 2 : 1, 2);
            } else if (ot__path_exists(path)) {
                assert_int_equal(step_at(path), 2);
            }
            k.call.add = 3; // what was killed is in nobody's way, and leaves nothing
            assert_int_equal(save_call(NULL, &k.call), OT_OK);
            k.call.add = 2;
            assert_int_equal(step_at(path), 3);
            unlink(in_folder(state, "latest"));
            assert_int_equal(count_entries(*state), 1);
        }
        assert_true(k.n > (rank == 0 ? 12 : 3));
    }
}

static void a_kill_leaves_nothing_where_there_was_nothing(void **state)
{
    kill_at_every_call(state, false, false);
}

static void a_kill_leaves_the_older_or_the_new_one(void **state)
{
    kill_at_every_call(state, true, false);
}

static void a_kill_between_two_renames_loses_nothing(void **state)
{
    kill_at_every_call(state, true, true);
}

// ---- memory ----

static void save_or_load_without_memory(ot_comm *comm, void *context)
{
    call *c = context;
    const ot_status st = c->status == OT_OK ? save_call(comm, c) : load_call(comm, c); // see below

    RANK_CHECK(st == OT_OK || st == OT_ERR_NO_MEMORY, "%s: %s", ot_status_name(st),
               ot_error_message());
    if (ot_comm_rank(comm) == 0)
        c->options.n_kept = st == OT_OK;
}

// The status of a call here: OT_OK, it is a save; else a load.
static void fail_every_allocation(call *c, int rank, bool saves)
{
    bool is_done = false;

    c->allocations_of_rank = rank;
    for (c->allocations = 0; !is_done; c->allocations++) {
        c->status = saves ? OT_OK : OT_ERR_STATE;
        c->options.n_kept = 0;
        run_ranks(2, save_or_load_without_memory, c);
        is_done = c->options.n_kept == 1;
    }
    assert_true(c->allocations > 50);
}

static void every_allocation_may_fail_on_every_rank(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    c.how = SPREAD_RANGE;
    c.options.replaces = 1;
    for (int rank = 0; rank < 2; rank++) {
        fail_every_allocation(&c, rank, true);
        assert_int_equal(count_entries(*state), 1);
        fail_every_allocation(&c, rank, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(a_failing_call_on_one_rank_fails_on_all),
        SHARDS_TEST(a_kill_leaves_nothing_where_there_was_nothing),
        SHARDS_TEST(a_kill_leaves_the_older_or_the_new_one),
        SHARDS_TEST(a_kill_between_two_renames_loses_nothing),
        SHARDS_TEST(every_allocation_may_fail_on_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
