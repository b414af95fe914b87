// SPDX-License-Identifier: Apache-2.0
// Whole models as PyTorch exports them lose what PyTorch loses: record.py says what is in the
// files.
#include "exporters/losses.h"

#define FOLDER "recorded"

enum { NAME_LENGTH = 64, MAX_INPUTS = 2 };

typedef struct one_case {
    char model[NAME_LENGTH], loss[NAME_LENGTH];
    int n_inputs, class_axis, n_tensors, n_elements;
    double rate, losses[STEPS], distances[STEPS];
} one_case;

static bool read_case(FILE *file, one_case *c)
{
    const int n_words = 7;

    if (fscanf(file, "%63s %d %63s %d %lf %d %d", c->model, &c->n_inputs, c->loss, &c->class_axis,
               &c->rate, &c->n_tensors, &c->n_elements) != n_words)
        return false;
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(fscanf(file, "%lf", &c->losses[i]), 1);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(fscanf(file, "%lf", &c->distances[i]), 1);
    return true;
}

static ot_artifacts *artifacts_of(const one_case *c)
{
    char file[NAME_LENGTH + 8];
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    snprintf(file, sizeof file, "%s.onnx", c->model);
    model = load(FOLDER, file);
    loss.loss = strcmp(c->loss, "mse") == 0 ? OT_LOSS_MSE : OT_LOSS_CROSS_ENTROPY;
    loss.class_axis = c->class_axis;
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.name = "SGDOptimizerV2";
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    ot_model_destroy(model);
    return artifacts;
}

static ot_tensor *array_of(const one_case *c, const char *what)
{
    char file[2 * NAME_LENGTH];

    snprintf(file, sizeof file, "%s_%s.npy", c->model, what);
    return array(FOLDER, file);
}

// The losses are as near PyTorch's in f64 as ten times its own in f32, at least to the last bits.
static void check_case(const one_case *c)
{
    const double enough = 10, epsilon = 1.2e-7;
    ot_artifacts *artifacts = artifacts_of(c);
    ot_tensor *batch[MAX_INPUTS + 1];
    double tolerance[STEPS], widest = 0;

    assert_true(c->n_inputs >= 1 && c->n_inputs <= MAX_INPUTS);
    for (int i = 0; i < c->n_inputs; i++)
        batch[i] = array_of(c, i == 0 ? "x0" : "x1");
    batch[c->n_inputs] = array_of(c, "labels");
    assert_trained(c->model, ot_artifacts_checkpoint(artifacts), c->n_tensors, c->n_elements);
    for (int i = 0; i < STEPS; i++) {
        widest = fmax(widest, fmax(c->distances[i], epsilon * c->losses[i]));
        tolerance[i] = enough * widest;
    }
    assert_losses_of(artifacts, c->model, (const ot_tensor *const *)batch, c->n_inputs + 1, c->rate,
                     c->losses, tolerance);
    ot_artifacts_destroy(artifacts);
    for (int i = 0; i <= c->n_inputs; i++)
        ot_tensor_destroy(batch[i]);
}

static void models_lose_what_they_lose_in_pytorch(void **state)
{
    FILE *file = fopen(path_of(FOLDER, "cases.txt"), "r");
    int n = 0;
    one_case c;

    (void)state;
    assert_non_null(file);
    for (; read_case(file, &c); n++)
        check_case(&c);
    fclose(file);
    assert_int_equal(n, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_lose_what_they_lose_in_pytorch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
