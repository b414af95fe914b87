// SPDX-License-Identifier: Apache-2.0
#include "unit/dist/ranks.h"

enum { SMALL_PIECE = 64 }; // bytes: many pieces of little

// ---- what a slice contributes, and the sum of slices as the tree has it ----

// Values of many magnitudes: other orders of summation have other bits.
static float value_of(int slice, int64_t element)
{
    const uint32_t mixed = ((uint32_t)slice * 2654435761u) ^ ((uint32_t)element * 40503u);
    const int exponent = (int)(mixed >> 8 & 31) - 16;
    float scale = 1.0f;

    for (int i = 0; i < abs(exponent); i++)
        scale *= exponent < 0 ? 0.5f : 2.0f;
    return ((float)(mixed >> 16) / 65536.0f - 0.5f) * scale;
}

static int half_of(int n)
{
    int half = 1;

    while (half * 2 < n)
        half *= 2;
    return half;
}

static float sum_f32(int first, int last, int64_t element)
{
    const int middle = first + half_of(last - first);

    if (last - first == 1)
        return value_of(first, element);
    return sum_f32(first, middle, element) + sum_f32(middle, last, element);
}

static double sum_f64(int first, int last, int64_t element)
{
    const int middle = first + half_of(last - first);

    if (last - first == 1)
        return 1.0 / 3.0 * (double)value_of(first, element);
    return sum_f64(first, middle, element) + sum_f64(middle, last, element);
}

static void put_sum(ot_dtype dtype, void *buffer, int first, int last, int64_t element)
{
    if (dtype == OT_F32)
        ((float *)buffer)[element] = sum_f32(first, last, element);
    else
        ((double *)buffer)[element] = sum_f64(first, last, element);
}

// ---- a reduction of one rank ----

typedef struct job {
    ot_dtype dtype;
    int n_slices;
    int64_t n_elements;
    size_t piece_bytes;
    ot__reduce *reduce;
    int64_t starts[RANKS_MAX + 1];
    int n_buffers;
    void *buffers[OT_TREE_COVER_MAX];
} job;

static size_t job_bytes(const job *j)
{
    return (size_t)j->n_elements * (j->dtype == OT_F32 ? sizeof(float) : sizeof(double));
}

// Shares that differ; the last but one has none where there are three.
static void cut_shares(job *j, int world_size)
{
    for (int i = 0; i <= world_size; i++)
        j->starts[i] = j->n_elements * i * i / (world_size * world_size);
    if (world_size >= 3)
        j->starts[world_size - 2] = j->starts[world_size - 1];
}

static void fill_job(ot_comm *comm, job *j)
{
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    ot__tree_node nodes[OT_TREE_COVER_MAX];
    const int count =
        ot__tree_cover(j->n_slices, j->n_slices * rank / n, j->n_slices * (rank + 1) / n, nodes);

    for (int b = 0; b < count; b++)
        for (int64_t i = 0; i < j->n_elements; i++)
            put_sum(j->dtype, j->buffers[b], nodes[b].first, nodes[b].last, i);
}

static void open_job(ot_comm *comm, job *j)
{
    const ot__reduce_options options = {j->dtype, j->n_slices, j->starts, j->piece_bytes};

    cut_shares(j, ot_comm_world_size(comm));
    RANK_MUST(ot__reduce_create(comm, &options, &j->reduce));
    j->n_buffers = OT_MAX(ot__reduce_own_parts(j->reduce), 1);
    for (int b = 0; b < j->n_buffers; b++)
        j->buffers[b] = calloc(1, job_bytes(j) + 1);
    fill_job(comm, j);
}

static void close_job(job *j)
{
    for (int b = 0; b < j->n_buffers; b++)
        free(j->buffers[b]);
    ot__reduce_destroy(j->reduce);
}

static int64_t count_wrong(const job *j, int64_t from, int64_t to)
{
    const size_t size = j->dtype == OT_F32 ? sizeof(float) : sizeof(double);
    char *expected = malloc(job_bytes(j) + 1);
    int64_t wrong = 0;

    for (int64_t i = from; i < to; i++) {
        put_sum(j->dtype, expected, 0, j->n_slices, i);
        wrong += memcmp(expected + (size_t)i * size, (char *)j->buffers[0] + (size_t)i * size,
                        size) != 0;
    }
    free(expected);
    return wrong;
}

// ---- bits ----

static void reduce_all(ot_comm *comm, void *context)
{
    const int n = ot_comm_world_size(comm);
    const int slices[] = {n, 8, 13, 1};
    static const int64_t sizes[] = {0, 1, 7, 1000};

    (void)context;
    for (size_t s = 0; s < OT_COUNT(slices); s++)
        for (size_t e = 0; e < OT_COUNT(sizes); e++)
            for (int f = 0; f < 2; f++) {
                job j = {.dtype = f ? OT_F64 : OT_F32,
                         .n_slices = slices[s],
                         .n_elements = sizes[e],
                         .piece_bytes = SMALL_PIECE};
                int64_t wrong;

                open_job(comm, &j);
                for (int round = 0; round < 2; round++) { // made once, started twice
                    fill_job(comm, &j);
                    RANK_MUST(ot__reduce_start(j.reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER,
                                               j.buffers));
                    RANK_MUST(ot__reduce_wait(j.reduce));
                    RANK_CHECK(ot__reduce_is_done(j.reduce), "not done");
                    wrong = count_wrong(&j, 0, j.n_elements);
                    RANK_CHECK(wrong == 0, "%d of %d elements, %d slices", (int)wrong,
                               (int)j.n_elements, j.n_slices);
                }
                close_job(&j);
            }
}

static void sums_are_those_of_the_tree_whoever_has_the_slices(void **state)
{
    (void)state;
    run_all_ranks(reduce_all);
}

static void reduce_much(ot_comm *comm, void *context)
{
    job j = {.dtype = OT_F32, .n_slices = 4, .n_elements = 1400003};
    int64_t wrong = 0;

    (void)context;
    open_job(comm, &j);
    RANK_MUST(ot__reduce_start(j.reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, j.buffers));
    RANK_MUST(ot__reduce_wait(j.reduce));
    wrong = count_wrong(&j, 0, j.n_elements);
    RANK_CHECK(wrong == 0, "%d elements", (int)wrong);
    close_job(&j);
}

static void pieces_of_the_usual_size(void **state)
{
    (void)state;
    run_ranks(2, reduce_much, NULL);
    run_ranks(3, reduce_much, NULL);
}

// ---- halves ----

static void scatter_then_gather(ot_comm *comm, void *context)
{
    const int rank = ot_comm_rank(comm);
    job j = {.dtype = OT_F64, .n_slices = 8, .n_elements = 1000, .piece_bytes = SMALL_PIECE};
    double *v;
    int64_t wrong = 0;

    (void)context;
    open_job(comm, &j);
    RANK_MUST(ot__reduce_start(j.reduce, OT_REDUCE_SCATTER, j.buffers));
    RANK_MUST(ot__reduce_wait(j.reduce));
    wrong = count_wrong(&j, j.starts[rank], j.starts[rank + 1]);
    RANK_CHECK(wrong == 0, "%d of the own share", (int)wrong);
    v = j.buffers[0];
    for (int64_t i = 0; i < j.n_elements; i++) // what the owners make of it comes to all
        v[i] = i >= j.starts[rank] && i < j.starts[rank + 1] ? (double)(10 * i + 1) : -1.0;
    RANK_MUST(ot__reduce_start(j.reduce, OT_REDUCE_GATHER, j.buffers));
    RANK_MUST(ot__reduce_wait(j.reduce));
    for (int64_t i = 0; i < j.n_elements; i++)
        wrong += v[i] != (double)(10 * i + 1);
    RANK_CHECK(wrong == 0, "%d gathered", (int)wrong);
    close_job(&j);
}

static void the_two_halves_can_be_had_apart(void **state)
{
    (void)state;
    run_all_ranks(scatter_then_gather);
}

// ---- several at a time ----

static void start_many(ot_comm *comm, void *context)
{
    enum { N = 7 }; // more than there are slots
    job jobs[N];

    (void)context;
    for (int i = 0; i < N; i++) {
        jobs[i] = (job){.dtype = i % 2 ? OT_F64 : OT_F32,
                        .n_slices = ot_comm_world_size(comm),
                        .n_elements = 50 + 100 * i,
                        .piece_bytes = SMALL_PIECE};
        open_job(comm, &jobs[i]);
    }
    for (int i = 0; i < N; i++) {
        RANK_MUST(ot__reduce_start(jobs[i].reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER,
                                   jobs[i].buffers));
        for (int p = 0; p < ot_comm_rank(comm); p++) // ranks poke as they like
            RANK_MUST(ot__comm_poke(comm));
    }
    for (int i = 0; i < N; i++) {
        const int k = ot_comm_rank(comm) % 2 ? i : N - 1 - i; // and wait in their own order
        int64_t wrong;

        RANK_MUST(ot__reduce_wait(jobs[k].reduce));
        wrong = count_wrong(&jobs[k], 0, jobs[k].n_elements);
        RANK_CHECK(wrong == 0, "%d of reduction %d", (int)wrong, k);
    }
    for (int i = 0; i < N; i++)
        close_job(&jobs[i]);
    RANK_MUST(ot_comm_barrier(comm));
}

static void several_are_under_way_at_once(void **state)
{
    const ot__network network = {.latency = 200e-6, .seconds_per_byte = 1e-9, .slow_rank = -1};

    (void)state;
    run_all_ranks(start_many);
    run_ranks_over(3, &network, rank_timeout, start_many, NULL);
}

// A poke is enough: nobody waits.
static void poke_to_the_end(ot_comm *comm, void *context)
{
    job j = {.dtype = OT_F32, .n_slices = 3, .n_elements = 300, .piece_bytes = SMALL_PIECE};
    int64_t wrong;

    (void)context;
    open_job(comm, &j);
    RANK_MUST(ot__reduce_start(j.reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, j.buffers));
    while (!ot__reduce_is_done(j.reduce)) {
        RANK_MUST(ot__comm_poke(comm));
        usleep(50);
    }
    wrong = count_wrong(&j, 0, j.n_elements);
    RANK_CHECK(wrong == 0, "%d elements", (int)wrong);
    RANK_CHECK(ot__reduce_start(j.reduce, OT_REDUCE_GATHER, j.buffers) == OT_OK, "%s",
               ot_error_message());
    if (!ot__reduce_is_done(j.reduce))
        RANK_CHECK(ot__reduce_start(j.reduce, OT_REDUCE_GATHER, j.buffers) == OT_ERR_STATE,
                   "started twice");
    RANK_MUST(ot__reduce_wait(j.reduce));
    close_job(&j);
}

static void it_goes_on_while_others_work(void **state)
{
    (void)state;
    run_ranks(3, poke_to_the_end, NULL);
}

static void reduce_in_groups(ot_comm *comm, void *context)
{
    const int rank = ot_comm_rank(comm);
    ot_comm *group = NULL;
    job whole = {.dtype = OT_F32, .n_slices = 4, .n_elements = 500, .piece_bytes = SMALL_PIECE};
    job part = {.dtype = OT_F32, .n_slices = 2, .n_elements = 500, .piece_bytes = SMALL_PIECE};
    int64_t wrong;

    (void)context;
    RANK_MUST(ot_comm_split(comm, rank / 2, 0, &group));
    open_job(comm, &whole);
    open_job(group, &part);
    RANK_MUST(ot__reduce_start(whole.reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, whole.buffers));
    RANK_MUST(ot__reduce_start(part.reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, part.buffers));
    RANK_MUST(ot__reduce_wait(whole.reduce));
    RANK_MUST(ot__reduce_wait(part.reduce));
    wrong = count_wrong(&whole, 0, 500) + count_wrong(&part, 0, 500);
    RANK_CHECK(wrong == 0, "%d elements", (int)wrong);
    close_job(&part);
    close_job(&whole);
    ot_comm_destroy(group);
}

static void groups_reduce_beside_the_whole(void **state)
{
    (void)state;
    run_ranks(4, reduce_in_groups, NULL);
}

// ---- bytes ----

static void count_bytes(ot_comm *comm, void *context)
{
    const int n = ot_comm_world_size(comm);
    ot_comm_counters before = OT_COMM_COUNTERS_INIT, after = OT_COMM_COUNTERS_INIT;
    job j = {.dtype = OT_F32, .n_slices = n, .n_elements = 840 * n};
    const int64_t bytes = 4 * j.n_elements;

    (void)context;
    open_job(comm, &j);
    close_job(&j); // with the shares of that; now equal ones
    for (int i = 0; i <= n; i++)
        j.starts[i] = j.n_elements / n * i;
    RANK_MUST(ot__reduce_create(comm, &(ot__reduce_options){OT_F32, n, j.starts, SMALL_PIECE},
                                &j.reduce));
    j.buffers[0] = calloc(1, (size_t)bytes);
    RANK_MUST(ot_comm_get_counters(comm, &before));
    RANK_MUST(ot__reduce_start(j.reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, j.buffers));
    RANK_MUST(ot__reduce_wait(j.reduce));
    RANK_MUST(ot_comm_get_counters(comm, &after));
    RANK_CHECK(after.bytes_sent - before.bytes_sent == 2 * (n - 1) * (bytes / n), "%d bytes",
               (int)(after.bytes_sent - before.bytes_sent));
    free(j.buffers[0]);
    ot__reduce_destroy(j.reduce);
}

static void each_rank_sends_what_the_least_is(void **state)
{
    (void)state;
    run_all_ranks(count_bytes);
}

// ---- faults ----

static void differ_in_shares(ot_comm *comm, void *context)
{
    const bool odd = ot_comm_rank(comm) == 1;
    const int64_t starts[] = {0, 10, 20, 30}, other[] = {0, 11, 20, 30}, wrong[] = {0, 21, 20, 30};
    const ot__reduce_options good = {OT_F32, 3, starts, 0}, shares = {OT_F32, 3, other, 0},
                             slices = {OT_F32, 4, starts, 0}, type = {OT_F64, 3, starts, 0},
                             backwards = {OT_F32, 3, wrong, 0}, none = {OT_F32, 0, starts, 0},
                             integers = {OT_I64, 3, starts, 0};
    const struct {
        const ot__reduce_options *options;
        ot_status status;
        const char *says;
    } cases[] = {
        {&shares, OT_ERR_MISMATCH, "ranks 0 and 1 differ in the shares"},
        {&slices, OT_ERR_MISMATCH, "ranks 0 and 1 differ in the number of slices: 3 and 4"},
        {&type, OT_ERR_MISMATCH, "ranks 0 and 1 differ in the element type"},
        {&backwards, OT_ERR_INVALID, "rank 1: the share of rank 1 goes from 21 to 20"},
        {&none, OT_ERR_INVALID, "rank 1: 0 slices, expected 1 to 32768"},
        {&integers, OT_ERR_INVALID, "rank 1: a reduction of i64, expected f32 or f64"},
    };

    (void)context;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot__reduce *r;

        RANK_CHECK(ot__reduce_create(comm, odd ? cases[i].options : &good, &r) == cases[i].status,
                   "case %zu: %s", i, ot_error_message());
        RANK_CHECK(r == NULL && ot__starts_with(ot_error_message(), cases[i].says), "'%s'",
                   ot_error_message());
    }
}

static void ranks_that_mean_other_reductions_are_told(void **state)
{
    (void)state;
    run_ranks(3, differ_in_shares, NULL);
}

static void lack_memory_for_a_reduction(ot_comm *comm, void *context)
{
    const int64_t starts[] = {0, 10, 20, 30};
    const ot__reduce_options options = {OT_F32, 6, starts, 0};
    ot__reduce *r;

    (void)context;
    for (int poor = 0; poor < 3; poor++) {
        int64_t n_failed = 0;
        ot_status st;

        do {
            ot__alloc_fail_after(ot_comm_rank(comm) == poor ? n_failed : -1);
            st = ot__reduce_create(comm, &options, &r);
            ot__alloc_fail_after(-1);
            n_failed += st != OT_OK;
            RANK_CHECK(st == OT_OK || st == OT_ERR_NO_MEMORY, "%s", ot_error_message());
        } while (st == OT_ERR_NO_MEMORY);
        RANK_CHECK(n_failed >= 6, "%d allocations", (int)n_failed);
        ot__reduce_destroy(r);
    }
    RANK_MUST(ot_comm_barrier(comm));
}

static void without_memory_on_one_rank_there_is_no_reduction(void **state)
{
    (void)state;
    run_ranks(3, lack_memory_for_a_reduction, NULL);
}

static atomic_int n_gone;

static void wait_in_vain(ot_comm *comm, void *context)
{
    job j = {.dtype = OT_F32, .n_slices = 3, .n_elements = 300, .piece_bytes = SMALL_PIECE};

    (void)context;
    open_job(comm, &j);
    if (ot_comm_rank(comm) == 1) {
        while (atomic_load(&n_gone) < 2)
            usleep(1000);
    } else {
        RANK_MUST(ot__reduce_start(j.reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, j.buffers));
        RANK_CHECK(ot__reduce_wait(j.reduce) == OT_ERR_TIMEOUT, "%s", ot_error_message());
        RANK_CHECK(strcmp(ot_error_message(),
                          "rank 1: silent for 0.3 s in a reduction (OT_COMM_TIMEOUT)") == 0,
                   "'%s'", ot_error_message());
        RANK_CHECK(ot__comm_poke(comm) == OT_ERR_TIMEOUT, "a broken communicator works");
        ot__reduce_destroy(j.reduce); // while it is under way
        j.reduce = NULL;
        atomic_fetch_add(&n_gone, 1);
    }
    close_job(&j);
}

static void a_rank_that_does_not_start_is_named(void **state)
{
    (void)state;
    atomic_store(&n_gone, 0);
    run_ranks_over(3, NULL, 0.3, wait_in_vain, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_tree_whoever_has_the_slices),
        cmocka_unit_test(pieces_of_the_usual_size),
        cmocka_unit_test(the_two_halves_can_be_had_apart),
        cmocka_unit_test(several_are_under_way_at_once),
        cmocka_unit_test(it_goes_on_while_others_work),
        cmocka_unit_test(groups_reduce_beside_the_whole),
        cmocka_unit_test(each_rank_sends_what_the_least_is),
        cmocka_unit_test(ranks_that_mean_other_reductions_are_told),
        cmocka_unit_test(without_memory_on_one_rank_there_is_no_reduction),
        cmocka_unit_test(a_rank_that_does_not_start_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
