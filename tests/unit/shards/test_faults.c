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

static void save_step(void **state, int n_ranks, int64_t step)
{
    char name[32];
    call c = CALL_INIT;

    snprintf(name, sizeof name, "step-%d", (int)step);
    c.path = in_folder(state, name);
    c.how = SPREAD_ROWS;
    c.add = step;
    c.options.replaces = c.options.sets_latest = c.options.n_kept = 1;
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

enum { FAULT_RANKS = 2 };

typedef struct fault {
    call call;
    ot_status (*save)(ot_comm *comm, const call *c);
    int rank;
    int64_t n;
    ot__file_fault kind;
    ot_status statuses[FAULT_RANKS];
    char messages[FAULT_RANKS][OT_MESSAGE_MAX];
    int64_t n_calls; // of the rank that has the fault
} fault;

static void save_with_fault(ot_comm *comm, void *context)
{
    fault *f = context;
    const int r = ot_comm_rank(comm);

    if (r == f->rank)
        ot__file_fault_after(f->n, f->kind);
    f->statuses[r] = f->save(comm, &f->call);
    snprintf(f->messages[r], OT_MESSAGE_MAX, "%s", ot_error_message());
    if (r == f->rank)
        f->n_calls = ot__file_fault_after(-1, OT_FILE_FAIL);
}

// All ranks hear the same, which names the rank that it is of.
static void expect_alike(const fault *f)
{
    char named[32];

    assert_int_equal(f->statuses[0], f->statuses[1]);
    if (f->statuses[0] == OT_OK)
        return;
    assert_int_equal(f->statuses[0], OT_ERR_IO);
    assert_string_equal(f->messages[0], f->messages[1]);
    snprintf(named, sizeof named, "rank %d: ", f->rank);
    if (strstr(f->messages[0], named) != f->messages[0])
        fail_msg("%s", f->messages[0]);
}

// How many of all calls of a rank make a save fail. Nothing is left of what failed, what was there
// is there, and the next save works.
static int fail_every_call(void **state, fault *f)
{
    int n_failures = 0;

    f->n_calls = INT64_MAX;
    for (f->n = 0; f->n_calls >= f->n; f->n++) { // until the fault does not come any more
        f->call.path = in_folder(state, "a");
        f->call.options.replaces = 1;
        f->call.add = 2;
        run_ranks(FAULT_RANKS, save_with_fault, f);
        expect_alike(f);
        n_failures += f->statuses[0] != OT_OK;
        assert_int_equal(step_at(in_folder(state, "a")), f->statuses[0] == OT_OK ? 2 : 1);
        // A save that succeeds leaves what it replaces where that cannot be removed.
        assert_in_range(count_entries(*state), 1, f->statuses[0] == OT_OK ? 2 : 1);
        save(in_folder(state, "a"), 1, 1);
        assert_int_equal(count_entries(*state), 1);
    }
    return n_failures;
}

static void fail_everywhere(void **state, ot_status (*save_by)(ot_comm *comm, const call *c),
                            size_t n_kinds)
{
    static const struct {
        ot__file_fault kind;
        int n_least[FAULT_RANKS]; // failures, as many as there are calls that matter
    } kinds[] = {{OT_FILE_FAIL, {12, 4}},
                 {OT_FILE_FULL, {8, 3}},
                 {OT_FILE_TOO_LARGE, {6, 2}},
                 {OT_FILE_SHORT, {0, 0}}};

    save(in_folder(state, "a"), 2, 1);
    for (size_t k = 0; k < OT_MIN(n_kinds, OT_COUNT(kinds)); k++)
        for (int rank = 0; rank < FAULT_RANKS; rank++) {
            fault f = {.call = CALL_INIT, .save = save_by, .rank = rank, .kind = kinds[k].kind};
            const int n = fail_every_call(state, &f);

            if (kinds[k].kind == OT_FILE_SHORT)
                assert_int_equal(n, 0);
            else
                assert_true(n >= kinds[k].n_least[rank]);
        }
}

static void a_failing_call_on_one_rank_fails_on_all(void **state)
{
    fail_everywhere(state, save_call, SIZE_MAX);
}

static void a_failing_call_of_a_job_fails_on_all(void **state)
{
    fail_everywhere(state, save_by_job_call, 1); // its calls are the same
}

// The file comes last: the new one is there by then, and older ones are not removed.
static void a_file_latest_that_cannot_be_written_is_an_error(void **state)
{
    call c = CALL_INIT;

    save_step(state, 2, 1);
    assert_int_equal(unlink(in_folder(state, "latest")), 0);
    assert_int_equal(mkdir(in_folder(state, "latest"), 0777), 0);
    c.path = in_folder(state, "step-2");
    c.add = 2;
    c.options.sets_latest = c.options.n_kept = 1;
    c.status = OT_ERR_IO;
    c.message = "latest: is a directory";
    run_ranks(2, save_rank, &c);
    assert_int_equal(step_at(in_folder(state, "step-1")), 1);
    assert_int_equal(step_at(in_folder(state, "step-2")), 2);
    assert_int_equal(count_entries(*state), 3);
}

// ---- kills ----

typedef struct killing {
    call call;
    int rank, n_ranks;
    int64_t n;
    bool has_no_exchange;
    ot_status (*save)(ot_comm *comm, const call *c);
} killing;

static void save_and_be_killed(ot_comm *comm, void *context)
{
    const killing *k = context;

    ot__file_no_exchange(k->has_no_exchange);
    if (ot_comm_rank(comm) == k->rank)
        ot__file_fault_after(k->n, OT_FILE_KILL);
    RANK_MUST(k->save(comm, &k->call));
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
        killing k = {.call = CALL_INIT,
                     .rank = rank,
                     .n_ranks = RANKS,
                     .has_no_exchange = has_no_exchange,
                     .save = save_call};
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

// ---- kills of a training, whose saves stand in a row ----

// The folder is read by its file `latest`: the step before, or the one that was being saved.
static void kill_in_a_row(void **state, ot_status (*save_by)(ot_comm *comm, const call *c))
{
    enum { RANKS = 2 };

    skip_under_an_emulator();
    for (int rank = 0; rank < RANKS; rank++) {
        killing k = {.call = CALL_INIT, .rank = rank, .n_ranks = RANKS, .save = save_by};
        int result = -1;

        k.call.how = SPREAD_COLUMNS;
        k.call.add = 2;
        k.call.options.replaces = k.call.options.sets_latest = k.call.options.n_kept = 1;
        for (; result != 0; k.n++) {
            save_step(state, 1, 1);
            k.call.path = in_folder(state, "step-2");
            result = in_child(save_in_child, &k);
            assert_true(result == 0 || result == -1);
            assert_in_range(step_at(*state), result == 0 ? 2 : 1, 2);
            save_step(state, 1, 3); // what was killed is in nobody's way, and leaves nothing
            assert_int_equal(step_at(*state), 3);
            assert_int_equal(count_entries(*state), 2); // with `latest`
            remove_below(in_folder(state, "step-3"));
            unlink(in_folder(state, "latest"));
        }
        assert_true(k.n > (rank == 0 ? 25 : 3));
    }
}

static void a_kill_in_a_row_of_saves_leaves_the_last_or_the_one_before(void **state)
{
    kill_in_a_row(state, save_call);
}

static void a_kill_of_a_job_leaves_the_last_or_the_one_before(void **state)
{
    kill_in_a_row(state, save_by_job_call);
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
        SHARDS_TEST(a_failing_call_of_a_job_fails_on_all),
        SHARDS_TEST(a_file_latest_that_cannot_be_written_is_an_error),
        SHARDS_TEST(a_kill_leaves_nothing_where_there_was_nothing),
        SHARDS_TEST(a_kill_leaves_the_older_or_the_new_one),
        SHARDS_TEST(a_kill_between_two_renames_loses_nothing),
        SHARDS_TEST(a_kill_in_a_row_of_saves_leaves_the_last_or_the_one_before),
        SHARDS_TEST(a_kill_of_a_job_leaves_the_last_or_the_one_before),
        SHARDS_TEST(every_allocation_may_fail_on_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
