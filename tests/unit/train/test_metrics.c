// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/train.h"

// cmocka compares in float.
static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", value, expected);
}

static ot_tensor *tensor_of(ot_dtype dtype, ot_shape shape, const double *values)
{
    ot_tensor *tensor;

    assert_int_equal(ot_tensor_create(dtype, &shape, &tensor), OT_OK);
    ot__convert(ot_tensor_data(tensor), dtype, values, OT_F64, ot_tensor_count(tensor));
    return tensor;
}

// Two batches of 2 and 3 rows, added one after the other.
static ot_metrics metrics_of(ot_task task, ot_dtype label_dtype, const double *scores,
                             int64_t n_scores, const double *labels)
{
    ot__metric_sums sums = {0};

    for (int64_t first = 0, n = 2; first < 5; first += n, n = 3) {
        ot_tensor *x = tensor_of(OT_F32, OT_SHAPE(n, n_scores), scores + first * n_scores);
        ot_tensor *y = tensor_of(label_dtype, OT_SHAPE(n), labels + first);

        assert_int_equal(ot__metrics_add(&sums, task, 1, n, first ? 4.0 : 1.0, x, y), OT_OK);
        ot_tensor_destroy(x);
        ot_tensor_destroy(y);
    }
    return ot__metrics_of(&sums, 2.5);
}

static void the_loss_is_the_mean_over_rows_not_over_batches(void **state)
{
    const double zeros[5] = {0};
    ot_metrics m = metrics_of(OT_TASK_NONE, OT_F32, zeros, 1, zeros);

    (void)state;
    assert_int_equal(m.rows, 5);
    assert_near(m.loss, (2 * 1.0 + 3 * 4.0) / 5, 1e-12);
    assert_near(m.seconds, 2.5, 0);
}

static void accuracy_is_the_part_of_rows_whose_highest_score_is_the_labels(void **state)
{
    const double scores[] = {1, 2, 0, 5, 1, 1, 0, 0, 1, 2, 3, 1, 1, 0, 0};
    const double labels[] = {1, 1, 2, 0, 0}; // right, wrong, right, wrong, right

    (void)state;
    assert_near(metrics_of(OT_TASK_CLASSIFICATION, OT_I64, scores, 3, labels).accuracy, 0.6, 1e-12);
}

static void ignored_labels_do_not_count(void **state)
{
    const double scores[] = {1, 2, 0, 5, 1, 1, 0, 0, 1, 2, 3, 1, 1, 0, 0};
    const double labels[] = {1, -100, 2, 0, 3}; // right, ignored, right, wrong, ignored

    (void)state;
    assert_near(metrics_of(OT_TASK_CLASSIFICATION, OT_I64, scores, 3, labels).accuracy, 2.0 / 3,
                1e-12);
}

static void classes_may_be_on_the_second_or_on_the_last_axis(void **state)
{
    // As [1, 2, 3]: over the last axis rows (0, 2, 1) and (4, 3, 5); over axis 1 three columns of
    // two.
    const double values[] = {0, 2, 1, 4, 3, 5}, last_labels[] = {1, 0}, labels[] = {1, 1, 0};
    ot_tensor *scores = tensor_of(OT_F32, OT_SHAPE(1, 2, 3), values);
    ot_tensor *of_last = tensor_of(OT_I64, OT_SHAPE(1, 2), last_labels);
    ot_tensor *of_second = tensor_of(OT_I64, OT_SHAPE(1, 3), labels);
    ot__metric_sums sums = {0}, other = {0};

    (void)state;
    assert_int_equal(ot__metrics_add(&sums, OT_TASK_CLASSIFICATION, -1, 1, 0, scores, of_last),
                     OT_OK);
    assert_near(ot__metrics_of(&sums, 0).accuracy, 1.0 / 2, 1e-12); // right, wrong
    assert_int_equal(ot__metrics_add(&other, OT_TASK_CLASSIFICATION, 1, 1, 0, scores, of_second),
                     OT_OK);
    assert_near(ot__metrics_of(&other, 0).accuracy, 2.0 / 3, 1e-12); // right, right, wrong
    assert_int_equal(ot__metrics_add(&sums, OT_TASK_CLASSIFICATION, 2, 1, 0, scores, of_last),
                     OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "class axis 2, expected 1, or -1: the last");
    ot_tensor_destroy(scores);
    ot_tensor_destroy(of_last);
    ot_tensor_destroy(of_second);
}

static void one_logit_is_right_when_its_sign_is(void **state)
{
    const double logits[] = {3, -1, 0.5, -2, 7};
    const double targets[] = {1, 0, 0, 1, 1}; // right, right, wrong, wrong, right

    (void)state;
    assert_near(metrics_of(OT_TASK_CLASSIFICATION, OT_F32, logits, 1, targets).accuracy, 0.6,
                1e-12);
}

static void mae_and_r2_follow_their_formulas(void **state)
{
    const double predictions[] = {1.5, 2, 2.5, 5, 4};
    const double targets[] = {1, 2, 3, 4, 5};
    double absolute = 0, residual = 0, total = 0;
    ot_metrics m = metrics_of(OT_TASK_REGRESSION, OT_F32, predictions, 1, targets);

    (void)state;
    for (int i = 0; i < 5; i++) {
        absolute += fabs(predictions[i] - targets[i]);
        residual += (predictions[i] - targets[i]) * (predictions[i] - targets[i]);
        total += (targets[i] - 3) * (targets[i] - 3); // 3 is their mean
    }
    assert_near(m.mae, absolute / 5, 1e-12);
    assert_near(m.r2, 1 - residual / total, 1e-12);
}

static void r2_survives_targets_far_from_zero(void **state)
{
    const double targets[] = {1e8, 1e8 + 1, 1e8 + 2, 1e8 + 3, 1e8 + 4};
    const double predictions[] = {1e8, 1e8, 1e8 + 2, 1e8 + 3, 1e8 + 4};
    ot__metric_sums sums = {0};
    ot_tensor *x = tensor_of(OT_F64, OT_SHAPE(5), predictions);
    ot_tensor *y = tensor_of(OT_F64, OT_SHAPE(5), targets);

    (void)state;
    assert_int_equal(ot__metrics_add(&sums, OT_TASK_REGRESSION, 1, 5, 0, x, y), OT_OK);
    assert_near(ot__metrics_of(&sums, 0).r2, 1 - 1.0 / 10, 1e-9);
    ot_tensor_destroy(x);
    ot_tensor_destroy(y);
}

static void scores_and_labels_that_do_not_match_are_an_error(void **state)
{
    const double values[6] = {0};
    ot__metric_sums sums = {0};
    ot_tensor *scores = tensor_of(OT_F32, OT_SHAPE(2, 3), values);
    ot_tensor *flat = tensor_of(OT_F32, OT_SHAPE(6), values);
    ot_tensor *labels = tensor_of(OT_I64, OT_SHAPE(3), values);

    (void)state;
    assert_int_equal(ot__metrics_add(&sums, OT_TASK_CLASSIFICATION, 1, 2, 0, scores, labels),
                     OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "accuracy needs 2 labels, got 3");
    assert_int_equal(ot__metrics_add(&sums, OT_TASK_CLASSIFICATION, 1, 2, 0, flat, labels),
                     OT_ERR_INVALID);
    assert_int_equal(ot__metrics_add(&sums, OT_TASK_REGRESSION, 1, 2, 0, scores, labels),
                     OT_ERR_INVALID);
    ot_tensor_destroy(scores);
    ot_tensor_destroy(flat);
    ot_tensor_destroy(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_the_mean_over_rows_not_over_batches),
        cmocka_unit_test(accuracy_is_the_part_of_rows_whose_highest_score_is_the_labels),
        cmocka_unit_test(ignored_labels_do_not_count),
        cmocka_unit_test(classes_may_be_on_the_second_or_on_the_last_axis),
        cmocka_unit_test(one_logit_is_right_when_its_sign_is),
        cmocka_unit_test(mae_and_r2_follow_their_formulas),
        cmocka_unit_test(r2_survives_targets_far_from_zero),
        cmocka_unit_test(scores_and_labels_that_do_not_match_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
