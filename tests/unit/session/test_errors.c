// SPDX-License-Identifier: Apache-2.0
// What can be asked wrongly of a session: status and message, one row or test each.
#include "session_fixture.h"
#include "unit/base/temporary_folder.h"

static void assert_error(ot_status found, ot_status expected, const char *message)
{
    if (found != expected || strcmp(ot_error_message(), message) != 0)
        fail_msg("%s '%s', expected %s '%s'", ot_status_name(found), ot_error_message(),
                 ot_status_name(expected), message);
}

static const char no_values[] = "the checkpoint is nominal: its parameters have no values";

static void make_nominal(fixture *f)
{
    for (int i = 0; i < f->checkpoint->n_parameters; i++) {
        ot__parameter *p = f->checkpoint->parameters[i];

        ot_tensor_destroy(p->value);
        p->value = mlp_tensor(f->dtype, OT_SHAPE(0), NULL);
    }
    f->checkpoint->is_nominal = true;
}

// ---- making a session ----

static void models_that_cannot_be_loaded_are_named(void **state)
{
    const char *missing = in_folder(state, "missing.onnx"), *good = in_folder(state, "good.onnx");
    fixture f = {0};
    char message[256];

    make(&f, OT_F32, NULL);
    assert_int_equal(ot_model_save(f.training, good, NULL), OT_OK);
    snprintf(message, sizeof message, "%s: cannot be opened: No such file or directory", missing);
    assert_error(ot_session_load(missing, NULL, NULL, f.checkpoint, NULL, &f.session), OT_ERR_IO,
                 message);
    assert_null(f.session);
    assert_error(ot_session_load(good, missing, NULL, f.checkpoint, NULL, &f.session), OT_ERR_IO,
                 message);
    assert_error(ot_session_load(good, NULL, missing, f.checkpoint, NULL, &f.session), OT_ERR_IO,
                 message);
    assert_error(ot_session_load(NULL, NULL, NULL, f.checkpoint, NULL, &f.session), OT_ERR_INVALID,
                 "ot_session_load: training is NULL");
    teardown_of(&f);
}

static void bytes_that_are_no_model_are_named(void **state)
{
    fixture *f = *state;
    const ot_bytes none = {NULL, 0}, good = {mlp_dropout_text, 5}, bad = {"\xff\xff\xff", 3};

    make(f, OT_F32, NULL);
    assert_error(ot_session_load_buffers(&none, NULL, NULL, f->checkpoint, NULL, &f->session),
                 OT_ERR_INVALID, "the training model has 0 bytes, expected a model");
    assert_int_equal(ot_session_load_buffers(&bad, NULL, NULL, f->checkpoint, NULL, &f->session),
                     OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "training model: model in memory: "));
    assert_int_equal(ot_session_load_buffers(&good, NULL, NULL, f->checkpoint, NULL, &f->session),
                     OT_ERR_FORMAT); // cut
    assert_null(f->session);
}

static void options_that_are_none_are_refused(void **state)
{
    fixture *f = *state;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    make(f, OT_F32, NULL);
    options.n_threads = -1;
    assert_error(ot_session_create(f->training, NULL, NULL, f->checkpoint, &options, &f->session),
                 OT_ERR_INVALID, "-1 threads");
}

static void a_parameter_that_is_an_initializer_too_is_named(void **state)
{
    static const char text[] = MLP_HEAD "e (T[N,4] x, T[4] \"fc1.bias\") => (T[N,4] y) "
                                        "<T[4] \"fc1.bias\" = {1, 2, 3, 4}>\n"
                                        "{ y = Add(x, \"fc1.bias\") }";
    fixture *f = *state;

    make(f, OT_F32, NULL);
    ot_model_destroy(f->eval);
    f->eval = mlp_model(text, "float");
    assert_error(ot_session_create(f->training, f->eval, NULL, f->checkpoint, NULL, &f->session),
                 OT_ERR_INVALID,
                 "eval model: parameter 'fc1.bias' of the checkpoint is an initializer too");
}

// ---- optimizers ----

static void an_optimizer_model_has_one_rule(void **state)
{
    static const char none[] = MLP_HEAD "o (" MLP_OPTIMIZER_INPUTS ") => (seq(T[]) clipped) {\n"
                                        "  clipped = com.microsoft.InplaceClipGradNorm(gradients)\n"
                                        "}";
    static const char two[] =
        MLP_HEAD "o (" MLP_OPTIMIZER_INPUTS ") => (bool[1] a, bool[1] b) {\n"
                 "  a = com.microsoft.SGDOptimizerV2(learning_rate, params, gradients)\n"
                 "  [second] b = com.microsoft.SGDOptimizerV2(learning_rate, params, gradients)\n"
                 "}";
    fixture *f = *state;

    make(f, OT_F32, none);
    assert_error(
        ot_session_create(f->training, NULL, f->optimizer, f->checkpoint, NULL, &f->session),
        OT_ERR_INVALID, "optimizer model: none of its 1 nodes updates the parameters");
    ot_model_destroy(f->optimizer);
    f->optimizer = mlp_model(two, "float");
    assert_error(
        ot_session_create(f->training, NULL, f->optimizer, f->checkpoint, NULL, &f->session),
        OT_ERR_INVALID,
        "optimizer model: SGDOptimizerV2 'second' and another SGDOptimizerV2 before it update the "
        "parameters, expected one");
}

static void without_an_optimizer_there_is_no_optimizer_step(void **state)
{
    fixture *f = *state;
    ot_schedule schedule = OT_SCHEDULE_INIT;

    make(f, OT_F32, NULL);
    open_session(f);
    assert_error(ot_session_optimizer_step(f->session), OT_ERR_STATE,
                 "the session has no optimizer model");
    assert_error(ot_session_schedule_step(f->session), OT_ERR_STATE,
                 "the session has no learning rate schedule");
    assert_error(ot_session_set_learning_rate(f->session, -1), OT_ERR_INVALID,
                 "the learning rate is -1");
    schedule.warmup_steps = -2;
    assert_error(ot_session_set_schedule(f->session, &schedule), OT_ERR_INVALID,
                 "schedule: -2 warm-up steps of 0 steps");
    // ONNX Runtime wants an optimizer for these; here the optimizer may come later.
    schedule.warmup_steps = 0;
    schedule.initial_lr = 0.25;
    assert_int_equal(ot_session_set_schedule(f->session, &schedule), OT_OK);
    assert_near(ot_session_learning_rate(f->session), 0.25, 0);
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.5), OT_OK);
    assert_near(ot_session_learning_rate(f->session), 0.5, 0);
}

// ---- steps ----

static void a_nominal_checkpoint_does_nothing_but_count(void **state)
{
    fixture *f = *state;
    float all[N_ELEMENTS] = {0};
    ot_shape shapes[] = {OT_SHAPE(ROWS, IN), OT_SHAPE(ROWS)};
    ot_model *model;
    char *text;

    make(f, OT_F32, mlp_adamw_text);
    make_nominal(f);
    open_session(f);
    batch(f, 0, ROWS);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_error(ot_session_train_step(f->session, inputs, 2, NULL, 0), OT_ERR_STATE, no_values);
    assert_error(ot_session_eval_step(f->session, inputs, 2, NULL, 0), OT_ERR_STATE, no_values);
    assert_error(ot_session_optimizer_step(f->session), OT_ERR_STATE, no_values);
    assert_error(ot_session_export(f->session, NULL, 0, &model), OT_ERR_STATE, no_values);
    assert_error(ot_session_describe_plan(f->session, OT_MODE_TRAIN, shapes, 2, &text),
                 OT_ERR_STATE, no_values);
    assert_error(ot_session_get_gradients(f->session, all, N_ELEMENTS), OT_ERR_STATE, no_values);
    assert_error(ot_session_set_gradients(f->session, all, N_ELEMENTS), OT_ERR_STATE, no_values);
    assert_error(ot_session_scale_gradients(f->session, 0.5), OT_ERR_STATE, no_values);
    assert_error(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS),
                 OT_ERR_STATE, no_values);
    assert_error(ot_session_set_parameters(f->session, OT_PARAMETERS_TRAINABLE, all, N_ELEMENTS),
                 OT_ERR_STATE, "the checkpoint is nominal: all parameters are needed");
    // There, asking for the learning rate crashes.
    assert_near(ot_session_learning_rate(f->session), 0.001, 0);
    assert_int_equal(ot_session_parameters_size(f->session, OT_PARAMETERS_ALL), N_ELEMENTS);
}

static void without_an_eval_model_there_is_no_evaluation(void **state)
{
    fixture *f = *state;
    ot_model *model;

    make(f, OT_F32, NULL);
    ot_model_destroy(f->eval);
    f->eval = NULL;
    open_session(f);
    batch(f, 0, ROWS);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_error(ot_session_eval_step(f->session, inputs, 2, NULL, 0), OT_ERR_STATE,
                 "the session has no eval model");
    assert_error(ot_session_export(f->session, NULL, 0, &model), OT_ERR_STATE,
                 "the session has no eval model to export");
    assert_null(model);
    assert_int_equal(ot_session_input_count(f->session, OT_MODE_EVAL), 0);
    assert_int_equal(ot_session_output_count(f->session, OT_MODE_EVAL), 0);
    assert_null(ot_session_input_name(f->session, OT_MODE_EVAL, 0));
    assert_null(ot_session_output_name(f->session, OT_MODE_EVAL, 0));
}

static void more_outputs_than_there_are_cannot_be_had(void **state)
{
    fixture *f = *state;
    ot_tensor *outputs[2] = {NULL, NULL};
    ot_dtype dtype;
    ot_shape shape;

    make(f, OT_F32, NULL);
    open_session(f);
    batch(f, 0, ROWS);

    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};

    assert_error(ot_session_eval_step(f->session, inputs, 2, outputs, 2), OT_ERR_INVALID,
                 "eval model: 2 outputs wanted, it has 1");
    assert_error(ot_session_input_info(f->session, OT_MODE_TRAIN, 2, &dtype, &shape),
                 OT_ERR_NOT_FOUND, "training model: no input 2");
}

// ---- flat vectors ----

static void a_vector_has_as_many_elements_as_the_parameters(void **state)
{
    fixture *f = *state;
    float all[N_ELEMENTS] = {0};

    make(f, OT_F32, NULL);
    open_session(f);
    assert_error(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS - 1),
                 OT_ERR_INVALID, "a vector of 25 elements for 26 of the parameters");
    assert_error(ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS - 1),
                 OT_ERR_INVALID, "a vector of 25 elements for 26 of the parameters");
    assert_error(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, NULL, N_ELEMENTS),
                 OT_ERR_INVALID, "ot_session_get_parameters: to is NULL");
    assert_error(ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, NULL, N_ELEMENTS),
                 OT_ERR_INVALID, "ot_session_set_parameters: from is NULL");
    assert_error(ot_session_get_parameters(f->session, 2, all, N_ELEMENTS), OT_ERR_INVALID,
                 "2 means neither all nor the trainable parameters");
}

static const char counter_text[] =
    MLP_HEAD "t (T[N] x, T[1] w, int64[] seen, T[1] \"w_grad.accumulation.buffer\", bool[1] "
             "lazy_reset_grad) => (T[N] y, int64[] n, bool[1] \"w_grad.accumulation.out\") "
             "<int64 one = {1}, int64[1] first = {0}> {\n"
             "  y = Mul(x, w)\n"
             "  n = Add(seen, one)\n"
             "  \"w_grad\" = ReduceSum<keepdims = 1>(x, first)\n" MLP_ACCUMULATE("w") "}";

static void open_with_counter(fixture *f)
{
    ot_tensor *seen = mlp_tensor(OT_I64, OT_SHAPE_SCALAR, NULL);

    f->dtype = OT_F32;
    f->training = mlp_model(counter_text, "float");
    assert_int_equal(ot_checkpoint_create(&f->checkpoint), OT_OK);
    add(f->checkpoint, "w", OT_SHAPE(1), OT_PARAMETER_TRAINABLE);
    assert_int_equal(ot_checkpoint_add_parameter(f->checkpoint, "seen", seen, 0), OT_OK);
    ot_tensor_destroy(seen);
    open_session(f);
}

static void a_parameter_of_integers_has_no_place_in_a_vector_of_floats(void **state)
{
    fixture *f = *state;
    float all[2] = {0};

    open_with_counter(f);
    assert_int_equal(ot_session_parameters_size(f->session, OT_PARAMETERS_ALL), 2);
    assert_error(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, all, 2),
                 OT_ERR_UNSUPPORTED,
                 "parameter 'seen' is i64 and cannot be put into a vector of f32");
    assert_error(ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, all, 2),
                 OT_ERR_UNSUPPORTED,
                 "parameter 'seen' is i64 and cannot be put into a vector of f32");
    assert_int_equal(ot_session_get_parameters(f->session, OT_PARAMETERS_TRAINABLE, all, 1), OT_OK);
}

// ONNX Runtime knows f32 only.
static void parameters_of_doubles_are_converted(void **state)
{
    fixture *f = *state;
    float all[N_ELEMENTS];

    make(f, OT_F64, NULL);
    open_session(f);
    assert_int_equal(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS),
                     OT_OK);
    for (int i = 0; i < N_ELEMENTS; i++)
        assert_near((double)all[i], mlp_initial(i), 1e-7);
}

static void a_parameter_that_only_the_eval_model_has_keeps_a_checkpoint_nominal(void **state)
{
    fixture *f = *state;
    float all[N_ELEMENTS] = {0};

    make(f, OT_F32, mlp_adamw_text);
    add(f->checkpoint, "only.evaluated", OT_SHAPE(2), OT_PARAMETER_FROZEN);
    make_nominal(f);
    open_session(f);
    assert_error(ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, all, N_ELEMENTS),
                 OT_ERR_STATE,
                 "the checkpoint is nominal, and its parameter 'only.evaluated' is not among those "
                 "of the training model, which the vector has values for");
    assert_true(ot_checkpoint_is_nominal(f->checkpoint));
}

// ---- export ----

static void what_cannot_be_exported_is_named(void **state)
{
    static const struct {
        const char *names[2];
        int n;
        ot_status status;
        const char *message;
    } rows[] = {
        {{"output-0"}, 0, OT_ERR_INVALID, "an exported model needs an output"},
        {{"output-9"},
         1,
         OT_ERR_NOT_FOUND,
         "the eval model computes no value 'output-9'; did you mean 'output-0'?"},
        {{""}, 1, OT_ERR_NOT_FOUND, "the eval model computes no value ''"},
        {{NULL}, 1, OT_ERR_NOT_FOUND, "the eval model computes no value ''"},
        {{"x"}, 1, OT_ERR_NOT_FOUND, "the eval model computes no value 'x'"},
        {{"h", "h"}, 2, OT_ERR_INVALID, "output 'h' is named twice"},
    };
    fixture *f = *state;
    ot_model *model;

    make(f, OT_F32, NULL);
    open_session(f);
    for (size_t i = 0; i < OT_COUNT(rows); i++) {
        assert_error(ot_session_export(f->session, rows[i].names, rows[i].n, &model),
                     rows[i].status, rows[i].message);
        assert_null(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(models_that_cannot_be_loaded_are_named),
        TEST(bytes_that_are_no_model_are_named),
        TEST(options_that_are_none_are_refused),
        TEST(a_parameter_that_is_an_initializer_too_is_named),
        TEST(an_optimizer_model_has_one_rule),
        TEST(without_an_optimizer_there_is_no_optimizer_step),
        TEST(a_nominal_checkpoint_does_nothing_but_count),
        TEST(without_an_eval_model_there_is_no_evaluation),
        TEST(more_outputs_than_there_are_cannot_be_had),
        TEST(a_vector_has_as_many_elements_as_the_parameters),
        TEST(a_parameter_of_integers_has_no_place_in_a_vector_of_floats),
        TEST(parameters_of_doubles_are_converted),
        TEST(a_parameter_that_only_the_eval_model_has_keeps_a_checkpoint_nominal),
        TEST(what_cannot_be_exported_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
