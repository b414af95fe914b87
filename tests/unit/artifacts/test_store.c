// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <unistd.h>

#include "artifacts/artifacts.h"
#include "evaluate.h"

static char folder[] = "/tmp/onnxtrain-store-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {
        "training_model.onnx", "eval_model.onnx",    "optimizer_model.onnx", "checkpoint",
        "nominal_checkpoint",  "training_model.ort", "eval_model.ort",       "optimizer_model.ort"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        char path[256];

        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/net-%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static ot_artifacts *generate(const char *optimizer)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options rule = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[N, 2] x) => (float[N, 2] y)"
                                "<float[2] w = {1, 2}, float[2] a = {3, 4}>"
                                "{ m = Mul(x, w) y = Add(m, a) }");
    ot_artifacts *artifacts;

    options.optimizer = &rule;
    rule.name = optimizer;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static void what_is_saved_is_loaded(void **state)
{
    ot_artifacts *saved = generate("AdamWOptimizer"), *loaded;
    ot__buf before = {0}, after = {0};
    ot_tensor *value;

    (void)state;
    assert_ok(ot_artifacts_save(saved, folder, "net-"));
    assert_ok(ot_artifacts_load(folder, "net-", &loaded));
    assert_ok(ot__onnx_write(saved->training, &before));
    assert_ok(ot__onnx_write(loaded->training, &after));
    assert_int_equal(before.length, after.length);
    assert_memory_equal(before.data, after.data, before.length);
    assert_non_null(ot_artifacts_eval_model(loaded));
    assert_non_null(ot_artifacts_optimizer_model(loaded));
    assert_int_equal(loaded->n_parameters, 2);
    assert_string_equal(loaded->parameter_order[0], "w"); // the model's order, not the names'
    assert_ok(ot_checkpoint_get_parameter(ot_artifacts_checkpoint(loaded), "a", &value));
    assert_true(ot__tensor_get_f64(value, 1) == 4.0);
    ot_tensor_destroy(value);
    ot__buf_deinit(&before);
    ot__buf_deinit(&after);
    ot_artifacts_destroy(saved);
    ot_artifacts_destroy(loaded);
}

static void the_optimizer_model_may_be_absent(void **state)
{
    ot_artifacts *saved = generate(NULL), *loaded;

    (void)state;
    assert_ok(ot_artifacts_save(saved, folder, NULL));
    assert_ok(ot_artifacts_load(folder, NULL, &loaded));
    assert_null(ot_artifacts_optimizer_model(loaded));
    ot_artifacts_destroy(saved);
    ot_artifacts_destroy(loaded);
}

static void a_nominal_checkpoint_has_names_and_types_only(void **state)
{
    ot_artifacts *saved = generate(NULL);
    char path[256];
    ot_checkpoint *nominal;
    ot_tensor *value;

    (void)state;
    assert_ok(ot_artifacts_save_nominal(saved, folder, "net-"));
    snprintf(path, sizeof path, "%s/net-nominal_checkpoint", folder);
    assert_ok(ot_checkpoint_load(path, &nominal));
    assert_int_equal(ot_checkpoint_parameter_count(nominal), 2);
    assert_int_equal(ot_checkpoint_parameter_trainable(nominal, "w"), 1);
    assert_int_equal(ot_checkpoint_get_parameter(nominal, "w", &value), OT_ERR_STATE);
    ot_checkpoint_destroy(nominal);
    ot_artifacts_destroy(saved);
}

static void a_checkpoint_that_is_taken_outlives_the_artifacts(void **state)
{
    ot_artifacts *artifacts = generate(NULL);
    ot_checkpoint *taken = ot_artifacts_take_checkpoint(artifacts);

    (void)state;
    assert_null(ot_artifacts_checkpoint(artifacts));
    assert_null(ot_artifacts_take_checkpoint(artifacts));
    ot_artifacts_destroy(artifacts);
    assert_int_equal(ot_checkpoint_parameter_count(taken), 2);
    ot_checkpoint_destroy(taken);
}

static void remove_file(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static void ort_files_stand_beside_the_others_and_in_for_them(void **state)
{
    ot_artifacts *saved = generate("AdamWOptimizer"), *loaded;

    (void)state;
    saved->ort_format = true; // as the option of that name sets it
    assert_ok(ot_artifacts_save(saved, folder, "net-"));
    remove_file("net-training_model.onnx");
    remove_file("net-eval_model.onnx");
    remove_file("net-optimizer_model.onnx");
    assert_ok(ot_artifacts_load(folder, "net-", &loaded));
    assert_int_equal(ot_model_node_count(ot_artifacts_training_model(loaded)),
                     ot_model_node_count(ot_artifacts_training_model(saved)));
    assert_non_null(ot_artifacts_eval_model(loaded));
    assert_string_equal(ot_model_node_operator(ot_artifacts_optimizer_model(loaded), 0),
                        "com.microsoft.AdamWOptimizer");
    assert_int_equal(loaded->n_parameters, 2);
    ot_artifacts_destroy(saved);
    ot_artifacts_destroy(loaded);
}

static void what_has_no_ort_form_is_refused_before_anything_is_written(void **state)
{
    ot_artifacts *saved = generate("SGDOptimizer");
    char path[256];

    (void)state;
    saved->ort_format = true;
    assert_fails(ot_artifacts_save(saved, folder, "momentum-"), OT_ERR_UNSUPPORTED,
                 "no kernel for ai.onnxtrain.SGDOptimizer");
    snprintf(path, sizeof path, "%s/momentum-training_model.onnx", folder);
    assert_false(ot__path_exists(path));
    remove_file("momentum-training_model.ort");
    remove_file("momentum-eval_model.ort");
    ot_artifacts_destroy(saved);
}

static void an_optimizer_model_of_ones_own_is_saved(void **state)
{
    ot_artifacts *saved = generate(NULL), *other = generate("SGDOptimizerV2"), *loaded;

    (void)state;
    assert_ok(ot_artifacts_set_optimizer_model(saved, ot_artifacts_optimizer_model(other)));
    ot_artifacts_destroy(other); // what was set is a copy
    assert_ok(ot_artifacts_save(saved, folder, "net-"));
    assert_ok(ot_artifacts_load(folder, "net-", &loaded));
    assert_string_equal(ot_model_node_operator(ot_artifacts_optimizer_model(loaded), 0),
                        "com.microsoft.SGDOptimizerV2");
    ot_artifacts_destroy(loaded);
    assert_ok(ot_artifacts_set_optimizer_model(saved, NULL));
    assert_null(ot_artifacts_optimizer_model(saved));
    ot_artifacts_destroy(saved);
}

static void a_missing_training_model_is_named(void **state)
{
    ot_artifacts *loaded;

    (void)state;
    assert_fails(ot_artifacts_load(folder, "other-", &loaded), OT_ERR_IO,
                 "other-training_model.onnx");
    assert_null(loaded);
}

static void a_prefix_is_no_path(void **state)
{
    ot_artifacts *loaded;

    (void)state;
    assert_fails(ot_artifacts_load(folder, "../", &loaded), OT_ERR_INVALID, "prefix '../'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(the_optimizer_model_may_be_absent),
        cmocka_unit_test(a_nominal_checkpoint_has_names_and_types_only),
        cmocka_unit_test(a_checkpoint_that_is_taken_outlives_the_artifacts),
        cmocka_unit_test(an_optimizer_model_of_ones_own_is_saved),
        cmocka_unit_test(ort_files_stand_beside_the_others_and_in_for_them),
        cmocka_unit_test(what_has_no_ort_form_is_refused_before_anything_is_written),
        cmocka_unit_test(a_missing_training_model_is_named),
        cmocka_unit_test(a_prefix_is_no_path),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
