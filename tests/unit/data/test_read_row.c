// SPDX-License-Identifier: Apache-2.0
// Rows of arrays into batches: scaled, shifted, and checked element by element.
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

enum { ROWS = 3, CHANNELS = 2, PIXELS = 5, ROW = CHANNELS * PIXELS };

// Three rows of two channels of five bytes that count up from 0.
static ot_dataset *bytes_dataset(void)
{
    uint8_t idx[16 + ROWS * ROW] = {0, 0, 8, 3, 0, 0, 0, ROWS, 0, 0, 0, CHANNELS, 0, 0, 0, PIXELS};
    ot_dataset *dataset;

    for (int i = 0; i < ROWS * ROW; i++)
        idx[16 + i] = (uint8_t)i;
    assert_int_equal(ot__dataset_open_bytes(idx, sizeof(idx), NULL, &dataset), OT_OK);
    return dataset;
}

// The same in f32, the last element `last`.
static ot_dataset *floats_dataset(float last)
{
    char npy[128 + ROWS * ROW * sizeof(float)];
    float numbers[ROWS * ROW];
    ot_dataset *dataset;

    memset(npy, ' ', 128);
    memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(npy + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 5), }", 62);
    npy[127] = '\n';
    for (int i = 0; i < ROWS * ROW; i++)
        numbers[i] = i == ROWS * ROW - 1 ? last : (float)i;
    memcpy(npy + 128, numbers, sizeof(numbers));
    assert_int_equal(ot__dataset_open_bytes(npy, sizeof(npy), NULL, &dataset), OT_OK);
    return dataset;
}

static void read_all(const ot_dataset *dataset, ot_binding binding, ot_status expected,
                     void (*check)(const ot_tensor *batch))
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    const ot_tensor *batch;
    ot_batches *batches;

    binding.input = "x";
    binding.fields = ot_dataset_field_name(dataset, 0);
    binding.shape = OT_SHAPE(CHANNELS, PIXELS);
    options.batch_size = ROWS;
    assert_int_equal(ot_batches_create(dataset, &binding, 1, &options, &batches), OT_OK);
    assert_int_equal(ot_batches_next(batches, &batch, 1), expected);
    if (check)
        check(batch);
    ot_batches_destroy(batches);
}

static void check_normalised(const ot_tensor *batch)
{
    for (int i = 0; i < ROWS * ROW; i++) {
        const int channel = i % ROW / PIXELS;

        assert_true(
            ot__tensor_get_f64(batch, i) ==
            (double)(float)((i * 0.5 - (channel == 0 ? 1.0 : 2.0)) / (channel == 0 ? 4.0 : 3.0)));
    }
}

static void every_channel_has_its_mean_and_deviation(void **state)
{
    static const double mean[] = {1, 2}, std[] = {4, 3};
    const ot_binding binding = {
        .dtype = OT_F32, .scale = 0.5, .mean = mean, .std = std, .n_channels = CHANNELS};
    ot_dataset *dataset = bytes_dataset();

    (void)state;
    read_all(dataset, binding, OT_OK, check_normalised);
    ot_dataset_destroy(dataset);
    dataset = floats_dataset(ROWS * ROW - 1);
    read_all(dataset, binding, OT_OK, check_normalised);
    ot_dataset_destroy(dataset);
}

static void check_scaled(const ot_tensor *batch)
{
    for (int i = 0; i < ROWS * ROW; i++)
        assert_true(ot__tensor_get_f64(batch, i) == (double)(float)(i * 0.1));
}

static void elements_are_scaled_in_f64_and_rounded_once(void **state)
{
    ot_dataset *dataset = bytes_dataset();

    (void)state;
    read_all(dataset, (ot_binding){.dtype = OT_F32, .scale = 0.1, .n_channels = 1}, OT_OK,
             check_scaled);
    read_all(dataset, (ot_binding){.dtype = OT_F32, .scale = 0.1, .n_channels = 3}, OT_OK,
             check_scaled);
    ot_dataset_destroy(dataset);
}

static void an_element_that_is_no_number_is_named(void **state)
{
    const ot_binding binding = {.dtype = OT_F32, .scale = 1, .n_channels = 1};
    ot_dataset *dataset = floats_dataset(NAN);

    (void)state;
    read_all(dataset, binding, OT_ERR_INVALID, NULL);
    assert_non_null(strstr(ot_error_message(), "row 3, element 10: is missing or not a number"));
    ot_dataset_destroy(dataset);
    dataset = floats_dataset(INFINITY);
    read_all(dataset, binding, OT_ERR_INVALID, NULL);
    assert_non_null(strstr(ot_error_message(), "row 3, element 10: is infinite"));
    ot_dataset_destroy(dataset);
}

// ---- integers ----

// One row of a CSV column into an input of this type.
static void assert_read(const char *cell, ot_dtype dtype, ot_status expected, const char *message)
{
    const ot_binding binding = {
        .input = "x", .fields = "a", .dtype = dtype, .scale = 1, .n_channels = 1};
    char csv[128];
    const int n = snprintf(csv, sizeof(csv), "a,b\n0,0\n%s,0\n", cell);
    const ot_tensor *batch;
    ot_dataset *dataset;
    ot_batches *batches;

    ot__error_clear();
    assert_int_equal(ot__dataset_open_bytes(csv, (size_t)n, NULL, &dataset), OT_OK);
    assert_int_equal(ot_batches_create(dataset, &binding, 1, NULL, &batches), OT_OK);
    if (ot_batches_next(batches, &batch, 1) != expected)
        fail_msg("%s into %s: %s", cell, ot_dtype_name(dtype), ot_error_message());
    if (expected == OT_OK)
        assert_true(ot__tensor_get_f64(batch, 1) == strtod(cell, NULL));
    else if (!strstr(ot_error_message(), message))
        fail_msg("'%s' does not say '%s'", ot_error_message(), message);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void whole_numbers_within_the_type_reach_integer_inputs(void **state)
{
    static const struct {
        const char *cell;
        ot_dtype dtype;
    } cases[] = {
        {"1.0", OT_I64},
        {"-3e2", OT_I16},
        {"127", OT_I8},
        {"-128", OT_I8},
        {"255", OT_U8},
        {"65535", OT_U16},
        {"4294967295", OT_U32},
        {"1", OT_BOOL},
        {"-2147483648", OT_I32},
        {"9007199254740992", OT_I64},
        {"9007199254740992", OT_U64},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        assert_read(cases[i].cell, cases[i].dtype, OT_OK, NULL);
}

static void fractions_are_refused_by_integer_inputs_with_row_and_column(void **state)
{
    static const ot_dtype dtypes[] = {OT_I8,  OT_I16, OT_I32, OT_I64, OT_U8,
                                      OT_U16, OT_U32, OT_U64, OT_BOOL};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(dtypes); i++)
        assert_read("0.5", dtypes[i], OT_ERR_INVALID,
                    "line 3, column 1 ('a'): 0.5 is not a whole number, the input takes ");
    assert_read("1.5", OT_F32, OT_OK, NULL);
}

static void numbers_outside_the_type_are_refused_with_row_and_column(void **state)
{
    static const struct {
        const char *cell;
        ot_dtype dtype;
    } cases[] = {
        {"128", OT_I8},    {"-129", OT_I8},   {"256", OT_U8},         {"-1", OT_U8},
        {"32768", OT_I16}, {"65536", OT_U16}, {"2147483648", OT_I32}, {"4294967296", OT_U32},
        {"-1", OT_U64},    {"2", OT_BOOL},    {"1e19", OT_I64},       {"9007199254740994", OT_I64},
        {"1e39", OT_F32},  {"65536", OT_F16}, {"3.4e38", OT_BF16},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        assert_read(cases[i].cell, cases[i].dtype, OT_ERR_INVALID, "line 3, column 1 ('a'): ");
    assert_read("128", OT_I8, OT_ERR_INVALID, "128 is outside -128..127, the input takes i8");
}

static void fractions_in_arrays_are_refused_with_row_and_element(void **state)
{
    ot_dataset *dataset = floats_dataset(1.5F);

    (void)state;
    read_all(dataset, (ot_binding){.dtype = OT_I32, .scale = 1, .n_channels = 1}, OT_ERR_INVALID,
             NULL);
    assert_non_null(strstr(ot_error_message(), "row 3, element 10: 1.5 is not a whole number"));
    ot_dataset_destroy(dataset);
}

static void scaled_beyond_f32_is_refused_on_the_short_way_too(void **state)
{
    ot_dataset *dataset = floats_dataset(1e38F);

    (void)state;
    read_all(dataset, (ot_binding){.dtype = OT_F32, .scale = 100, .n_channels = 1}, OT_ERR_INVALID,
             NULL);
    assert_non_null(strstr(ot_error_message(), "row 3, element 10: "));
    assert_non_null(strstr(ot_error_message(), "the input takes f32"));
    ot_dataset_destroy(dataset);
}

// ---- probabilities ----

static void probabilities_outside_0_and_1_are_refused_with_row_and_element(void **state)
{
    const ot_binding binding = {
        .dtype = OT_F32, .scale = 1.0 / 29, .n_channels = 1, .is_probability = 1};
    ot_dataset *dataset = floats_dataset(29);

    (void)state;
    read_all(dataset, binding, OT_OK, NULL); // 0 to 29, of 29
    ot_dataset_destroy(dataset);
    dataset = floats_dataset(58);
    read_all(dataset, binding, OT_ERR_INVALID, NULL);
    assert_non_null(strstr(ot_error_message(), "row 3, element 10: 2 is outside 0..1"));
    ot_dataset_destroy(dataset);
    dataset = floats_dataset(-29);
    read_all(dataset, binding, OT_ERR_INVALID, NULL);
    assert_non_null(strstr(ot_error_message(), "row 3, element 10: -1 is outside 0..1"));
    ot_dataset_destroy(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_channel_has_its_mean_and_deviation),
        cmocka_unit_test(elements_are_scaled_in_f64_and_rounded_once),
        cmocka_unit_test(an_element_that_is_no_number_is_named),
        cmocka_unit_test(whole_numbers_within_the_type_reach_integer_inputs),
        cmocka_unit_test(fractions_are_refused_by_integer_inputs_with_row_and_column),
        cmocka_unit_test(numbers_outside_the_type_are_refused_with_row_and_column),
        cmocka_unit_test(fractions_in_arrays_are_refused_with_row_and_element),
        cmocka_unit_test(scaled_beyond_f32_is_refused_on_the_short_way_too),
        cmocka_unit_test(probabilities_outside_0_and_1_are_refused_with_row_and_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
