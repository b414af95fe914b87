// SPDX-License-Identifier: Apache-2.0
// What a trainer does not take: each is told with what was found and expected, and changes nothing.
#include "trainer_fixture.h"

#include <math.h>

static void assert_message(const char *text)
{
    if (strstr(ot_error_message(), text) == NULL)
        fail_msg("'%s', expected '%s'", ot_error_message(), text);
}

// ---- steps ----

typedef struct call {
    ot_tensor *t, *x;
    ot_tensor *outputs[3];
} call;

static call begin_call(ot_dtype t_dtype)
{
    call c = {0};

    need(ot_tensor_create(t_dtype, &OT_SHAPE(N_ROWS), &c.t));
    need(ot_tensor_create(OT_F32, &OT_SHAPE(N_ROWS, N_IN), &c.x));
    return c;
}

static void end_call(call *c)
{
    ot_tensor_destroy(c->t);
    ot_tensor_destroy(c->x);
    for (int i = 0; i < 3; i++)
        ot_tensor_destroy(c->outputs[i]);
}

// Training and evaluation refuse alike.
static void assert_call_refused(const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                                int n_outputs, const char *text)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainer;
    hand h = hand_begin();
    float x[N_ROWS * N_IN], t[N_ROWS];

    options.gradient_accumulation_steps = 2;
    trainer = linear_trainer(&options);
    step_over(trainer, 1);
    assert_int_equal(ot_trainer_train_step(trainer, inputs, n_inputs, outputs, n_outputs),
                     OT_ERR_INVALID);
    assert_message(text);
    assert_int_equal(ot_trainer_eval_step(trainer, inputs, n_inputs, outputs, n_outputs),
                     OT_ERR_INVALID);
    assert_message(text);
    assert_int_equal(info_of(trainer).step, 1);
    step_over(trainer, 2);
    for (int64_t k = 1; k <= 2; k++) {
        batch_of(k, x, t);
        hand_add(&h, x, t);
    }
    hand_update(&h, 0.25);
    assert_parameters(trainer, &h);
    ot_trainer_destroy(trainer);
}

static void wrong_counts_of_inputs_and_outputs_are_refused(void **state)
{
    call c = begin_call(OT_F32);
    const ot_tensor *const inputs[] = {c.t, c.x, c.x}, *const without[] = {c.t, NULL};

    (void)state;
    assert_call_refused(inputs, 1, c.outputs, 2, "1 inputs given, expected the 2");
    assert_call_refused(inputs, 3, c.outputs, 2, "3 inputs given, expected the 2");
    assert_call_refused(inputs, 0, c.outputs, 2, "0 inputs given, expected the 2");
    assert_call_refused(without, 2, c.outputs, 2, "input 'x' is NULL");
    assert_call_refused(inputs, 2, c.outputs, 3, "3 outputs wanted, expected at most 2");
    assert_call_refused(inputs, -1, c.outputs, 2, "-1");
    assert_call_refused(NULL, 2, c.outputs, 2, "NULL");
    end_call(&c);
}

static void wrong_types_are_refused(void **state)
{
    call c = begin_call(OT_F64);
    const ot_tensor *const inputs[] = {c.t, c.x};

    (void)state;
    assert_call_refused(inputs, 2, c.outputs, 2, "'t' is f64, expected f32");
    end_call(&c);
}

static void given_outputs_must_fit(void **state)
{
    call c = begin_call(OT_F32);
    const ot_tensor *const inputs[] = {c.t, c.x};

    (void)state;
    need(ot_tensor_create(OT_F32, &OT_SHAPE(N_ROWS + 1), &c.outputs[0]));
    assert_call_refused(inputs, 2, c.outputs, 2, "output ");
    assert_message("'y' is f32[4], the given tensor f32[5]");
    end_call(&c);
}

// As in ONNX Runtime's ORTTrainer: f32 gradients are not looked at unless skip_non_finite asks.
static void what_is_not_finite_goes_through_in_f32(void **state)
{
    float x[N_ROWS * N_IN] = {0}, t[N_ROWS] = {NAN}, w[N_IN + 1];
    const ot_tensor *inputs[2] = {tensor_of(t, OT_SHAPE(N_ROWS)),
                                  tensor_of(x, OT_SHAPE(N_ROWS, N_IN))};
    ot_trainer *trainer = linear_trainer(NULL);

    (void)state;
    need(ot_trainer_train_step(trainer, inputs, 2, NULL, 0));
    assert_int_equal(info_of(trainer).optimization_step, 1);
    need(ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL, w, N_IN + 1));
    assert_true(isnan(w[N_IN]));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
    ot_trainer_destroy(trainer);
}

// ---- making one ----

static void assert_model_refused(const char *text, const ot_model_description *description,
                                 const ot_optimizer_options *optimizer, ot_status expected,
                                 const char *message)
{
    ot_model *model;
    ot_trainer *trainer;

    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    assert_int_equal(ot_trainer_create(model, description, optimizer, NULL, &trainer), expected);
    assert_null(trainer);
    assert_message(message);
    ot_model_destroy(model);
}

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "
#define BODY                                                                                       \
    "<float[3] w = {1, 2, 3}> { y = MatMul(x, w) a = ReduceMean<keepdims = 0>(y)"                  \
    " b = ReduceSum<keepdims = 0>(y) }"

static void without_a_description_one_scalar_is_the_loss(void **state)
{
    (void)state;
    assert_model_refused(HEAD "g (float[N, 3] x) => (float a, float b)" BODY, NULL, NULL,
                         OT_ERR_INVALID, "outputs are 'a' (a scalar), 'b' (a scalar)");
    assert_model_refused(HEAD "g (float[N, 3] x) => (float[N] y)" BODY, NULL, NULL, OT_ERR_INVALID,
                         "0 outputs may be the loss");
    assert_model_refused(HEAD "g (float[N, 3] x) => (float[N] y)" BODY, NULL, NULL, OT_ERR_INVALID,
                         "outputs are 'y'");
}

static void descriptions_are_checked(void **state)
{
    const ot_value_description two_losses[] = {{"y", rows, 1, 1}, {"loss", NULL, 0, 1}};
    const ot_value_description twice[] = {{"x", rows_by_3, 2, 0}, {"x", rows_by_3, 2, 0}};
    const ot_model_description cases[] = {
        {sizeof(ot_model_description), linear_inputs, two_losses, 2, 2},
        {sizeof(ot_model_description), twice, linear_outputs, 2, 2},
        {sizeof(ot_model_description), linear_inputs, NULL, 2, 1},
    };
    static const char *const expected[] = {"loss", "x", "outputs"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        assert_model_refused(linear_text, &cases[i], NULL, OT_ERR_INVALID, expected[i]);
}

static void groups_name_weights_that_there_are(void **state)
{
    static const char *const names[] = {"w", "nope", "neither"};
    ot_param_group group = OT_PARAM_GROUP_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;

    (void)state;
    group.params = names;
    group.n_params = 3;
    adam.groups = &group;
    adam.n_groups = 1;
    assert_model_refused(linear_text, NULL, &adam, OT_ERR_NOT_FOUND, "'nope'");
    assert_message("'neither'");
}

typedef struct heard {
    int n;
    char text[256];
} heard;

static void hear(void *context, ot_log_level level, const char *text)
{
    heard *h = context;

    if (level != OT_LOG_WARNING)
        return;
    h->n++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

static void groups_of_frozen_weights_are_a_warning(void **state)
{
    static const char *const names[] = {"w", "b", "?"}, *const idle[] = {"b*", "b"};
    ot_param_group group = OT_PARAM_GROUP_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_trainer *trainer;
    heard h = {0};

    (void)state;
    options.frozen_weights = idle + 1;
    options.n_frozen_weights = 1;
    adam.groups = &group;
    adam.n_groups = 1;
    ot_set_log(hear, &h);
    group.params = names;
    group.n_params = 3;
    need(ot_trainer_create(model, &linear_description, &adam, &options, &trainer));
    ot_trainer_destroy(trainer);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.text, "groups of the optimizer name 'b', of which nothing trains");
    group.params = idle;
    group.n_params = 2;
    need(ot_trainer_create(model, &linear_description, &adam, &options, &trainer));
    ot_trainer_destroy(trainer);
    ot_set_log(NULL, NULL);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.text, "groups of the optimizer name 'b*', 'b', of which nothing trains");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_counts_of_inputs_and_outputs_are_refused),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(given_outputs_must_fit),
        cmocka_unit_test(what_is_not_finite_goes_through_in_f32),
        cmocka_unit_test(without_a_description_one_scalar_is_the_loss),
        cmocka_unit_test(descriptions_are_checked),
        cmocka_unit_test(groups_name_weights_that_there_are),
        cmocka_unit_test(groups_of_frozen_weights_are_a_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
