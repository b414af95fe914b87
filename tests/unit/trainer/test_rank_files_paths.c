// SPDX-License-Identifier: Apache-2.0
// Which files ranks write by their paths, and what becomes of them when one rank fails. Ranks are
// threads.
#include "base/file_calls.h"
#include "rank_files_fixture.h"

#if OT_WITH_HDF5
// ---- one path, or one of each ----

static void without_zero_each_rank_writes_all_of_the_state(void **state)
{
    ot_model *model = network_model(&small);
    job j = {.model = model,
             .sizes = small,
             .n_ranks = 2,
             .accumulation = 1,
             .rule = "AdamOptimizer",
             .end = 2},
        rest = j, all = j;
    rank_files files;

    name_rank_files(state, "each", &files);
    j.saved = files.path;
    run_job(&j);
    for (int r = 0; r < 2; r++) {
        ot_dict *own = load_rank_file(files.path[r]);

        assert_options(own, r, 2, 0, false);
        assert_false(ot__state_has(own, "partition_info"));
        for (size_t w = 0; w < OT_COUNT(weights); w++)
            assert_non_null(tensor_in(own, "optimizer", weights[w], "Moment_2"));
        ot_dict_destroy(own);
    }
    rest.loaded = files.path;
    rest.loads_own = 1;
    rest.begin = 2;
    rest.end = all.end = 4;
    run_job(&rest);
    run_job(&all);
    assert_true(rest.hash_after[0] == all.hash_after[0]);
    ot_model_destroy(model);
}

static void without_optimizer_states_files_have_weights_alone(void **state)
{
    ot_model *model = network_model(&small);
    job j = {.model = model,
             .sizes = small,
             .n_ranks = 3,
             .zero = 1,
             .accumulation = 2,
             .rule = "AdamOptimizer",
             .drops_optimizer = 1,
             .end = 3};
    rank_files files;
    ot_dict *joined;

    name_rank_files(state, "weights", &files);
    j.saved = files.path;
    run_job(&j);
    need(ot_state_aggregate(files.path, 3, &joined));
    assert_false(ot__state_has(joined, "optimizer"));
    for (size_t w = 0; w < OT_COUNT(weights); w++)
        assert_non_null(tensor_in(joined, "model", weights[w], NULL));
    ot_dict_destroy(joined);
    ot_model_destroy(model);
}

// ---- what fails ----

typedef struct refused_save {
    const ot_model *model;
    int zero;
    const char *path[3];
    int bad_rank; // -1: none
    ot__file_call fault_at;
    ot__file_fault fault;
    int other_options;
    const char *later[3]; // of the next call, which works
    ot_status status;
    const char *says;
} refused_save;

static void refuse_on_ranks(ot_comm *comm, void *context)
{
    const refused_save *c = context;
    const int rank = ot_comm_rank(comm);
    job j = {.model = c->model,
             .sizes = small,
             .n_ranks = 3,
             .zero = c->zero,
             .accumulation = 1,
             .rule = "AdamOptimizer"};
    ot_trainer *trainer = NULL;
    ot_status st;

    RANK_MUST(make_job_trainer(&j, comm, &trainer));
    if (trainer == NULL)
        return;
    (void)job_step(&j, trainer, rank);
    if (c->fault_at != OT_FILE_CALL_ANY && rank == c->bad_rank)
        ot__file_fault_at(c->fault_at, 0, c->fault);
    j.drops_optimizer = c->other_options && rank == c->bad_rank;
    st = save_of_rank(&j, trainer, c->path[rank]);
    ot__file_fault_at(OT_FILE_CALL_ANY, -1, OT_FILE_FAIL);
    RANK_CHECK(st == c->status, "%s: %s", ot_status_name(st), ot_error_message());
    RANK_CHECK(strstr(ot_error_message(), c->says) != NULL, "'%s' does not say '%s'",
               ot_error_message(), c->says);
    j.drops_optimizer = 0;
    (void)job_step(&j, trainer, 3 + rank);
    RANK_MUST(save_of_rank(&j, trainer, c->later[rank]));
    ot_trainer_destroy(trainer);
}

// Also without ZeRO, where each rank has all of the state.
static void load_on_ranks(ot_comm *comm, void *context)
{
    const refused_save *c = context;
    const int rank = ot_comm_rank(comm);
    job j = {.model = c->model,
             .sizes = small,
             .n_ranks = 3,
             .zero = c->zero,
             .accumulation = 1,
             .rule = "AdamOptimizer"};
    ot_trainer *trainer = NULL;
    uint64_t before;
    ot_status st;

    RANK_MUST(make_job_trainer(&j, comm, &trainer));
    if (trainer == NULL)
        return;
    (void)job_step(&j, trainer, rank);
    RANK_MUST(save_of_rank(&j, trainer, c->later[0]));
    (void)job_step(&j, trainer, 3 + rank);
    before = hash_on_rank(trainer);
    st = ot_trainer_load(trainer, &c->path[rank], 1, OT_STRICTNESS_ALL, NULL);
    RANK_CHECK(st == OT_ERR_IO && strstr(ot_error_message(), "rank 1: ") != NULL, "%s: %s",
               ot_status_name(st), ot_error_message());
    RANK_CHECK(hash_on_rank(trainer) == before, "the state has changed");
    RANK_MUST(ot_trainer_load(trainer, c->later, 1, OT_STRICTNESS_ALL, NULL));
    RANK_CHECK(hash_on_rank(trainer) != before, "the state has not changed");
    ot_trainer_destroy(trainer);
}

static void a_file_that_one_rank_lacks_is_loaded_by_none(void **state)
{
    ot_model *model = network_model(&small);

    for (int zero = 0; zero <= 1; zero++) {
        rank_files files;
        refused_save c = {.model = model, .zero = zero};

        name_rank_files(state, "missing", &files);
        for (int r = 0; r < 3; r++) {
            c.later[r] = files.path[0];
            c.path[r] = files.path[r == 1];
        }
        run_ranks(3, load_on_ranks, &c);
    }
    ot_model_destroy(model);
}

// ---- no memory ----

typedef struct scarce {
    const ot_model *model;
    const char *const *path;
    int zero;
    int64_t n; // allocations of rank 1 that succeed
    ot_status status[2];
} scarce;

static void run_out_on_rank(ot_comm *comm, void *context)
{
    scarce *c = context;
    const int rank = ot_comm_rank(comm);
    job j = {.model = c->model,
             .sizes = small,
             .n_ranks = 2,
             .zero = c->zero,
             .accumulation = 2,
             .rule = "AdamOptimizer",
             .is_free = 1};
    ot_trainer *trainer = NULL;

    RANK_MUST(make_job_trainer(&j, comm, &trainer));
    for (int i = 0; i < 3; i++)
        (void)job_step(&j, trainer, 2 * i + rank);
    if (rank == 1)
        ot__alloc_fail_after(c->n);
    c->status[rank] = save_of_rank(&j, trainer, c->path[rank]);
    ot__alloc_fail_after(-1);
    (void)job_step(&j, trainer, 6 + rank);
    ot_trainer_destroy(trainer);
}

// Of the calls on the way every seventh one, or the test would take too long.
static void no_memory_on_one_rank_is_the_same_on_all_and_leaves_no_file(void **state)
{
    ot_model *model = network_model(&small);
    rank_files files;

    name_rank_files(state, "scarce", &files);
    for (int zero = 1; zero <= 3; zero += 2) {
        scarce c = {.model = model, .path = files.path, .zero = zero};

        do {
            run_ranks(2, run_out_on_rank, &c);
            assert_int_equal(c.status[0], c.status[1]);
            assert_true(c.status[0] == OT_OK || c.status[0] == OT_ERR_NO_MEMORY);
            assert_int_equal(count_names(state), c.status[0] == OT_OK ? 2 : 0);
            c.n += 7;
        } while (c.status[0] != OT_OK);
        assert_true(c.n > 100);
        for (int r = 0; r < 2; r++)
            (void)remove(files.path[r]);
    }
    ot_model_destroy(model);
}

static void put_file(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    (void)fputs("a", file);
    assert_int_equal(fclose(file), 0);
}

static void what_one_rank_cannot_write_no_rank_does(void **state)
{
    static const refused_save cases[] = {
        {.bad_rank = 1, .status = OT_ERR_IO, .says = "bad1.ortcp: exists already, and is not"},
        {.bad_rank = 2, .fault_at = OT_FILE_CALL_OPEN, .status = OT_ERR_IO, .says = "rank 2: "},
        {.bad_rank = 0,
         .fault_at = OT_FILE_CALL_SYNC,
         .status = OT_ERR_IO,
         .says = "bad0.ortcp: cannot be synchronised"},
        {.bad_rank = 1,
         .fault_at = OT_FILE_CALL_LINK,
         .fault = OT_FILE_FULL,
         .status = OT_ERR_IO,
         .says = "bad1.ortcp: cannot be written: No space left"},
        {.bad_rank = 2,
         .fault_at = OT_FILE_CALL_CLOSE,
         .status = OT_ERR_IO,
         .says = "bad2.ortcp: cannot be written"},
        {.bad_rank = 2,
         .other_options = 1,
         .status = OT_ERR_MISMATCH,
         .says = "differ in include_optimizer_states: 1 and 0"},
    };
    ot_model *model = network_model(&small);

    for (size_t i = 0; i < 2 * OT_COUNT(cases); i++) {
        refused_save c = cases[i / 2];
        rank_files bad, good;
        int n_expected = 3;

        c.model = model;
        c.zero = i % 2;
        name_rank_files(state, "bad", &bad);
        name_rank_files(state, "good", &good);
        if (c.fault_at == OT_FILE_CALL_ANY && !c.other_options)
            put_file(bad.path[c.bad_rank]);
        for (int r = 0; r < 3; r++) {
            c.path[r] = bad.path[r];
            c.later[r] = good.path[r];
        }
        run_ranks(3, refuse_on_ranks, &c);
        n_expected += ot__path_exists(bad.path[c.bad_rank]);
        assert_int_equal(count_names(state), n_expected); // nothing of the save that failed
    }
    ot_model_destroy(model);
}

static void paths_are_one_or_all_different(void **state)
{
    static const struct {
        int file[3];
        const char *says;
    } cases[] = {
        {{0, 0, 1}, "ranks 0 and 1 save to one path, rank 2 to another: expected one path for all"},
        {{0, 1, 1}, "ranks 1 and 2 save to one path, rank 0 to another"},
        {{0, 1, 0}, "ranks 0 and 2 save to one path, rank 1 to another"},
        {{0, -1, 2}, "rank 1: ot_trainer_save: path is NULL"},
    };
    ot_model *model = network_model(&small);

    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        refused_save c = {.model = model,
                          .zero = i % 2,
                          .bad_rank = -1,
                          .status = cases[i].file[1] < 0 ? OT_ERR_INVALID : OT_ERR_MISMATCH,
                          .says = cases[i].says};
        rank_files files, later;

        name_rank_files(state, "mixed", &files);
        name_rank_files(state, "later", &later);
        for (int r = 0; r < 3; r++) {
            c.path[r] = cases[i].file[r] < 0 ? NULL : files.path[cases[i].file[r]];
            c.later[r] = later.path[0]; // one for all: rank 0 writes it
        }
        run_ranks(3, refuse_on_ranks, &c);
        assert_int_equal(count_names(state), 1);
    }
    ot_model_destroy(model);
}
#endif

int main(void)
{
#if OT_WITH_HDF5
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(without_zero_each_rank_writes_all_of_the_state),
        TEST_IN_FOLDER(without_optimizer_states_files_have_weights_alone),
        TEST_IN_FOLDER(what_one_rank_cannot_write_no_rank_does),
        TEST_IN_FOLDER(a_file_that_one_rank_lacks_is_loaded_by_none),
        TEST_IN_FOLDER(no_memory_on_one_rank_is_the_same_on_all_and_leaves_no_file),
        TEST_IN_FOLDER(paths_are_one_or_all_different),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 0;
#endif
}
