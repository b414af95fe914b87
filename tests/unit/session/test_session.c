// SPDX-License-Identifier: Apache-2.0
#include "session_fixture.h"

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
    static const char name[] = "fc1.weight_grad.accumulation.buffer", *const of = "fc1.ghosts";
    fixture *f = *state;
    char *text = strdup(mlp_training_text);

    make(f, OT_F32, NULL);
    ot_model_destroy(f->training);
    for (char *at = strstr(text, name); at != NULL; at = strstr(at, name))
        memcpy(at, of, strlen(of));
    f->training = mlp_model(text, "float");
    free(text);
    assert_no_session(
        f, OT_ERR_INVALID,
        "input 'fc1.ghosts_grad.accumulation.buffer' is a gradient buffer, but there is no "
        "such parameter in the checkpoint and no such input");
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
    ot_string_free(text);
    assert_int_equal(ot_session_plan_json(f->session, OT_MODE_TRAIN, shapes, 2, &text), OT_OK);
    assert_non_null(strstr(text, "\"steps\":[{\"node\":\""));
    ot_string_free(text);
    assert_true(ot_session_plan_bytes(f->session) > 0);
    assert_int_equal(ot_session_state_bytes(f->session), 2 * N_ELEMENTS * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_trainable_parameter_the_model_lacks_is_named),
        TEST(a_frozen_parameter_the_model_lacks_does_not_matter),
        TEST(a_missing_gradient_buffer_is_named),
        TEST(a_gradient_buffer_of_a_frozen_parameter_is_named),
        TEST(a_gradient_buffer_without_parameter_is_named),
        TEST(a_parameter_of_another_shape_or_type_is_named),
        TEST(an_optimizer_with_other_inputs_is_refused),
        TEST(an_optimizer_for_another_type_is_refused),
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
