// SPDX-License-Identifier: Apache-2.0
// Mixed precision of a session: steps near those in f64, with parameters, gradients and the
// optimizer's state in f32, and casts of parameters that follow them.
//
// Bounds. One rounding to bf16 is off by at most 2^-8 of the number, to f16 by 2^-11. On the way to
// a gradient of the small network a value passes at most ten roundings (input, two weights,
// product, bias, activation, and back), each of terms at most as large as the largest; errors of
// different elements are independent, so they add up like a sum of squares in what follows. Ten
// units of the largest gradient bound all of it.
#include "session_fixture.h"

#include "session/session.h"

static const struct {
    ot_precision precision;
    double unit;
} types[] = {{OT_PRECISION_BF16, 0x1p-8}, {OT_PRECISION_F16, 0x1p-11}};
enum { N_TYPES = 2, N_ROUNDINGS = 10 };

static void open_with(fixture *f, const ot_session_options *options)
{
    make(f, OT_F32, mlp_adamw_text);
    if (ot_session_create(f->training, f->eval, f->optimizer, f->checkpoint, options,
                          &f->session) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static void open_reduced(fixture *f, ot_precision precision)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    options.precision = precision;
    open_with(f, &options);
}

static void gradients_are_near_those_in_f64(void **state)
{
    fixture exact = {0};

    (void)state;
    make(&exact, OT_F64, NULL);
    open_session(&exact);
    for (int t = 0; t < N_TYPES; t++) {
        fixture f = {0};
        double largest = 0, loss, loss_exact;

        open_reduced(&f, types[t].precision);
        ot_session_reset_gradients(exact.session);
        loss_exact = train(&exact, 0);
        loss = train(&f, 0);
        assert_near(loss, loss_exact, N_ROUNDINGS * types[t].unit);
        assert_true(fabs(loss - loss_exact) > 0); // it is another precision
        for (int k = 0; k < N_PARTS; k++) {
            ot_tensor *g, *e;

            assert_int_equal(ot_checkpoint_get_gradient(f.checkpoint, mlp_parts[k].name, &g),
                             OT_OK);
            assert_int_equal(ot_checkpoint_get_gradient(exact.checkpoint, mlp_parts[k].name, &e),
                             OT_OK);
            assert_int_equal(ot_tensor_dtype(g), OT_F32);
            for (int64_t i = 0; i < ot_tensor_count(e); i++)
                largest = fmax(largest, fabs(ot__tensor_get_f64(e, i)));
            for (int64_t i = 0; i < ot_tensor_count(e); i++)
                if (!(fabs(ot__tensor_get_f64(g, i) - ot__tensor_get_f64(e, i)) <=
                      N_ROUNDINGS * types[t].unit * largest))
                    fail_msg("%s[%d]: %g, in f64 %g", mlp_parts[k].name, (int)i,
                             ot__tensor_get_f64(g, i), ot__tensor_get_f64(e, i));
            ot_tensor_destroy(g);
            ot_tensor_destroy(e);
        }
        assert_near(step(&f, OT_MODE_EVAL), loss_exact, N_ROUNDINGS * types[t].unit);
        teardown_of(&f);
    }
    teardown_of(&exact);
}

// What is gradually off in one step stays off: two micro-batches sum up in f32.
static void micro_batches_sum_up_in_f32(void **state)
{
    fixture f = {0};
    float once[N_ELEMENTS], twice[N_ELEMENTS];
    const int64_t n = (open_reduced(&f, OT_PRECISION_BF16),
                       ot_session_parameters_size(f.session, OT_PARAMETERS_TRAINABLE));

    (void)state;
    (void)train(&f, 0);
    assert_int_equal(ot_session_get_gradients(f.session, once, n), OT_OK);
    (void)train(&f, 0);
    (void)train(&f, 0);
    assert_int_equal(ot_session_get_gradients(f.session, twice, n), OT_OK);
    for (int64_t i = 0; i < n; i++)
        assert_true(fabs((double)twice[i] - 3 * (double)once[i]) <=
                    0x1p-22 * fabs(3 * (double)once[i]));
    teardown_of(&f);
}

// The parameters' casts are made anew, whoever has changed them.
static void casts_follow_the_parameters(void **state)
{
    fixture f = {0}, other = {0};
    float values[N_ELEMENTS];
    int64_t n;
    double loss;

    (void)state;
    open_reduced(&f, OT_PRECISION_BF16);
    open_reduced(&other, OT_PRECISION_BF16);
    n = ot_session_parameters_size(f.session, OT_PARAMETERS_ALL);
    loss = train(&f, 0);
    optimize(&f);
    batch(&f, 0, ROWS);
    assert_true(step(&f, OT_MODE_EVAL) < loss); // the update is seen
    // The same values by way of the vector, and one by one.
    assert_int_equal(ot_session_get_parameters(f.session, OT_PARAMETERS_ALL, values, n), OT_OK);
    (void)train(&other, 0);
    assert_int_equal(ot_session_set_parameters(other.session, OT_PARAMETERS_ALL, values, n), OT_OK);
    assert_near(step(&other, OT_MODE_EVAL), step(&f, OT_MODE_EVAL), 0);
    for (int k = 0; k < N_PARTS; k++) {
        ot_tensor *t;

        assert_int_equal(ot_checkpoint_get_parameter(f.checkpoint, mlp_parts[k].name, &t), OT_OK);
        for (int64_t i = 0; i < ot_tensor_count(t); i++)
            ((float *)ot_tensor_data(t))[i] = 0;
        assert_int_equal(ot_checkpoint_set_parameter(f.checkpoint, mlp_parts[k].name, t), OT_OK);
        ot_tensor_destroy(t);
    }
    assert_true(fabs(step(&f, OT_MODE_EVAL) - step(&other, OT_MODE_EVAL)) > 0.01);
    teardown_of(&f);
    teardown_of(&other);
}

static void casts_of_parameters_are_counted(void **state)
{
    fixture plain = {0}, f = {0};
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    size_t before, after;

    (void)state;
    open_with(&plain, &options);
    open_reduced(&f, OT_PRECISION_F16);
    (void)train(&plain, 0);
    (void)train(&f, 0);
    before = ot_session_state_bytes(plain.session);
    after = ot_session_state_bytes(f.session);
    assert_int_equal(after - before, 2 * ot_session_parameters_size(f.session, OT_PARAMETERS_ALL));
    teardown_of(&plain);
    teardown_of(&f);
}

static void what_is_not_f32_is_refused(void **state)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    fixture f = {0};

    (void)state;
    make(&f, OT_F64, NULL);
    options.precision = OT_PRECISION_BF16;
    assert_int_equal(
        ot_session_create(f.training, f.eval, f.optimizer, f.checkpoint, &options, &f.session),
        OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(), "is f64, precision bf16 is for models of f32"));
    options.precision = (ot_precision)7;
    assert_int_equal(
        ot_session_create(f.training, f.eval, f.optimizer, f.checkpoint, &options, &f.session),
        OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "precision 7 is unknown"));
    teardown_of(&f);
}

static int n_said;

static void count_lines(void *context, ot_log_level level, const char *text)
{
    (void)context;
    n_said +=
        level == OT_LOG_INFO && strstr(text, "precision f16 saves memory, but no time") != NULL;
}

static void a_session_says_once_that_no_time_is_gained(void **state)
{
    fixture f = {0};

    (void)state;
    ot_set_log(count_lines, NULL);
    open_reduced(&f, OT_PRECISION_F16);
    (void)train(&f, 0);
    (void)train(&f, 1);
    (void)step(&f, OT_MODE_EVAL); // a second plan
    assert_int_equal(ot_session_optimizer_step(f.session), OT_OK);
    (void)train(&f, 0);
    ot_set_log(NULL, NULL);
    assert_int_equal(n_said, 1);
    teardown_of(&f);
}

// What a file has in 16 bits trains in f32: updates far below the unit of the type are kept, in
// precision f32 as in mixed precision.
static void stored_models_train(void **state)
{
    static const char *const stored[] = {"float16", "bfloat16"};
    static const ot_dtype dtypes[] = {OT_F16, OT_BF16};
    const double values[] = {0.5, -1, 2, 0.25, 1, -0.75}, targets[] = {0, 1, 1, 0};

    (void)state;
    for (int t = 0; t < 2 * N_TYPES; t++) {
        ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
        ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;
        ot_session_options how = OT_SESSION_OPTIONS_INIT;
        ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
        ot_model *model = mlp_model("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                    "net (T[N,3] x) => (T[N,2] y) <T[3,2] w = {1, 2, 3, 4, 5, 6}>\n"
                                    "{ z = MatMul(x, w)  y = Tanh(z) }\n",
                                    stored[t % 2]);
        ot_tensor *inputs[2] = {mlp_tensor(dtypes[t % 2], OT_SHAPE(2, 3), values),
                                mlp_tensor(dtypes[t % 2], OT_SHAPE(2, 2), targets)};
        ot_artifacts *artifacts;
        ot_session *session = NULL;
        ot_tensor *w;
        double first = 0, last = 0;

        loss.loss = OT_LOSS_MSE;
        options.losses = &loss;
        options.n_losses = 1;
        sgd.name = "SGDOptimizerV2";
        options.optimizer = &sgd;
        how.precision = t < 2 ? OT_PRECISION_F32 : types[t % 2].precision;
        if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK ||
            ot_session_create_from_artifacts(artifacts, &how, &session) != OT_OK)
            fail_msg("%s: %s", stored[t % 2], ot_error_message());
        assert_int_equal(ot_session_set_learning_rate(session, 0.5), OT_OK);
        for (int step = 0; step < 30; step++) {
            ot_tensor *y = NULL;

            if (ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, &y, 1) != OT_OK)
                fail_msg("%s: %s", stored[t % 2], ot_error_message());
            assert_int_equal(ot_tensor_dtype(y), dtypes[t % 2]);
            last = ot__tensor_get_f64(y, 0);
            first = step == 0 ? last : first;
            ot_tensor_destroy(y);
            assert_int_equal(ot_session_optimizer_step(session), OT_OK);
            ot_session_reset_gradients(session);
        }
        assert_true(last < 0.7 * first);
        assert_int_equal(ot_checkpoint_get_parameter(ot_artifacts_checkpoint(artifacts), "w", &w),
                         OT_OK);
        assert_int_equal(ot_tensor_dtype(w), OT_F32);
        ot_tensor_destroy(w);
        for (int i = 0; i < 2; i++)
            ot_tensor_destroy(inputs[i]);
        ot_session_destroy(session);
        ot_artifacts_destroy(artifacts);
        ot_model_destroy(model);
    }
}

// Every allocation of the first steps fails once.
static void out_of_memory_leaves_nothing_behind(void **state)
{
    fixture f = {0};
    int n_failures[2] = {0};

    (void)state;
    open_reduced(&f, OT_PRECISION_BF16);
    batch(&f, 0, ROWS);
    for (int mode = 0; mode < 2; mode++)
        for (int64_t n = 0;; n += 1 + n / 64) {
            const ot_tensor *const inputs[] = {f.inputs[0], f.inputs[1]};
            ot_tensor *loss = NULL;
            ot_status st;

            ot__alloc_fail_after(n);
            st = mode == 0 ? ot_session_train_step(f.session, inputs, 2, &loss, 1)
                           : ot_session_eval_step(f.session, inputs, 2, &loss, 1);
            ot__alloc_fail_after(-1);
            ot_tensor_destroy(loss);
            if (st == OT_OK)
                break;
            assert_int_equal(st, OT_ERR_NO_MEMORY);
            n_failures[mode]++;
        }
    assert_true(n_failures[0] > 50 && n_failures[1] > 20);
    teardown_of(&f);
}

// What a step took without a ceiling is enough under one.
static void derived_values_count_once_under_a_ceiling(void **state)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    fixture f = {0}, under = {0};

    (void)state;
    open_reduced(&f, OT_PRECISION_BF16);
    train(&f, 0);
    options.precision = OT_PRECISION_BF16;
    options.memory_max = ot_session_state_bytes(f.session) + ot_session_plan_bytes(f.session);
    open_with(&under, &options);
    train(&under, 0);
    teardown_of(&under);
    teardown_of(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_near_those_in_f64),
        cmocka_unit_test(micro_batches_sum_up_in_f32),
        cmocka_unit_test(casts_follow_the_parameters),
        cmocka_unit_test(casts_of_parameters_are_counted),
        cmocka_unit_test(derived_values_count_once_under_a_ceiling),
        cmocka_unit_test(what_is_not_f32_is_refused),
        cmocka_unit_test(a_session_says_once_that_no_time_is_gained),
        cmocka_unit_test(stored_models_train),
        cmocka_unit_test(out_of_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
