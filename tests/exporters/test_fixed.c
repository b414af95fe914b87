// SPDX-License-Identifier: Apache-2.0
// Models that PyTorch's exporters wrote for a batch of 1 or 2 rows, with 5: record_fixed.py says
// what is in the files.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/onnxtrain.h"

enum { STEPS = 3, MAX_NAME = 64, MAX_PATH = 1024 };

// In f32, of numbers around 1.
static const double tolerance = 2e-6;
static const float learning_rate = 0.05F;

static const char *const models[] = {"perceptron", "images", "token", "encoder",
                                     "writer",     "lstm",   "gru",   "windows"};
static const char *const kinds[] = {"classic_1", "classic_2", "newer_1", "newer_2"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *path_of(const char *model, const char *what)
{
    static char path[MAX_PATH];

    snprintf(path, sizeof path, OT_TEST_DIR "/fixed/%s_%s", model, what);
    return path;
}

static ot_tensor *array(const char *model, const char *what)
{
    ot_dataset *data;
    ot_batches *batches;
    ot_binding binding = {.input = "array", .scale = 1, .n_channels = 1};
    const char *path = path_of(model, what);
    const ot_tensor *batch;
    ot_tensor *copy;

    assert_int_equal(ot_dataset_open(&path, 1, NULL, &data), OT_OK);
    assert_int_equal(ot_dataset_field_info(data, 0, &binding.dtype, &binding.shape), OT_OK);
    binding.fields = ot_dataset_field_name(data, 0);
    assert_int_equal(ot_batches_create(data, &binding, 1, NULL, &batches), OT_OK);
    assert_int_equal(ot_batches_next(batches, &batch, 1), OT_OK);
    assert_int_equal(ot_tensor_clone(batch, &copy), OT_OK);
    ot_batches_destroy(batches);
    ot_dataset_destroy(data);
    return copy;
}

static ot_model *load(const char *model, const char *kind)
{
    char file[MAX_NAME];
    ot_model *loaded;

    snprintf(file, sizeof file, "%s.onnx", kind);
    if (ot_model_load(path_of(model, file), NULL, &loaded) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    return loaded;
}

static void assert_near(const char *model, const char *kind, double found, double expected)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s_%s: %.9g, expected %.9g", model, kind, found, expected);
}

// ---- outputs ----

static void check_outputs(const char *model, const char *kind)
{
    ot_model *fixed = load(model, kind), *opened;
    ot_tensor *x = array(model, "x.npy"), *expected = array(model, "y.npy"), *y = NULL;
    const double *wanted = ot_tensor_data(expected);
    const float *found;

    if (ot_model_prepare_training(fixed, NULL, &opened, NULL) != OT_OK ||
        ot_model_run(opened, NULL, (const ot_tensor *const[]){x}, 1, &y, 1) != OT_OK)
        fail_msg("%s_%s: %s", model, kind, ot_error_message());
    assert_int_equal(ot_tensor_count(y), ot_tensor_count(expected));
    found = ot_tensor_data(y);
    for (int64_t i = 0; i < ot_tensor_count(y); i++)
        assert_near(model, kind, found[i], wanted[i]);
    ot_tensor_destroy(x);
    ot_tensor_destroy(y);
    ot_tensor_destroy(expected);
    ot_model_destroy(opened);
    ot_model_destroy(fixed);
}

static void five_rows_give_what_pytorch_gives(void **state)
{
    (void)state;
    for (size_t m = 0; m < COUNT(models); m++)
        for (size_t k = 0; k < COUNT(kinds); k++)
            check_outputs(models[m], kinds[k]);
}

// ---- losses ----

static double train_step(ot_session *session, const ot_tensor *x, const ot_tensor *zeros)
{
    const ot_tensor *const inputs[] = {x, zeros};
    ot_tensor *loss = NULL;
    double value;

    assert_int_equal(ot_session_train_step(session, inputs, 2, &loss, 1), OT_OK);
    assert_int_equal(ot_session_optimizer_step(session), OT_OK);
    ot_session_reset_gradients(session);
    value = (double)*(const float *)ot_tensor_data(loss);
    ot_tensor_destroy(loss);
    return value;
}

static ot_tensor *zeros_like_outputs(const char *model)
{
    ot_tensor *y = array(model, "y.npy"), *zeros;
    ot_dtype dtype = OT_F32;
    ot_shape shape = ot_tensor_shape(y) ? *ot_tensor_shape(y) : (ot_shape){0};

    assert_int_equal(ot_tensor_create(dtype, &shape, &zeros), OT_OK);
    memset(ot_tensor_data(zeros), 0, (size_t)ot_tensor_count(zeros) * sizeof(float));
    ot_tensor_destroy(y);
    return zeros;
}

static void check_losses(const char *model, const char *kind)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *fixed = load(model, kind);
    ot_tensor *x = array(model, "x.npy"), *zeros = zeros_like_outputs(model),
              *expected = array(model, "losses.npy");
    ot_artifacts *artifacts;
    ot_session *session = NULL;

    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.name = "SGDOptimizerV2";
    if (ot_artifacts_generate(fixed, &options, &artifacts) != OT_OK ||
        ot_session_create_from_artifacts(artifacts, NULL, &session) != OT_OK)
        fail_msg("%s_%s: %s", model, kind, ot_error_message());
    assert_int_equal(ot_session_set_learning_rate(session, learning_rate), OT_OK);
    for (int step = 0; step < STEPS; step++)
        assert_near(model, kind, train_step(session, x, zeros),
                    ((const double *)ot_tensor_data(expected))[step]);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    ot_tensor_destroy(x);
    ot_tensor_destroy(zeros);
    ot_tensor_destroy(expected);
    ot_model_destroy(fixed);
}

static void training_on_five_rows_loses_what_pytorch_loses(void **state)
{
    (void)state;
    for (size_t m = 0; m < COUNT(models); m++)
        for (size_t k = 0; k < COUNT(kinds); k++)
            check_losses(models[m], kinds[k]);
}

// ---- what is gone ----

static void parameters_that_the_exporter_computed_away_are_named_with_the_remedy(void **state)
{
    ot_model *model = load("lstm", "newer_1");
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    int n = 0;

    (void)state;
    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    assert_int_equal(ot_artifacts_generate(model, &options, &artifacts), OT_OK);
    for (int i = 0; i < ot_artifacts_note_count(artifacts); i++) {
        const char *note = ot_artifacts_note(artifacts, i, NULL);

        n += strstr(note, "gone: computed away by the exporter, or dropped by it as zeros; to "
                          "train all, export with torch.onnx.export(model.train(), ..., "
                          "optimize=False)") != NULL;
    }
    assert_int_equal(n, 1);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_rows_give_what_pytorch_gives),
        cmocka_unit_test(training_on_five_rows_loses_what_pytorch_loses),
        cmocka_unit_test(parameters_that_the_exporter_computed_away_are_named_with_the_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
