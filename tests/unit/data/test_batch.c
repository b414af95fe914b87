// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/data.h"

enum { ROWS = 23 };

// One column "n" that counts the rows.
static ot_dataset *counting_dataset(void)
{
    ot__buf text = {0};
    ot_dataset *dataset;

    ot__buf_text(&text, "n\n");
    for (int i = 0; i < ROWS; i++)
        ot__buf_printf(&text, "%d\n", i);
    assert_int_equal(ot__dataset_open_bytes(text.data, text.length, NULL, &dataset), OT_OK);
    assert_int_equal(ot_dataset_rows(dataset), ROWS);
    ot__buf_deinit(&text);
    return dataset;
}

static ot_batches *batches_of(const ot_dataset *dataset, const ot_batches_options *options)
{
    const ot_binding binding = {
        .input = "x", .dtype = OT_I64, .fields = "n", .scale = 1, .n_channels = 1};
    ot_batches *batches;

    assert_int_equal(ot_batches_create(dataset, &binding, 1, options, &batches), OT_OK);
    return batches;
}

// Appends the rows of what is left of the epoch; returns how many batches came.
static int read_epoch(ot_batches *batches, int64_t *rows, int *n_rows)
{
    const ot_tensor *batch;
    int n_batches = 0;

    for (;; n_batches++) {
        assert_int_equal(ot_batches_next(batches, &batch, 1), OT_OK);
        if (!batch)
            return n_batches;
        for (int64_t i = 0; i < ot_tensor_count(batch); i++)
            rows[(*n_rows)++] = ot__tensor_get_i64(batch, i);
    }
}

static void in_file_order_the_last_batch_is_short(void **state)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches;
    int64_t rows[ROWS];
    int n_rows = 0;

    (void)state;
    options.batch_size = 5;
    batches = batches_of(dataset, &options);
    assert_int_equal(ot_batches_count(batches), 5);
    assert_int_equal(ot_batches_left_over(batches), 0);
    assert_int_equal(read_epoch(batches, rows, &n_rows), 5);
    assert_int_equal(n_rows, ROWS);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(rows[i], i);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void a_short_batch_can_be_left_out(void **state)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches;
    int64_t rows[ROWS];
    int n_rows = 0;

    (void)state;
    options.batch_size = 5;
    options.drop_last = 1;
    batches = batches_of(dataset, &options);
    assert_int_equal(ot_batches_count(batches), 4);
    assert_int_equal(ot_batches_left_over(batches), ROWS - 20);
    assert_int_equal(read_epoch(batches, rows, &n_rows), 4);
    assert_int_equal(n_rows, 20);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void the_parts_of_a_split_share_no_row_and_together_have_all(void **state)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_dataset *dataset = counting_dataset();
    ot_batches *training, *held_out;
    int64_t rows[2 * ROWS];
    int n_rows = 0, seen[ROWS] = {0};

    (void)state;
    options.batch_size = 4;
    options.split_seed = 9;
    options.last = 16;
    options.shuffle = 1;
    training = batches_of(dataset, &options);
    options.first = 16;
    options.last = ROWS;
    options.shuffle = 0;
    held_out = batches_of(dataset, &options);
    read_epoch(training, rows, &n_rows);
    assert_int_equal(n_rows, 16);
    read_epoch(held_out, rows, &n_rows);
    assert_int_equal(n_rows, ROWS);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(seen[rows[i]]++, 0);
    // The training part stays the same set in the next epoch.
    n_rows = 0;
    assert_int_equal(ot_batches_seek(training, 1, 0), OT_OK);
    read_epoch(training, rows, &n_rows);
    for (int i = 0; i < n_rows; i++)
        assert_int_equal(seen[rows[i]]++, 1);
    ot_batches_destroy(training);
    ot_batches_destroy(held_out);
    ot_dataset_destroy(dataset);
}

static void going_to_a_batch_gives_what_reading_up_to_it_gives(void **state)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches;
    int64_t whole[ROWS], part[ROWS];
    int n_whole = 0, n_part = 0;

    (void)state;
    options.batch_size = 4;
    options.shuffle = 1;
    options.seed = 3;
    batches = batches_of(dataset, &options);
    assert_int_equal(ot_batches_seek(batches, 7, 0), OT_OK);
    read_epoch(batches, whole, &n_whole);
    assert_int_equal(ot_batches_seek(batches, 7, 2), OT_OK);
    read_epoch(batches, part, &n_part);
    assert_int_equal(n_part, ROWS - 8);
    assert_memory_equal(part, whole + 8, sizeof(*part) * (ROWS - 8));
    assert_int_equal(ot_batches_seek(batches, 0, 7), OT_ERR_INVALID);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void bindings_that_do_not_fit_are_refused(void **state)
{
    const struct {
        ot_binding binding;
        const char *message;
    } cases[] = {
        {{.fields = "m"}, "input 'x': the data has no field 'm'"},
        {{.fields = "#1"}, "input 'x': the data has no field '#1'"},
        {{.fields = "n", .shape = {1, {2}}}, "input 'x' wants rows of [2], field 'n' has [1]"},
        {{.fields = "n", .shape = {2, {INT64_C(1) << 40, INT64_C(1) << 40}}}, "input 'x' wants"},
    };
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_binding binding = cases[i].binding;
        binding.input = "x";
        binding.dtype = OT_F32;
        assert_int_not_equal(ot_batches_create(dataset, &binding, 1, &options, &batches), OT_OK);
        assert_non_null(strstr(ot_error_message(), cases[i].message));
        assert_null(batches);
    }
    ot_dataset_destroy(dataset);
}

static void batches_go_on_when_their_dataset_is_destroyed(void **state)
{
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches = batches_of(dataset, NULL);
    const ot_tensor *rows;

    (void)state;
    ot_dataset_destroy(dataset);
    ot_dataset_destroy(dataset); // it is still there: once more makes no difference
    assert_int_equal(ot_batches_next(batches, &rows, 1), OT_OK);
    assert_int_equal(ot_tensor_count(rows), ROWS);
    ot_batches_destroy(batches); // and the dataset with it, as the leak check sees
}

static void tensors_are_written_only_when_there_is_room_for_each(void **state)
{
    const ot_binding two[] = {
        {.input = "x", .dtype = OT_I64, .fields = "n", .scale = 1, .n_channels = 1},
        {.input = "y", .dtype = OT_I64, .fields = "n", .scale = 1, .n_channels = 1}};
    ot_dataset *dataset = counting_dataset();
    const ot_tensor **rows = malloc(sizeof(*rows)); // a second one is seen by the sanitizer
    ot_batches *batches;

    (void)state;
    assert_int_equal(ot_batches_create(dataset, two, 2, NULL, &batches), OT_OK);
    for (int n = -1; n < 2; n++) {
        assert_int_equal(ot_batches_next(batches, rows, n), OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), "the batches have 2 inputs"));
    }
    free((void *)rows);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void batches_are_not_used_by_two_threads(void **state)
{
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches = batches_of(dataset, NULL);
    const ot_tensor *rows;
    ot__guard *guard = (ot__guard *)batches;
    const uintptr_t other = 1;

    (void)state;
    guard->owner = other; // as a thread inside has it
    assert_int_equal(ot_batches_next(batches, &rows, 1), OT_ERR_STATE);
    assert_string_equal(ot_error_message(), "another thread uses the batches: one at a time may");
    assert_int_equal(ot_batches_seek(batches, 0, 0), OT_ERR_STATE);
    guard->owner = 0;
    assert_int_equal(ot_batches_next(batches, &rows, 1), OT_OK);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

// Of any number of slices, all together have the rows of each batch in order, as sizes of batches
// R * g / G have them.
static void slices_of_a_batch_are_its_rows(void **state)
{
    enum { SLICES_MOST = 8, BATCH = 5, N_BATCHES = 5 };
    ot_dataset *dataset = counting_dataset();
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;

    (void)state;
    options.batch_size = BATCH;
    options.shuffle = 1;
    options.seed = 3;
    for (int slices = 1; slices <= SLICES_MOST; slices++) {
        ot_batches *whole = batches_of(dataset, &options), *parts[SLICES_MOST];
        const ot_tensor *batch;

        for (int g = 0; g < slices; g++) {
            ot_batches_options own = options;

            own.slice = g;
            own.slices = slices;
            parts[g] = batches_of(dataset, &own);
            assert_int_equal(ot_batches_count(parts[g]), N_BATCHES);
        }
        for (;;) {
            int64_t at = 0;

            assert_int_equal(ot_batches_next(whole, &batch, 1), OT_OK);
            for (int g = 0; g < slices; g++) {
                const ot_tensor *part;

                assert_int_equal(ot_batches_next(parts[g], &part, 1), OT_OK);
                assert_int_equal(part == NULL, batch == NULL);
                if (part == NULL)
                    continue;
                assert_int_equal(ot_batches_batch_rows(parts[g]), ot_tensor_count(batch));
                assert_int_equal(at, ot_tensor_count(batch) * g / slices);
                for (int64_t i = 0; i < ot_tensor_count(part); i++, at++)
                    assert_int_equal(ot__tensor_get_i64(part, i), ot__tensor_get_i64(batch, at));
            }
            if (batch == NULL)
                break;
            assert_int_equal(at, ot_tensor_count(batch));
        }
        for (int g = 0; g < slices; g++)
            ot_batches_destroy(parts[g]);
        ot_batches_destroy(whole);
    }
    ot_dataset_destroy(dataset);
}

static void slices_that_there_are_not_are_refused(void **state)
{
    static const int64_t wrong[][2] = {{1, 0}, {3, 3}, {-1, 2}, {0, -1}, {0, INT64_MAX}};
    const ot_binding binding = {
        .input = "x", .dtype = OT_I64, .fields = "n", .scale = 1, .n_channels = 1};
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(wrong); i++) {
        ot_batches_options options = OT_BATCHES_OPTIONS_INIT;

        options.slice = wrong[i][0];
        options.slices = wrong[i][1];
        assert_int_equal(ot_batches_create(dataset, &binding, 1, &options, &batches),
                         OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), "slice"));
    }
    ot_dataset_destroy(dataset);
}

static void batches_that_are_slices_are_not_cut(void **state)
{
    const ot_binding binding = {
        .input = "x", .dtype = OT_I64, .fields = "n", .scale = 1, .n_channels = 1};
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_dataset *dataset = counting_dataset();
    ot_batches *batches;

    (void)state;
    options.slice = 1;
    options.slices = 2;
    assert_int_equal(ot_batches_create(dataset, &binding, 1, &options, &batches), OT_OK);
    assert_int_equal(ot__batches_set_slice(batches, 0, 1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(),
                        "the batches are slices of others, expected whole ones, which are cut");
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_go_on_when_their_dataset_is_destroyed),
        cmocka_unit_test(tensors_are_written_only_when_there_is_room_for_each),
        cmocka_unit_test(batches_are_not_used_by_two_threads),
        cmocka_unit_test(in_file_order_the_last_batch_is_short),
        cmocka_unit_test(a_short_batch_can_be_left_out),
        cmocka_unit_test(the_parts_of_a_split_share_no_row_and_together_have_all),
        cmocka_unit_test(going_to_a_batch_gives_what_reading_up_to_it_gives),
        cmocka_unit_test(bindings_that_do_not_fit_are_refused),
        cmocka_unit_test(slices_of_a_batch_are_its_rows),
        cmocka_unit_test(slices_that_there_are_not_are_refused),
        cmocka_unit_test(batches_that_are_slices_are_not_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
