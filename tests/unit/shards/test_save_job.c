// SPDX-License-Identifier: Apache-2.0
// Saves that a thread writes while the ranks go on.
#include <sched.h>
#include <stdatomic.h>

#include "base/file_calls.h"
#include "shards_fixture.h"

static ot_status start_job(ot_shards_job *job, ot_comm *comm, const call *c)
{
    const int r = ot_comm_rank(comm), n = ot_comm_world_size(comm);
    ot_shards_item items[] = {OT_SHARDS_ITEM_INIT, OT_SHARDS_ITEM_INIT};
    ot_shards_save_options options = c->options;
    ot_status st;

    items[0].name = "model";
    items[0].dict = make_state(c->how, r, n, c->add, true);
    items[1].name = "train";
    items[1].dict = make_values(c->add);
    options.step = c->add;
    if (c->allocations_of_rank == r)
        ot__alloc_fail_after(c->allocations);
    st = ot_shards_job_start(job, comm, c->path, items, 2, &options);
    ot__alloc_fail_after(-1);
    ot_dict_destroy(items[0].dict); // nothing of it is needed any more
    ot_dict_destroy(items[1].dict);
    return st;
}

static void save_by_job(ot_comm *comm, void *context)
{
    call c = *(call *)context;
    ot_shards_job *job;
    int done = 0;

    RANK_MUST(ot_shards_job_create(&job));
    RANK_MUST(ot_shards_job_poll(job, &done)); // there is none
    RANK_CHECK(done == 1, "%d", done);
    RANK_MUST(start_job(job, comm, &c));
    do {
        RANK_MUST(ot_shards_job_poll(job, &done));
    } while (!done);
    RANK_MUST(load_call(comm, &c));
    c.add++;
    RANK_MUST(start_job(job, comm, &c));
    c.add++;
    RANK_MUST(start_job(job, comm, &c)); // waits for the one before
    RANK_MUST(ot_shards_job_wait(job));
    RANK_MUST(load_call(comm, &c));
    ot_shards_job_destroy(job);
}

static void a_job_saves_what_was_there_when_it_began(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    c.options.replaces = 1;
    for (int how = 0; how < N_SPREADS; how++) {
        c.how = (spread)how;
        run_ranks(3, save_by_job, &c);
    }
    assert_int_equal(count_entries(*state), 1);
}

static void fail_by_job(ot_comm *comm, void *context)
{
    call c = *(call *)context;
    ot_shards_job *job;
    ot_status st;

    RANK_MUST(ot_shards_job_create(&job));
    c.path = "none/a";
    RANK_CHECK(start_job(job, comm, &c) == OT_ERR_IO, "%s", "started");
    c.path = ((call *)context)->path;
    RANK_MUST(start_job(job, comm, &c)); // a failure disables nothing
    st = ot_shards_job_wait(job);
    RANK_CHECK(st == OT_OK, "%s", ot_error_message());
    st = start_job(job, comm, &c); // the place is taken by now
    RANK_CHECK(st == OT_ERR_IO, "%s", ot_status_name(st));
    ot_shards_job_destroy(job);
}

// ---- what a caller is held by ----

typedef struct callers {
    pthread_t thread;
    atomic_int n_own, n_others; // calls that change files
} callers;

static void count_caller(void *context, const ot__file_event *event)
{
    callers *c = context;

    (void)event;
    atomic_fetch_add(pthread_equal(c->thread, pthread_self()) ? &c->n_own : &c->n_others, 1);
}

// Both saves replace one, name it in `latest` and remove what is not kept any more.
static void count_file_calls(ot_comm *comm, void *context)
{
    call c = *(call *)context;
    callers counts = {.thread = pthread_self()};
    ot_shards_job *job;
    int done = 0, n_start;

    RANK_MUST(ot_shards_job_create(&job));
    ot__file_log_to(count_caller, &counts);
    RANK_MUST(start_job(job, comm, &c));
    n_start = atomic_load(&counts.n_own);
    RANK_CHECK(n_start <= 1, "%d", n_start); // rank 0 makes the directory
    while (!done) {
        RANK_MUST(ot_shards_job_poll(job, &done));
        sched_yield();
    }
    RANK_CHECK(atomic_load(&counts.n_own) == n_start, "%d", atomic_load(&counts.n_own));
    ot_shards_job_destroy(job);
    ot__file_log_to(NULL, NULL);
    RANK_CHECK(atomic_load(&counts.n_others) > (ot_comm_rank(comm) == 0 ? 20 : 3), "%d",
               atomic_load(&counts.n_others));
}

static void a_caller_works_on_no_files(void **state)
{
    call c = CALL_INIT;

    c.options.replaces = c.options.sets_latest = c.options.n_kept = 1;
    c.path = in_folder(state, "step-1");
    run_ranks(2, count_file_calls, &c);
    c.path = in_folder(state, "step-2");
    c.add = 1;
    run_ranks(2, count_file_calls, &c);
    run_ranks(2, load_rank, &c);
    assert_int_equal(count_entries(*state), 2); // with `latest`
}

// What is asked of the system's allocator at once, the most.
static atomic_size_t largest;

static void *note_size(void *context, void *block, size_t size)
{
    size_t seen = atomic_load(&largest);

    (void)context;
    while (size > seen && !atomic_compare_exchange_weak(&largest, &seen, size))
        continue;
    return realloc(block, size);
}

static void release(void *context, void *block)
{
    (void)context;
    free(block);
}

// The copy is no smaller than the state, of which each of two ranks writes half.
static void start_prepared(ot_comm *comm, void *context)
{
    enum { COUNT = 1 << 20 };
    const call *c = context;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    ot_shards_job *job;
    ot_tensor *tensor;

    item.name = "model";
    RANK_MUST(ot_dict_create(&item.dict));
    for (int i = 0; i < 2; i++) {
        RANK_MUST(ot_tensor_create(OT_F32, &OT_SHAPE(COUNT), &tensor));
        RANK_MUST(ot_dict_take_tensor(item.dict, i == 0 ? "a" : "b", tensor));
    }
    RANK_MUST(ot_shards_job_create(&job));
    RANK_MUST(ot_comm_barrier(comm));
    atomic_store(&largest, 0);
    RANK_MUST(ot_shards_job_prepare(job, comm, &item, 1));
    RANK_MUST(ot_comm_barrier(comm));
    RANK_CHECK(atomic_load(&largest) == COUNT * sizeof(float), "%d", (int)atomic_load(&largest));
    RANK_MUST(ot_comm_barrier(comm));
    atomic_store(&largest, 0);
    RANK_MUST(ot_shards_job_start(job, comm, c->path, &item, 1, &c->options));
    RANK_MUST(ot_comm_barrier(comm));
    RANK_CHECK(atomic_load(&largest) < COUNT * sizeof(float) / 2, "%d", (int)atomic_load(&largest));
    RANK_MUST(ot_shards_job_wait(job));
    ot_shards_job_destroy(job);
    ot_dict_destroy(item.dict);
}

static void memory_of_copies_is_taken_before(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    ot_set_allocator(&(const ot_allocator){note_size, release, NULL});
    run_ranks(2, start_prepared, &c);
    ot_set_allocator(NULL);
}

static void give_up(ot_comm *comm, void *context)
{
    ot_shards_job *job;

    RANK_MUST(ot_shards_job_create(&job));
    RANK_MUST(start_job(job, comm, context));
    ot_shards_job_destroy(job);
    RANK_MUST(ot_comm_barrier(comm));
}

static void a_job_that_is_given_up_leaves_nothing(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    run_ranks(1, give_up, &c);
    assert_int_equal(count_entries(*state), 0);
}

static void start_without_memory(ot_comm *comm, void *context)
{
    call *c = context;
    ot_shards_job *job;
    ot_status st;

    RANK_MUST(ot_shards_job_create(&job));
    st = start_job(job, comm, c);
    RANK_CHECK(st == OT_OK || st == OT_ERR_NO_MEMORY, "%s: %s", ot_status_name(st),
               ot_error_message());
    RANK_MUST(ot_shards_job_wait(job));
    ot_shards_job_destroy(job);
    if (ot_comm_rank(comm) == 0)
        c->status = st;
}

static void every_allocation_of_a_start_may_fail(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    c.options.replaces = 1;
    c.allocations_of_rank = 1;
    c.status = OT_ERR_NO_MEMORY;
    for (; c.status != OT_OK; c.allocations++)
        run_ranks(2, start_without_memory, &c);
    assert_true(c.allocations > 10);
    c.allocations_of_rank = -1;
    run_ranks(2, load_rank, &c);
}

static void a_failure_disables_nothing(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    run_ranks(2, fail_by_job, &c);
    run_ranks(2, load_rank, &c);
    assert_int_equal(count_entries(*state), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(a_job_saves_what_was_there_when_it_began),
        SHARDS_TEST(a_failure_disables_nothing),
        SHARDS_TEST(a_caller_works_on_no_files),
        SHARDS_TEST(memory_of_copies_is_taken_before),
        SHARDS_TEST(a_job_that_is_given_up_leaves_nothing),
        SHARDS_TEST(every_allocation_of_a_start_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
