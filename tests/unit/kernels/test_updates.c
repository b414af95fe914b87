// SPDX-License-Identifier: Apache-2.0
// The f32 optimizer updates of every instruction set this processor has, against the formulas in
// f64.
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { N = 77 };

typedef struct numbers {
    float w[N], g[N], m[N], v[N];
} numbers;

static numbers numbers_make(void)
{
    numbers x;

    for (int i = 0; i < N; i++) {
        x.w[i] = sinf((float)i);
        x.g[i] = cosf((float)(3 * i)) * 0.1F;
        x.m[i] = sinf((float)(5 * i)) * 0.1F;
        x.v[i] = (float)i * 1e-4F; // 0 among them
    }
    return x;
}

static void check_near(float found, double expected)
{
    assert_true(fabs((double)found - expected) <= 1e-6 * (1 + fabs(expected)));
}

static void check_adamw(const ot__updates *updates, const ot__adamw *p)
{
    const numbers old = numbers_make();
    numbers x = old;

    updates->adamw(x.w, x.m, x.v, x.g, N, p);
    for (int i = 0; i < N; i++) {
        const double g = (double)old.g[i], w = (double)old.w[i];
        const double m = p->beta1 * (double)old.m[i] + (1 - p->beta1) * g;
        const double v = p->beta2 * (double)old.v[i] + (1 - p->beta2) * g * g;
        double expected;

        if (p->mode == 0)
            expected = w * (1 - p->lr * p->weight_decay) -
                       p->lr * (m / p->c1) / (sqrt(v / p->c2) + p->epsilon);
        else
            expected = (w - p->lr * sqrt(p->c2) / p->c1 * m / (sqrt(v) + p->epsilon)) *
                       (1 - p->lr * p->weight_decay);
        check_near(x.w[i], expected);
        check_near(x.m[i], m);
        check_near(x.v[i], v);
    }
}

static void adamw_follows_its_formula_in_both_modes(void **state)
{
    const ot__updates *updates;

    (void)state;
    for (int i = 0; (updates = ot__updates_at(i)) != NULL; i++)
        for (int mode = 0; mode < 2; mode++)
            check_adamw(updates, &(ot__adamw){.lr = 0.01,
                                              .beta1 = 0.9,
                                              .beta2 = 0.99,
                                              .epsilon = 1e-4,
                                              .weight_decay = 0.1,
                                              .c1 = 1 - 0.9 * 0.9,
                                              .c2 = 1 - 0.99 * 0.99,
                                              .mode = mode});
}

static void check_sgd(const ot__updates *updates, const ot__sgd *p, bool has_buffer)
{
    const numbers old = numbers_make();
    numbers x = old;

    updates->sgd(x.w, has_buffer ? x.m : NULL, x.g, N, p);
    for (int i = 0; i < N; i++) {
        const double step = (double)old.g[i] + p->weight_decay * (double)old.w[i];
        const double moment = p->momentum * (double)old.m[i] + step;
        double taken = step;

        if (has_buffer) {
            taken = p->nesterov ? step + p->momentum * moment : moment;
            check_near(x.m[i], moment);
        }
        check_near(x.w[i], (double)old.w[i] - p->lr * taken);
    }
}

static void sgd_follows_its_formula_with_and_without_momentum(void **state)
{
    const ot__updates *updates;

    (void)state;
    for (int i = 0; (updates = ot__updates_at(i)) != NULL; i++) {
        check_sgd(updates, &(ot__sgd){.lr = 0.1}, false);
        check_sgd(updates, &(ot__sgd){.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}, true);
        check_sgd(updates,
                  &(ot__sgd){.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
                  true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_follows_its_formula_in_both_modes),
        cmocka_unit_test(sgd_follows_its_formula_with_and_without_momentum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
