// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "train/train.h"

enum { BATCHES = 10 };

static int setup(void **state)
{
    return ot_checkpoint_create((ot_checkpoint **)state) == OT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    ot_checkpoint_destroy(*state);
    return 0;
}

static ot__position example(void)
{
    return (ot__position){
        .epoch = 3,
        .batch = 7,
        .first_step = 11,
        .n_slices = 5,
        .sums = {60, 120, 0.1, 1.0 / 3, -2.5e-300, DBL_MAX, DBL_MIN, -0.0, 1e-320, INFINITY},
        .best_loss = 0.7,
        .bad_epochs = 2,
        .last = {true, {20, 0.25, 1.0 / 7, 3, -4, 0}},
        .best = {false, {40, 0.125, 0.5, 0, 0, 0}},
    };
}

static void a_position_comes_back_exactly(void **state)
{
    const ot__position put = example();
    ot__position got = {0};

    assert_int_equal(ot__position_put(*state, &put), OT_OK);
    assert_int_equal(ot__position_get(*state, BATCHES, &got), OT_OK);
    assert_int_equal(got.epoch, 3);
    assert_int_equal(got.batch, 7);
    assert_int_equal(got.first_step, 11);
    assert_int_equal(got.bad_epochs, 2);
    assert_int_equal(got.n_slices, 5);
    assert_true(got.best_loss == put.best_loss);
    assert_memory_equal(&got.sums, &put.sums, sizeof put.sums);
    assert_true(got.last.is_validation && !got.best.is_validation);
    assert_memory_equal(&got.last.metrics, &put.last.metrics, sizeof put.last.metrics);
    assert_memory_equal(&got.best.metrics, &put.best.metrics, sizeof put.best.metrics);
}

// The properties of the run before are not left for this one's.
static void what_is_not_known_yet_is_not_kept(void **state)
{
    ot__position position = example(), got = {0};

    assert_int_equal(ot__position_put(*state, &position), OT_OK);
    position.best_loss = INFINITY;
    position.last = position.best = (ot__epoch_metrics){0};
    assert_int_equal(ot__position_put(*state, &position), OT_OK);
    assert_int_equal(ot__position_get(*state, BATCHES, &got), OT_OK);
    assert_true(isinf(got.best_loss));
    assert_int_equal(got.last.metrics.rows, 0);
    assert_int_equal(got.best.metrics.rows, 0);
}

static void a_checkpoint_without_position_is_a_fresh_start(void **state)
{
    ot__position got = {.first_step = 5};

    assert_int_equal(ot__position_get(*state, BATCHES, &got), OT_OK);
    assert_int_equal(got.epoch, 0);
    assert_int_equal(got.batch, 0);
    assert_int_equal(got.first_step, 5);
}

// Hexadecimal, as C writes them.
static void positions_of_earlier_versions_are_read(void **state)
{
    ot__position got = {.first_step = 5};

    assert_int_equal(ot_checkpoint_set_int(*state, OT_PROPERTY_EPOCH, 1), OT_OK);
    assert_int_equal(ot_checkpoint_set_int(*state, OT_PROPERTY_BATCH, 2), OT_OK);
    assert_int_equal(ot_checkpoint_set_string(*state, OT_PROPERTY_BEST_LOSS, "0x1.8p+1"), OT_OK);
    assert_int_equal(ot_checkpoint_set_string(*state, OT_PROPERTY_SUMS,
                                              "3 4 0x1p-1 0x0p+0 0x1p+0 0x0p+0 0x0p+0 0x0p+0 "
                                              "0x0p+0 -0x1.8p-3"),
                     OT_OK);
    assert_int_equal(ot__position_get(*state, BATCHES, &got), OT_OK);
    assert_true(got.best_loss == 3.0 && got.sums.loss == 0.5);
    assert_true(got.sums.targets_squared == -0.1875);
    assert_int_equal(got.first_step, 0);
}

static void malformed_positions_are_refused(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {OT_PROPERTY_SUMS, ""},
        {OT_PROPERTY_SUMS, "1 2 3 4 5 6 7 8 9"},
        {OT_PROPERTY_SUMS, "1 2 3 4 5 6 7 8 9 10 11"},
        {OT_PROPERTY_SUMS, "-1 2 3 4 5 6 7 8 9 10"},
        {OT_PROPERTY_SUMS, "1 2 3 4 5 6 7 8 9 1,5"},
        {OT_PROPERTY_SUMS, "1 2 3  4 5 6 7 8 9 10"},
        {OT_PROPERTY_BEST_LOSS, "low"},
        {OT_PROPERTY_LAST, "validation 1 2 3 4"},
        {OT_PROPERTY_LAST, "guess 1 2 3 4 5"},
        {OT_PROPERTY_BEST, "training x 2 3 4 5"},
        {OT_PROPERTY_BEST, "training 1 2 3 4 "
                           "55555555555555555555555555555555555555555555555555555555555555555555"},
    };
    const ot__position good = example();

    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot__position got = {0};

        assert_int_equal(ot__position_put(*state, &good), OT_OK);
        assert_int_equal(ot_checkpoint_set_string(*state, cases[i].name, cases[i].text), OT_OK);
        assert_int_equal(ot__position_get(*state, BATCHES, &got), OT_ERR_FORMAT);
        assert_non_null(strstr(ot_error_message(), cases[i].name));
    }
}

static void numbers_of_slices_that_there_are_not_are_refused(void **state)
{
    static const int64_t wrong[] = {0, -1, 32769, INT64_MAX};
    ot__position good = example(), got = {0};

    for (size_t i = 0; i < OT_COUNT(wrong); i++) {
        assert_int_equal(ot__position_put(*state, &good), OT_OK);
        assert_int_equal(ot_checkpoint_set_int(*state, OT_PROPERTY_SLICES, wrong[i]), OT_OK);
        assert_int_equal(ot__position_get(*state, BATCHES, &got), OT_ERR_FORMAT);
        assert_non_null(strstr(ot_error_message(), OT_PROPERTY_SLICES));
    }
    good.n_slices = 1; // that of checkpoints which do not say
    assert_int_equal(ot__position_put(*state, &good), OT_OK);
    assert_int_equal(ot__position_get(*state, BATCHES, &got), OT_OK);
    assert_int_equal(got.n_slices, 1);
}

static void a_position_behind_the_data_is_refused(void **state)
{
    const ot__position put = example();
    ot__position got = {0};

    assert_int_equal(ot__position_put(*state, &put), OT_OK);
    assert_int_equal(ot__position_get(*state, put.batch - 1, &got), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "data or batch size are not those"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_position_comes_back_exactly, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_known_yet_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_without_position_is_a_fresh_start, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(positions_of_earlier_versions_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_positions_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_of_slices_that_there_are_not_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_position_behind_the_data_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
