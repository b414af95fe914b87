// SPDX-License-Identifier: Apache-2.0
// Every allocation in the life of a session fails once: each call returns OT_ERR_NO_MEMORY, leaves
// nothing behind (the sanitizer looks) and does its work when it is called again.
#include "session/session.h"
#include "session_fixture.h"
#include "unit/base/temporary_folder.h"

typedef struct life {
    fixture f;
    const char *path;
    ot_tensor *tensor;
    ot_model *model;
    ot_runner *runner;
    char *text;
    float flat[N_ELEMENTS];
    unsigned char bytes[1 << 14];
    size_t n_bytes;
} life;

#include "until_it_works.h"

// ---- what is called ----

static ot_status create(life *l)
{
    return ot_session_create(l->f.training, l->f.eval, l->f.optimizer, l->f.checkpoint, NULL,
                             &l->f.session);
}

static ot_status train_step(life *l)
{
    const ot_tensor *const inputs[] = {l->f.inputs[0], l->f.inputs[1]};

    return ot_session_train_step(l->f.session, inputs, 2, &l->tensor, 1);
}

static ot_status eval_step(life *l)
{
    const ot_tensor *const inputs[] = {l->f.inputs[0], l->f.inputs[1]};

    return ot_session_eval_step(l->f.session, inputs, 2, &l->tensor, 1);
}

static ot_status optimizer_step(life *l)
{
    return ot_session_optimizer_step(l->f.session);
}

static ot_status save(life *l)
{
    return ot_session_save(l->f.session, l->path);
}

static ot_status save_buffer(life *l)
{
    return ot_session_save_buffer(l->f.session, l->bytes, sizeof l->bytes, &l->n_bytes);
}

static ot_status save_accumulating(life *l)
{
    return ot__session_save_accumulating(l->f.session, l->path, 1, OT_CHECKPOINT_OPTIMIZER_STATE);
}

static ot_status update(life *l)
{
    ot_update_info info = OT_UPDATE_INFO_INIT;

    return ot_session_update(l->f.session, 3, &info);
}

static ot_status export(life *l)
{
    return ot_session_export(l->f.session, NULL, 0, &l->model);
}

static ot_status export_view(life *l)
{
    return ot_session_export_view(l->f.session, NULL, 0, &l->model);
}

static ot_status describe(life *l)
{
    const ot_shape shapes[] = {OT_SHAPE(7, IN), OT_SHAPE(7)};

    return ot_session_describe_plan(l->f.session, OT_MODE_TRAIN, shapes, 2, &l->text);
}

static ot_status get_parameter(life *l)
{
    return ot_checkpoint_get_parameter(l->f.checkpoint, "fc1.bias", &l->tensor);
}

static ot_status get_gradient(life *l)
{
    return ot_checkpoint_get_gradient(l->f.checkpoint, "fc1.bias", &l->tensor);
}

static ot_status set_gradient(life *l)
{
    return ot_checkpoint_set_gradient(l->f.checkpoint, "fc1.bias", l->tensor);
}

static ot_status complete(life *l)
{
    return ot_session_set_parameters(l->f.session, OT_PARAMETERS_ALL, l->flat, N_ELEMENTS);
}

static ot_status load_session(life *l)
{
    const ot_bytes training = {l->bytes, l->n_bytes};

    return ot_session_load_buffers(&training, NULL, NULL, l->f.checkpoint, NULL, &l->f.session);
}

static ot_status load_checkpoint(life *l)
{
    return ot_checkpoint_load_buffer(l->bytes, l->n_bytes, &l->f.checkpoint);
}

static ot_status create_runner(life *l)
{
    return ot_runner_create(l->model, NULL, &l->runner);
}

static ot_status run_model(life *l)
{
    const ot_feed feed = {(const ot_tensor *const *)&l->f.inputs[0], 1};

    return ot_runner_run(l->runner, &feed, 1, NULL, &l->tensor, 1);
}

static void drop_tensor(life *l)
{
    assert_non_null(l->tensor);
    ot_tensor_destroy(l->tensor);
    l->tensor = NULL;
}

static void drop_model(life *l)
{
    assert_non_null(l->model);
    ot_model_destroy(l->model);
    l->model = NULL;
}

// ---- lives ----

static void a_session_lives_through_every_failure(void **state)
{
    life l = {.path = in_folder(state, "checkpoint")};
    ot_checkpoint *loaded;
    mlp_reference r;

    make(&l.f, OT_F32, mlp_adamw_text);
    assert_true(until_it_works(&l, create) > 50);
    batch(&l.f, 0, ROWS);
    assert_true(until_it_works(&l, train_step) > 20);
    mlp_reference_init(&r);
    assert_near(ot__tensor_get_f64(l.tensor, 0), mlp_step(&r, 0, ROWS), 1e-6);
    drop_tensor(&l);
    (void)until_it_works(&l, get_gradient);
    drop_tensor(&l);
    (void)until_it_works(&l, optimizer_step);
    assert_int_equal(ot_session_step_count(l.f.session), 1);
    assert_true(until_it_works(&l, eval_step) > 20);
    drop_tensor(&l);
    assert_true(until_it_works(&l, save) > 5);
    assert_int_equal(ot_checkpoint_load(l.path, &loaded), OT_OK);
    assert_int_equal(loaded->step, 1);
    ot_checkpoint_destroy(loaded);
    assert_true(until_it_works(&l, save_accumulating) > 5);
    assert_int_equal(ot_checkpoint_load(l.path, &loaded), OT_OK);
    assert_int_equal(loaded->n_accumulated, 1);
    ot_checkpoint_destroy(loaded);
    (void)until_it_works(&l, update);
    assert_int_equal(ot_session_step_count(l.f.session), 2);
    assert_true(until_it_works(&l, export) > 20);
    drop_model(&l);
    assert_true(until_it_works(&l, export_view) > 20);
    drop_model(&l);
    assert_true(until_it_works(&l, describe) > 20);
    ot_string_free(l.text);
    assert_true(until_it_works(&l, get_parameter) > 0);
    drop_tensor(&l);
    assert_int_equal(ot_session_step_count(l.f.session), 2);
    teardown_of(&l.f);
}

static void a_checkpoint_goes_through_memory_despite_every_failure(void **state)
{
    life l = {0};

    (void)state;
    make(&l.f, OT_F32, mlp_adamw_text);
    open_session(&l.f);
    (void)train(&l.f, 0);
    optimize(&l.f);
    assert_true(until_it_works(&l, save_buffer) > 5);
    ot_session_destroy(l.f.session);
    ot_checkpoint_destroy(l.f.checkpoint);
    assert_true(until_it_works(&l, load_checkpoint) > 20);
    open_session(&l.f);
    assert_int_equal(ot_session_step_count(l.f.session), 1);
    teardown_of(&l.f);
}

static void a_nominal_checkpoint_is_completed_despite_every_failure(void **state)
{
    life l = {0};
    mlp_reference r;

    (void)state;
    make(&l.f, OT_F32, mlp_adamw_text);
    for (int i = 0; i < l.f.checkpoint->n_parameters; i++) {
        ot_tensor_destroy(l.f.checkpoint->parameters[i]->value);
        l.f.checkpoint->parameters[i]->value = mlp_tensor(OT_F32, OT_SHAPE(0), NULL);
    }
    l.f.checkpoint->is_nominal = true;
    assert_true(until_it_works(&l, create) > 50);
    for (int i = 0; i < N_ELEMENTS; i++)
        l.flat[i] = (float)mlp_initial(i);
    assert_true(until_it_works(&l, complete) > 8); // values and gradients
    assert_false(ot_checkpoint_is_nominal(l.f.checkpoint));
    mlp_reference_init(&r);
    assert_near(train(&l.f, 0), mlp_step(&r, 0, ROWS), 1e-6);
    assert_true(until_it_works(&l, optimizer_step) > 8); // moments and plan
    assert_int_equal(ot_session_step_count(l.f.session), 1);
    teardown_of(&l.f);
}

static void sessions_of_bytes_and_given_gradients_survive_every_failure(void **state)
{
    life l = {.path = in_folder(state, "training.onnx")};
    ot__file_map map;

    make(&l.f, OT_F32, NULL);
    l.tensor = mlp_tensor(OT_F32, OT_SHAPE(HIDDEN), NULL);
    assert_true(until_it_works(&l, set_gradient) > 0);
    drop_tensor(&l);
    assert_int_equal(ot_model_save(l.f.training, l.path, NULL), OT_OK);
    assert_int_equal(ot__file_map_open(&map, l.path), OT_OK);
    assert_true(map.size <= sizeof l.bytes);
    memcpy(l.bytes, map.data, map.size);
    l.n_bytes = map.size;
    ot__file_map_close(&map);
    assert_true(until_it_works(&l, load_session) > 50);
    (void)train(&l.f, 0);
    teardown_of(&l.f);
}

static void a_model_runs_by_hand_despite_every_failure(void **state)
{
    life l = {0};

    (void)state;
    make(&l.f, OT_F32, NULL);
    open_session(&l.f);
    batch(&l.f, 0, ROWS);
    assert_int_equal(export(&l), OT_OK);
    assert_true(until_it_works(&l, create_runner) > 15);
    assert_true(until_it_works(&l, run_model) > 20);
    assert_int_equal(ot_tensor_count(l.tensor), ROWS * CLASSES);
    drop_tensor(&l);
    ot_runner_destroy(l.runner);
    drop_model(&l);
    teardown_of(&l.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_session_lives_through_every_failure),
        cmocka_unit_test(a_checkpoint_goes_through_memory_despite_every_failure),
        cmocka_unit_test(a_nominal_checkpoint_is_completed_despite_every_failure),
        TEST_IN_FOLDER(sessions_of_bytes_and_given_gradients_survive_every_failure),
        cmocka_unit_test(a_model_runs_by_hand_despite_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
