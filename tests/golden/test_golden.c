// SPDX-License-Identifier: Apache-2.0
// Ten training steps against PyTorch's recorded ones (generate.py says what is in the files).
//
// In f64, losses and parameters agree within 1e-9. In f32 the error against PyTorch's f64 values is
// at most four times PyTorch's own: for the loss of each step |f32 - f64| / |f64|, for each
// parameter the same of Euclidean norms; where PyTorch hit the f64 value by luck, half a unit in
// the last place counts as its error.
#include "golden_train.h"

static const double f64_tolerance = 1e-9, f32_factor = 4.0, f32_half_unit = 0x1p-24;

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
    ot_artifacts *artifacts = generate(name, kind, dtype, 0);
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

// ---- tests: the state is the model's name ----

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
