// SPDX-License-Identifier: Apache-2.0
// States in a file of each rank: which rank has what in them, and that any number of ranks goes on
// from them. Ranks are threads.
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

static const network_sizes digits = {784, 128, 10};

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
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
