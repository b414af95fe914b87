// SPDX-License-Identifier: Apache-2.0
// States of several processes joined to one: the published examples, and a known state that is cut
// in every way and joined again.
#include "shards_fixture.h"

// ---- the published examples ----

// Two processes: what each has of one weight of shape [2,n], its first moment and how it is split.
static shards pair_of(const cutting *c, split how, ot_shape part, const float weight[2][6],
                      const float moment[2][6], int64_t n_columns)
{
    const int64_t whole[] = {2, n_columns}, split_value = how;
    shards s = {.n = 2, .path = {"zero", "one"}};

    for (int r = 0; r < 2; r++) {
        ot_dict *of;
        int n = 1, n_weight = c->is_mixed || !c->is_zero ? 0 : (int)(2 * n_columns);
        ot_shape shape = c->is_mixed || !c->is_zero ? part : OT_SHAPE(2, n_columns);

        for (int k = 0; k < part.ndim; k++)
            n *= (int)part.dim[k];
        n_weight = n_weight > 0 ? n_weight : n;
        must(ot_dict_create(&s.state[r]));
        put_tensor(put_dict(put_dict(s.state[r], "model"), "full_precision"), "w",
                   values_tensor(OT_F32, shape, weight[r], n_weight));
        of = put_dict(put_dict(s.state[r], "optimizer"), "w");
        put_tensor(of, "Moment_1", values_tensor(OT_F32, part, moment[r], n));
        put_tensor(of, "Update_Count", count_tensor(3));
        of = put_dict(put_dict(s.state[r], "partition_info"), "w");
        must(ot_dict_set_ints(of, "original_dim", whole, 2));
        must(ot_dict_set_ints(of, "megatron_row_partition", &split_value, 1));
        put_options(s.state[r], c->is_mixed, c->is_zero, r, c->d, c->h);
        put_steps(s.state[r]);
    }
    return s;
}

static void assert_floats(ot_dict *dict, const char *name, ot_shape shape, const float *expected)
{
    const ot_tensor *tensor;

    must(ot_dict_get_tensor(dict, name, &tensor));
    assert_true(ot__shape_equal(&tensor->shape, &shape));
    assert_memory_equal(tensor->data, expected, tensor->n_bytes);
}

static void assert_example(const cutting *c, split how, ot_shape part, const float weight[2][6],
                           const float moment[2][6], ot_shape shape, const float *whole_weight,
                           const float *whole_moment)
{
    shards s = pair_of(c, how, part, weight, moment, shape.dim[1]);
    const ot_tensor *count;
    ot_dict *state, *of;

    must(join_shards(&s, &state));
    assert_floats(below(below(state, "model"), "full_precision"), "w", shape, whole_weight);
    of = below(below(state, "optimizer"), "w");
    assert_floats(of, "Moment_1", shape, whole_moment);
    must(ot_dict_get_tensor(of, "Update_Count", &count));
    assert_true(ot_tensor_count(count) == 1 && *(const int64_t *)count->data == 3);
    ot_dict_destroy(state);
    destroy_shards(&s);
}

static void zero_in_f32_joins_the_moments_and_compares_the_weights(void **state)
{
    static const float weight[2][6] = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}};
    static const float moment[2][6] = {{9, 8, 7}, {6, 5, 4}}, joined[] = {9, 8, 7, 6, 5, 4};

    (void)state;
    assert_example(&(cutting){2, 1, true, false, OT_F32}, WHOLE, OT_SHAPE(3), weight, moment,
                   OT_SHAPE(2, 3), weight[0], joined);
}

static void zero_in_mixed_precision_joins_the_weights_too(void **state)
{
    static const float weight[2][6] = {{1, 2, 3}, {4, 5, 6}}, whole[] = {1, 2, 3, 4, 5, 6};
    static const float moment[2][6] = {{9, 8, 7}, {6, 5, 4}}, joined[] = {9, 8, 7, 6, 5, 4};

    (void)state;
    assert_example(&(cutting){2, 1, true, true, OT_F32}, WHOLE, OT_SHAPE(3), weight, moment,
                   OT_SHAPE(2, 3), whole, joined);
}

static void rows_are_joined_along_the_first_axis(void **state)
{
    static const float weight[2][6] = {{1, 2}, {3, 4}}, whole[] = {1, 2, 3, 4};

    (void)state;
    assert_example(&(cutting){1, 2, false, false, OT_F32}, BY_ROWS, OT_SHAPE(1, 2), weight, weight,
                   OT_SHAPE(2, 2), whole, whole);
}

static void columns_are_joined_along_the_last_axis(void **state)
{
    static const float weight[2][6] = {{1, 3}, {2, 4}}, whole[] = {1, 2, 3, 4};

    (void)state;
    assert_example(&(cutting){1, 2, false, false, OT_F32}, BY_COLUMNS, OT_SHAPE(2, 1), weight,
                   weight, OT_SHAPE(2, 2), whole, whole);
}

// ---- cut and joined ----

static const cutting cuttings[] = {
    {2, 1, true, false, OT_F32},  {2, 1, true, true, OT_F32},  {3, 1, true, false, OT_F32},
    {3, 1, true, true, OT_F32},   {4, 1, true, false, OT_F32}, {4, 1, true, true, OT_F32},
    {2, 2, true, false, OT_F32},  {2, 2, true, true, OT_F32},  {3, 2, true, false, OT_F32},
    {3, 2, true, true, OT_F32},   {4, 2, true, false, OT_F32}, {4, 2, true, true, OT_F32},
    {2, 1, true, false, OT_F16},  {2, 1, true, true, OT_F16},  {3, 1, true, false, OT_F16},
    {3, 1, true, true, OT_F16},   {4, 1, true, false, OT_F16}, {4, 1, true, true, OT_F16},
    {2, 2, true, false, OT_F16},  {2, 2, true, true, OT_F16},  {3, 2, true, false, OT_F16},
    {3, 2, true, true, OT_F16},   {4, 2, true, false, OT_F16}, {4, 2, true, true, OT_F16},
    {1, 2, false, false, OT_F32}, {1, 2, false, true, OT_F16}, {2, 2, false, false, OT_F32},
    {3, 2, false, true, OT_F32},  {1, 1, true, false, OT_F32},
};

static void what_is_cut_is_joined_to_what_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cuttings); i++) {
        shards s = cut_all(&cuttings[i]);
        ot_dict *expected = whole_state(&cuttings[i]), *joined;

        must(join_shards(&s, &joined));
        assert_same_state(joined, expected);
        ot_dict_destroy(joined);
        ot_dict_destroy(expected);
        destroy_shards(&s);
    }
}

static void the_order_of_the_files_does_not_matter(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cuttings); i++) {
        shards s = cut_all(&cuttings[i]), turned = {.n = s.n};
        ot_dict *expected = whole_state(&cuttings[i]), *joined;

        for (int r = 0; r < s.n; r++) {
            turned.state[r] = s.state[s.n - 1 - r];
            turned.path[r] = s.path[s.n - 1 - r];
        }
        must(join_shards(&turned, &joined));
        for (int k = 0; k < ot_dict_count(expected); k++) // sections stand in another order inside
            assert_true(ot__state_has(joined, ot_dict_name(expected, k)));
        assert_same_state(joined, expected);
        ot_dict_destroy(joined);
        ot_dict_destroy(expected);
        destroy_shards(&s);
    }
}

static void what_the_user_added_is_that_of_the_first_file_that_has_it(void **state)
{
    shards s = cut_all(&cuttings[2]);
    const char *text;
    ot_dict *joined;

    (void)state;
    must(ot_dict_set_string(s.state[1], "user_dict", "8000"));
    must(ot_dict_set_string(s.state[2], "user_dict", "8001"));
    must(join_shards(&s, &joined));
    must(ot_dict_get_string(joined, "user_dict", &text));
    assert_string_equal(text, "8000");
    ot_dict_destroy(joined);
    destroy_shards(&s);
}

// Without moments, as they are saved on request, and as SGD has none.
static void weights_alone_are_joined_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cuttings); i++) {
        shards s = cut_all(&cuttings[i]);
        ot_dict *expected = whole_state(&cuttings[i]), *joined;

        for (int r = 0; r < s.n; r++)
            must(ot_dict_remove(s.state[r], "optimizer"));
        must(ot_dict_remove(expected, "optimizer"));
        must(join_shards(&s, &joined));
        assert_same_state(joined, expected);
        ot_dict_destroy(joined);
        ot_dict_destroy(expected);
        destroy_shards(&s);
    }
}

// ---- what does not belong together ----

static void assert_refused(const shards *s, const char *message)
{
    ot_dict *joined = (ot_dict *)(uintptr_t)1;

    if (join_shards(s, &joined) == OT_OK)
        fail_msg("it is joined, expected: %s", message);
    assert_null(joined);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("the message is: %s, expected: %s", ot_error_message(), message);
}

static void a_missing_file_is_named_by_its_rank(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cuttings); i++) {
        shards s = cut_all(&cuttings[i]), rest;

        for (int missing = 0; s.n > 1 && missing < s.n; missing++) {
            char message[64];

            rest = s;
            rest.n--;
            for (int r = missing; r < rest.n; r++) {
                rest.state[r] = s.state[r + 1];
                rest.path[r] = s.path[r + 1];
            }
            (void)snprintf(message, sizeof message, "expected %d: there is none of rank %d", s.n,
                           missing);
            assert_refused(&rest, message);
        }
        destroy_shards(&s);
    }
}

static void a_file_given_twice_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cuttings); i++) {
        shards s = cut_all(&cuttings[i]), twice = s;

        if (s.n > 1) {
            twice.state[1] = s.state[0];
            assert_refused(&twice, "zero and one are both of rank 0, expected each rank once");
        }
        destroy_shards(&s);
    }
}

static void set_rank(ot_dict *state, int64_t rank)
{
    must(ot_dict_set_int(below(state, "trainer_options"), "world_rank", rank));
}

// Ranks and contents that do not belong together show in the order of the weights.
static void exchanged_ranks_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cuttings); i++) {
        if (cuttings[i].h > 1)
            continue;
        for (int a = 0; a < cuttings[i].d; a++)
            for (int b = a + 1; b < cuttings[i].d; b++) {
                shards s = cut_all(&cuttings[i]);
                ot_dict *joined;

                set_rank(s.state[a], b);
                set_rank(s.state[b], a);
                if (join_shards(&s, &joined) == OT_OK)
                    fail_msg("cutting %zu: ranks %d and %d", i, a, b);
                destroy_shards(&s);
            }
    }
}

static void unequal_copies_are_refused_with_file_weight_and_element(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cuttings); i++)
        for (int r = 1; r < cuttings[i].d * cuttings[i].h; r++) {
            shards s = cut_all(&cuttings[i]);
            static const float other[] = {121, 222, 123};
            ot_dict *full = below(below(s.state[r], "model"), "full_precision");
            char message[256];

            put_tensor(full, "e.statistics",
                       values_tensor(cuttings[i].dtype, OT_SHAPE(3), other, 3));
            // The first file of a column is taken for right.
            if (r < cuttings[i].h && cuttings[i].d > 1)
                (void)snprintf(message, sizeof message,
                               "%s: weight 'e.statistics' differs from that in %s: element 1 is "
                               "122, expected 222",
                               s.path[r + cuttings[i].h], s.path[r]);
            else
                (void)snprintf(message, sizeof message,
                               "%s: weight 'e.statistics' differs from that in %s: element 1 is "
                               "222, expected 122",
                               s.path[r], s.path[r % cuttings[i].h == r ? 0 : r % cuttings[i].h]);
            assert_refused(&s, message);
            destroy_shards(&s);
        }
}

// One change to one file of three, and what is said of it.
typedef enum change {
    NO_OPTIONS,
    NO_PARTITION,
    WHOLE_STATE,
    NOT_THE_PRODUCT,
    OTHER_WORLD,
    OTHER_STAGE,
    OTHER_PRECISION,
    OTHER_OPTIMIZER,
    RANK_TOO_LARGE,
    OTHER_STEP,
    NO_STEPS,
    NO_MOMENTS,
    OTHER_COUNT,
    OTHER_DIMS,
    BAD_DIMS,
    BAD_SPLIT,
    SHORT_PIECE,
    OTHER_TYPE,
    OTHER_SHAPE,
    NO_WEIGHT,
    WHOLE_MOMENT,
    NO_TENSOR,
} change;

static void change_options(ot_dict *state, change what)
{
    ot_dict *options = below(state, "trainer_options");

    if (what == WHOLE_STATE)
        must(ot_dict_set_int(options, "zero_stage", 0));
    else if (what == NOT_THE_PRODUCT)
        must(ot_dict_set_int(options, "world_size", 6));
    else if (what == OTHER_WORLD)
        must(ot_dict_set_int(options, "world_size", 4));
    else if (what == OTHER_STAGE)
        must(ot_dict_set_int(options, "zero_stage", 2));
    else if (what == OTHER_PRECISION)
        must(ot_dict_set_bool(options, "mixed_precision", 1));
    else if (what == OTHER_OPTIMIZER)
        must(ot_dict_set_string(options, "optimizer_name", "LambOptimizer"));
    else
        must(ot_dict_set_int(options, "world_rank", 3));
}

static void change_optimizer(ot_dict *state, change what)
{
    static const float values[32] = {0};
    ot_dict *b = below(below(state, "optimizer"), "b.weight");

    if (what == OTHER_COUNT)
        put_tensor(b, "Update_Count", count_tensor(9));
    else if (what == SHORT_PIECE)
        put_tensor(b, "Moment_1", values_tensor(OT_F32, OT_SHAPE(2), values, 2));
    else
        must(ot_dict_remove(below(state, "partition_info"), "b.weight"));
}

static void change_partition(ot_dict *state, change what)
{
    static const int64_t dims[] = {6, 4}, split_value = 2;
    ot_dict *b = below(below(state, "partition_info"), "b.weight");

    if (what == OTHER_DIMS)
        must(ot_dict_set_ints(b, "original_dim", dims, 2));
    else if (what == BAD_DIMS)
        must(ot_dict_set_string(b, "original_dim", "[6, 4]"));
    else
        must(ot_dict_set_ints(b, "megatron_row_partition", &split_value, 1));
}

static void change_model(ot_dict *state, change what)
{
    static const float values[4] = {121, 122, 123, 124};
    ot_dict *full = below(below(state, "model"), "full_precision");

    if (what == OTHER_TYPE)
        put_tensor(full, "e.statistics", values_tensor(OT_F16, OT_SHAPE(3), values, 3));
    else if (what == OTHER_SHAPE)
        put_tensor(full, "e.statistics", values_tensor(OT_F32, OT_SHAPE(4), values, 4));
    else if (what == NO_TENSOR)
        must(ot_dict_set_int(full, "e.statistics", 1));
    else
        must(ot_dict_remove(full, "e.statistics"));
}

static void change_state(ot_dict *state, change what)
{
    if (what == NO_OPTIONS)
        must(ot_dict_remove(state, "trainer_options"));
    else if (what == NO_PARTITION)
        must(ot_dict_remove(state, "partition_info"));
    else if (what == OTHER_STEP)
        must(ot_dict_set_int(below(state, "train_step_info"), "step", 5));
    else if (what == NO_STEPS)
        must(ot_dict_remove(state, "train_step_info"));
    else if (what == NO_MOMENTS)
        must(ot_dict_remove(state, "optimizer"));
    else if (what <= RANK_TOO_LARGE)
        change_options(state, what);
    else if (what == OTHER_COUNT || what == SHORT_PIECE || what == WHOLE_MOMENT)
        change_optimizer(state, what);
    else if (what >= OTHER_DIMS && what <= BAD_SPLIT)
        change_partition(state, what);
    else
        change_model(state, what);
}

static const struct {
    change what;
    int rank; // whose file is changed; -1: all
    const char *message;
} refusals[] = {
    {NO_OPTIONS, 1, "one: the state has no 'trainer_options'"},
    {NO_PARTITION, 2, "two: the state has no 'partition_info'"},
    {WHOLE_STATE, -1, "zero: zero_stage is 0 and horizontal_parallel_size 1: the state is whole"},
    {NOT_THE_PRODUCT, -1,
     "zero: world_size is 6, expected the product of data_parallel_size, 3, and "
     "horizontal_parallel_size, 1"},
    {OTHER_WORLD, 2, "two: world_size is 4, expected 3 as in zero"},
    {OTHER_STAGE, 1, "one: zero_stage is 2, expected 1 as in zero"},
    {OTHER_PRECISION, 1, "one: mixed_precision is true, expected false as in zero"},
    {OTHER_OPTIMIZER, 2, "two: optimizer_name is LambOptimizer, expected AdamOptimizer as in zero"},
    {RANK_TOO_LARGE, 2, "two: world_rank is 3, expected 0 to 2 by world_size"},
    {OTHER_STEP, 1, "one: step is 5, expected 14 as in zero"},
    {NO_STEPS, 1, "one: has no 'optimization_step' in 'train_step_info', others have"},
    {NO_MOMENTS, 2, "two: has no 'optimizer', zero has it"},
    {OTHER_COUNT, 1,
     "one: Update_Count of 'b.weight' differs from that in zero: element 0 is 9, expected 8"},
    {OTHER_DIMS, 1,
     "one: 'b.weight' is a part of [6,4], split -1, but of [4,6], split -1, in zero"},
    {BAD_DIMS, 1, "one: 'original_dim' of the dict is of kind string, expected tensor"},
    {BAD_SPLIT, 1,
     "one: megatron_row_partition of 'b.weight' in partition_info is [2], expected [-1]"},
    {SHORT_PIECE, 1,
     "zero and the files after it: the parts of Moment_1 of 'b.weight' have 15 elements, expected "
     "24 by original_dim [4,6]"},
    {OTHER_TYPE, 1, "one: weight 'e.statistics' is f16[3], but f32[3] in zero"},
    {OTHER_SHAPE, 1, "one: weight 'e.statistics' is f32[4], but f32[3] in zero"},
    {NO_WEIGHT, 1, "one: has no weight 'e.statistics', which zero has"},
    {WHOLE_MOMENT, 1, "one: Moment_1 of 'b.weight' is whole, but a part in zero"},
    {NO_TENSOR, 1, "one: 'e.statistics' of the dict is of kind int, expected tensor"},
};

static void files_that_do_not_belong_together_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(refusals); i++) {
        shards s = cut_all(&(cutting){3, 1, true, false, OT_F32});

        for (int r = 0; r < s.n; r++)
            if (refusals[i].rank < 0 || refusals[i].rank == r)
                change_state(s.state[r], refusals[i].what);
        assert_refused(&s, refusals[i].message);
        destroy_shards(&s);
    }
}

static void a_gap_between_parts_is_refused(void **state)
{
    shards s = cut_all(&(cutting){4, 1, true, true, OT_F32});

    (void)state;
    must(ot_dict_remove(below(below(s.state[1], "model"), "full_precision"), "b.weight"));
    assert_refused(&s, "one: has no part of weight 'b.weight' between those of other ranks");
    destroy_shards(&s);
}

static void a_split_that_does_not_divide_is_refused(void **state)
{
    static const int64_t dims[] = {4, 7};
    shards s = cut_all(&(cutting){1, 2, false, false, OT_F32});

    (void)state;
    for (int r = 0; r < s.n; r++)
        must(ot_dict_set_ints(below(below(s.state[r], "partition_info"), "b.weight"),
                              "original_dim", dims, 2));
    assert_refused(&s, "zero: 'b.weight' of shape [4,7] cannot be split 2 ways by columns");
    destroy_shards(&s);
}

// ---- failing allocations ----

static void a_failing_allocation_leaves_nothing(void **state)
{
    shards s = cut_all(&(cutting){2, 2, true, true, OT_F32});
    ot_dict *joined;
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = join_shards(&s, &joined);
        ot__alloc_fail_after(-1);
        if (st != OT_OK)
            assert_null(joined);
    }
    must(st);
    ot_dict_destroy(joined);
    destroy_shards(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_in_f32_joins_the_moments_and_compares_the_weights),
        cmocka_unit_test(zero_in_mixed_precision_joins_the_weights_too),
        cmocka_unit_test(rows_are_joined_along_the_first_axis),
        cmocka_unit_test(columns_are_joined_along_the_last_axis),
        cmocka_unit_test(what_is_cut_is_joined_to_what_it_was),
        cmocka_unit_test(the_order_of_the_files_does_not_matter),
        cmocka_unit_test(what_the_user_added_is_that_of_the_first_file_that_has_it),
        cmocka_unit_test(weights_alone_are_joined_too),
        cmocka_unit_test(a_missing_file_is_named_by_its_rank),
        cmocka_unit_test(a_file_given_twice_is_refused),
        cmocka_unit_test(exchanged_ranks_are_refused),
        cmocka_unit_test(unequal_copies_are_refused_with_file_weight_and_element),
        cmocka_unit_test(files_that_do_not_belong_together_are_refused),
        cmocka_unit_test(a_gap_between_parts_is_refused),
        cmocka_unit_test(a_split_that_does_not_divide_is_refused),
        cmocka_unit_test(a_failing_allocation_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
