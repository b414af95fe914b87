// SPDX-License-Identifier: Apache-2.0
// Optimizer operators against recorded values of PyTorch, published vectors and their formulas in
// f64, by every kernel.
#include <float.h>

#include "optimizers_recorded.h"
#include "update_run.h"

// f64, f32 by the reference, f32 by vector code.
static const struct variant {
    ot_dtype dtype;
    bool is_simd;
    double tolerance;
} variants[] = {{OT_F64, false, 1e-13}, {OT_F32, false, 3e-6}, {OT_F32, true, 3e-6}};

static void set_variant(update *u, const struct variant *v)
{
    u->dtype = v->dtype;
    u->is_simd = v->is_simd;
}

static void expect_near(const char *what, const double *found, const double *expected, int n,
                        double tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(found[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]))))
            fail_msg("%s: element %d is %.9g, expected %.9g", what, i, found[i], expected[i]);
}

// ---- PyTorch ----

static void five_steps_are_those_of_pytorch(void **state)
{
    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++)
        for (size_t c = 0; c < OT_COUNT(recorded); c++) {
            double w[RECORDED_N], m[RECORDED_N] = {0}, v[RECORDED_N] = {0}, g[RECORDED_N];
            char op[64];
            const bool has_two =
                strstr(recorded[c].op, "Adam") || strstr(recorded[c].attrs, "momentum");
            update u = {.op = op,
                        .attrs = recorded[c].attrs,
                        .inputs = has_two ? TWO_MOMENTS : OUR_INPUTS,
                        .n = 1,
                        .count = {RECORDED_N},
                        .w = {w},
                        .g = {g},
                        .m = {m},
                        .v = {v},
                        .lr = {recorded_lr}};

            snprintf(op, sizeof op, "ai.onnxtrain.%s", recorded[c].op);
            if (strstr(op, "SGD"))
                u.inputs = OUR_INPUTS;
            set_variant(&u, &variants[k]);
            memcpy(w, recorded_start, sizeof w);
            for (int step = 0; step < RECORDED_STEPS; step++) {
                memcpy(g, recorded_gradients[step], sizeof g);
                u.step[0] = step + 1;
                update_run(&u);
                assert_true(u.updated);
                expect_near(recorded[c].name, w, recorded[c].w[step], RECORDED_N,
                            variants[k].tolerance);
            }
        }
}

// ---- published vectors: values of ONNX Runtime's own tests, or the formulas in f64 ----

enum { MOST_ELEMENTS = 10 };
static const struct vector {
    const char *op, *attrs;
    double lr;
    int64_t step;
    int n;
    double norm; // 0: none is given
    double w[MOST_ELEMENTS], g[MOST_ELEMENTS], m[MOST_ELEMENTS], v[MOST_ELEMENTS];
    double new_w[MOST_ELEMENTS], new_m[MOST_ELEMENTS], new_v[MOST_ELEMENTS]; // m of 0: not checked
    double tolerance;
} vectors[] = {
    {"SGDOptimizer", "", .5, 1, 3, 0, {1, 2, 3}, {4, 5, 6}, {0}, {0}, {-1, -.5, 0}, {0}, {0}, 1e-6},
    {"AdamOptimizer",
     "do_bias_correction = [0], max_norm_clip = [0.0]",
     .5,
     3,
     3,
     0,
     {1, 2, 3},
     {4, 5, 6},
     {.1, .2, .3},
     {.4, .5, .6},
     {.6199609, 1.5305318, 2.4542853},
     {.49, .68, .87},
     {.4156, .5245, .6354},
     1e-6},
    {"AdamOptimizer",
     "do_bias_correction = [0], max_norm_clip = [0.001]",
     .5,
     3,
     3,
     .01,
     {1, 2, 3},
     {4, 5, 6},
     {.1, .2, .3},
     {.4, .5, .6},
     {.8972, 1.83732, 2.78694},
     {0},
     {0},
     1e-5},
#define ZERO_STATE(attributes, ...)                                                                \
    {                                                                                              \
        "AdamOptimizer", "lambda = [0.01], " attributes, 1, 1, 3, 0, {-.4634, .3584, -.2121},      \
            {.4171, .9485, 1.2289}, {0}, {0}, {__VA_ARGS__}, {.04171, .09485, .12289},             \
            {.00017397, .00089965, .0015102}, 5e-5                                                 \
    }
    ZERO_STATE("do_bias_correction = [0]", -3.6210, -2.8075, -3.3723),
    ZERO_STATE("do_bias_correction = [1]", -1.4588, -.6452, -1.2100),
    ZERO_STATE("do_bias_correction = [0], weight_decay_mode = [1]", -3.5894, -2.7758, -3.3406),
    ZERO_STATE("weight_decay_mode = [1]", -1.4488, -.6352, -1.2000),
    {"LambOptimizer",
     "lambda = [0.1], alpha = [0.1], beta = [0.01], epsilon = [0.1]",
     .1,
     1,
     10,
     0,
     {.01379026, .15308191, -.24356517, -.21798165, -.13770047, .09694599, -.02223516, .2664228,
      -.01177993, .06832688},
     {-6.048543, 10.569487, -9.207029, -.57407373, 5.884985, -.21047728, 3.539946, -5.957566,
      -9.343748, 1.1502024},
     {-5.9078765, 9.673933, -8.731428, -.6227454, 5.284312, -.27138948, 3.443532, -5.681713,
      -8.72421, 1.1441823},
     {42.659229, 114.38165, 93.179581, .47399229, 34.129276, .090019435, 14.493006, 39.455612,
      93.025581, 1.6000764},
     {.02979828, .13677707, -.22708717, -.20361158, -.15338624, .1081504, -.03804127, .28198114,
      .00430069, .05319814},
     {0},
     {0},
     1e-6},
};

static void published_vectors_are_met(void **state)
{
    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++)
        for (size_t i = 0; i < OT_COUNT(vectors); i++) {
            struct vector x = vectors[i];
            const bool is_sgd = strstr(x.op, "SGD") != NULL;
            char op[64], what[200];
            update u = {.op = op,
                        .attrs = x.attrs,
                        .inputs = is_sgd       ? "learning_rate, , params, gradients"
                                  : x.norm > 0 ? TWO_MOMENTS ", , norm"
                                               : TWO_MOMENTS,
                        .n = 1,
                        .count = {x.n},
                        .w = {x.w},
                        .g = {x.g},
                        .m = {x.m},
                        .v = {x.v},
                        .lr = {x.lr},
                        .step = {x.step},
                        .norm = x.norm};

            snprintf(op, sizeof op, "ai.onnxtrain.%s", x.op);
            snprintf(what, sizeof what, "%s <%s>", x.op, x.attrs);
            set_variant(&u, &variants[k]);
            update_run(&u);
            expect_near(what, x.w, x.new_w, x.n, x.tolerance);
            if (x.new_m[0] != 0) {
                expect_near(what, x.m, x.new_m, x.n, 1e-6);
                expect_near(what, x.v, x.new_v, x.n, 1e-6);
            }
        }
}

// Three steps from zero moments, each rule with the values of its formula in f64.
static const struct three_steps {
    const char *op, *attrs;
    double w[3][3];
} three_steps[] = {
    {"ai.onnxtrain.AdamOptimizer",
     "lambda = [0.01]",
     {{.89900001, -1.898, .3995},
      {.94751999, -1.8694683, .30206529},
      {.97432229, -1.913332, .24657404}}},
    {"ai.onnxtrain.AdamOptimizer",
     "lambda = [0.01], weight_decay_mode = [1]",
     {{.89910032, -1.8981002, .39960011},
      {.94757073, -1.869595, .30226241},
      {.9743452, -1.9134128, .2468262}}},
    {"ai.onnxtrain.AdamOptimizer",
     "do_bias_correction = [0]",
     {{.68377323, -1.6837727, .18377257},
      {.89378352, -1.5705905, -.2285871},
      {1.0311515, -1.7969804, -.50178635}}},
    {"com.microsoft.AdamWOptimizer",
     "weight_decay = 0.01",
     {{.89900001, -1.898, .3995},
      {.94751999, -1.8694683, .30206529},
      {.97432229, -1.913332, .24657404}}},
    {"com.microsoft.AdamWOptimizer",
     "weight_decay = 0.01, epsilon = 0.000001, adam_mode = 1",
     {{.89913158, -1.8981158, .39961053},
      {.94759708, -1.8696144, .30228125},
      {.97436881, -1.913429, .24684963}}},
    {"ai.onnxtrain.LambOptimizer",
     "lambda = [0.01]",
     {{.86779837, -1.8673607, .36797903},
      {.95955428, -1.8168876, .18690307},
      {1.0337747, -1.9390822, .03815035}}},
    {"ai.onnxtrain.LambOptimizer",
     "lambda = [0.01], do_bias_correction = 1, ratio_min = 0.05, ratio_max = 5.0",
     {{.86793339, -1.8666251, .36858632},
      {.95818309, -1.813647, .18752598},
      {1.0311912, -1.9333295, .036622385}}},
};

static void three_steps_from_zero_are_the_formulas(void **state)
{
    static const double gradients[3][3] = {{.1, -.2, .3}, {-.3, .1, .2}, {.05, .4, -.1}};
    static const double last_m[] = {-.0139, .0328, .0323};
    static const double last_v[] = {1.0239001e-4, 2.0991004e-4, 1.3978009e-4};

    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++)
        for (size_t i = 0; i < OT_COUNT(three_steps); i++) {
            double w[] = {1, -2, .5}, m[3] = {0}, v[3] = {0}, g[3];
            update u = {.op = three_steps[i].op,
                        .attrs = three_steps[i].attrs,
                        .inputs = TWO_MOMENTS,
                        .n = 1,
                        .count = {3},
                        .w = {w},
                        .g = {g},
                        .m = {m},
                        .v = {v},
                        .lr = {.1}};

            set_variant(&u, &variants[k]);
            for (int step = 0; step < 3; step++) {
                memcpy(g, gradients[step], sizeof g);
                u.step[0] = step + 1;
                update_run(&u);
                expect_near(three_steps[i].attrs, w, three_steps[i].w[step], 3, 1e-5);
            }
            expect_near("m", m, last_m, 3, 1e-7);
            expect_near("v", v, last_v, 3, 5e-9); // 0.999 in f32
        }
}

// ---- scale, norm, skip ----

// SGD subtracts the gradient as it is scaled: w = 0, lr = -1 shows it.
static double scaled(const char *attrs, double divisor, double norm)
{
    double w = 0, g = 6;
    update u = {.op = "ai.onnxtrain.SGDOptimizer",
                .attrs = attrs,
                .inputs = "learning_rate, , params, gradients, , , divisor, norm",
                .dtype = OT_F64,
                .n = 1,
                .count = {1},
                .w = {&w},
                .g = {&g},
                .lr = {-1},
                .divisor = divisor,
                .norm = norm};

    update_run(&u);
    return w;
}

static void unscaling_and_clipping_are_one_division(void **state)
{
    (void)state;
    assert_true(scaled("", 1, 13) == 6);
    assert_true(scaled("max_norm_clip = [0.0]", 1, 13) == 6);
    assert_true(fabs(scaled("max_norm_clip = [1.0]", 1, 13) - 6 / 13.0) < 1e-15);
    assert_true(scaled("max_norm_clip = [1.0]", 1024, .5) == 6 / 1024.0);
    assert_true(scaled("max_norm_clip = [13.0]", 2, 13) == 3); // a norm that is the bound stays
    assert_true(fabs(scaled("max_norm_clip = [2.0]", 1024, 13) - 6 / 1024.0 * 2 / 13) < 1e-15);
    assert_true(scaled("max_norm_clip = [1.0]", 2, NAN) == 3);
    // As PyTorch's clip_grad_norm_: a factor with 1e-6
    assert_true(fabs(scaled("max_norm = 2.0", 4, 8) - 1.5 * 2 / (8 + 1e-6)) < 1e-15);
    assert_true(fabs(scaled("max_norm = 8.0", 4, 8) - 1.5 * 8 / (8 + 1e-6)) < 1e-15);
    assert_true(scaled("max_norm = 9.0", 4, 8) == 1.5);
}

static void the_norm_is_that_of_the_mean_gradients(void **state)
{
    double g[] = {3, 4, 12}, bad[] = {3, INFINITY, 12}, huge[] = {1e200, 1, 1};
    update u = {.op = "ai.onnxtrain.GradientNorm",
                .attrs = "",
                .inputs = "gradients, divisor",
                .n = 2,
                .count = {2, 1},
                .g = {g, g + 2},
                .divisor = 2};

    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++) {
        set_variant(&u, &variants[k]);
        u.g[0] = g;
        u.g[1] = g + 2;
        update_run(&u);
        assert_true(u.norm_found == 6.5 && u.finite_found);
        u.g[0] = bad;
        update_run(&u);
        assert_true(!u.finite_found);
        bad[1] = NAN;
        update_run(&u);
        assert_true(!u.finite_found);
    }
    // The norm overflows, the elements do not.
    u.dtype = OT_F64;
    u.is_simd = false;
    u.g[0] = huge;
    update_run(&u);
    assert_true(isinf(u.norm_found) && u.finite_found);
}

static void lion_moves_by_signs(void **state)
{
    static const double gradients[3][3] = {{.1, -.2, .3}, {-.3, .1, .2}, {.05, .4, -.1}};

    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++) {
        double w[] = {1, -2, .5}, m[3] = {0}, g[3], new_w[] = {1, -2, .5}, new_m[3] = {0};
        update u = {.op = "ai.onnxtrain.LionOptimizer",
                    .attrs = "beta1 = [0.75], beta2 = [0.875], weight_decay = [0.5]",
                    .inputs = OUR_INPUTS,
                    .n = 1,
                    .count = {3},
                    .w = {w},
                    .g = {g},
                    .m = {m},
                    .lr = {.125}};

        set_variant(&u, &variants[k]);
        for (int step = 0; step < 3; step++) {
            memcpy(g, gradients[step], sizeof g);
            update_run(&u);
            for (int i = 0; i < 3; i++) {
                const double mixed = .75 * new_m[i] + .25 * gradients[step][i];

                new_w[i] -= .125 * ((mixed > 0) - (mixed < 0) + .5 * new_w[i]);
                new_m[i] = .875 * new_m[i] + .125 * gradients[step][i];
            }
            expect_near("lion", w, new_w, 3, 1e-6);
            expect_near("lion's moment", m, new_m, 3, 1e-7);
        }
    }
}

static const char *const all_optimizers[] = {"AdagradOptimizer", "AdamOptimizer",
                                             "LambOptimizer",    "LionOptimizer",
                                             "RMSPropOptimizer", "SGDOptimizer"};

static bool keeps_one(const char *optimizer)
{
    return strstr(optimizer, "SGD") || strstr(optimizer, "Adagrad") || strstr(optimizer, "Lion");
}

static void what_is_skipped_stays_bit_for_bit(void **state)
{
    (void)state;
    for (size_t c = 0; c < OT_COUNT(all_optimizers); c++) {
        double w[3] = {1, -2, 3}, m[3] = {.1, .2, .3}, v[3] = {.4, .5, .6}, g[3] = {NAN, 1, 2};
        const double old[9] = {1, -2, 3, .1, .2, .3, .4, .5, .6};
        char op[64];
        update u = {.op = op,
                    .attrs = strstr(all_optimizers[c], "SGD") || strstr(all_optimizers[c], "RMS")
                                 ? "momentum = [0.5]"
                                 : "",
                    .inputs = TWO_MOMENTS ", divisor, norm, finite",
                    .dtype = OT_F64,
                    .n = 1,
                    .count = {3},
                    .w = {w},
                    .g = {g},
                    .m = {m},
                    .v = {v},
                    .lr = {1},
                    .step = {1},
                    .divisor = 2,
                    .norm = NAN};

        if (keeps_one(all_optimizers[c]))
            u.inputs = OUR_INPUTS ", , divisor, norm, finite";
        snprintf(op, sizeof op, "ai.onnxtrain.%s", all_optimizers[c]);
        update_run(&u);
        assert_false(u.updated);
        assert_memory_equal(w, old, sizeof w);
        assert_memory_equal(m, old + 3, sizeof m);
        assert_memory_equal(v, old + 6, sizeof v);
        g[0] = 1;
        u.finite = true;
        update_run(&u);
        assert_true(u.updated && w[0] != 1);
    }
}

static void averages_follow_applied_updates(void **state)
{
    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++) {
        double w[2] = {1, -4}, average[2] = {3, 4};
        const double expected[2] = {2.5, 2};
        update u = {.op = "ai.onnxtrain.ParameterAverage",
                    .attrs = "decay = 0.75",
                    .inputs = "params, moments1, finite",
                    .n = 1,
                    .count = {2},
                    .w = {w},
                    .m = {average}};

        set_variant(&u, &variants[k]);
        update_run(&u);
        assert_true(!u.updated && average[0] == 3 && average[1] == 4);
        u.finite = true;
        update_run(&u);
        assert_true(u.updated);
        expect_near("average", average, expected, 2, 1e-7);
    }
}

// ---- groups, counters, threads ----

static void a_group_has_its_numbers_and_its_rate(void **state)
{
    double w[] = {1, 1, 1}, g[] = {2, 2, 2}, m[3] = {0};
    // w - lr (g + decay w) with lr of the group times its factor
    const double expected[] = {1 - .5 * 2, 1 - .25 * 2 * (2 + .5), 1 - .5 * 2};
    update u = {.op = "ai.onnxtrain.SGDOptimizer",
                .attrs = "weight_decay = [0.0, 0.5], lr_factor = [1.0, 2.0], group = [0, 1, 0], "
                         "names = [\"a\", \"b\", \"c\"]",
                .inputs = OUR_INPUTS,
                .n = 3,
                .count = {1, 1, 1},
                .w = {w, w + 1, w + 2},
                .g = {g, g + 1, g + 2},
                .m = {m, m + 1, m + 2},
                .lr = {.5, .25},
                .n_lr = 2};

    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++) {
        for (int i = 0; i < 3; i++)
            w[i] = 1;
        set_variant(&u, &variants[k]);
        update_run(&u);
        expect_near("groups", w, expected, 3, 1e-7);
    }
}

static void every_parameter_may_count_its_own_updates(void **state)
{
    double w[] = {1, 1}, g[] = {1, 1}, m[2] = {0}, v[2] = {0}, expected[2];
    update u = {.op = "ai.onnxtrain.AdamOptimizer",
                .attrs = "alpha = [0.5], beta = [0.75], epsilon = [0.0]",
                .inputs = TWO_MOMENTS,
                .dtype = OT_F64,
                .n = 2,
                .count = {1, 1},
                .w = {w, w + 1},
                .g = {g, g + 1},
                .m = {m, m + 1},
                .v = {v, v + 1},
                .lr = {1},
                .step = {1, 3},
                .n_steps = 2};

    (void)state;
    for (int i = 0; i < 2; i++)
        expected[i] = 1 - .5 / (1 - pow(.5, (double)u.step[i])) /
                              sqrt(.25 / (1 - pow(.75, (double)u.step[i])));
    update_run(&u);
    expect_near("counters", w, expected, 2, 1e-14);
}

static void threads_do_not_change_bits(void **state)
{
    enum { N = 40000, N_TENSORS = 3 };
    static double w[N_TENSORS][N], g[N_TENSORS][N], m[N_TENSORS][N], v[N_TENSORS][N], first[N];

    (void)state;
    for (size_t c = 0; c < OT_COUNT(all_optimizers); c++)
        for (int n_threads = 1; n_threads <= 4; n_threads++) {
            char op[64];
            const bool has_one = keeps_one(all_optimizers[c]);
            update u = {.op = op,
                        .attrs = "",
                        .inputs = has_one ? OUR_INPUTS : TWO_MOMENTS,
                        .dtype = OT_F32,
                        .is_simd = true,
                        .n_threads = n_threads,
                        .n = N_TENSORS,
                        .lr = {.1},
                        .step = {1}};

            snprintf(op, sizeof op, "ai.onnxtrain.%s", all_optimizers[c]);
            if (strstr(op, "RMS"))
                u.attrs = "momentum = [0.5]";
            for (int t = 0; t < N_TENSORS; t++) {
                u.count[t] = N - t;
                u.w[t] = w[t];
                u.g[t] = g[t];
                u.m[t] = m[t];
                u.v[t] = v[t];
                for (int i = 0; i < N; i++) {
                    w[t][i] = sin(i + t);
                    g[t][i] = cos(3 * i + t);
                    m[t][i] = .1 * sin(5 * i);
                    v[t][i] = 1e-4 * i;
                }
            }
            update_run(&u);
            if (n_threads == 1)
                memcpy(first, w[1], sizeof first);
            assert_memory_equal(first, w[1], sizeof first);
        }
}

// ---- files written before ----

static void momentum_of_earlier_files_is_sgd(void **state)
{
    double w[RECORDED_N], m[RECORDED_N] = {0}, g[RECORDED_N];
    update u = {.op = "ai.onnxtrain.SGDMomentumOptimizer",
                .attrs = "momentum = 0.875, weight_decay = 0.0625, nesterov = 1",
                .inputs = "learning_rate, params, gradients, moments1, finite",
                .dtype = OT_F64,
                .n = 1,
                .count = {RECORDED_N},
                .w = {w},
                .g = {g},
                .m = {m},
                .lr = {recorded_lr},
                .finite = true};
    const struct recorded *nesterov = NULL;

    (void)state;
    for (size_t c = 0; c < OT_COUNT(recorded); c++)
        if (strcmp(recorded[c].name, "SGD, Nesterov") == 0)
            nesterov = &recorded[c];
    assert_non_null(nesterov);
    memcpy(w, recorded_start, sizeof w);
    for (int step = 0; step < RECORDED_STEPS; step++) {
        memcpy(g, recorded_gradients[step], sizeof g);
        update_run(&u);
        expect_near("earlier", w, nesterov->w[step], RECORDED_N, 1e-13);
    }
    u.finite = false;
    update_run(&u);
    assert_false(u.updated);
}

// ---- refusals ----

static void nodes_that_contradict_themselves_are_refused(void **state)
{
    static const struct {
        const char *op, *attrs, *inputs, *message;
        int n_lr, n_steps;
    } cases[] = {
        {"ai.onnxtrain.AdamOptimizer", "alpha = [1.0]", TWO_MOMENTS, "alpha is 1, expected", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "lambda = [0.0, -1.0]", TWO_MOMENTS, "lambda is -1", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "weight_decay_mode = [2]", TWO_MOMENTS,
         "weight_decay_mode is 2, expected 0 or 1", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "lambda = [0.0, 1.0], alpha = [0.0, 0.0, 0.0]", TWO_MOMENTS,
         "lambda has 2 numbers, of 3 groups", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "group = [0, 1]", TWO_MOMENTS,
         "tensor 1 is of group 1, there are 1", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "lr_factor = [1.0, -1.0]", TWO_MOMENTS, "lr_factor is -1", 1,
         1},
        {"ai.onnxtrain.AdamOptimizer", "lr_factor = [1.0, 1.0], group = [0]", TWO_MOMENTS,
         "group has 1 numbers, of 2 tensors", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "names = [\"a\"]", TWO_MOMENTS,
         "names has 1 names, of 2 tensors", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "", TWO_MOMENTS, "input 0 has shape [2]", 2, 1},
        {"ai.onnxtrain.AdamOptimizer", "", TWO_MOMENTS, "step has 3 numbers, of 2 tensors", 1, 3},
        {"ai.onnxtrain.AdamOptimizer", "", OUR_INPUTS, "moments 2 are missing", 1, 1},
        {"ai.onnxtrain.AdamOptimizer", "", "learning_rate, , params, gradients, moments1, moments2",
         "input 'step' is missing", 1, 1},
        {"ai.onnxtrain.SGDOptimizer", "momentum = [0.5]", "learning_rate, , params, gradients",
         "moments 1 are missing", 1, 1},
        {"ai.onnxtrain.SGDOptimizer", "", TWO_MOMENTS, "it has no moments 2", 1, 1},
        {"com.microsoft.AdamWOptimizer", "correct_bias = 0", TWO_MOMENTS,
         "adam_mode 0 needs correct_bias 1", 1, 1},
    };
    double x[2] = {1, 2};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        update u = {.op = cases[i].op,
                    .attrs = cases[i].attrs,
                    .inputs = cases[i].inputs,
                    .dtype = OT_F64,
                    .n = 2,
                    .count = {1, 1},
                    .w = {x, x + 1},
                    .g = {x, x + 1},
                    .m = {x, x + 1},
                    .v = {x, x + 1},
                    .n_lr = cases[i].n_lr,
                    .n_steps = cases[i].n_steps,
                    .step = {1, 1, 1}};

        if (update_try(&u) != OT_ERR_INVALID || !strstr(ot_error_message(), cases[i].message))
            fail_msg("<%s>(%s): '%s', expected '%s'", cases[i].attrs, cases[i].inputs,
                     ot_error_message(), cases[i].message);
    }
}

// ---- moments that decay ----

// Of what decays by the factor, elements that end just below and just above the smallest normal
// number, and zeros.
enum { DECAYING = 19 }; // more than a vector
static void fill_decaying(double *x, double least, double factor, bool is_square)
{
    for (int i = 0; i < DECAYING; i++) {
        const double sign = i % 2 != 0 || is_square ? 1 : -1;

        x[i] = i % 3 == 0 ? 0 : sign * (i % 3 == 1 ? .95 : 1.05) * least / factor;
    }
}

static void expect_decayed(const char *what, const double *x, double least, bool ends)
{
    for (int i = 0; i < DECAYING; i++) {
        const double found = fabs(x[i]) / least;
        const double expected = i % 3 == 0 ? 0 : i % 3 == 2 ? 1.05 : ends ? 0 : .95;

        if (!(fabs(found - expected) < 1e-6))
            fail_msg("%s: element %d is %g of the smallest normal number, expected %g", what, i,
                     found, expected);
    }
}

// Without a gradient, moments that fall below the smallest normal number become 0; v does not where
// epsilon is so small that its root counts, nor does what Lion takes the sign of.
static void what_decays_below_normal_numbers_becomes_0(void **state)
{
    static const struct {
        const char *op, *attrs;
        double of_m, of_v; // factors, 0: there is none
        bool m_ends, v_ends;
    } cases[] = {
        {"Adam", "", .9, .999, true, true},
        {"Adam", "weight_decay_mode = [1]", .9, .999, true, true},
        {"Adam", "epsilon = [1e-12]", .9, .999, true, false},
        {"Adam", "epsilon = [0.0]", .9, .999, true, false},
        {"Lamb", "", .9, .999, true, true},
        {"Lamb", "epsilon = [1e-12]", .9, .999, true, false},
        {"SGD", "momentum = [0.9]", .9, 0, true, false},
        {"SGD", "momentum = [0.9], nesterov = [1]", .9, 0, true, false},
        {"RMSProp", "", .99, 0, true, false},
        {"RMSProp", "epsilon = [1e-12]", .99, 0, false, false},
        {"RMSProp", "momentum = [0.9]", .99, .9, true, true},
        {"Lion", "", .99, 0, false, false},
    };

    (void)state;
    for (size_t k = 0; k < OT_COUNT(variants); k++)
        for (size_t c = 0; c < OT_COUNT(cases); c++) {
            const double least = variants[k].dtype == OT_F32 ? (double)FLT_MIN : DBL_MIN;
            const bool squares_first = strcmp(cases[c].op, "RMSProp") == 0;
            double w[DECAYING], g[DECAYING] = {0}, m[DECAYING], v[DECAYING];
            char op[64], what[200];
            update u = {.op = op,
                        .attrs = cases[c].attrs,
                        .inputs = cases[c].of_v > 0 ? TWO_MOMENTS : OUR_INPUTS,
                        .n = 1,
                        .count = {DECAYING},
                        .w = {w},
                        .g = {g},
                        .m = {m},
                        .v = {v},
                        .lr = {2},
                        .step = {1000}};

            snprintf(op, sizeof op, "ai.onnxtrain.%sOptimizer", cases[c].op);
            snprintf(what, sizeof what, "%s <%s>, variant %zu", cases[c].op, cases[c].attrs, k);
            set_variant(&u, &variants[k]);
            for (int i = 0; i < DECAYING; i++)
                w[i] = 1;
            fill_decaying(m, least, cases[c].of_m, squares_first);
            if (cases[c].of_v > 0)
                fill_decaying(v, least, cases[c].of_v, !squares_first);
            update_run(&u);
            expect_decayed(what, m, least, cases[c].m_ends);
            if (cases[c].of_v > 0)
                expect_decayed(what, v, least, cases[c].v_ends);
            for (int i = 0; i < DECAYING; i++) // these move by the size of w, or divide 0 by 0
                if (cases[c].m_ends && strcmp(cases[c].op, "Lamb") != 0 && i % 3 != 0)
                    assert_true(w[i] == 1);
        }
}

// So do those whose product with the rate would.
static void what_decays_below_normal_steps_becomes_0(void **state)
{
    static const struct {
        const char *op, *attrs;
        double factor;
    } cases[] = {
        {"Adam", "", .9}, {"SGD", "momentum = [0.9]", .9}, {"RMSProp", "momentum = [0.9]", .9}};
    static const struct {
        double rate, times; // of the smallest normal number
    } bounds[] = {{.125, 8}, {1e-9, 0x1p20}, {0, 0x1p20}, {2, 1}};

    (void)state;
    for (size_t c = 0; c < OT_COUNT(cases); c++)
        for (size_t b = 0; b < OT_COUNT(bounds); b++) {
            const double bound = bounds[b].times * (double)FLT_MIN;
            double x[2] = {.9 * bound / cases[c].factor, 1.1 * bound / cases[c].factor};
            double w[2] = {1, 1}, g[2] = {0}, zero[2] = {0};
            const bool is_second = strcmp(cases[c].op, "RMSProp") == 0;
            char op[64];
            update u = {.op = op,
                        .attrs = cases[c].attrs,
                        .inputs = strcmp(cases[c].op, "SGD") == 0 ? OUR_INPUTS : TWO_MOMENTS,
                        .dtype = OT_F32,
                        .n = 1,
                        .count = {2},
                        .w = {w},
                        .g = {g},
                        .m = {is_second ? zero : x},
                        .v = {is_second ? x : zero},
                        .lr = {bounds[b].rate},
                        .step = {1000}};

            snprintf(op, sizeof op, "ai.onnxtrain.%sOptimizer", cases[c].op);
            update_run(&u);
            assert_true(x[0] == 0);
            assert_true(fabs(x[1] / bound - 1.1) < 1e-6);
        }
}

static void the_first_update_is_number_1(void **state)
{
    double x[4] = {1, 1, 1, 1};
    update u = {.op = "ai.onnxtrain.AdamOptimizer",
                .attrs = "",
                .inputs = TWO_MOMENTS,
                .dtype = OT_F64,
                .n = 1,
                .count = {1},
                .w = {x},
                .g = {x + 1},
                .m = {x + 2},
                .v = {x + 3}};

    (void)state;
    assert_fails(update_try(&u), OT_ERR_INVALID, "step is 0, the first update is number 1");
    assert_true(x[0] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_steps_are_those_of_pytorch),
        cmocka_unit_test(published_vectors_are_met),
        cmocka_unit_test(three_steps_from_zero_are_the_formulas),
        cmocka_unit_test(lion_moves_by_signs),
        cmocka_unit_test(unscaling_and_clipping_are_one_division),
        cmocka_unit_test(the_norm_is_that_of_the_mean_gradients),
        cmocka_unit_test(what_is_skipped_stays_bit_for_bit),
        cmocka_unit_test(averages_follow_applied_updates),
        cmocka_unit_test(a_group_has_its_numbers_and_its_rate),
        cmocka_unit_test(every_parameter_may_count_its_own_updates),
        cmocka_unit_test(threads_do_not_change_bits),
        cmocka_unit_test(momentum_of_earlier_files_is_sgd),
        cmocka_unit_test(nodes_that_contradict_themselves_are_refused),
        cmocka_unit_test(what_decays_below_normal_numbers_becomes_0),
        cmocka_unit_test(what_decays_below_normal_steps_becomes_0),
        cmocka_unit_test(the_first_update_is_number_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
