// SPDX-License-Identifier: Apache-2.0
// Descriptions of trainers over artifacts and sessions.
#include "trainer_fixture.h"

static const ot_dim_description pair[] = {{NULL, 2}};
static const ot_value_description all_inputs[] = {
    {"t", rows, 1, 0}, {"unused", pair, 1, 0}, {"x", rows_by_3, 2, 0}};
static const ot_model_description whole = {sizeof whole, all_inputs, linear_outputs, 3, 2};

static ot_artifacts *linear_artifacts(void)
{
    static const char *const others[] = {"y", "d"};
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_artifacts *artifacts;

    end_in_loss(&how, &loss);
    how.additional_outputs = others;
    how.n_additional_outputs = 2;
    need(ot_artifacts_generate(model, &how, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

typedef ot_status step_function(ot_trainer *, const ot_tensor *const *, int, ot_tensor **, int);

// Inputs t, unused, x; outputs y, loss.
static void assert_step(ot_trainer *trainer, step_function *step)
{
    float x[N_ROWS * N_IN], t[N_ROWS], unused[2] = {0};
    ot_tensor *outputs[2] = {NULL, NULL};
    const ot_tensor *inputs[3];
    hand h = hand_begin();

    batch_of(3, x, t);
    hand_add(&h, x, t);
    inputs[0] = tensor_of(t, OT_SHAPE(N_ROWS));
    inputs[1] = tensor_of(unused, OT_SHAPE(2));
    inputs[2] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    need(step(trainer, inputs, 3, outputs, 2));
    assert_int_equal(ot_tensor_count(outputs[0]), N_ROWS);
    assert_float_equal(*(const float *)ot_tensor_data_const(outputs[1]), h.loss, 1e-6);
    for (int i = 0; i < 3; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(outputs[i]);
}

static void steps_over_artifacts_have_the_order_of_the_description(void **state)
{
    ot_artifacts *artifacts = linear_artifacts();
    ot_trainer *trainer;

    (void)state;
    need(ot_trainer_create_from_artifacts(artifacts, &whole, NULL, &trainer));
    assert_int_equal(ot_trainer_output_count(trainer), 2);
    assert_string_equal(ot_trainer_input_name(trainer, 0), "t");
    assert_string_equal(ot_trainer_output_name(trainer, 1), "loss");
    assert_step(trainer, ot_trainer_eval_step);
    assert_step(trainer, ot_trainer_train_step);
    ot_trainer_destroy(trainer);
    ot_artifacts_destroy(artifacts);
}

static void assert_refused(const ot_model_description *description, const char *message)
{
    ot_artifacts *artifacts = linear_artifacts();
    ot_session *session;
    ot_trainer *trainer;

    need(ot_session_create_from_artifacts(artifacts, NULL, &session));
    assert_int_equal(ot_trainer_create_from_session(session, description, NULL, &trainer),
                     OT_ERR_INVALID);
    assert_null(trainer);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("'%s' lacks '%s'", ot_error_message(), message);
    // The session is free for another trainer.
    need(ot_trainer_create_from_session(session, &whole, NULL, &trainer));
    assert_step(trainer, ot_trainer_train_step);
    ot_trainer_destroy(trainer);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
}

static void names_are_those_of_the_training_model(void **state)
{
    const ot_value_description inputs[] = {{"u", rows, 1, 0}, {"x", rows_by_3, 2, 0}};
    const ot_value_description outputs[] = {{"loss", NULL, 0, 1}, {"v", rows, 1, 0}};
    ot_model_description wrong = whole;

    (void)state;
    wrong.inputs = inputs;
    wrong.n_inputs = 2;
    wrong.outputs = outputs;
    assert_refused(&wrong, "the description has input 'u', output 'v', which the training model "
                           "lacks: its inputs are 'x', 't', 'unused', its outputs 'loss', 'y', "
                           "'d'");
    wrong = whole;
    wrong.n_inputs = 1;
    assert_refused(&wrong, "inputs that the description lacks: 'x', 'unused'");
}

static void the_loss_is_that_of_the_training_model(void **state)
{
    const ot_value_description outputs[] = {{"y", rows, 1, 1}, {"loss", NULL, 0, 0}};
    ot_model_description wrong = whole;

    (void)state;
    wrong.outputs = outputs;
    assert_refused(&wrong, "output 'y' is the loss, the training model has 'loss'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_over_artifacts_have_the_order_of_the_description),
        cmocka_unit_test(names_are_those_of_the_training_model),
        cmocka_unit_test(the_loss_is_that_of_the_training_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
