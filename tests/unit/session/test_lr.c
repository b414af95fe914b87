// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/session_internal.h"

static ot_schedule schedule(ot_schedule_kind kind)
{
    ot_schedule s = OT_SCHEDULE_INIT;

    s.kind = kind;
    s.initial_lr = 1.0;
    return s;
}

static void assert_rates(const ot_schedule *s, const int64_t *steps, const double *rates, int n)
{
    for (int i = 0; i < n; i++)
        assert_true(fabs(ot_schedule_value(s, steps[i]) - rates[i]) < 1e-12);
}

static void constant_stays(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_CONSTANT);

    (void)state;
    s.initial_lr = 0.25;
    assert_rates(&s, (int64_t[]){0, 1, 1000}, (double[]){0.25, 0.25, 0.25}, 3);
}

// The table of ONNX Runtime's LinearLRScheduler.
static void linear_rises_over_the_warm_up_and_falls_to_zero(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_LINEAR);

    (void)state;
    s.warmup_steps = 2;
    s.total_steps = 10;
    assert_rates(&s, (int64_t[]){0, 1, 2, 6, 10, 11}, (double[]){0, 0.5, 1.0, 0.5, 0, 0}, 6);
    s.warmup_steps = 0;
    assert_rates(&s, (int64_t[]){0, 1, 2, 6, 10}, (double[]){1, 0.9, 0.8, 0.4, 0}, 5);
}

static void linear_ends_at_the_end_factor(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_LINEAR);

    (void)state;
    s.total_steps = 4;
    s.end_factor = 0.2;
    assert_rates(&s, (int64_t[]){0, 1, 2, 4, 9}, (double[]){1, 0.8, 0.6, 0.2, 0.2}, 5);
}

// torch.optim.lr_scheduler.CosineAnnealingLR(T_max=4, eta_min=0.2) at lr 1
static void cosine_agrees_with_pytorch(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_COSINE);

    (void)state;
    s.total_steps = 4;
    s.end_factor = 0.2;
    assert_rates(&s, (int64_t[]){0, 1, 2, 3, 4},
                 (double[]){1.0, 0.8828427124746191, 0.6, 0.3171572875253810, 0.2}, 5);
}

static void step_multiplies_by_gamma_every_step_size_steps(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_STEP);

    (void)state;
    s.step_size = 3;
    s.gamma = 0.5;
    assert_rates(&s, (int64_t[]){0, 2, 3, 5, 6}, (double[]){1, 1, 0.5, 0.5, 0.25}, 5);
}

static void exponential_multiplies_by_gamma_every_step(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_EXPONENTIAL);

    (void)state;
    s.gamma = 0.5;
    assert_rates(&s, (int64_t[]){0, 1, 4}, (double[]){1, 0.5, 0.0625}, 3);
}

// torch.optim.lr_scheduler.PolynomialLR(total_iters=4, power=2) at lr 1
static void polynomial_agrees_with_pytorch(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_POLYNOMIAL);

    (void)state;
    s.total_steps = 4;
    s.power = 2;
    assert_rates(&s, (int64_t[]){0, 1, 2, 3, 4}, (double[]){1, 0.5625, 0.25, 0.0625, 0}, 5);
}

// torch.optim.lr_scheduler.SequentialLR of LambdaLR(s / 4) and the kind's own from milestone 4 on.
static void every_schedule_begins_after_the_warm_up(void **state)
{
    static const struct {
        ot_schedule_kind kind;
        double after[4]; // at steps 4, 6, 7 and 10
    } cases[] = {
        {OT_SCHEDULE_CONSTANT, {1, 1, 1, 1}},
        {OT_SCHEDULE_LINEAR, {1, 0.75, 0.625, 0.25}},
        {OT_SCHEDULE_COSINE, {1, 0.8535533905932737, 0.6913417161825449, 0.14644660940672627}},
        {OT_SCHEDULE_STEP, {1, 1, 0.5, 0.25}},
        {OT_SCHEDULE_EXPONENTIAL, {1, 0.25, 0.125, 0.015625}},
        {OT_SCHEDULE_POLYNOMIAL, {1, 0.5625, 0.390625, 0.0625}},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_schedule s = schedule(cases[i].kind);

        s.warmup_steps = 4;
        s.total_steps = 12;
        s.step_size = 3;
        s.gamma = 0.5;
        s.power = 2;
        assert_rates(&s, (int64_t[]){0, 1, 3}, (double[]){0, 0.25, 0.75}, 3);
        assert_rates(&s, (int64_t[]){4, 6, 7, 10}, cases[i].after, 4);
    }
}

// ---- the schedules of ONNX Runtime's ORTTrainer: lr 1, 10 steps, a warm-up of a part of them ----

enum { TRAINER_STEPS = 10 };

static void assert_trainer_rates(ot_schedule *s, double warmup, const double *rates)
{
    s->total_steps = TRAINER_STEPS;
    s->warmup_steps = warmup * TRAINER_STEPS;
    for (int64_t t = 0; t < TRAINER_STEPS; t++)
        assert_true(fabs(ot_schedule_value(s, t) - rates[t]) < 1e-12);
}

static void constant_warms_up_as_ort_trainer(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_CONSTANT);

    (void)state;
    assert_trainer_rates(&s, 0.5, (double[]){0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1, 1});
}

static void cosine_agrees_with_ort_trainer(void **state)
{
    static const struct {
        double warmup, rates[TRAINER_STEPS];
    } cases[] = {
        {0.5,
         {0, 0.2, 0.4, 0.6, 0.8, 1, 0.9045084971874737, 0.6545084971874737, 0.34549150281252633,
          0.09549150281252633}},
        {0.002,
         {0, 0.9763960957919413, 0.9059835861602854, 0.7956724530494887, 0.6563036824392345,
          0.5015739416158049, 0.34668951940611276, 0.2068719061737831, 0.09586187986225325,
          0.0245691111902418}},
        {0.05,
         {0, 0.9931806517013612, 0.9397368756032445, 0.8386407858128706, 0.7008477123264848,
          0.5412896727361662, 0.37725725642960045, 0.22652592093878665, 0.10542974530180327,
          0.02709137914968268}},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_schedule s = schedule(OT_SCHEDULE_COSINE);

        assert_trainer_rates(&s, cases[i].warmup, cases[i].rates); // held at the end
        s.cycles = 0.5;
        assert_trainer_rates(&s, cases[i].warmup, cases[i].rates);
    }
}

// Two whole waves of a cosine over 8 steps, and on: 1 0.5 0 0.5 1 ...
static void cosine_of_more_cycles_goes_on_after_its_end(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_COSINE);

    (void)state;
    s.cycles = 2;
    s.total_steps = 8;
    assert_rates(&s, (int64_t[]){0, 1, 2, 3, 4, 6, 8, 9, 10},
                 (double[]){1, 0.5, 0, 0.5, 1, 0, 1, 0.5, 0}, 9);
    s.end_factor = 0.5;
    assert_rates(&s, (int64_t[]){0, 1, 2}, (double[]){1, 0.75, 0.5}, 3);
    s.cycles = 0.5;
    s.end_factor = 0;
    assert_rates(&s, (int64_t[]){8, 12, 16}, (double[]){0, 0.5, 1}, 3);
    s.cycles = 0;
    assert_rates(&s, (int64_t[]){8, 12, 16}, (double[]){0, 0, 0}, 3);
}

static void linear_agrees_with_ort_trainer(void **state)
{
    double rates[TRAINER_STEPS] = {0};
    ot_schedule s = schedule(OT_SCHEDULE_LINEAR);

    (void)state;
    assert_trainer_rates(&s, 0.5, (double[]){0, 0.2, 0.4, 0.6, 0.8, 1, 0.8, 0.6, 0.4, 0.2});
    for (int t = 1; t < TRAINER_STEPS; t++)
        rates[t] = (10 - t) / 9.5;
    assert_trainer_rates(&s, 0.05, rates);
}

static void polynomial_agrees_with_ort_trainer(void **state)
{
    static const double lr_end = 0.01, initial_lr = 0.25;
    double rates[TRAINER_STEPS] = {0};
    ot_schedule s = schedule(OT_SCHEDULE_POLYNOMIAL);

    (void)state;
    s.end_factor = 1e-7;
    assert_trainer_rates(
        &s, 0.5,
        (double[]){0, 0.2, 0.4, 0.6, 0.8, 1, 0.80000002, 0.60000004, 0.40000006, 0.20000008});
    s.end_factor = 0.5;
    for (int t = 1; t < TRAINER_STEPS; t++)
        rates[t] = 0.5 * (1 - (t - 0.02) / (10 - 0.02)) + 0.5;
    assert_true(fabs(rates[1] - 0.9509018036072144) < 1e-12);
    assert_true(fabs(rates[9] - 0.5501002004008015) < 1e-12);
    assert_trainer_rates(&s, 0.002, rates);
    s.initial_lr = initial_lr;
    s.end_factor = lr_end / initial_lr;
    s.power = 3;
    for (int t = 1; t < TRAINER_STEPS; t++)
        rates[t] = (initial_lr - lr_end) * pow(1 - (t - 0.5) / (10 - 0.5), 3) + lr_end;
    assert_trainer_rates(&s, 0.05, rates);
    assert_rates(&s, (int64_t[]){10, 11, 1000}, (double[]){lr_end, lr_end, lr_end}, 3);
}

// ---- callers of earlier versions ----

typedef struct whole_schedule { // before warm-ups could be fractions
    size_t size;
    ot_schedule_kind kind;
    double initial_lr;
    int64_t warmup_steps, total_steps, step_size;
    double gamma, power, end_factor;
} whole_schedule;

static void schedules_of_earlier_callers_have_a_whole_warm_up(void **state)
{
    const whole_schedule old = {
        sizeof old, OT_SCHEDULE_LINEAR, 1.0, 2, 10, 1, 0.1, 1.0, 0.0,
    };

    (void)state;
    assert_rates((const ot_schedule *)(const void *)&old, (int64_t[]){0, 1, 2, 6, 10, 11},
                 (double[]){0, 0.5, 1.0, 0.5, 0, 0}, 6);
}

static void assert_refused(ot_schedule s, const char *text)
{
    assert_int_equal(ot__schedule_check(&s), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), text));
}

static void senseless_schedules_are_refused(void **state)
{
    ot_schedule s = schedule(OT_SCHEDULE_LINEAR);

    (void)state;
    assert_int_equal(ot__schedule_check(&s), OT_OK);
    s.initial_lr = -1;
    assert_refused(s, "initial_lr");
    s.initial_lr = NAN;
    assert_refused(s, "initial_lr");
    s = schedule(OT_SCHEDULE_EXPONENTIAL);
    s.gamma = INFINITY;
    assert_refused(s, "gamma");
    s = schedule(OT_SCHEDULE_STEP);
    s.step_size = 0;
    assert_refused(s, "step_size");
    assert_float_equal(ot_schedule_value(&s, 5), 0.0, 0.0);
    s = schedule(OT_SCHEDULE_COSINE);
    s.warmup_steps = -1;
    assert_refused(s, "-1 warm-up steps");
    s.warmup_steps = NAN;
    assert_refused(s, "nan warm-up steps");
    s = schedule(OT_SCHEDULE_COSINE);
    s.cycles = -0.5;
    assert_refused(s, "cycles is -0.5");
    s = schedule((ot_schedule_kind)77);
    assert_refused(s, "kind 77");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_stays),
        cmocka_unit_test(linear_rises_over_the_warm_up_and_falls_to_zero),
        cmocka_unit_test(linear_ends_at_the_end_factor),
        cmocka_unit_test(cosine_agrees_with_pytorch),
        cmocka_unit_test(step_multiplies_by_gamma_every_step_size_steps),
        cmocka_unit_test(exponential_multiplies_by_gamma_every_step),
        cmocka_unit_test(polynomial_agrees_with_pytorch),
        cmocka_unit_test(every_schedule_begins_after_the_warm_up),
        cmocka_unit_test(constant_warms_up_as_ort_trainer),
        cmocka_unit_test(cosine_agrees_with_ort_trainer),
        cmocka_unit_test(cosine_of_more_cycles_goes_on_after_its_end),
        cmocka_unit_test(linear_agrees_with_ort_trainer),
        cmocka_unit_test(polynomial_agrees_with_ort_trainer),
        cmocka_unit_test(schedules_of_earlier_callers_have_a_whole_warm_up),
        cmocka_unit_test(senseless_schedules_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
