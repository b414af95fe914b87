#include "base/base.h"
#include "mlp.h"

typedef struct fixture {
    ot_model *training, *eval, *optimizer;
    ot_checkpoint *checkpoint;
    ot_session *session;
    ot_tensor *inputs[2];
    ot_dtype dtype;
} fixture;

static const char *const type_names[] = {[OT_F32] = "float", [OT_F64] = "double"};

static void make(fixture *f, ot_dtype dtype, const char *optimizer_text)
{
    f->dtype = dtype;
    f->training = mlp_model(mlp_training_text, type_names[dtype]);
    f->eval = mlp_model(mlp_eval_text, type_names[dtype]);
    f->optimizer = optimizer_text == NULL ? NULL : mlp_model(optimizer_text, type_names[dtype]);
    f->checkpoint = mlp_checkpoint(dtype);
}

static void open_session(fixture *f)
{
    if (ot_session_create(f->training, f->eval, f->optimizer, f->checkpoint, NULL, &f->session) !=
        OT_OK)
        fail_msg("%s", ot_error_message());
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(fixture));
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(f->inputs[i]);
    ot_session_destroy(f->session);
    ot_checkpoint_destroy(f->checkpoint);
    ot_model_destroy(f->training);
    ot_model_destroy(f->eval);
    ot_model_destroy(f->optimizer);
    free(f);
    return 0;
}

static void batch(fixture *f, int number, int rows)
{
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(f->inputs[i]);
    mlp_batch(f->dtype, number, rows, f->inputs);
}

static double step(fixture *f, ot_mode mode)
{
    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};
    ot_tensor *loss = NULL;
    const ot_status st = mode == OT_MODE_TRAIN
                             ? ot_session_train_step(f->session, inputs, 2, &loss, 1)
                             : ot_session_eval_step(f->session, inputs, 2, &loss, 1);
    double value;

    if (st != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(ot_tensor_shape(loss)->ndim, 0);
    value = ot__tensor_get_f64(loss, 0);
    ot_tensor_destroy(loss);
    return value;
}

static double train(fixture *f, int number)
{
    batch(f, number, ROWS);
    return step(f, OT_MODE_TRAIN);
}

static void assert_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * (1.0 + fabs(expected))))
        fail_msg("%.17g, expected %.17g", found, expected);
}

static void assert_tensors(const fixture *f, const double *expected, bool gradients,
                           double tolerance)
{
    for (int k = 0; k < N_PARTS; k++) {
        ot_tensor *t;
        const ot_status st =
            gradients ? ot_checkpoint_get_gradient(f->checkpoint, mlp_parts[k].name, &t)
                      : ot_checkpoint_get_parameter(f->checkpoint, mlp_parts[k].name, &t);

        assert_int_equal(st, OT_OK);
        for (int64_t i = 0; i < ot_tensor_count(t); i++)
            assert_near(ot__tensor_get_f64(t, i), expected[mlp_parts[k].first + i], tolerance);
        ot_tensor_destroy(t);
    }
}

static void optimize(fixture *f)
{
    if (ot_session_optimizer_step(f->session) != OT_OK)
        fail_msg("%s", ot_error_message());
}

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
    if (strstr(ot_error_message(), "64 are allowed; largest: 'h' 160") == NULL)
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
                      "input 'labels': axis 0 ('batch') has extent 5, but 2 in input 'x'");
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

// ---- artifacts that do not fit together ----

static void assert_no_session(fixture *f, ot_status status, const char *part)
{
    ot_session *session;

    assert_int_equal(
        ot_session_create(f->training, f->eval, f->optimizer, f->checkpoint, NULL, &session),
        status);
    assert_null(session);
    if (strstr(ot_error_message(), part) == NULL)
        fail_msg("'%s' has no '%s'", ot_error_message(), part);
}

static void add(ot_checkpoint *checkpoint, const char *name, ot_shape shape, int trainable)
{
    ot_tensor *t = mlp_tensor(OT_F32, shape, NULL);

    assert_int_equal(ot_checkpoint_add_parameter(checkpoint, name, t, trainable), OT_OK);
    ot_tensor_destroy(t);
}

static void a_trainable_parameter_the_model_lacks_is_named(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    add(f->checkpoint, "fc9.weight", OT_SHAPE(2), OT_PARAMETER_TRAINABLE);
    assert_no_session(f, OT_ERR_INVALID, "trainable parameter 'fc9.weight'");
}

static void a_frozen_parameter_the_model_lacks_does_not_matter(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    add(f->checkpoint, "fc9.weight", OT_SHAPE(2), OT_PARAMETER_FROZEN);
    open_session(f);
}

static void a_missing_gradient_buffer_is_named(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    ot_model_destroy(f->training);
    f->training = mlp_model(mlp_eval_text, "float");
    assert_no_session(f, OT_ERR_INVALID, "no input 'fc1.bias_grad.accumulation.buffer'");
}

static void a_gradient_buffer_of_a_frozen_parameter_is_named(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    ot__ckpt_find(f->checkpoint, "fc2.bias")->trainable = false;
    assert_no_session(f, OT_ERR_INVALID, "input 'fc2.bias_grad.accumulation.buffer'");
}

static void a_gradient_buffer_without_parameter_is_named(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    ot_checkpoint_destroy(f->checkpoint);
    assert_int_equal(ot_checkpoint_create(&f->checkpoint), OT_OK);
    assert_no_session(f, OT_ERR_INVALID, "input 'fc1.weight_grad.accumulation.buffer'");
}

static void a_parameter_of_another_shape_or_type_is_named(void **state)
{
    fixture *f = *state;
    ot__parameter *p;

    make(f, OT_F32, NULL);
    p = ot__ckpt_find(f->checkpoint, "fc1.bias");
    ot_tensor_destroy(p->value);
    p->value = mlp_tensor(OT_F32, OT_SHAPE(5), NULL);
    assert_no_session(f, OT_ERR_INVALID,
                      "training model: input 'fc1.bias' is f32[4], but f32[5] in the checkpoint");
    ot_tensor_destroy(p->value);
    p->value = mlp_tensor(OT_F64, OT_SHAPE(4), NULL);
    assert_no_session(f, OT_ERR_INVALID, "but f64[4] in the checkpoint");
}

static void an_optimizer_with_other_inputs_is_refused(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    f->optimizer = mlp_model(MLP_HEAD "o (float[1] learning_rate, seq(T[]) weights, seq(T[]) "
                                      "gradients) => (bool[1] flag) {\n"
                                      "flag = com.microsoft.SGDOptimizerV2(learning_rate, "
                                      "weights, gradients) }",
                             "float");
    assert_no_session(f, OT_ERR_INVALID,
                      "its inputs are [learning_rate, weights, gradients], expected "
                      "[learning_rate, step, params, gradients]");
}

static void an_optimizer_for_another_type_is_refused(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    f->optimizer = mlp_model(mlp_sgd_text, "double");
    assert_no_session(f, OT_ERR_INVALID, "parameter 'fc1.weight' is f32, but 'params' holds f64");
}

static void a_state_of_another_optimizer_is_refused(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, mlp_sgd_text);
    open_session(f);
    ot_session_destroy(f->session);
    f->session = NULL;
    ot_model_destroy(f->optimizer);
    f->optimizer = mlp_model(mlp_adamw_text, "float");
    assert_no_session(f, OT_ERR_INVALID, "no momentum1 of parameter 'fc1.weight'");
}

static void a_checkpoint_serves_one_session_at_a_time(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, NULL);
    open_session(f);
    assert_no_session(f, OT_ERR_STATE, "another session");
    ot_session_destroy(f->session);
    f->session = NULL;
    open_session(f);
}

static void what_is_absent_is_an_error_of_state(void **state)
{
    fixture *f = *state;
    ot_model *model;

    make(f, OT_F32, NULL);
    assert_int_equal(ot_session_create(f->training, NULL, NULL, f->checkpoint, NULL, &f->session),
                     OT_OK);
    batch(f, 0, ROWS);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_int_equal(ot_session_eval_step(f->session, inputs, 2, NULL, 0), OT_ERR_STATE);
    assert_string_equal(ot_error_message(), "the session has no eval model");
    assert_int_equal(ot_session_optimizer_step(f->session), OT_ERR_STATE);
    assert_string_equal(ot_error_message(), "the session has no optimizer model");
    assert_int_equal(ot_session_export(f->session, NULL, 0, &model), OT_ERR_STATE);
    assert_int_equal(ot_session_input_count(f->session, OT_MODE_EVAL), 0);
}

// ---- names, the flat vector, plans ----

static void only_what_the_user_gives_and_gets_counts(void **state)
{
    fixture *f = *state;
    ot_dtype dtype;
    ot_shape shape;

    make(f, OT_F32, NULL);
    open_session(f);
    assert_int_equal(ot_session_input_count(f->session, OT_MODE_TRAIN), 2);
    assert_string_equal(ot_session_input_name(f->session, OT_MODE_TRAIN, 0), "x");
    assert_string_equal(ot_session_input_name(f->session, OT_MODE_EVAL, 1), "labels");
    assert_null(ot_session_input_name(f->session, OT_MODE_TRAIN, 2));
    assert_int_equal(ot_session_output_count(f->session, OT_MODE_TRAIN), 1);
    assert_string_equal(ot_session_output_name(f->session, OT_MODE_TRAIN, 0), "onnx::loss::3");
    assert_int_equal(ot_session_input_info(f->session, OT_MODE_TRAIN, 0, &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F32);
    assert_int_equal(shape.ndim, 2);
    assert_int_equal(shape.dim[0], -1);
    assert_int_equal(shape.dim[1], 3);
}

static void the_flat_vector_has_the_order_of_the_models_inputs(void **state)
{
    fixture *f = *state;
    float all[N_ELEMENTS];

    make(f, OT_F32, NULL);
    add(f->checkpoint, "aaa", OT_SHAPE(7), OT_PARAMETER_FROZEN); // not in the model
    open_session(f);
    assert_int_equal(ot_session_parameters_size(f->session, OT_PARAMETERS_ALL), N_ELEMENTS);
    assert_int_equal(
        ot_session_get_parameters(f->session, OT_PARAMETERS_TRAINABLE, all, N_ELEMENTS), OT_OK);
    for (int i = 0; i < N_ELEMENTS; i++)
        assert_true(all[i] == (float)mlp_initial(i));
    for (int i = 0; i < N_ELEMENTS; i++)
        all[i] = (float)i;
    assert_int_equal(ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS),
                     OT_OK);
    memset(all, 0, sizeof all);
    assert_int_equal(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS),
                     OT_OK);
    for (int i = 0; i < N_ELEMENTS; i++)
        assert_true(all[i] == (float)i);
    assert_int_equal(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, all, 5),
                     OT_ERR_INVALID);
}

static void gradients_come_as_a_flat_vector_too(void **state)
{
    fixture *f = *state;
    float g[N_ELEMENTS];
    mlp_reference r;

    make(f, OT_F32, NULL);
    open_session(f);
    mlp_reference_init(&r);
    (void)train(f, 0);
    (void)mlp_step(&r, 0, ROWS);
    assert_int_equal(ot_session_get_gradients(f->session, g, N_ELEMENTS), OT_OK);
    for (int i = 0; i < N_ELEMENTS; i++)
        assert_near((double)g[i], r.g[i], 1e-6);
}

static void a_nominal_checkpoint_trains_once_all_parameters_are_set(void **state)
{
    fixture *f = *state;
    float all[N_ELEMENTS];
    mlp_reference r;

    make(f, OT_F32, mlp_adamw_text);
    for (int k = 0; k < N_PARTS; k++) {
        ot__parameter *p = ot__ckpt_find(f->checkpoint, mlp_parts[k].name);

        ot_tensor_destroy(p->value);
        p->value = mlp_tensor(OT_F32, OT_SHAPE(0), NULL);
    }
    f->checkpoint->is_nominal = true;
    open_session(f);
    batch(f, 0, ROWS);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_int_equal(ot_session_train_step(f->session, inputs, 2, NULL, 0), OT_ERR_STATE);
    assert_int_equal(ot_session_optimizer_step(f->session), OT_ERR_STATE);
    assert_int_equal(ot_session_parameters_size(f->session, OT_PARAMETERS_TRAINABLE), N_ELEMENTS);
    for (int i = 0; i < N_ELEMENTS; i++)
        all[i] = (float)mlp_initial(i);
    assert_int_equal(
        ot_session_set_parameters(f->session, OT_PARAMETERS_TRAINABLE, all, N_ELEMENTS),
        OT_ERR_STATE);
    assert_int_equal(ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS),
                     OT_OK);
    mlp_reference_init(&r);
    assert_near(train(f, 0), mlp_step(&r, 0, ROWS), 1e-6);
    optimize(f);
}

static void a_plan_can_be_read(void **state)
{
    fixture *f = *state;
    const ot_shape shapes[] = {OT_SHAPE(5, 3), OT_SHAPE(5)};
    char *text;

    make(f, OT_F32, NULL);
    open_session(f);
    assert_int_equal(ot_session_describe_plan(f->session, OT_MODE_TRAIN, shapes, 2, &text), OT_OK);
    assert_non_null(strstr(text, "InPlaceAccumulatorV2"));
    assert_non_null(strstr(text, "f32[5,3]"));
    ot_text_free(text);
    assert_true(ot_session_plan_bytes(f->session) > 0);
    assert_int_equal(ot_session_state_bytes(f->session), 2 * N_ELEMENTS * sizeof(float));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
        TEST(an_output_tensor_that_does_not_fit_is_refused),
        TEST(a_trainable_parameter_the_model_lacks_is_named),
        TEST(a_frozen_parameter_the_model_lacks_does_not_matter),
        TEST(a_missing_gradient_buffer_is_named),
        TEST(a_gradient_buffer_of_a_frozen_parameter_is_named),
        TEST(a_gradient_buffer_without_parameter_is_named),
        TEST(a_parameter_of_another_shape_or_type_is_named),
        TEST(an_optimizer_with_other_inputs_is_refused),
        TEST(an_optimizer_for_another_type_is_refused),
        TEST(a_state_of_another_optimizer_is_refused),
        TEST(a_checkpoint_serves_one_session_at_a_time),
        TEST(what_is_absent_is_an_error_of_state),
        TEST(only_what_the_user_gives_and_gets_counts),
        TEST(the_flat_vector_has_the_order_of_the_models_inputs),
        TEST(gradients_come_as_a_flat_vector_too),
        TEST(a_nominal_checkpoint_trains_once_all_parameters_are_set),
        TEST(a_plan_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
