// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/data.h"

static ot_dataset *open_text(const char *text)
{
    ot_dataset *dataset;
    ot_status st = ot__dataset_open_bytes(text, strlen(text), NULL, &dataset);

    if (st != OT_OK)
        fail_msg("%s", ot_error_message());
    return dataset;
}

static void assert_refused(const char *text, const char *message)
{
    ot_dataset *dataset;

    assert_int_equal(ot__dataset_open_bytes(text, strlen(text), NULL, &dataset), OT_ERR_FORMAT);
    assert_string_equal(ot_error_message(), message);
    assert_null(dataset);
}

// The number that a cell's text is.
static double number(const char *text)
{
    const ot__cell cell = {.text = text, .length = strlen(text)};
    double value;

    if (!ot__cell_number(&cell, &value))
        fail_msg("'%s' is not a number", text);
    return value;
}

static void numbers_are_those_of_strtod_bit_for_bit(void **state)
{
    const char *strings[] = {"0",
                             "1",
                             "-1",
                             "0.1",
                             "255",
                             "3.14159265358979",
                             ".5",
                             "5.",
                             "1e3",
                             "1e-3",
                             "123456789.1",
                             "999999999999999",
                             "1e308",
                             "-0.0",
                             "4e-320",
                             "0.300",
                             "9007199254740993"};
    uint32_t seed = 1;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(strings); i++)
        assert_true(number(strings[i]) == strtod(strings[i], NULL));
    for (int i = 0; i < 2000; i++) {
        char text[32];
        seed = seed * 1664525 + 1013904223;
        snprintf(text, sizeof(text), "%.*f", i % 9, (double)(int32_t)seed / 1000.0);
        assert_true(number(text) == strtod(text, NULL));
    }
    assert_true(signbit(number("-0")));
    assert_true(isnan(number("")));
    assert_true(isnan(number("  ")));
    assert_true(number(" 7\t") == 7);
}

static void text_is_no_number(void **state)
{
    const char *strings[] = {"x",     "1x",       "1,5",      "--1",   "1e",    ".",
                             "-",     "1 2",      "0x10",     "0x1p3", "nan",   "NaN",
                             "-inf",  "infinity", "1e+",      "e5",    "1e5.",  "1_000",
                             "1.2.3", "+-1",      "nan(123)", "1d5",   "1e999", "\xd9\xa3"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(strings); i++) {
        const ot__cell cell = {.text = strings[i], .length = strlen(strings[i])};
        double value;
        assert_false(ot__cell_number(&cell, &value));
    }
}

// A column is one of numbers when its first row has one, or what is said instead of one.
static void words_for_what_is_no_number_do_not_make_a_column_text(void **state)
{
    ot_dataset *dataset = open_text("a,b,c,d\nnan,-Infinity,INF,nano\n1,2,3,x\n");
    ot_dtype dtype;
    ot_shape shape;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ot_dataset_field_info(dataset, i, &dtype, &shape), OT_OK);
        assert_int_equal(dtype, i < 3 ? OT_F64 : OT_STRING);
    }
    ot_dataset_destroy(dataset);
}

static void quoted_cells_hold_separators_line_ends_and_quotes(void **state)
{
    ot_dataset *dataset = open_text("\"a,b\",c\n\"say \"\"yes\"\"\n,\",2\nno,3");
    ot__cell cells[2];
    ot__window window = {0};
    ot__buf text = {0};
    int64_t line;
    ot_dtype dtype;
    ot_shape shape;

    (void)state;
    assert_int_equal(ot_dataset_rows(dataset), 2);
    assert_string_equal(ot_dataset_field_name(dataset, 0), "a,b");
    assert_int_equal(ot_dataset_field_info(dataset, 0, &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_STRING);
    assert_int_equal(ot_dataset_field_info(dataset, 1, &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F64);
    assert_int_equal(ot__csv_row(dataset->sources[0], 0, &window, cells), OT_OK);
    ot__cell_text(&cells[0], &text);
    assert_string_equal(text.data, "say \"yes\"\n,");
    assert_int_equal(ot__csv_line(dataset->sources[0], 1, &window, &line), OT_OK);
    assert_int_equal(line, 4);
    ot__window_deinit(&window);
    ot__buf_deinit(&text);
    ot_dataset_destroy(dataset);
}

static void the_first_row_is_a_header_when_it_has_text_and_no_number(void **state)
{
    const struct {
        const char *text;
        int rows;
        const char *first_name;
    } cases[] = {
        {"a,b\n1,2\n", 1, "a"},           {"1,2\n3,4\n", 2, "0"},
        {"a,1\nb,2\n", 2, "0"},           {",b\n1,2\n3,4", 2, "0"},
        {"\xef\xbb\xbfx;y\n1;2", 1, "x"}, {"x\ty\r\n1\t2\r\n\r\n", 1, "x"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_dataset *dataset = open_text(cases[i].text);
        assert_int_equal(ot_dataset_rows(dataset), cases[i].rows);
        assert_string_equal(ot_dataset_field_name(dataset, 0), cases[i].first_name);
        ot_dataset_destroy(dataset);
    }
}

static void malformed_files_are_refused_with_the_line(void **state)
{
    (void)state;
    assert_refused("", "data: is empty");
    assert_refused("a,b\n", "data: has no rows after its header");
    assert_refused("1,2\n3\n", "data: line 2 has 1 columns, expected 2");
    assert_refused("1,2\n3,4,5\n", "data: line 2 has 3 columns, expected 2");
    assert_refused("1,2\n\n3,4\n", "data: line 2 is empty");
    assert_refused("1,2\n3,\"4\n", "data: line 2, column 2 has a quote that is not closed");
    assert_refused("\"1\"1,2\n", "data: line 1, column 1 has text after its closing quote");
}

// Also of what lies in memory, where all is seen at once: more cells than an int can count.
static void a_row_without_end_is_refused(void **state)
{
    enum { MOST = 1 << 28 };
    char *text = malloc(MOST + 1);
    ot_dataset *dataset;

    (void)state;
    assert_non_null(text);
    memset(text, ',', MOST + 1);
    assert_int_equal(ot__dataset_open_bytes(text, MOST + 1, NULL, &dataset), OT_ERR_FORMAT);
    assert_string_equal(ot_error_message(),
                        "data: line 1 begins a row of more than 268435456 bytes");
    assert_null(dataset);
    free(text);
}

// More rows than the index keeps in memory.
static void a_million_rows_are_found_again(void **state)
{
    enum { COUNT = (1 << 20) + 5 };
    ot__buf text = {0};
    ot_dataset *dataset;
    ot__window window = {0};
    ot__cell cell;
    const int64_t wanted[] = {0, 1, COUNT / 2, (1 << 20) - 1, 1 << 20, COUNT - 1};

    (void)state;
    for (int i = 0; i < COUNT; i++)
        ot__buf_printf(&text, "%d\n", i);
    assert_int_equal(ot__dataset_open_bytes(text.data, text.length, NULL, &dataset), OT_OK);
    assert_int_equal(ot_dataset_rows(dataset), COUNT);
    for (size_t i = 0; i < OT_COUNT(wanted); i++) {
        double value;
        assert_int_equal(ot__csv_row(dataset->sources[0], wanted[i], &window, &cell), OT_OK);
        assert_true(ot__cell_number(&cell, &value));
        assert_true(value == (double)wanted[i]);
    }
    ot__window_deinit(&window);
    ot_dataset_destroy(dataset);
    ot__buf_deinit(&text);
}

static void running_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    const char *text = "a,b,c\n1,2,x\n3,4,y\n";
    ot_dataset *dataset = NULL;
    ot_status st = OT_ERR_NO_MEMORY;
    int n;

    (void)state;
    for (n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot__dataset_open_bytes(text, strlen(text), NULL, &dataset);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && !dataset));
    }
    assert_true(n > 5);
    ot_dataset_destroy(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_strtod_bit_for_bit),
        cmocka_unit_test(text_is_no_number),
        cmocka_unit_test(words_for_what_is_no_number_do_not_make_a_column_text),
        cmocka_unit_test(quoted_cells_hold_separators_line_ends_and_quotes),
        cmocka_unit_test(the_first_row_is_a_header_when_it_has_text_and_no_number),
        cmocka_unit_test(malformed_files_are_refused_with_the_line),
        cmocka_unit_test(a_row_without_end_is_refused),
        cmocka_unit_test(a_million_rows_are_found_again),
        cmocka_unit_test(running_out_of_memory_is_reported_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
