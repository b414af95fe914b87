// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/loss_scaler.h"

static double update(ot_loss_scaler *s, int all_finite)
{
    ot_step_info info = OT_STEP_INFO_INIT;

    info.all_finite = all_finite;
    return ot_loss_scaler_update(s, &info);
}

static void assert_updates(ot_loss_scaler *s, int64_t n, double scale)
{
    for (int64_t i = 1; i <= n; i++) {
        assert_true(update(s, 1) == scale);
        assert_int_equal(s->n_stable, i);
    }
}

// 2^16 at first, 2000 updates a doubling, at most 2^24: the ninth doubling does nothing.
static void the_scale_doubles_every_window_up_to_the_maximum(void **state)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;
    double scale = 65536;

    (void)state;
    for (int cycle = 0; cycle < 9; cycle++) {
        assert_updates(&s, 1999, scale);
        scale = fmin(scale * 2, 16777216);
        assert_true(update(&s, 1) == scale);
        assert_int_equal(s.n_stable, 0);
    }
    assert_true(s.loss_scale == 16777216);
    assert_updates(&s, 1999, 16777216);
    assert_true(update(&s, 1) == 16777216);
    assert_int_equal(s.n_stable, 0);
}

static void the_scale_halves_down_to_the_minimum(void **state)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;

    (void)state;
    s.loss_scale = 16777216;
    for (int i = 1; i <= 28; i++)
        assert_true(update(&s, 0) == fmax(1, ldexp(16777216, -i)));
    assert_true(s.loss_scale == 1);
}

static void gradients_that_are_not_finite_begin_the_window_anew(void **state)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;

    (void)state;
    assert_updates(&s, 1999, 65536);
    assert_true(update(&s, 0) == 32768);
    assert_int_equal(s.n_stable, 0);
    assert_updates(&s, 1999, 32768);
    assert_true(update(&s, 1) == 65536);
}

static void window_and_limits_can_be_chosen(void **state)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;
    static const double up[] = {1, 1, 2, 2, 2, 2.5, 2.5, 2.5, 2.5}, down[] = {1.25, 0.75, 0.75};

    (void)state;
    s.loss_scale = 1;
    s.up_scale_window = 3;
    s.max_loss_scale = 2.5;
    s.min_loss_scale = 0.75;
    for (int i = 0; i < 9; i++)
        assert_true(update(&s, 1) == up[i]);
    for (int i = 0; i < 3; i++)
        assert_true(update(&s, 0) == down[i]);
}

static void without_automatic_update_the_scale_stays(void **state)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;

    (void)state;
    s.automatic_update = 0;
    s.loss_scale = 128;
    s.up_scale_window = 1;
    assert_true(update(&s, 1) == 128);
    assert_true(update(&s, 0) == 128);
    assert_int_equal(s.n_stable, 0);
}

static void reset_goes_back_to_the_initial_scale(void **state)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;

    (void)state;
    s.initial_loss_scale = 512;
    assert_updates(&s, 7, 65536);
    ot_loss_scaler_reset(&s);
    assert_true(s.loss_scale == 512);
    assert_int_equal(s.n_stable, 0);
    assert_int_equal(s.up_scale_window, 2000);
}

// ---- a function of the user's ----

typedef struct user_rule {
    double next;
    int answer;
    ot_step_info seen;
} user_rule;

static int apply_rule(void *context, const ot_step_info *info, double *loss_scale)
{
    user_rule *rule = context;

    rule->seen = *info;
    *loss_scale = rule->next;
    return rule->answer;
}

static void a_function_replaces_the_rule(void **state)
{
    user_rule rule = {.next = 3.5};
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;
    ot_step_info info = OT_STEP_INFO_INIT;

    (void)state;
    s.update = apply_rule;
    s.context = &rule;
    info.all_finite = 0;
    info.optimization_step = 7;
    info.step = 21;
    assert_true(ot_loss_scaler_update(&s, &info) == 3.5);
    assert_true(s.loss_scale == 3.5);
    assert_int_equal(rule.seen.optimization_step * 100 + rule.seen.step, 721);
    assert_int_equal(rule.seen.all_finite, 0);
}

static void a_function_that_fails_leaves_the_scale(void **state)
{
    static const struct {
        double next;
        int answer;
        const char *message;
    } cases[] = {{8, 1, "update function failed"},
                 {0, 0, "made the scale 0"},
                 {-2, 0, "made the scale -2"},
                 {INFINITY, 0, "made the scale inf"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        user_rule rule = {.next = cases[i].next, .answer = cases[i].answer};
        ot_loss_scaler s = OT_LOSS_SCALER_INIT;

        s.update = apply_rule;
        s.context = &rule;
        assert_true(update(&s, 1) == 0);
        assert_true(s.loss_scale == 65536);
        assert_non_null(strstr(ot_error_message(), cases[i].message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scale_doubles_every_window_up_to_the_maximum),
        cmocka_unit_test(the_scale_halves_down_to_the_minimum),
        cmocka_unit_test(gradients_that_are_not_finite_begin_the_window_anew),
        cmocka_unit_test(window_and_limits_can_be_chosen),
        cmocka_unit_test(without_automatic_update_the_scale_stays),
        cmocka_unit_test(reset_goes_back_to_the_initial_scale),
        cmocka_unit_test(a_function_replaces_the_rule),
        cmocka_unit_test(a_function_that_fails_leaves_the_scale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
