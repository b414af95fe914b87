// SPDX-License-Identifier: Apache-2.0
// Parameters that PyTorch's exporters merge or untie train as PyTorch trains them:
// record_sharing.py says what is in the files.
#include "exporters/losses.h"

#define FOLDER "sharing"

enum { NAME_LENGTH = 128 };

typedef struct one_case {
    char file[NAME_LENGTH], inputs[NAME_LENGTH], labels[NAME_LENGTH], frozen[NAME_LENGTH];
    int n_tensors, n_elements;
    double losses[STEPS], distances[STEPS];
} one_case;

static bool read_case(FILE *file, one_case *c)
{
    const int n_strings = 6;

    if (fscanf(file, "%127s %127s %127s %127s %d %d", c->file, c->inputs, c->labels, c->frozen,
               &c->n_tensors, &c->n_elements) != n_strings)
        return false;
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(fscanf(file, "%lf", &c->losses[i]), 1);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(fscanf(file, "%lf", &c->distances[i]), 1);
    return true;
}

static ot_artifacts *artifacts_of(const one_case *c)
{
    const char *const frozen[] = {c->frozen};
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model = load(FOLDER, c->file);
    ot_artifacts *artifacts;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.name = "SGDOptimizerV2";
    options.frozen = frozen;
    options.n_frozen = strcmp(c->frozen, "-") != 0;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s: %s", c->file, ot_error_message());
    ot_model_destroy(model);
    return artifacts;
}

static ot_tensor *data_of(const char *name)
{
    char file[NAME_LENGTH + 8];

    snprintf(file, sizeof file, "%s.npy", name);
    return array(FOLDER, file);
}

// As many elements train in as many tensors, and the losses are as near PyTorch's in f64 as ten
// times its own in f32, at least to the last bits.
static void check_case(const one_case *c)
{
    const double enough = 10, epsilon = 1.2e-7;
    ot_artifacts *artifacts = artifacts_of(c);
    ot_tensor *x = data_of(c->inputs), *labels = data_of(c->labels);
    double tolerance[STEPS], widest = 0;

    assert_trained(c->file, ot_artifacts_checkpoint(artifacts), c->n_tensors, c->n_elements);
    for (int i = 0; i < STEPS; i++) {
        widest = fmax(widest, fmax(c->distances[i], epsilon * c->losses[i]));
        tolerance[i] = enough * widest;
    }
    assert_losses(artifacts, c->file, x, labels, 0.1, c->losses, tolerance);
    ot_artifacts_destroy(artifacts);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
}

static void parameters_train_as_before_the_export(void **state)
{
    FILE *file = fopen(path_of(FOLDER, "cases.txt"), "r");
    int n = 0;
    one_case c;

    (void)state;
    assert_non_null(file);
    for (; read_case(file, &c); n++)
        check_case(&c);
    fclose(file);
    assert_true(n > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_train_as_before_the_export),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
