// SPDX-License-Identifier: Apache-2.0
// The f32 tiles of every instruction set this processor has, against the C library in f64.
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 20011 };

// Distance in units in the last place of the rounded exact result.
static double ulps(float found, double exact)
{
    const float rounded = (float)exact;

    if (isnan(rounded) || isinf(rounded))
        return (isnan(rounded) && isnan(found)) || found == rounded ? 0.0 : INFINITY;
    return fabs((double)found - exact) /
           ((double)nextafterf(fabsf(rounded), INFINITY) - fabs((double)rounded));
}

static const float ones[2] = {1.0F, 1.0F};
typedef void (*tile_f32)(float *, const float *const *, int64_t, const float *);

static void check_one(tile_f32 tile, double (*exact)(double), float low, float high, double allowed)
{
    float *x = malloc(COUNT * sizeof(*x)), *y = malloc(COUNT * sizeof(*y));
    const float *const xs[OT__TILE_INPUTS] = {x};
    double worst = 0.0;

    for (int k = 0; k < COUNT; k++)
        x[k] = low + (high - low) * (float)k / (float)(COUNT - 1);
    tile(y, xs, COUNT, ones);
    for (int k = 0; k < COUNT; k++)
        worst = fmax(worst, ulps(y[k], exact((double)x[k])));
    free(x);
    free(y);
    assert_true(worst <= allowed);
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double softplus(double x)
{
    return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

static double elu(double x)
{
    return x > 0.0 ? x : expm1(x);
}

static void mathematics_stays_within_four_units_in_the_last_place(void **state)
{
    const ot__tiles *t;

    (void)state;
    for (int i = 0; (t = ot__tiles_at(i)) != NULL; i++) {
        check_one(t->exp, exp, -87.0F, 88.7F, 2.0);
        check_one(t->exp, exp, -1.0F, 1.0F, 2.0);
        check_one(t->elu, elu, -40.0F, 1.0F, 2.0);
        check_one(t->elu, elu, -1.0F, 0.0F, 2.0);
        check_one(t->elu, elu, -1e-3F, 1e-3F, 2.0);
        check_one(t->log, log, 1e-6F, 3.0F, 2.0);
        check_one(t->log, log, 1.0F, 1e30F, 2.0);
        check_one(t->erf, erf, -5.0F, 5.0F, 2.5);
        check_one(t->erf, erf, -1.2F, 1.2F, 2.5);
        check_one(t->tanh, tanh, -10.0F, 10.0F, 2.0);
        check_one(t->tanh, tanh, -0.7F, 0.7F, 2.0);
        check_one(t->sigmoid, sigmoid, -110.0F, 80.0F, 4.0);
        check_one(t->softplus, softplus, -80.0F, 80.0F, 4.0);
        check_one(t->sin, sin, -400.0F, 400.0F, 2.0);
        check_one(t->sin, sin, -4e6F, 4e6F, 2.0);
        check_one(t->cos, cos, 3.0F, 2e5F, 2.0);
        check_one(t->sin, sin, -1e-3F, 1e-3F, 1.0);
        check_one(t->sin, sin, 1.0e6F, 1.1e6F, 2.0); // on both sides of what is reduced
        check_one(t->sin, sin, -3e38F, 3e38F, 2.0);
        check_one(t->cos, cos, -400.0F, 400.0F, 2.0);
        check_one(t->cos, cos, -3e38F, 3e38F, 2.0);
        check_one(t->tan, tan, -400.0F, 400.0F, 4.0);
        check_one(t->tan, tan, -3e38F, 3e38F, 4.0);
        check_one(t->asin, asin, -1.0F, 1.0F, 2.0);
        check_one(t->asin, asin, 0.99F, 1.01F, 2.0);
        check_one(t->acos, acos, -1.0F, 1.0F, 2.0);
        check_one(t->acos, acos, 0.99F, 1.01F, 2.0);
        check_one(t->atan, atan, -3.0F, 3.0F, 2.0);
        check_one(t->atan, atan, -1e30F, 1e30F, 2.0);
        check_one(t->sinh, sinh, -2.0F, 2.0F, 2.0);
        check_one(t->sinh, sinh, -90.0F, 90.0F, 2.0);
        check_one(t->cosh, cosh, -90.0F, 90.0F, 2.0);
        check_one(t->asinh, asinh, -2.0F, 2.0F, 4.0);
        check_one(t->asinh, asinh, -3e38F, 3e38F, 2.0);
        check_one(t->acosh, acosh, 0.9F, 3.0F, 4.0);
        check_one(t->acosh, acosh, 1.0F, 3e38F, 2.0);
        check_one(t->atanh, atanh, -1.01F, 1.01F, 4.0);
        check_one(t->round, nearbyint, -10.0F, 10.0F, 0.0);
        check_one(t->round, nearbyint, -1e8F, 1e8F, 0.0);
    }
}

// Numbers of all sizes, the special ones among them.
static float any_float(uint32_t *state)
{
    static const float special[] = {0.0F, -0.0F, 1.0F,     -1.0F,     2.0F,
                                    0.5F, -3.0F, INFINITY, -INFINITY, NAN};
    const uint32_t choice = (*state = *state * 1664525U + 1013904223U) >> 16;

    *state = *state * 1664525U + 1013904223U;
    if (choice % 16 == 0)
        return special[choice / 16 % (sizeof(special) / sizeof(*special))];
    return ldexpf((float)(*state >> 8) / 8388608.0F - 1.0F, (int)(choice % 61) - 30);
}

static void check_two(tile_f32 tile, double (*exact)(double, double), double allowed)
{
    float *a = malloc(COUNT * sizeof(*a)), *b = malloc(COUNT * sizeof(*b)),
          *y = malloc(COUNT * sizeof(*y));
    const float *const xs[OT__TILE_INPUTS] = {a, b};
    double worst = 0.0;
    uint32_t state = 1;

    for (int k = 0; k < COUNT; k++) {
        a[k] = any_float(&state);
        b[k] = any_float(&state);
    }
    tile(y, xs, COUNT, ones);
    for (int k = 0; k < COUNT; k++)
        worst = fmax(worst, ulps(y[k], exact((double)a[k], (double)b[k])));
    tile(a, xs, COUNT, ones);
    assert_memory_equal(a, y, COUNT * sizeof(*y)); // in place of an operand
    free(a);
    free(b);
    free(y);
    assert_true(worst <= allowed);
}

static double modulo(double a, double b)
{
    const double r = fmod(a, b);

    return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

static void functions_of_two_are_right_for_any_numbers(void **state)
{
    const ot__tiles *t;

    (void)state;
    for (int i = 0; (t = ot__tiles_at(i)) != NULL; i++) {
        check_two(t->pow, pow, 2.0);
        check_two(t->fmod, fmod, 0.0);
        check_two(t->mod, modulo, 0.5);
    }
}

static void check_at(tile_f32 tile, float x, float expected)
{
    const float *const xs[OT__TILE_INPUTS] = {&x};
    float y;

    tile(&y, xs, 1, ones);
    if (isnan(expected))
        assert_true(isnan(y));
    else
        assert_true(y == expected);
}

static void the_ends_of_the_range_are_exact(void **state)
{
    const ot__tiles *t;

    (void)state;
    for (int i = 0; (t = ot__tiles_at(i)) != NULL; i++) {
        check_at(t->exp, 0.0F, 1.0F);
        check_at(t->exp, 89.0F, INFINITY);
        check_at(t->exp, INFINITY, INFINITY);
        check_at(t->exp, -INFINITY, 0.0F);
        check_at(t->exp, NAN, NAN);
        check_at(t->elu, 0.0F, 0.0F);
        check_at(t->elu, -INFINITY, -1.0F);
        check_at(t->elu, INFINITY, INFINITY);
        check_at(t->elu, NAN, NAN);
        check_at(t->log, 1.0F, 0.0F);
        check_at(t->log, 0.0F, -INFINITY);
        check_at(t->log, -1.0F, NAN);
        check_at(t->log, INFINITY, INFINITY);
        check_at(t->log, NAN, NAN);
        check_at(t->erf, INFINITY, 1.0F);
        check_at(t->erf, -INFINITY, -1.0F);
        check_at(t->erf, NAN, NAN);
        check_at(t->tanh, INFINITY, 1.0F);
        check_at(t->tanh, -INFINITY, -1.0F);
        check_at(t->tanh, NAN, NAN);
        check_at(t->sin, INFINITY, NAN);
        check_at(t->cos, NAN, NAN);
        check_at(t->tan, -INFINITY, NAN);
        check_at(t->asin, NAN, NAN);
        check_at(t->acos, -1.0F, 3.14159274F);
        check_at(t->acos, NAN, NAN);
        check_at(t->atan, INFINITY, 1.57079637F);
        check_at(t->atan, NAN, NAN);
        check_at(t->sinh, -INFINITY, -INFINITY);
        check_at(t->sinh, NAN, NAN);
        check_at(t->cosh, -INFINITY, INFINITY);
        check_at(t->cosh, NAN, NAN);
        check_at(t->asinh, -INFINITY, -INFINITY);
        check_at(t->asinh, NAN, NAN);
        check_at(t->acosh, INFINITY, INFINITY);
        check_at(t->acosh, NAN, NAN);
        check_at(t->atanh, -1.0F, -INFINITY);
        check_at(t->atanh, NAN, NAN);
        check_at(t->round, INFINITY, INFINITY);
        check_at(t->round, NAN, NAN);
        check_at(t->sigmoid, -INFINITY, 0.0F);
        check_at(t->sigmoid, INFINITY, 1.0F);
        check_at(t->softplus, INFINITY, INFINITY);
        check_at(t->softplus, NAN, NAN);
    }
}

static void denormal_numbers_have_logarithms_and_are_exponentials(void **state)
{
    const ot__tiles *t;

    (void)state;
    for (int i = 0; (t = ot__tiles_at(i)) != NULL; i++) {
        float x = 1e-42F, y;
        const float *const xs[OT__TILE_INPUTS] = {&x};

        t->log(&y, xs, 1, NULL);
        assert_true(fabs((double)y - log((double)x)) < 1e-5 * fabs(log((double)x)));
        x = -100.0F;
        t->exp(&y, xs, 1, NULL);
        assert_true(fabs((double)y - exp(-100.0)) <= 1.5e-45);
    }
}

// A tile's length decides how many elements the vector loop and its tail get.
static void any_length_gives_the_same_values(void **state)
{
    float x[100], all[100], part[100];
    const float *const xs[OT__TILE_INPUTS] = {x};
    const ot__tiles *t;

    (void)state;
    for (int k = 0; k < 100; k++)
        x[k] = (float)k * 0.1F - 5.0F;
    for (int i = 0; (t = ot__tiles_at(i)) != NULL; i++) {
        t->gelu(all, xs, 100, NULL);
        for (int64_t n = 0; n <= 100; n++) {
            memset(part, 0x7F, sizeof(part));
            t->gelu(part, xs, n, NULL);
            for (int64_t k = 0; k < n; k++)
                assert_true(ulps(part[k], (double)all[k]) <= 2.0);
            if (n < 100)
                assert_int_equal(((unsigned char *)&part[n])[0], 0x7F);
        }
    }
}

static void the_first_table_is_always_there(void **state)
{
    (void)state;
    assert_non_null(ot__tiles_at(0));
    assert_non_null(ot__tiles_best());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_two_are_right_for_any_numbers),
        cmocka_unit_test(mathematics_stays_within_four_units_in_the_last_place),
        cmocka_unit_test(the_ends_of_the_range_are_exact),
        cmocka_unit_test(denormal_numbers_have_logarithms_and_are_exponentials),
        cmocka_unit_test(any_length_gives_the_same_values),
        cmocka_unit_test(the_first_table_is_always_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
