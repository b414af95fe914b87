// SPDX-License-Identifier: Apache-2.0
// Data files that are longer than what is read at once, and that others change while they are used.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/data.h"
#include "unit/base/temporary_folder.h"

enum { ROWS = 3 };

static ot_dataset *open_file(const char *path)
{
    ot_dataset *dataset;

    if (ot_dataset_open(&path, 1, NULL, &dataset) != OT_OK)
        fail_msg("%s", ot_error_message());
    return dataset;
}

// Batches of one row.
static ot_batches *batches_of(const ot_dataset *dataset, const char *fields, ot_shape shape,
                              int is_class)
{
    const ot_binding binding = {.input = "x",
                                .dtype = is_class ? OT_I64 : OT_F32,
                                .shape = shape,
                                .fields = fields,
                                .scale = 1,
                                .is_class = is_class};
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_batches *batches;

    options.batch_size = 1;
    if (ot_batches_create(dataset, &binding, 1, &options, &batches) != OT_OK)
        fail_msg("%s", ot_error_message());
    return batches;
}

static double next_value(ot_batches *batches)
{
    const ot_tensor *batch;

    if (ot_batches_next(batches, &batch, 1) != OT_OK)
        fail_msg("%s", ot_error_message());
    return ot__tensor_get_f64(batch, 0);
}

static void assert_next_says(ot_batches *batches, ot_status status, const char *path,
                             const char *part)
{
    const ot_tensor *batch;

    assert_int_equal(ot_batches_next(batches, &batch, 1), status);
    if (!strstr(ot_error_message(), path) || !strstr(ot_error_message(), part))
        fail_msg("'%s' does not say '%s' and '%s'", ot_error_message(), path, part);
}

static void write_csv(const char *path)
{
    static const char text[] = "a,b\n1,2\n3,4\n5,6\n";

    assert_int_equal(ot__file_write(path, text, sizeof(text) - 1), OT_OK);
}

static void write_npy(const char *path, const char *order)
{
    const float rows[ROWS][2] = {{1, 2}, {3, 4}, {5, 6}};
    char npy[128 + sizeof(rows)];
    int n;

    memset(npy, ' ', 128);
    memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
    n = snprintf(npy + 10, 117, "{'descr': '<f4', 'fortran_order': %s, 'shape': (3, 2), }", order);
    npy[10 + n] = ' ';
    npy[127] = '\n';
    memcpy(npy + 128, rows, sizeof(rows));
    assert_int_equal(ot__file_write(path, npy, sizeof(npy)), OT_OK);
}

static void a_csv_that_becomes_shorter_is_an_error_with_the_row(void **state)
{
    const char *path = in_folder(state, "x.csv");
    ot_dataset *dataset;
    ot_batches *batches;

    write_csv(path);
    dataset = open_file(path);
    batches = batches_of(dataset, "a", (ot_shape){0}, 0);
    assert_int_equal(truncate(path, 10), 0); // in the second row
    assert_true(next_value(batches) == 1);
    assert_next_says(batches, OT_ERR_IO, path, "row 2: ");
    assert_next_says(batches, OT_ERR_IO, path, "had 16 bytes when it was opened, now ends before");
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void so_is_one_whose_labels_are_looked_for(void **state)
{
    const char *path = in_folder(state, "x.csv");
    const ot_binding binding = {
        .input = "x", .dtype = OT_I64, .fields = "kind", .scale = 1, .is_class = 1};
    ot_dataset *dataset;
    ot_batches *batches;

    assert_int_equal(ot__file_write(path, "kind\nred\nblue\n", 14), OT_OK);
    dataset = open_file(path);
    assert_int_equal(truncate(path, 9), 0);
    assert_int_equal(ot_batches_create(dataset, &binding, 1, NULL, &batches), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "row 2: "));
    ot_dataset_destroy(dataset);
}

static void so_are_arrays(void **state)
{
    static const uint8_t idx[] = {0, 0, 8, 2, 0, 0, 0, ROWS, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6};
    char path[2][PATH_LENGTH_MAX];

    snprintf(path[0], sizeof(path[0]), "%s", in_folder(state, "x.npy"));
    snprintf(path[1], sizeof(path[1]), "%s", in_folder(state, "x.idx"));
    write_npy(path[0], "False");
    assert_int_equal(ot__file_write(path[1], idx, sizeof(idx)), OT_OK);
    for (int i = 0; i < 2; i++) {
        ot_dataset *dataset = open_file(path[i]);
        ot_batches *batches = batches_of(dataset, "x", OT_SHAPE(2), 0);

        assert_int_equal(truncate(path[i], i == 0 ? 128 + 20 : 12 + 5), 0); // in the third row
        assert_true(next_value(batches) == 1);
        assert_true(next_value(batches) == 3);
        assert_next_says(batches, OT_ERR_IO, path[i], "row 3: ");
        ot_batches_destroy(batches);
        ot_dataset_destroy(dataset);
    }
}

// Their elements lie apart, so they are copied when they are opened.
static void arrays_in_fortran_order_do_not_depend_on_their_file(void **state)
{
    const char *path = in_folder(state, "x.npy");
    ot_dataset *dataset;
    ot_batches *batches;

    write_npy(path, "True ");
    dataset = open_file(path);
    batches = batches_of(dataset, "x", OT_SHAPE(2), 0);
    assert_int_equal(truncate(path, 0), 0);
    for (int row = 0; row < ROWS; row++)
        assert_true(next_value(batches) == row + 1);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void rows_with_other_columns_than_before_are_refused(void **state)
{
    static const char *const changed[] = {"a,b\n1,2\n3,,,,4,,5,6", "a,b\n1,2\n3 4\n5,6\n",
                                          "a,b\n1,2\n\"3,\n5,6\n"};
    const char *path = in_folder(state, "x.csv");

    for (size_t i = 0; i < OT_COUNT(changed); i++) {
        ot_dataset *dataset;
        ot_batches *batches;
        int fd;

        write_csv(path);
        dataset = open_file(path);
        batches = batches_of(dataset, "b", (ot_shape){0}, 0);
        fd = open(path, O_WRONLY);
        assert_int_equal(write(fd, changed[i], 16), 16); // in place
        close(fd);
        assert_true(next_value(batches) == 2);
        assert_next_says(batches, OT_ERR_FORMAT, path,
                         "row 2 is not what it was when the file was opened");
        ot_batches_destroy(batches);
        ot_dataset_destroy(dataset);
    }
}

static void rows_that_are_added_or_a_new_file_are_not_seen(void **state)
{
    const char *path = in_folder(state, "x.csv");
    ot_dataset *dataset;
    ot_batches *batches;
    int fd;

    write_csv(path);
    dataset = open_file(path);
    fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "7,8\n", 4), 4);
    close(fd);
    assert_int_equal(ot__file_write(path, "x", 1), OT_OK); // another file of that name
    batches = batches_of(dataset, "a", (ot_shape){0}, 0);
    for (int row = 0; row < ROWS; row++)
        assert_true(next_value(batches) == 2 * row + 1);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

// Row i has the numbers i and 2i, and a text in quotes over two lines whose length varies; one is
// longer than what is read at once.
enum { LONG_ROWS = 20000, LONGEST = 777, LONG_CELL = 1 << 20 };

static void write_long_csv(const char *path)
{
    ot__buf text = {0};

    ot__buf_text(&text, "n,t,m\n");
    for (int i = 0; i < LONG_ROWS; i++) {
        ot__buf_printf(&text, "%d,\"", i);
        for (int k = 0; k < (i == LONGEST ? LONG_CELL : i % 97); k++)
            ot__buf_append(&text, "x,", 2);
        ot__buf_printf(&text, "\n\"\"\",%d\n", 2 * i);
    }
    ot__buf_text(&text, "\n\r\n\n");
    assert_int_equal(ot__buf_status(&text), OT_OK);
    assert_int_equal(ot__file_write(path, text.data, text.length), OT_OK);
    ot__buf_deinit(&text);
}

static void rows_are_whole_wherever_a_read_ends(void **state)
{
    const char *path = in_folder(state, "x.csv");
    ot_binding binding = {
        .input = "x", .dtype = OT_F64, .shape = OT_SHAPE(2), .fields = "n,m", .scale = 1};
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_dataset *dataset;

    write_long_csv(path);
    dataset = open_file(path);
    assert_int_equal(ot_dataset_rows(dataset), LONG_ROWS);
    options.batch_size = 1;
    for (options.shuffle = 0; options.shuffle < 2; options.shuffle++) {
        ot_batches *batches;
        const ot_tensor *batch;
        double sum = 0;

        assert_int_equal(ot_batches_create(dataset, &binding, 1, &options, &batches), OT_OK);
        while (assert_int_equal(ot_batches_next(batches, &batch, 1), OT_OK), batch) {
            const double n = ot__tensor_get_f64(batch, 0);

            assert_true(ot__tensor_get_f64(batch, 1) == 2 * n);
            sum += n;
        }
        assert_true(sum == LONG_ROWS * (LONG_ROWS - 1.0) / 2);
        ot_batches_destroy(batches);
    }
    ot_dataset_destroy(dataset);
}

// An error in a row far behind the first has the line, which the file is read again for.
static void an_error_far_behind_has_its_line(void **state)
{
    const char *path = in_folder(state, "x.csv");
    ot__buf text = {0};
    ot_dataset *dataset;
    ot_batches *batches;
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    const ot_binding binding = {.input = "x", .dtype = OT_F64, .fields = "n", .scale = 1};
    const ot_tensor *batch;

    ot__buf_text(&text, "n\n");
    for (int i = 0; i < LONG_ROWS; i++)
        ot__buf_text(&text, "123456789012345\n");
    ot__buf_text(&text, "nan\n1\n");
    assert_int_equal(ot__file_write(path, text.data, text.length), OT_OK);
    ot__buf_deinit(&text);
    dataset = open_file(path);
    options.first = LONG_ROWS - 1;
    options.last = LONG_ROWS + 2;
    options.batch_size = 1;
    assert_int_equal(ot_batches_create(dataset, &binding, 1, &options, &batches), OT_OK);
    assert_int_equal(ot_batches_next(batches, &batch, 1), OT_OK);
    assert_next_says(batches, OT_ERR_INVALID, path,
                     "line 20002, column 1 ('n'): 'nan' is not a decimal number");
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static ot_status read_once(const char *path)
{
    const ot_binding binding = {.input = "x", .dtype = OT_F32, .fields = "a", .scale = 1};
    ot_dataset *dataset;
    ot_batches *batches = NULL;
    const ot_tensor *batch;
    ot_status st = ot_dataset_open(&path, 1, NULL, &dataset);

    if (st == OT_OK)
        st = ot_batches_create(dataset, &binding, 1, NULL, &batches);
    if (st == OT_OK)
        st = ot_batches_next(batches, &batch, 1);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
    return st;
}

static void running_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    const char *path = in_folder(state, "x.csv");
    ot_status st = OT_ERR_NO_MEMORY;

    write_csv(path);
    for (int n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = read_once(path);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_csv_that_becomes_shorter_is_an_error_with_the_row),
        TEST_IN_FOLDER(so_is_one_whose_labels_are_looked_for),
        TEST_IN_FOLDER(so_are_arrays),
        TEST_IN_FOLDER(arrays_in_fortran_order_do_not_depend_on_their_file),
        TEST_IN_FOLDER(rows_with_other_columns_than_before_are_refused),
        TEST_IN_FOLDER(rows_that_are_added_or_a_new_file_are_not_seen),
        TEST_IN_FOLDER(rows_are_whole_wherever_a_read_ends),
        TEST_IN_FOLDER(an_error_far_behind_has_its_line),
        TEST_IN_FOLDER(running_out_of_memory_is_reported_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
