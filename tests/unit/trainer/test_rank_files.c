// SPDX-License-Identifier: Apache-2.0
// States in a file of each rank: which rank has what in them, and that any number of ranks goes on
// from them. Ranks are threads.
#include "base/file_calls.h"
#include "rank_files_fixture.h"
#include "trainer/aggregate.h"

// ---- who has what: the published examples ----

static void weights_are_dealt_out_in_the_order_of_their_names(void **state)
{
    static const int64_t counts[] = {128, 10, 100352, 1280}; // bias1, bias2, w1, w2
    static const ot__dealt expected[2][4] = {
        {{true, false, 0, 128}, {true, false, 0, 10}, {true, true, 0, 50774}, {0}},
        {{0}, {0}, {true, true, 50774, 49578}, {true, false, 0, 1280}},
    };
    const int64_t share = ot__deal_share(101770, 2);

    (void)state;
    assert_int_equal(share, 50912);
    for (int rank = 0; rank < 2; rank++)
        for (int64_t w = 0, at = 0; w < 4; at += counts[w++]) {
            const ot__dealt found = ot__deal_one(at, counts[w], share, rank);

            assert_int_equal(found.is_mine, expected[rank][w].is_mine);
            assert_int_equal(found.is_cut, expected[rank][w].is_cut);
            assert_int_equal(found.first, expected[rank][w].first);
            assert_int_equal(found.count, expected[rank][w].count);
        }
}

static void a_total_that_needs_no_padding_gets_some(void **state)
{
    const int64_t share = ot__deal_share(128, 4);

    (void)state;
    assert_int_equal(share, 64);
    for (int rank = 0; rank < 4; rank++) {
        const ot__dealt found = ot__deal_one(0, 128, share, rank);

        assert_int_equal(found.is_mine, rank < 2);
        assert_int_equal(found.count, rank < 2 ? 64 : 0);
        assert_int_equal(found.first, rank < 2 ? 64 * rank : 0);
    }
}

static void a_part_begins_where_the_rank_before_has_ended(void **state)
{
    const ot__dealt found = ot__deal_one(490, 784 * 128, 500, 1);

    (void)state;
    assert_true(found.is_cut && found.first == 10 && found.count == 500);
}

#if OT_WITH_HDF5
// ---- the layout of the files ----

static const network_sizes digits = {784, 128, 10}, small = {5, 16, 1};
static const char *const weights[] = {"bias1", "bias2", "layer/w1", "w2"};

static const ot_tensor *tensor_in(ot_dict *state, const char *section_name, const char *weight,
                                  const char *key)
{
    const ot_dict *in = ot__state_dict(state, section_name);

    in = ot__state_dict(in, key == NULL ? "full_precision" : weight);
    return ot__state_tensor(in, key == NULL ? weight : key);
}

// A part of the whole tensor, without axes; or all of it, in its shape; or none.
static void assert_part(const ot_tensor *found, const ot_tensor *whole, ot__dealt dealt)
{
    assert_int_equal(found != NULL, dealt.is_mine);
    if (found == NULL)
        return;
    assert_int_equal(found->dtype, OT_F32);
    assert_int_equal(ot_tensor_count(found), dealt.count);
    assert_true(dealt.is_cut ? found->shape.ndim == 1
                             : ot__shape_equal(&found->shape, &whole->shape));
    assert_memory_equal(found->data, (const float *)whole->data + dealt.first, found->n_bytes);
}

static void assert_options(ot_dict *state, int rank, int n_ranks, int zero, bool is_mixed)
{
    static const char *const names[] = {"zero_stage", "world_rank", "world_size",
                                        "data_parallel_size", "horizontal_parallel_size"};
    const int64_t expected[] = {zero, rank, n_ranks, n_ranks, 1};
    ot_dict *options = section(state, "trainer_options");
    const char *name;
    int64_t found;
    int flag;

    for (size_t i = 0; i < OT_COUNT(names); i++) {
        need(ot_dict_get_int(options, names[i], &found));
        assert_int_equal(found, expected[i]);
    }
    need(ot_dict_get_bool(options, "mixed_precision", &flag));
    assert_int_equal(flag, is_mixed);
    need(ot_dict_get_string(options, "optimizer_name", &name));
    assert_string_equal(name, "AdamOptimizer");
}

static void assert_division(ot_dict *partition, const char *weight, const ot_shape *shape)
{
    const int64_t *found;
    ot_dict *of;
    int n;

    need(ot_dict_get_dict(partition, weight, &of));
    need(ot_dict_get_ints(of, "original_dim", &found, &n));
    assert_int_equal(n, shape->ndim);
    assert_memory_equal(found, shape->dim, (size_t)n * sizeof *found);
    need(ot_dict_get_ints(of, "megatron_row_partition", &found, &n));
    assert_int_equal(n, 1);
    assert_int_equal(found[0], -1);
}

static void assert_rank_file(ot_dict *state, ot_dict *whole, const job *j, int rank)
{
    const bool is_mixed = j->precision != OT_PRECISION_F32;
    const int64_t counts[] = {j->sizes.n_hidden, j->sizes.n_out,
                              (int64_t)j->sizes.n_in * j->sizes.n_hidden,
                              (int64_t)j->sizes.n_hidden * j->sizes.n_out};
    const int64_t total = counts[0] + counts[1] + counts[2] + counts[3];
    const int64_t share = ot__deal_share(total, j->n_ranks);
    ot_dict *partition = section(state, "partition_info");
    int64_t at = 0;
    int n_cut = 0, n_mine = 0;

    assert_options(state, rank, j->n_ranks, j->zero, is_mixed);
    for (size_t w = 0; w < OT_COUNT(weights); at += counts[w++]) {
        const ot__dealt dealt = ot__deal_one(at, counts[w], share, rank);
        const ot_tensor *value = tensor_in(whole, "model", weights[w], NULL);
        const ot_tensor *count = tensor_in(state, "optimizer", weights[w], "Update_Count");

        assert_part(tensor_in(state, "model", weights[w], NULL), value,
                    is_mixed ? dealt : (ot__dealt){true, false, 0, counts[w]});
        for (int k = 0; k < 2; k++)
            assert_part(tensor_in(state, "optimizer", weights[w], ot__moment_keys[k]),
                        tensor_in(whole, "optimizer", weights[w], ot__moment_keys[k]), dealt);
        assert_int_equal(count != NULL, dealt.is_mine);
        if (count != NULL)
            assert_int_equal(*(const int64_t *)count->data, j->end + 1);
        if (dealt.is_cut)
            assert_division(partition, weights[w], &value->shape);
        n_cut += dealt.is_cut;
        n_mine += dealt.is_mine;
    }
    assert_int_equal(ot_dict_count(partition), n_cut);
    assert_int_equal(ot_dict_count(section(state, "optimizer")), n_mine);
}

// Of a whole state that one rank has saved, and of those that all of them have.
static void check_layout(void **state, job *j)
{
    rank_files parts, whole;
    ot_dict *of_all, *joined;

    name_rank_files(state, "parts", &parts);
    name_rank_files(state, "whole", &whole);
    for (int r = 1; r < MAX_JOB_RANKS; r++)
        whole.path[r] = whole.path[0];
    j->saved = parts.path;
    run_job(j);
    j->saved = whole.path;
    run_job(j);
    of_all = load_rank_file(whole.path[0]);
    for (int r = 0; r < j->n_ranks; r++) {
        ot_dict *own = load_rank_file(parts.path[r]);

        assert_rank_file(own, of_all, j, r);
        ot_dict_destroy(own);
    }
    need(ot_state_aggregate(parts.path, j->n_ranks, &joined));
    for (size_t w = 0; w < OT_COUNT(weights); w++) {
        const ot_tensor *value = tensor_in(of_all, "model", weights[w], NULL);
        const ot_tensor *found = tensor_in(joined, "model", weights[w], NULL);

        assert_true(found != NULL && ot__shape_equal(&found->shape, &value->shape));
        assert_memory_equal(found->data, value->data, value->n_bytes);
    }
    ot_dict_destroy(joined);
    ot_dict_destroy(of_all);
}

static void the_example_of_digits_is_cut_in_its_first_layer(void **state)
{
    ot_model *model = network_model(&digits);
    job j = {.model = model,
             .sizes = digits,
             .n_ranks = 2,
             .zero = 1,
             .accumulation = 1,
             .rule = "AdamOptimizer",
             .end = 1};

    check_layout(state, &j);
    ot_model_destroy(model);
}

static void files_have_what_the_rank_updates_and_weights_whole_unless_mixed(void **state)
{
    ot_model *model = network_model(&small);

    for (int zero = 1; zero <= 3; zero++)
        for (int n_ranks = 2; n_ranks <= 4; n_ranks++) { // of 4 ranks one has nothing
            job j = {.model = model,
                     .sizes = small,
                     .n_ranks = n_ranks,
                     .zero = zero,
                     .accumulation = 1,
                     .rule = "AdamOptimizer",
                     .end = 2};

            check_layout(state, &j);
            j.precision = zero == 2 ? OT_PRECISION_F16 : OT_PRECISION_BF16;
            j.zero = zero;
            check_layout(state, &j);
        }
    ot_model_destroy(model);
}

// ---- going on ----

enum { MICRO_BATCHES = 6 }; // of an update, over all ranks

// The same state on all ranks, whatever it was saved by; then the updates that one process would
// make of all micro-batches.
static void go_on(void **state, const job *kind, int from, int from_zero, int to, int to_zero)
{
    rank_files files;
    job all = *kind, first = *kind, rest = *kind;

    name_rank_files(state, "go_on", &files);
    first.n_ranks = from;
    first.zero = from_zero;
    first.accumulation = MICRO_BATCHES / from;
    first.end = 2 * first.accumulation;
    first.saved = files.path;
    rest.n_ranks = all.n_ranks = to;
    rest.zero = all.zero = to_zero;
    rest.accumulation = all.accumulation = MICRO_BATCHES / to;
    rest.begin = 2 * rest.accumulation;
    rest.end = all.end = 4 * rest.accumulation;
    rest.loaded = files.path;
    rest.n_loaded = from;
    run_job(&first);
    run_job(&rest);
    run_job(&all);
    for (int r = 0; r < to; r++) {
        if (rest.hash_before[r] != first.hash_after[0])
            fail_msg("%d ranks with zero %d to %d with %d: rank %d has another state", from,
                     from_zero, to, to_zero, r);
        if (from == to)
            assert_true(rest.hash_after[r] == all.hash_after[r]);
        assert_float_equal(rest.losses[r], all.losses[r], 2e-5);
    }
}

static void any_number_of_ranks_goes_on(void **state)
{
    static const struct {
        int from, from_zero, to, to_zero;
    } cases[] = {{2, 1, 1, 0}, {2, 2, 3, 2}, {2, 3, 3, 1}, {1, 1, 2, 1}, {2, 1, 2, 0},
                 {3, 3, 2, 3}, {3, 1, 3, 1}, {2, 3, 2, 3}, {2, 2, 2, 2}, {3, 2, 1, 1}};
    ot_model *model = network_model(&small);
    job kind = {.model = model, .sizes = small, .rule = "AdamOptimizer", .average_decay = 0.75};

    for (size_t i = 0; i < OT_COUNT(cases); i++)
        go_on(state, &kind, cases[i].from, cases[i].from_zero, cases[i].to, cases[i].to_zero);
    kind.is_free = 1;
    go_on(state, &kind, 2, 3, 3, 2);
    go_on(state, &kind, 3, 2, 2, 3);
    kind.is_free = 0;
    kind.rule = "LambOptimizer";
    go_on(state, &kind, 2, 1, 3, 1);
    kind.rule = "SGDOptimizer";
    go_on(state, &kind, 2, 2, 1, 0);
    kind.rule = "AdamOptimizer";
    kind.precision = OT_PRECISION_BF16;
    kind.average_decay = 0;
    go_on(state, &kind, 3, 1, 2, 1);
    go_on(state, &kind, 2, 3, 2, 3);
    kind.precision = OT_PRECISION_F16;
    go_on(state, &kind, 2, 1, 1, 0);
    go_on(state, &kind, 2, 2, 2, 2);
    ot_model_destroy(model);
}
// ---- within an accumulation ----

// Of a network with dropout and running statistics: n ranks go on bit for bit from a file of each.
static void an_accumulation_goes_on_with_what_each_rank_had(void **state)
{
    static const int zeros[] = {0, 1};
    ot_model *model = dropout_model();

    for (size_t k = 0; k < OT_COUNT(zeros); k++) {
        job first = {.model = model,
                     .sizes = {.n_in = N_IN},
                     .n_ranks = 2,
                     .zero = zeros[k],
                     .accumulation = 3,
                     .rule = "AdamOptimizer",
                     .end = 4},
            rest = first, all = first;
        rank_files files;

        name_rank_files(state, "accumulation", &files);
        first.saved = files.path;
        rest.begin = first.end;
        rest.end = all.end = 7;
        rest.loaded = files.path;
        rest.n_loaded = 2;
        rest.loads_own = zeros[k] == 0;
        run_job(&first);
        run_job(&rest);
        run_job(&all);
        for (int r = 0; r < 2; r++) {
            assert_true(rest.hash_after[r] == all.hash_after[r]);
            assert_float_equal(rest.losses[r], all.losses[r], 0);
        }
    }
    ot_model_destroy(model);
}

// Gradients that are cut are sums over the ranks already.
static void gradients_that_are_cut_go_on_too(void **state)
{
    ot_model *model = dropout_model();

    for (int zero = 2; zero <= 3; zero++)
        for (int to_zero = 0; to_zero <= 3; to_zero++) {
            job first = {.model = model,
                         .sizes = {.n_in = N_IN},
                         .n_ranks = 2,
                         .zero = zero,
                         .is_free = 1,
                         .accumulation = 3,
                         .rule = "AdamOptimizer",
                         .end = 2},
                rest = first, all = first;
            rank_files files;

            name_rank_files(state, "cut", &files);
            first.saved = files.path;
            rest.zero = to_zero;
            rest.begin = first.end;
            rest.end = all.end = 7;
            rest.loaded = files.path;
            rest.n_loaded = 2;
            run_job(&first);
            run_job(&rest);
            run_job(&all);
            for (int r = 0; r < 2; r++)
                assert_float_equal(rest.losses[r], all.losses[r], 2e-5);
        }
    ot_model_destroy(model);
}

static void assert_mean(const ot_tensor *mean, const ot_tensor *a, const ot_tensor *b)
{
    assert_true(mean != NULL && a != NULL && b != NULL);
    for (int64_t i = 0; i < ot_tensor_count(mean); i++)
        assert_float_equal(ot__tensor_get_f64(mean, i),
                           (ot__tensor_get_f64(a, i) + ot__tensor_get_f64(b, i)) / 2, 1e-7);
}

static const ot_tensor *own_tensor(ot_dict *state, const char *in, const char *name)
{
    return ot__state_tensor(ot__state_dict(section(state, "onnxtrain"), in), name);
}

// Other numbers of ranks go on with the means, which are what one rank would have made.
static void an_accumulation_of_several_ranks_is_their_mean_for_others(void **state)
{
    ot_model *model = dropout_model();
    job j = {.model = model,
             .sizes = {.n_in = N_IN},
             .n_ranks = 2,
             .zero = 1,
             .accumulation = 3,
             .rule = "AdamOptimizer",
             .end = 2};
    rank_files files, whole;
    ot_dict *parts[2], *joined, *one;

    name_rank_files(state, "means", &files);
    name_rank_files(state, "whole", &whole);
    j.saved = files.path;
    run_job(&j);
    whole.path[1] = whole.path[0];
    j.saved = whole.path;
    run_job(&j);
    for (int r = 0; r < 2; r++)
        parts[r] = load_rank_file(files.path[r]);
    one = load_rank_file(whole.path[0]);
    need(ot_state_aggregate(files.path, 2, &joined));
    assert_mean(own_tensor(joined, "gradients", "w1"), own_tensor(parts[0], "gradients", "w1"),
                own_tensor(parts[1], "gradients", "w1"));
    assert_mean(own_tensor(one, "gradients", "w1"), own_tensor(parts[0], "gradients", "w1"),
                own_tensor(parts[1], "gradients", "w1"));
    for (int k = 0; k < 2; k++)
        assert_mean(tensor_in(k == 0 ? joined : one, "model", "mean", NULL),
                    own_tensor(parts[0], "statistics", "mean"),
                    own_tensor(parts[1], "statistics", "mean"));
    assert_memory_not_equal(own_tensor(parts[0], "statistics", "mean")->data,
                            own_tensor(parts[1], "statistics", "mean")->data, sizeof(float));
    for (int r = 0; r < 2; r++)
        ot_dict_destroy(parts[r]);
    ot_dict_destroy(joined);
    ot_dict_destroy(one);
    ot_model_destroy(model);
}

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_dealt_out_in_the_order_of_their_names),
        cmocka_unit_test(a_total_that_needs_no_padding_gets_some),
        cmocka_unit_test(a_part_begins_where_the_rank_before_has_ended),
#if OT_WITH_HDF5
        TEST_IN_FOLDER(the_example_of_digits_is_cut_in_its_first_layer),
        TEST_IN_FOLDER(files_have_what_the_rank_updates_and_weights_whole_unless_mixed),
        TEST_IN_FOLDER(any_number_of_ranks_goes_on),
        TEST_IN_FOLDER(an_accumulation_goes_on_with_what_each_rank_had),
        TEST_IN_FOLDER(gradients_that_are_cut_go_on_too),
        TEST_IN_FOLDER(an_accumulation_of_several_ranks_is_their_mean_for_others),
        TEST_IN_FOLDER(without_zero_each_rank_writes_all_of_the_state),
        TEST_IN_FOLDER(without_optimizer_states_files_have_weights_alone),
        TEST_IN_FOLDER(what_one_rank_cannot_write_no_rank_does),
        TEST_IN_FOLDER(no_memory_on_one_rank_is_the_same_on_all_and_leaves_no_file),
        TEST_IN_FOLDER(paths_are_one_or_all_different),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
