// SPDX-License-Identifier: Apache-2.0
#include "session_fixture.h"

// ---- what a step computes ----

static void a_step_gives_the_loss_and_gradients_of_the_formula(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F64, NULL);
    open_session(f);
    mlp_reference_init(&r);
    assert_near(train(f, 0), mlp_step(&r, 0, ROWS), 1e-14);
    assert_tensors(f, r.g, true, 1e-14);
    assert_tensors(f, r.p, false, 0);
}

static void gradients_add_up_until_they_are_reset(void **state)
{
    fixture *f = *state;
    mlp_reference r, last;

    make(f, OT_F64, NULL);
    open_session(f);
    mlp_reference_init(&r);
    last = r;
    (void)train(f, 0);
    (void)train(f, 1);
    (void)mlp_step(&r, 0, ROWS);
    (void)mlp_step(&r, 1, ROWS);
    assert_tensors(f, r.g, true, 1e-14);
    ot_session_reset_gradients(f->session);
    assert_tensors(f, r.g, true, 1e-14); // nothing happens before the next step
    (void)train(f, 2);
    (void)mlp_step(&last, 2, ROWS);
    assert_tensors(f, last.g, true, 1e-14);
}

static void scaled_gradients_are_multiplied(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F32, NULL);
    open_session(f);
    mlp_reference_init(&r);
    (void)train(f, 0);
    (void)mlp_step(&r, 0, ROWS);
    assert_int_equal(ot_session_scale_gradients(f->session, 0.25), OT_OK);
    for (int i = 0; i < N_ELEMENTS; i++)
        r.g[i] *= 0.25;
    assert_tensors(f, r.g, true, 1e-6);
}

static void run_steps(fixture *f, const char *optimizer, ot_dtype dtype, double tolerance,
                      void (*update)(mlp_reference *r, float lr), double max_norm)
{
    mlp_reference r;

    make(f, dtype, optimizer);
    open_session(f);
    mlp_reference_init(&r);
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.05), OT_OK);
    for (int i = 0; i < 10; i++) {
        memset(r.g, 0, sizeof r.g);
        assert_near(train(f, i), mlp_step(&r, i, ROWS), tolerance);
        if (max_norm > 0)
            mlp_clip(&r, max_norm);
        optimize(f);
        update(&r, (float)0.05);
        ot_session_reset_gradients(f->session);
        assert_int_equal(ot_session_step_count(f->session), i + 1);
    }
    assert_tensors(f, r.p, false, tolerance);
}

static void ten_steps_of_adamw_follow_the_formula_in_f64(void **state)
{
    run_steps(*state, mlp_adamw_text, OT_F64, 1e-10, mlp_adamw, 0);
}

static void ten_steps_of_adamw_follow_the_formula_in_f32(void **state)
{
    run_steps(*state, mlp_adamw_text, OT_F32, 1e-4, mlp_adamw, 0);
}

static void ten_steps_of_sgd_follow_the_formula_in_f64(void **state)
{
    run_steps(*state, mlp_sgd_text, OT_F64, 1e-12, mlp_sgd, 0);
}

static void clipping_bounds_the_norm_of_all_gradients(void **state)
{
    run_steps(*state, mlp_clipped_sgd_text, OT_F64, 1e-12, mlp_sgd, (double)0.05f);
}

static void the_learning_rate_is_a_thousandth_until_it_is_set(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F64, mlp_sgd_text);
    open_session(f);
    assert_true(ot_session_learning_rate(f->session) == 0.001);
    mlp_reference_init(&r);
    (void)train(f, 0);
    (void)mlp_step(&r, 0, ROWS);
    optimize(f);
    mlp_sgd(&r, 0.001f);
    assert_tensors(f, r.p, false, 1e-14);
}

static void a_schedule_sets_the_rate_of_the_next_step(void **state)
{
    fixture *f = *state;
    ot_schedule schedule = OT_SCHEDULE_INIT;

    make(f, OT_F32, mlp_sgd_text);
    open_session(f);
    assert_int_equal(ot_session_schedule_step(f->session), OT_ERR_STATE);
    schedule.kind = OT_SCHEDULE_LINEAR;
    schedule.initial_lr = 1.0;
    schedule.total_steps = 4;
    assert_int_equal(ot_session_set_schedule(f->session, &schedule), OT_OK);
    assert_true(ot_session_learning_rate(f->session) == 1.0);
    (void)train(f, 0);
    optimize(f);
    assert_int_equal(ot_session_schedule_step(f->session), OT_OK);
    assert_int_equal(ot_session_schedule_step(f->session), OT_OK); // the same again
    assert_true(ot_session_learning_rate(f->session) == 0.75);
}

static void a_short_last_batch_works_and_so_does_going_back(void **state)
{
    fixture *f = *state;
    mlp_reference r, fresh;
    const int rows[] = {ROWS, 2, ROWS, 1, 3, 4, ROWS};

    make(f, OT_F64, NULL);
    open_session(f);
    mlp_reference_init(&r);
    for (size_t i = 0; i < OT_COUNT(rows); i++) {
        batch(f, (int)i, rows[i]);
        assert_near(step(f, OT_MODE_TRAIN), mlp_step(&r, (int)i, rows[i]), 1e-14);
        fresh = r;
        assert_near(step(f, OT_MODE_EVAL), mlp_step(&fresh, (int)i, rows[i]), 1e-14);
    }
    assert_tensors(f, r.g, true, 1e-13);
}

// The eval model of the fixture has its parameters in another order.
static void evaluation_finds_the_parameters_by_name_and_changes_nothing(void **state)
{
    fixture *f = *state;
    mlp_reference r;
    double loss;

    make(f, OT_F64, NULL);
    open_session(f);
    mlp_reference_init(&r);
    batch(f, 3, ROWS);
    loss = mlp_step(&r, 3, ROWS);
    assert_near(step(f, OT_MODE_EVAL), loss, 1e-14);
    assert_tensors(f, r.p, false, 0);
    assert_tensors(f, (double[N_ELEMENTS]){0}, true, 0);
    assert_near(step(f, OT_MODE_TRAIN), loss, 1e-14);
    assert_tensors(f, r.g, true, 1e-14);
}

static void a_parameter_that_is_set_is_used_by_the_next_step(void **state)
{
    fixture *f = *state;
    mlp_reference r;
    ot_tensor *t;

    make(f, OT_F64, NULL);
    open_session(f);
    mlp_reference_init(&r);
    (void)train(f, 0);
    r.p[B2] = 3;
    r.p[B2 + 1] = -2;
    t = mlp_tensor(OT_F64, OT_SHAPE(2), r.p + B2);
    assert_int_equal(ot_checkpoint_set_parameter(f->checkpoint, "fc2.bias", t), OT_OK);
    ot_tensor_destroy(t);
    assert_near(train(f, 0), mlp_step(&r, 0, ROWS), 1e-14);
}

// ---- memory ----

static void a_step_allocates_only_the_outputs_it_hands_out(void **state)
{
    fixture *f = *state;
    ot_tensor *loss = NULL;
    int64_t before, with_output;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    (void)train(f, 0);
    optimize(f);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    before = ot__alloc_count();
    assert_int_equal(ot_session_train_step(f->session, inputs, 2, &loss, 1), OT_OK);
    with_output = ot__alloc_count() - before;
    assert_in_range(with_output, 1, 2); // a tensor and its elements
    before = ot__alloc_count();
    assert_int_equal(ot_session_train_step(f->session, inputs, 2, &loss, 1), OT_OK);
    assert_int_equal(ot_session_train_step(f->session, inputs, 2, NULL, 0), OT_OK);
    assert_int_equal(ot_session_optimizer_step(f->session), OT_OK);
    ot_session_reset_gradients(f->session);
    assert_int_equal(ot__alloc_count(), before);
    ot_tensor_destroy(loss);
}

static void a_ceiling_that_cannot_be_met_is_refused_with_the_largest_values(void **state)
{
    fixture *f = *state;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    make(f, OT_F64, NULL);
    options.memory_max = 2 * N_ELEMENTS * sizeof(double) + 64; // parameters and gradients fit
    assert_int_equal(
        ot_session_create(f->training, NULL, NULL, f->checkpoint, &options, &f->session), OT_OK);
    batch(f, 0, ROWS);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_int_equal(ot_session_train_step(f->session, inputs, 2, NULL, 0), OT_ERR_NO_MEMORY);
    if (strstr(ot_error_message(), "64 are allowed; largest: 'a' 160") == NULL)
        fail_msg("%s", ot_error_message());
}

static void a_failing_allocation_leaves_the_session_usable(void **state)
{
    fixture *f = *state;
    mlp_reference r;
    ot_status st = OT_ERR_NO_MEMORY;
    int64_t n;

    make(f, OT_F64, NULL);
    open_session(f);
    batch(f, 0, ROWS);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    for (n = 0; st != OT_OK && n < 100000; n += 1 + n / 8) {
        ot_tensor *loss = NULL;

        ot__alloc_fail_after(n);
        st = ot_session_train_step(f->session, inputs, 2, &loss, 1);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_true((st == OT_OK) == (loss != NULL));
        ot_tensor_destroy(loss);
    }
    assert_int_equal(st, OT_OK);
    mlp_reference_init(&r);
    (void)mlp_step(&r, 0, ROWS);
    assert_tensors(f, r.g, true, 1e-14);
}

// ---- inputs that are wrong ----

static void assert_step_error(fixture *f, const ot_tensor *const *inputs, int n_inputs,
                              const char *message)
{
    ot_tensor *loss = NULL;

    assert_int_equal(ot_session_train_step(f->session, inputs, n_inputs, &loss, 1), OT_ERR_INVALID);
    assert_null(loss);
    assert_string_equal(ot_error_message(), message);
}

static void inputs_that_do_not_fit_are_named(void **state)
{
    fixture *f = *state;
    ot_tensor *wide, *doubles, *rows;

    make(f, OT_F32, NULL);
    open_session(f);
    batch(f, 0, ROWS);
    wide = mlp_tensor(OT_F32, OT_SHAPE(ROWS, 4), NULL);
    doubles = mlp_tensor(OT_F64, OT_SHAPE(ROWS, 3), NULL);
    rows = mlp_tensor(OT_F32, OT_SHAPE(2, 3), NULL);
    const ot_tensor *const one[] = {f->inputs[0]};
    const ot_tensor *const hole[] = {f->inputs[0], NULL};
    const ot_tensor *const too_wide[] = {wide, f->inputs[1]};
    const ot_tensor *const other_type[] = {doubles, f->inputs[1]};
    const ot_tensor *const other_rank[] = {f->inputs[0], f->inputs[0]};
    const ot_tensor *const other_rows[] = {rows, f->inputs[1]};

    assert_step_error(f, one, 1, "training model: got 1 inputs, expected 2: 'x', 'labels'");
    assert_step_error(f, hole, 2, "input 1 'labels' is missing");
    assert_step_error(f, too_wide, 2, "input 0 'x' has shape [5,4], expected [batch,3]");
    assert_step_error(f, other_type, 2, "input 0 'x' is f64, expected f32");
    assert_step_error(f, other_rank, 2, "input 1 'labels' is f32, expected i64");
    assert_step_error(f, other_rows, 2,
                      "input 'labels': axis 0 ('batch') has size 5, but 2 in input 'x'");
    ot_tensor_destroy(wide);
    ot_tensor_destroy(doubles);
    ot_tensor_destroy(rows);
}

static void a_failed_step_names_the_node_and_leaves_everything_as_it_was(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F64, NULL);
    open_session(f);
    mlp_reference_init(&r);
    (void)train(f, 0);
    (void)mlp_step(&r, 0, ROWS);
    ((int64_t *)ot_tensor_data(f->inputs[1]))[2] = 7;

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};
    ot_tensor *loss = NULL;

    assert_int_equal(ot_session_train_step(f->session, inputs, 2, &loss, 1), OT_ERR_INVALID);
    assert_null(loss);
    assert_non_null(strstr(ot_error_message(), "SoftmaxCrossEntropyLoss"));
    assert_non_null(strstr(ot_error_message(), "7"));
    assert_tensors(f, r.p, false, 0);
    assert_tensors(f, r.g, true, 1e-14);
    (void)train(f, 1); // still accumulating
    (void)mlp_step(&r, 1, ROWS);
    assert_tensors(f, r.g, true, 1e-14);
}

// `seen` counts rows and stands for running statistics: a frozen parameter that the step changes,
// before the loss can fail.
static const char counting_text[] =
    MLP_HEAD "t (T[N,2] z, int64[N] labels, T[2] seen, bool[1] lazy_reset_grad) => (T loss, "
             "bool[1] counted) <int64[1] rows = {0}> {\n"
             "  sum = ReduceSum<keepdims = 0>(z, rows)\n"
             "  counted = com.microsoft.InPlaceAccumulatorV2(seen, sum)\n"
             "  loss = SoftmaxCrossEntropyLoss(z, labels)\n"
             "}";

static void open_counting(fixture *f, ot_shape seen, float *z, int64_t *labels)
{
    f->training = mlp_model(counting_text, "float");
    assert_int_equal(ot_checkpoint_create(&f->checkpoint), OT_OK);
    add(f->checkpoint, "seen", seen, OT_PARAMETER_FROZEN);
    f->checkpoint->is_nominal = seen.dim[0] == 0;
    open_session(f);
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(2, 2), z, 4 * sizeof *z, &f->inputs[0]),
                     OT_OK);
    assert_int_equal(
        ot_tensor_wrap(OT_I64, &OT_SHAPE(2), labels, 2 * sizeof *labels, &f->inputs[1]), OT_OK);
}

static void assert_seen(const fixture *f, float first, float second)
{
    ot_tensor *seen;

    assert_int_equal(ot_checkpoint_get_parameter(f->checkpoint, "seen", &seen), OT_OK);
    assert_memory_equal(ot_tensor_data(seen), ((float[]){first, second}), 8);
    ot_tensor_destroy(seen);
}

static void a_failed_step_puts_back_the_statistics_it_has_changed(void **state)
{
    fixture *f = *state;
    int64_t labels[] = {0, 1};
    float z[] = {1, 2, 3, 4};
    ot_tensor *loss = NULL;

    open_counting(f, OT_SHAPE(2), z, labels);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_int_equal(ot_session_train_step(f->session, inputs, 2, &loss, 1), OT_OK);
    ot_tensor_destroy(loss);
    labels[1] = 2;
    assert_int_equal(ot_session_train_step(f->session, inputs, 2, NULL, 0), OT_ERR_INVALID);
    assert_seen(f, 4, 6);
}

static void statistics_of_a_nominal_checkpoint_are_put_back_too(void **state)
{
    fixture *f = *state;
    int64_t labels[] = {0, 2};
    float z[] = {1, 2, 3, 4};

    open_counting(f, OT_SHAPE(0), z, labels);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_int_equal(
        ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, (const float[]){7, 8}, 2), OT_OK);
    assert_int_equal(ot_session_train_step(f->session, inputs, 2, NULL, 0), OT_ERR_INVALID);
    assert_seen(f, 7, 8);
}

// What an eval model must never do.
static void an_eval_model_that_would_change_a_parameter_is_refused(void **state)
{
    static const char text[] =
        MLP_HEAD "e (T[N,3] x, T[2] \"fc2.bias\", T[2] more) => (bool[1] counted) {\n"
                 "  counted = com.microsoft.InPlaceAccumulatorV2(\"fc2.bias\", more)\n"
                 "}";
    fixture *f = *state;
    ot_tensor *more;

    make(f, OT_F32, NULL);
    ot_model_destroy(f->eval);
    f->eval = mlp_model(text, "float");
    open_session(f);
    batch(f, 0, ROWS);
    more = mlp_tensor(OT_F32, OT_SHAPE(2), NULL);

    const ot_tensor *const inputs[] = {f->inputs[0], more};

    assert_int_equal(ot_session_eval_step(f->session, inputs, 2, NULL, 0), OT_ERR_UNSUPPORTED);
    assert_string_equal(ot_error_message(), "eval model: would change its input 'fc2.bias'");
    ot_tensor_destroy(more);
}

static void an_output_tensor_that_does_not_fit_is_refused(void **state)
{
    fixture *f = *state;
    ot_tensor *loss;

    make(f, OT_F32, NULL);
    open_session(f);
    batch(f, 0, ROWS);
    loss = mlp_tensor(OT_F32, OT_SHAPE(2), NULL);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_int_equal(ot_session_train_step(f->session, inputs, 2, &loss, 1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(),
                        "output 0 'onnx::loss::3' is f32[], the given tensor f32[2]");
    ot_tensor_destroy(loss);
}

static void an_optimizer_may_be_given_later_and_a_wrong_one_changes_nothing(void **state)
{
    fixture *f = *state;
    ot_model *sgd = mlp_model(mlp_sgd_text, "float");

    make(f, OT_F32, NULL);
    open_session(f);
    batch(f, 0, ROWS);
    step(f, OT_MODE_TRAIN);
    assert_int_equal(ot_session_optimizer_step(f->session), OT_ERR_STATE);
    assert_int_equal(ot_session_set_optimizer(f->session, sgd), OT_OK);
    assert_int_equal(ot_session_set_optimizer(f->session, f->eval), OT_ERR_INVALID);
    assert_int_equal(ot_session_optimizer_step(f->session), OT_OK);
    assert_int_equal(ot_session_step_count(f->session), 1);
    assert_int_equal(ot_session_set_optimizer(f->session, NULL), OT_OK);
    assert_int_equal(ot_session_optimizer_step(f->session), OT_ERR_STATE);
    ot_model_destroy(sgd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_gives_the_loss_and_gradients_of_the_formula),
        TEST(gradients_add_up_until_they_are_reset),
        TEST(scaled_gradients_are_multiplied),
        TEST(ten_steps_of_adamw_follow_the_formula_in_f64),
        TEST(ten_steps_of_adamw_follow_the_formula_in_f32),
        TEST(ten_steps_of_sgd_follow_the_formula_in_f64),
        TEST(clipping_bounds_the_norm_of_all_gradients),
        TEST(the_learning_rate_is_a_thousandth_until_it_is_set),
        TEST(a_schedule_sets_the_rate_of_the_next_step),
        TEST(a_short_last_batch_works_and_so_does_going_back),
        TEST(evaluation_finds_the_parameters_by_name_and_changes_nothing),
        TEST(a_parameter_that_is_set_is_used_by_the_next_step),
        TEST(a_step_allocates_only_the_outputs_it_hands_out),
        TEST(a_ceiling_that_cannot_be_met_is_refused_with_the_largest_values),
        TEST(a_failing_allocation_leaves_the_session_usable),
        TEST(inputs_that_do_not_fit_are_named),
        TEST(a_failed_step_names_the_node_and_leaves_everything_as_it_was),
        TEST(a_failed_step_puts_back_the_statistics_it_has_changed),
        TEST(statistics_of_a_nominal_checkpoint_are_put_back_too),
        TEST(an_eval_model_that_would_change_a_parameter_is_refused),
        TEST(an_output_tensor_that_does_not_fit_is_refused),
        TEST(an_optimizer_may_be_given_later_and_a_wrong_one_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
