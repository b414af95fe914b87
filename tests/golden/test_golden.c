// SPDX-License-Identifier: Apache-2.0
// Ten training steps against PyTorch's recorded ones (generate.py says what is in the files).
//
// In f64, losses and parameters agree within 1e-9. In f32 the error against PyTorch's f64 values is
// at most four times PyTorch's own: for the loss of each step |f32 - f64| / |f64|, for each
// parameter the same of Euclidean norms; where PyTorch hit the f64 value by luck, half a unit in
// the last place counts as its error.
//
// In bf16 and f16 the loss of each step is off by at most so many units of the type, relative to
// the loss: rounding errors of the layers add up, and ten steps carry them on. Adam divides each
// gradient by its own size, so that those no larger than their rounding error count as much as
// others.
#include "golden.h"

enum { STEPS = 10 };
static const double f64_tolerance = 1e-9, f32_factor = 4.0, f32_half_unit = 0x1p-24;
static const double bf16_unit = 0x1p-8, f16_unit = 0x1p-11, reduced_bound = 8.0, adam_bound = 32.0;

static const struct {
    const char *name;
    const char *optimizer;
    int adam_mode;
    double learning_rate;
} kinds[] = {
    {"sgd", "SGDOptimizerV2", 0, 0.1},
    {"momentum", "SGDOptimizer", 0, 0.02},
    {"adamw0", "AdamWOptimizer", 0, 0.01},
    {"adamw1", "AdamWOptimizer", 1, 0.01},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

// ---- training ----

static ot_artifacts *generate(const char *name, int kind, ot_dtype dtype)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    const ot_hyper adamw[] = {{"weight_decay", 0.01}, {"adam_mode", kinds[kind].adam_mode}};
    const ot_hyper momentum[] = {{"weight_decay", 0.01}, {"nesterov", 1}, {"momentum", 0.9}};
    const ot_hyper *hyper = strcmp(kinds[kind].optimizer, "AdamWOptimizer") == 0 ? adamw : momentum;
    ot_model *model = load_model(name, dtype);
    ot_artifacts *artifacts;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.name = kinds[kind].optimizer;
    optimizer.hyper = hyper;
    if (strcmp(optimizer.name, "SGDOptimizerV2") != 0)
        optimizer.n_hyper = hyper == adamw ? 2 : 3;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s: %s", name, ot_error_message());
    ot_model_destroy(model);
    return artifacts;
}

static double train_step(ot_session *session, int step, const char *recorded)
{
    const int64_t rows = header_number(recorded, "batch ");
    const uint32_t classes = (uint32_t)header_number(recorded, "classes ");
    const uint32_t words = (uint32_t)header_number(recorded, "words ");
    ot_tensor *x = make_input(session, 0, step, rows, words);
    ot_tensor *labels = make_input(session, 1, step, rows, classes), *loss = NULL;
    double value;

    if (ot_session_train_step(session, (const ot_tensor *const[]){x, labels}, 2, &loss, 1) !=
            OT_OK ||
        ot_session_optimizer_step(session) != OT_OK)
        fail_msg("step %d: %s", step, ot_error_message());
    ot_session_reset_gradients(session);
    value = element(loss, 0);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
    ot_tensor_destroy(loss);
    return value;
}

// ---- comparing ----

static void compare(const char *what, const char *name, ot_dtype dtype, double distance,
                    double size, double error_of_pytorch)
{
    const double allowed =
        dtype == OT_F64 ? f64_tolerance : f32_factor * fmax(error_of_pytorch, f32_half_unit);

    // Not >: NaN must fail.
    if (!(distance <= allowed * size))
        fail_msg("%s, %s, %s: off by %.3g, allowed are %.3g", what, name,
                 dtype == OT_F64 ? "f64" : "f32", distance / size, allowed);
}

static void compare_parameter(const char *recorded, const char *kind, const char *name,
                              const ot_tensor *found)
{
    const int64_t count = ot_tensor_count(found);
    double *expected = malloc(sizeof(double) * (size_t)count), error, distance = 0, size = 0;
    const char *at = find_line(recorded, kind, name);

    at = read_numbers(read_numbers(at, &error, 1), expected, count);
    assert_int_equal(*at, '\n');
    for (int64_t i = 0; i < count; i++) {
        const double difference = element(found, i) - expected[i];

        distance += difference * difference;
        size += expected[i] * expected[i];
    }
    compare(kind, name, ot_tensor_dtype(found), sqrt(distance), sqrt(size), error);
    free(expected);
}

static void run_trajectory(const char *name, int kind, ot_dtype dtype, ot_session_options options)
{
    char *recorded = read_text(name, ".txt");
    ot_artifacts *artifacts = generate(name, kind, dtype);
    ot_checkpoint *checkpoint = ot_artifacts_checkpoint(artifacts);
    ot_session *session;
    double errors[STEPS], losses[STEPS];
    const char *at = find_line(recorded, kinds[kind].name, "loss");

    read_numbers(read_numbers(at, errors, STEPS), losses, STEPS);
    options.n_threads = 2;
    if (ot_session_create_from_artifacts(artifacts, &options, &session) != OT_OK)
        fail_msg("%s: %s", name, ot_error_message());
    assert_int_equal(ot_session_set_learning_rate(session, kinds[kind].learning_rate), OT_OK);
    for (int step = 0; step < STEPS; step++) {
        char label[NAME_SIZE];

        snprintf(label, sizeof label, "loss of step %d", step);
        compare(kinds[kind].name, label, dtype,
                fabs(train_step(session, step, recorded) - losses[step]), fabs(losses[step]),
                errors[step]);
    }
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *parameter = ot_checkpoint_parameter_name(checkpoint, i);
        ot_tensor *value;

        assert_int_equal(ot_checkpoint_get_parameter(checkpoint, parameter, &value), OT_OK);
        compare_parameter(recorded, kinds[kind].name, parameter, value);
        ot_tensor_destroy(value);
    }
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    free(recorded);
}

static void run_reduced(const char *name, int kind, ot_precision precision)
{
    const double unit = precision == OT_PRECISION_BF16 ? bf16_unit : f16_unit;
    const bool is_adam = strcmp(kinds[kind].optimizer, "AdamWOptimizer") == 0;
    const double bound = (is_adam ? adam_bound : reduced_bound) * unit;
    char *recorded = read_text(name, ".txt");
    ot_artifacts *artifacts = generate(name, kind, OT_F32);
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_session *session;
    double losses[STEPS];

    read_numbers(read_numbers(find_line(recorded, kinds[kind].name, "loss"), losses, STEPS), losses,
                 STEPS);
    options.precision = precision;
    options.n_threads = 2;
    if (ot_session_create_from_artifacts(artifacts, &options, &session) != OT_OK)
        fail_msg("%s: %s", name, ot_error_message());
    assert_int_equal(ot_session_set_learning_rate(session, kinds[kind].learning_rate), OT_OK);
    for (int step = 0; step < STEPS; step++) {
        const double found = train_step(session, step, recorded);

        if (!(fabs(found - losses[step]) <= bound * fabs(losses[step])))
            fail_msg("%s, %s, step %d: the loss is %.6g, in f64 %.6g", name, kinds[kind].name, step,
                     found, losses[step]);
    }
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    free(recorded);
}

// ---- tests: the state is the model's name ----

static void stays_near_in_bf16(void **state)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        run_reduced(*state, kind, OT_PRECISION_BF16);
}

static void stays_near_in_f16(void **state)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        run_reduced(*state, kind, OT_PRECISION_F16);
}

static void follows_pytorch_in_f64(void **state)
{
    const ot_session_options options = OT_SESSION_OPTIONS_INIT;

    for (int kind = 0; kind < N_KINDS; kind++)
        run_trajectory(*state, kind, OT_F64, options);
}

static void is_as_exact_as_pytorch_in_f32(void **state)
{
    const ot_session_options options = OT_SESSION_OPTIONS_INIT;

    for (int kind = 0; kind < N_KINDS; kind++)
        run_trajectory(*state, kind, OT_F32, options);
}

static void is_as_exact_as_pytorch_in_f32_with_reference_kernels(void **state)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    options.reference_kernels = 1;
    for (int kind = 0; kind < N_KINDS; kind++)
        run_trajectory(*state, kind, OT_F32, options);
}

static void is_as_exact_as_pytorch_in_f32_when_reproducible(void **state)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    options.reproducible = 1;
    for (int kind = 0; kind < N_KINDS; kind++)
        run_trajectory(*state, kind, OT_F32, options);
}

#define TESTS_OF(model)                                                                            \
    {#model " follows PyTorch in f64", follows_pytorch_in_f64, NULL, NULL, (void *)#model},        \
        {#model " is as exact as PyTorch in f32", is_as_exact_as_pytorch_in_f32, NULL, NULL,       \
         (void *)#model},                                                                          \
        {#model " stays near in bf16", stays_near_in_bf16, NULL, NULL, (void *)#model},            \
        {#model " stays near in f16", stays_near_in_f16, NULL, NULL, (void *)#model},              \
        {#model " is as exact as PyTorch in f32 when reproducible",                                \
         is_as_exact_as_pytorch_in_f32_when_reproducible, NULL, NULL, (void *)#model},             \
    {                                                                                              \
#model " is as exact as PyTorch in f32 with reference kernels",                            \
            is_as_exact_as_pytorch_in_f32_with_reference_kernels, NULL, NULL, (void *)#model       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TESTS_OF(mlp),  TESTS_OF(lenet), TESTS_OF(resnet),    TESTS_OF(transformer),
        TESTS_OF(lstm), TESTS_OF(gru),   TESTS_OF(quantized),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
