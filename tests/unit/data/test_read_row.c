// Rows of arrays into batches: scaled, shifted, and checked element by element.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
    assert_int_equal(ot_batches_next(batches, &batch), expected);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_channel_has_its_mean_and_deviation),
        cmocka_unit_test(elements_are_scaled_in_f64_and_rounded_once),
        cmocka_unit_test(an_element_that_is_no_number_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
