// SPDX-License-Identifier: Apache-2.0
// Sessions from files and from bytes, gradients from outside.
#include "session_fixture.h"
#include "unit/base/temporary_folder.h"

static ot_bytes bytes_of(const ot_model *model, const char *path, ot__file_map *map)
{
    assert_int_equal(ot_model_save(model, path, NULL), OT_OK);
    assert_int_equal(ot__file_map_open(map, path), OT_OK);
    return (ot_bytes){map->data, map->size};
}

// What every way to make a session must give.
static void assert_trains(fixture *f)
{
    mlp_reference r;

    mlp_reference_init(&r);
    assert_int_equal(ot_session_input_count(f->session, OT_MODE_TRAIN), 2);
    assert_string_equal(ot_session_input_name(f->session, OT_MODE_TRAIN, 1), "labels");
    assert_int_equal(ot_session_input_count(f->session, OT_MODE_EVAL), 2);
    assert_string_equal(ot_session_input_name(f->session, OT_MODE_EVAL, 0), "x");
    assert_int_equal(ot_session_output_count(f->session, OT_MODE_TRAIN), 1);
    assert_string_equal(ot_session_output_name(f->session, OT_MODE_EVAL, 0), "onnx::loss::3");
    assert_near(train(f, 0), mlp_step(&r, 0, ROWS), 1e-6);
    optimize(f);
    assert_int_equal(ot_session_step_count(f->session), 1);
}

static void files_of_every_form_make_a_session(void **state)
{
    const char *training = in_folder(state, "t.onnx"), *eval = in_folder(state, "e.onnxtxt"),
               *optimizer = in_folder(state, "o.ort");
    fixture f = {0};

    make(&f, OT_F32, mlp_adamw_text);
    assert_int_equal(ot_model_save(f.training, training, NULL), OT_OK);
    assert_int_equal(ot_model_save(f.eval, eval, NULL), OT_OK);
    assert_int_equal(ot_model_save(f.optimizer, optimizer, NULL), OT_OK);
    assert_int_equal(ot_session_load(training, eval, optimizer, f.checkpoint, NULL, &f.session),
                     OT_OK);
    remove_below(*state); // nothing more is read
    assert_trains(&f);
    teardown_of(&f);
}

// ONNX Runtime cannot export from sessions made of bytes.
static void bytes_make_a_session_that_can_be_exported(void **state)
{
    static const char *const names[] = {"output-0"};
    ot__file_map maps[3];
    ot_bytes training, eval, optimizer;
    ot_model *model;
    fixture f = {0};

    make(&f, OT_F32, mlp_adamw_text);
    training = bytes_of(f.training, in_folder(state, "t"), &maps[0]);
    eval = bytes_of(f.eval, in_folder(state, "e"), &maps[1]);
    optimizer = bytes_of(f.optimizer, in_folder(state, "o"), &maps[2]);
    assert_int_equal(
        ot_session_load_buffers(&training, &eval, &optimizer, f.checkpoint, NULL, &f.session),
        OT_OK);
    for (int i = 0; i < 3; i++)
        ot__file_map_close(&maps[i]); // they were borrowed for the call only
    assert_trains(&f);
    assert_int_equal(ot_session_export(f.session, names, 1, &model), OT_OK);
    assert_int_equal(ot_model_input_count(model), 1);
    assert_string_equal(ot_model_output_name(model, 0), "output-0");
    ot_model_destroy(model);
    teardown_of(&f);
}

static void models_that_are_absent_may_be_left_out(void **state)
{
    const ot_bytes none = {NULL, 0};
    ot__file_map map;
    ot_bytes training;
    fixture f = {0};

    make(&f, OT_F32, NULL);
    training = bytes_of(f.training, in_folder(state, "t"), &map);
    assert_int_equal(
        ot_session_load_buffers(&training, &none, NULL, f.checkpoint, NULL, &f.session), OT_OK);
    ot__file_map_close(&map);
    assert_int_equal(ot_session_input_count(f.session, OT_MODE_EVAL), 0);
    teardown_of(&f);
}

// ---- gradients from outside ----

// Plain SGD: parameter less rate times gradient, whoever made the gradient.
static void assert_bias_after(const fixture *f, double rate, double g)
{
    ot_tensor *t;

    assert_int_equal(ot_checkpoint_get_parameter(f->checkpoint, "fc2.bias", &t), OT_OK);
    for (int i = 0; i < CLASSES; i++)
        assert_near(ot__tensor_get_f64(t, i), mlp_initial(B2 + i) - rate * g, 1e-6);
    ot_tensor_destroy(t);
}

static ot_tensor *all(float value)
{
    const float values[CLASSES] = {value, value};
    ot_tensor *t = mlp_tensor(OT_F32, OT_SHAPE(CLASSES), NULL);

    memcpy(ot_tensor_data(t), values, sizeof values);
    return t;
}

static void a_gradient_given_before_the_session_is_what_the_optimizer_sees(void **state)
{
    fixture *f = *state;
    ot_tensor *g = all(2);

    make(f, OT_F32, mlp_sgd_text);
    assert_int_equal(ot_checkpoint_set_gradient(f->checkpoint, "fc2.bias", g), OT_OK);
    open_session(f);
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.5), OT_OK);
    optimize(f);
    assert_bias_after(f, 0.5, 2);
    ot_session_destroy(f->session);
    open_session(f); // one that is left over is not taken for one given
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.5), OT_OK);
    optimize(f);
    assert_bias_after(f, 0.5, 2);
    ot_tensor_destroy(g);
}

static void a_gradient_given_to_a_session_is_added_to_until_a_reset(void **state)
{
    fixture *f = *state;
    double before;
    ot_tensor *g = all(1), *found;

    make(f, OT_F32, mlp_sgd_text);
    open_session(f);
    (void)train(f, 0);
    assert_int_equal(ot_checkpoint_get_gradient(f->checkpoint, "fc2.bias", &found), OT_OK);
    before = ot__tensor_get_f64(found, 0);
    ot_tensor_destroy(found);
    assert_int_equal(ot_checkpoint_set_gradient(f->checkpoint, "fc2.bias", g), OT_OK);
    (void)train(f, 0);
    assert_int_equal(ot_checkpoint_get_gradient(f->checkpoint, "fc2.bias", &found), OT_OK);
    assert_near(ot__tensor_get_f64(found, 0), 1 + before, 1e-6);
    ot_tensor_destroy(found);
    assert_int_equal(ot_checkpoint_set_gradient(f->checkpoint, "fc2.bias", g), OT_OK);
    ot_session_reset_gradients(f->session);
    (void)train(f, 0);
    assert_int_equal(ot_checkpoint_get_gradient(f->checkpoint, "fc2.bias", &found), OT_OK);
    assert_near(ot__tensor_get_f64(found, 0), before, 1e-6);
    ot_tensor_destroy(found);
    ot_tensor_destroy(g);
}

static void gradients_go_in_as_a_flat_vector_too(void **state)
{
    fixture *f = *state;
    float in[N_ELEMENTS], out[N_ELEMENTS];

    make(f, OT_F32, mlp_sgd_text);
    open_session(f);
    for (int i = 0; i < N_ELEMENTS; i++)
        in[i] = (float)(i + 1);
    assert_int_equal(ot_session_set_gradients(f->session, in, N_ELEMENTS), OT_OK);
    assert_int_equal(ot_session_get_gradients(f->session, out, N_ELEMENTS), OT_OK);
    assert_memory_equal(in, out, sizeof in);
    assert_int_equal(ot_session_set_learning_rate(f->session, 1), OT_OK);
    optimize(f);
    assert_int_equal(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, out, N_ELEMENTS),
                     OT_OK);
    for (int i = 0; i < N_ELEMENTS; i++)
        assert_near((double)out[i], mlp_initial(i) - (i + 1), 1e-6);
    assert_int_equal(ot_session_set_gradients(f->session, in, N_ELEMENTS - 1), OT_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(files_of_every_form_make_a_session),
        TEST_IN_FOLDER(bytes_make_a_session_that_can_be_exported),
        TEST_IN_FOLDER(models_that_are_absent_may_be_left_out),
        TEST(a_gradient_given_before_the_session_is_what_the_optimizer_sees),
        TEST(a_gradient_given_to_a_session_is_added_to_until_a_reset),
        TEST(gradients_go_in_as_a_flat_vector_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
