// SPDX-License-Identifier: Apache-2.0
// The forward model with trained values: the same graph, initializers in the order that is
// promised, and what the trainer itself computes.
#include "dropout_fixture.h"
#include "unit/base/temporary_folder.h"

#include <stdlib.h>

static ot_trainer *trained(void)
{
    ot_trainer *trainer = dropout_trainer("LambOptimizer", 1);

    for (int64_t call = 1; call <= 5; call++)
        dropout_step(trainer, call, 1);
    return trainer;
}

static float run_model(const ot_model *model, int64_t seed)
{
    float x[N_ROWS * N_IN], t[N_ROWS], loss;
    const ot_tensor *inputs[2];
    ot_tensor *outputs[2] = {NULL, NULL};

    batch_of(seed, x, t);
    inputs[0] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    inputs[1] = tensor_of(t, OT_SHAPE(N_ROWS));
    need(ot_model_run(model, NULL, inputs, 2, outputs, 2));
    loss = *(const float *)ot_tensor_data_const(outputs[1]);
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
        ot_tensor_destroy(outputs[i]);
    }
    return loss;
}

static void it_computes_what_the_trainer_evaluates(void **state)
{
    ot_trainer *trainer = trained();
    ot_model *model;

    (void)state;
    need(ot_trainer_export(trainer, &model));
    assert_float_equal(run_model(model, 77), dropout_step(trainer, 77, 0), 1e-6);
    ot_model_destroy(model);
    ot_trainer_destroy(trainer);
}

static void what_it_gives_stays_as_it_was_when_training_goes_on(void **state)
{
    ot_trainer *trainer = trained();
    ot_model *model;
    float before;

    (void)state;
    need(ot_trainer_export(trainer, &model));
    before = run_model(model, 77);
    for (int64_t call = 6; call <= 9; call++)
        dropout_step(trainer, call, 1);
    ot_trainer_destroy(trainer);
    assert_true(before == run_model(model, 77)); // the same bits
    ot_model_destroy(model);
}

static void replaced_initializers_are_the_last_in_their_order(void **state)
{
    static const char *const expected[] = {"ratio", "mode", "factor", "power", "w1", "b1",
                                           "scale", "bias", "mean",   "var",   "w2"};
    ot_trainer *trainer = trained();
    ot_model *model;

    (void)state;
    need(ot_trainer_export(trainer, &model));
    assert_int_equal(ot_model_initializer_count(model), OT_COUNT(expected));
    for (int i = 0; i < (int)OT_COUNT(expected); i++)
        assert_string_equal(ot_model_initializer_name(model, i), expected[i]);
    ot_model_destroy(model);
    ot_trainer_destroy(trainer);
}

static void averages_are_exported_where_they_are_used(void **state)
{
    ot_optimizer_options rule = dropout_rule("LambOptimizer");
    ot_trainer *trainer;
    ot_model *plain, *averaged;

    (void)state;
    rule.average_decay = 0.5;
    trainer = dropout_trainer_of(&rule, 1);
    for (int64_t call = 1; call <= 5; call++)
        dropout_step(trainer, call, 1);
    need(ot_trainer_export(trainer, &plain));
    need(ot_session_use_averages(ot_trainer_session(trainer), 1));
    need(ot_trainer_export(trainer, &averaged));
    assert_float_equal(run_model(averaged, 77), dropout_step(trainer, 77, 0), 1e-6);
    assert_true(run_model(averaged, 77) != run_model(plain, 77));
    ot_model_destroy(plain);
    ot_model_destroy(averaged);
    ot_trainer_destroy(trainer);
}

static float first_of(const ot_model *model, const char *name)
{
    ot_tensor *tensor;
    float first;

    need(ot_model_get_initializer(model, name, &tensor));
    first = *(const float *)ot_tensor_data_const(tensor);
    ot_tensor_destroy(tensor);
    return first;
}

static void a_file_has_the_graph_as_given_with_values_of_now(void **state)
{
    static const char *const kept[] = {"ratio", "factor", "power"};
    static const char *const changed[] = {"w1", "b1", "scale", "bias", "mean", "var", "w2"};
    ot_trainer *trainer = trained();
    ot_model *given = dropout_model(), *model;
    const char *path = in_folder(state, "trained.onnx");

    need(ot_trainer_save_as_onnx(trainer, path));
    need(ot_trainer_save_as_onnx(trainer, path)); // replaced
    need(ot_model_load(path, NULL, &model));
    assert_int_equal(ot_model_input_count(model), 2);
    assert_int_equal(ot_model_output_count(model), 2);
    for (int i = 0; i < (int)OT_COUNT(kept); i++)
        assert_true(first_of(model, kept[i]) == first_of(given, kept[i]));
    for (int i = 0; i < (int)OT_COUNT(changed); i++)
        assert_true(first_of(model, changed[i]) != first_of(given, changed[i]));
    assert_float_equal(run_model(model, 77), dropout_step(trainer, 77, 0), 1e-6);
    dropout_step(trainer, 6, 1); // the trainer is as usable as before
    ot_model_destroy(model);
    ot_model_destroy(given);
    ot_trainer_destroy(trainer);
}

static void bad_paths_are_errors(void **state)
{
    ot_trainer *trainer = trained();

    assert_int_equal(ot_trainer_save_as_onnx(trainer, in_folder(state, "missing/trained.onnx")),
                     OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "missing"));
    assert_int_equal(ot_trainer_save_as_onnx(trainer, *state), OT_ERR_IO);
    assert_int_not_equal(ot_trainer_save_as_onnx(trainer, ""), OT_OK);
    ot_trainer_destroy(trainer);
}

static void a_trainer_over_artifacts_says_where_its_model_comes_from(void **state)
{
    const ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = linear_model(), *out;
    ot_artifacts *artifacts;
    ot_trainer *trainer;

    (void)state;
    need(ot_artifacts_generate(model, &options, &artifacts));
    need(ot_trainer_create_from_artifacts(artifacts, NULL, NULL, &trainer));
    assert_int_equal(ot_trainer_export(trainer, &out), OT_ERR_STATE);
    assert_null(out);
    assert_non_null(strstr(ot_error_message(), "ot_session_export"));
    ot_trainer_destroy(trainer);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_computes_what_the_trainer_evaluates),
        cmocka_unit_test(what_it_gives_stays_as_it_was_when_training_goes_on),
        cmocka_unit_test(replaced_initializers_are_the_last_in_their_order),
        cmocka_unit_test(averages_are_exported_where_they_are_used),
        TEST_IN_FOLDER(a_file_has_the_graph_as_given_with_values_of_now),
        TEST_IN_FOLDER(bad_paths_are_errors),
        cmocka_unit_test(a_trainer_over_artifacts_says_where_its_model_comes_from),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
