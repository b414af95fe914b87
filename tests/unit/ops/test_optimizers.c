// SPDX-License-Identifier: Apache-2.0
// Optimizer operators against the published formulas, evaluated here in f64.
#include <math.h>

#include "evaluate.h"
#include "kernels/kernels.h"

enum { N = 3, STEPS = 3 };
static const double start[N] = {1, -2, 0.5};
static const double gradients[STEPS][N] = {{0.1, -0.2, 0.3}, {-0.3, 0.1, 0.2}, {0.05, 0.4, -0.1}};

static ot__adamw adamw(double weight_decay, double epsilon, int mode, int step)
{
    return (ot__adamw){.lr = 0.1,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .epsilon = epsilon,
                       .weight_decay = weight_decay,
                       .c1 = 1 - pow(0.9, step),
                       .c2 = 1 - pow(0.999, step),
                       .mode = mode};
}

// Three steps from zero state give the values computed independently in double precision.
static void expect_adamw(double epsilon, int mode, const double expected[STEPS][N])
{
    double w[N], m[N] = {0}, v[N] = {0};
    float w32[N], m32[N] = {0}, v32[N] = {0}, g32[N];

    for (int i = 0; i < N; i++)
        w32[i] = (float)(w[i] = start[i]);
    for (int step = 1; step <= STEPS; step++) {
        const ot__adamw p = adamw(0.01, epsilon, mode, step);
        ot__ref_adamw_f64(w, m, v, gradients[step - 1], N, &p);
        for (int i = 0; i < N; i++)
            g32[i] = (float)gradients[step - 1][i];
        ot__ref_adamw_f32(w32, m32, v32, g32, N, &p);
        for (int i = 0; i < N; i++) {
            assert_true(fabs(w[i] - expected[step - 1][i]) < 1e-7);
            assert_true(fabs((double)w32[i] - w[i]) < 1e-6);
        }
    }
    assert_true(fabs(m[0] - -0.0139) < 1e-12 && fabs(v[2] - 1.3978009e-4) < 1e-12);
}

static void adamw_decays_before_the_update_in_mode_0(void **state)
{
    static const double expected[STEPS][N] = {{0.89900001, -1.898, 0.3995},
                                              {0.94751999, -1.8694683, 0.30206529},
                                              {0.97432229, -1.913332, 0.24657404}};

    (void)state;
    expect_adamw(1e-8, 0, expected);
}

static void adamw_decays_after_the_update_in_mode_1(void **state)
{
    static const double expected[STEPS][N] = {{0.89913158, -1.8981158, 0.39961053},
                                              {0.94759708, -1.8696144, 0.30228125},
                                              {0.97436881, -1.913429, 0.24684963}};

    (void)state;
    expect_adamw(1e-6, 1, expected);
}

static void momentum_is_pytorchs(void **state)
{
    // PyTorch: step = g + decay * w; buffer = momentum * buffer + step; w -= lr * (nesterov ? step
    // + momentum * buffer : buffer)
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        const ot__sgd p = {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov};
        double w[N], buffer[N] = {0}, expected_w[N], expected_buffer[N] = {0};

        memcpy(w, start, sizeof(w));
        memcpy(expected_w, start, sizeof(w));
        for (int step = 0; step < STEPS; step++) {
            ot__ref_sgd_f64(w, buffer, gradients[step], N, &p);
            for (int i = 0; i < N; i++) {
                const double g = gradients[step][i] + 0.01 * expected_w[i];
                expected_buffer[i] = step == 0 ? g : 0.9 * expected_buffer[i] + g;
                expected_w[i] -=
                    0.1 * (nesterov ? g + 0.9 * expected_buffer[i] : expected_buffer[i]);
                assert_true(fabs(w[i] - expected_w[i]) < 1e-14);
            }
        }
    }
    (void)state;
}

static void sgd_without_momentum_subtracts_the_gradient(void **state)
{
    double w[N] = {1, 2, 3}, g[N] = {4, 5, 6};

    (void)state;
    ot__ref_sgd_f64(w, NULL, g, N, &(ot__sgd){.lr = 0.5});
    assert_true(w[0] == -1 && w[1] == -0.5 && w[2] == 0);
}

static void the_norm_is_over_all_elements(void **state)
{
    float x[11];

    (void)state;
    for (int i = 0; i < 11; i++)
        x[i] = (float)(i + 1);
    assert_true(ot__ref_sum_square_f32(x, 11) == 506);
    ot__ref_scale_f32(x, 11, 0.5);
    assert_true(x[10] == 5.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_decays_before_the_update_in_mode_0),
        cmocka_unit_test(adamw_decays_after_the_update_in_mode_1),
        cmocka_unit_test(momentum_is_pytorchs),
        cmocka_unit_test(sgd_without_momentum_subtracts_the_gradient),
        cmocka_unit_test(the_norm_is_over_all_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
