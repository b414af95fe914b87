// SPDX-License-Identifier: Apache-2.0
// Mixed precision against PyTorch's: training in bf16 and f16 is about as far from f64 as PyTorch
// is in the same type (generate_reduced.py says what is recorded).
//
// Both sides round about as often, but at other places and in sums of another order, so that their
// errors are independent samples of about the same size. Compared are therefore root mean squares:
// for losses over RUNS * STEPS steps, for a parameter over its elements and the runs. PyTorch's
// error is the larger one of its two ways: where autocast keeps a sum of layers in f32 we round it,
// as its casts do.
//
// - A tensor. The runs are independent, the steps of a run and the elements of a small parameter
//   are not, which leaves RUNS degrees of freedom on each side. With (4, 4) of them the 99th
//   percentile of the ratio of two mean squares is 16: `tensor_factor` is its root.
// - A decision may fall the other way for one rounding, of a maximum or at 0 of a Relu, and with
//   it all that follows: errors of a run then have no such tail that samples tell of. So the run
//   furthest off does not count on our side; what is wrong is wrong in all of them.
// - Adam moves an element by the learning rate whatever the size of its gradient, so that one
//   whose gradient is smaller than its rounding error may go the other way, in one run.
// - All tensors of a model with one optimizer. Their errors depend on one another, but not all in
//   one direction: the geometric mean of the ratios is at most `model_factor`.
#include "golden_train.h"

enum { RUNS = 4, MAX_PARAMETERS = 40 };
static const double f64_tolerance = 1e-9, tensor_factor = 4.0, model_factor = 2.0;
static const double loss_scale = 1024.0;

static const struct {
    const char *name;
    ot_precision precision;
} types[] = {{"bf16", OT_PRECISION_BF16}, {"f16", OT_PRECISION_F16}};
enum { N_TYPES = sizeof types / sizeof types[0] };

// ---- trajectories ----

typedef struct trajectory {
    double losses[STEPS];
    int n_parameters;
    char names[MAX_PARAMETERS][NAME_SIZE];
    ot_tensor *parameters[MAX_PARAMETERS];
} trajectory;

static trajectory exact[RUNS], reduced[RUNS];

static void take_parameters(const ot_checkpoint *checkpoint, trajectory *t)
{
    t->n_parameters = ot_checkpoint_parameter_count(checkpoint);
    assert_in_range(t->n_parameters, 1, MAX_PARAMETERS);
    for (int i = 0; i < t->n_parameters; i++) {
        snprintf(t->names[i], NAME_SIZE, "%s", ot_checkpoint_parameter_name(checkpoint, i));
        assert_int_equal(ot_checkpoint_get_parameter(checkpoint, t->names[i], &t->parameters[i]),
                         OT_OK);
    }
}

static void run(const char *model, int kind, int which, ot_dtype dtype, ot_precision precision,
                trajectory *t)
{
    const int scaled = precision == OT_PRECISION_F16;
    char *recorded = read_text(model, ".txt");
    ot_artifacts *artifacts = generate(model, kind, dtype, scaled);
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_session *session;

    options.precision = precision;
    options.n_threads = 2;
    if (ot_session_create_from_artifacts(artifacts, &options, &session) != OT_OK)
        fail_msg("%s: %s", model, ot_error_message());
    if (scaled)
        assert_int_equal(ot_session_set_loss_scale(session, loss_scale), OT_OK);
    assert_int_equal(ot_session_set_learning_rate(session, kinds[kind].learning_rate), OT_OK);
    for (int step = 0; step < STEPS; step++)
        t->losses[step] = train_step(session, which * STEPS + step, recorded);
    take_parameters(ot_artifacts_checkpoint(artifacts), t);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    free(recorded);
}

static void trajectory_deinit(trajectory *t)
{
    for (int i = 0; i < t->n_parameters; i++)
        ot_tensor_destroy(t->parameters[i]);
}

// ---- distances ----

// Of the mean squares of the runs, without that of the run furthest off.
static double without_furthest(const double squares[RUNS])
{
    double sum = 0, furthest = 0;

    for (int r = 0; r < RUNS; r++) {
        sum += squares[r];
        furthest = fmax(furthest, squares[r]);
    }
    return sqrt((sum - furthest) / (RUNS - 1));
}

static double distance_of_losses(void)
{
    double squares[RUNS] = {0};

    for (int r = 0; r < RUNS; r++)
        for (int s = 0; s < STEPS; s++) {
            const double off = reduced[r].losses[s] / exact[r].losses[s] - 1;

            squares[r] += off * off / STEPS;
        }
    return without_furthest(squares);
}

static double distance_of_parameter(int i)
{
    double squares[RUNS] = {0};

    for (int r = 0; r < RUNS; r++) {
        double off = 0, size = 0;

        for (int64_t k = 0; k < ot_tensor_count(exact[r].parameters[i]); k++) {
            const double want = element(exact[r].parameters[i], k);
            const double difference = element(reduced[r].parameters[i], k) - want;

            off += difference * difference;
            size += want * want;
        }
        squares[r] = off / size;
    }
    return without_furthest(squares);
}

static double recorded_error(const char *recorded, const char *kind, const char *name)
{
    double autocast_and_casts[2];

    read_numbers(find_line(recorded, kind, name), autocast_and_casts, 2);
    return fmax(autocast_and_casts[0], autocast_and_casts[1]);
}

// The logarithm of the ratio of our distance to PyTorch's; `by_chance` is allowed beside it.
static double compare(const char *recorded, const char *kind, const char *name, double distance,
                      double by_chance)
{
    const double error = recorded_error(recorded, kind, name);

    // Not >: NaN must fail.
    if (!(distance <= hypot(tensor_factor * error, by_chance)))
        fail_msg("%s, %s: off by %.3g, PyTorch by %.3g", kind, name, distance, error);
    return log(distance / error);
}

static double size_of_parameter(int i)
{
    double sum = 0;

    for (int r = 0; r < RUNS; r++)
        for (int64_t k = 0; k < ot_tensor_count(exact[r].parameters[i]); k++)
            sum += element(exact[r].parameters[i], k) * element(exact[r].parameters[i], k);
    return sqrt(sum);
}

static void compare_all(const char *recorded, const char *kind, double one_element)
{
    const int n = exact[0].n_parameters;
    double sum = compare(recorded, kind, "loss", distance_of_losses(), 0), mean;

    for (int i = 0; i < n; i++)
        sum += compare(recorded, kind, exact[0].names[i], distance_of_parameter(i),
                       one_element / size_of_parameter(i));
    mean = exp(sum / (n + 1));
    if (mean > model_factor)
        fail_msg("%s: on average %.3g times as far off as PyTorch", kind, mean);
}

// ---- tests: the state is the model's name ----

static void run_exact(const char *recorded, const char *model, int kind)
{
    double losses[RUNS * STEPS];

    read_numbers(find_line(recorded, model, kinds[kind].name) + strlen("loss "), losses,
                 RUNS * STEPS);
    for (int r = 0; r < RUNS; r++) {
        run(model, kind, r, OT_F64, OT_PRECISION_F32, &exact[r]);
        for (int s = 0; s < STEPS; s++)
            if (!(fabs(exact[r].losses[s] / losses[r * STEPS + s] - 1) <= f64_tolerance))
                fail_msg("%s, %s in f64, run %d, step %d: the loss is %.12g, PyTorch's %.12g",
                         model, kinds[kind].name, r, s, exact[r].losses[s], losses[r * STEPS + s]);
    }
}

static void run_reduced(const char *recorded, const char *model, int kind, int type)
{
    const bool is_adam = strcmp(kinds[kind].optimizer, "AdamWOptimizer") == 0;
    char line[2 * NAME_SIZE];

    for (int r = 0; r < RUNS; r++)
        run(model, kind, r, OT_F32, types[type].precision, &reduced[r]);
    snprintf(line, sizeof line, "%s.%s %s", model, types[type].name, kinds[kind].name);
    compare_all(recorded, line, is_adam ? 2 * kinds[kind].learning_rate : 0);
    for (int r = 0; r < RUNS; r++)
        trajectory_deinit(&reduced[r]);
}

static void is_as_exact_as_pytorch(void **state)
{
    char *recorded = read_text("reduced", ".txt");

    for (int kind = 0; kind < N_KINDS; kind++) {
        run_exact(recorded, *state, kind);
        for (int type = 0; type < N_TYPES; type++)
            run_reduced(recorded, *state, kind, type);
        for (int r = 0; r < RUNS; r++)
            trajectory_deinit(&exact[r]);
    }
    free(recorded);
}

#define TEST_OF(model)                                                                             \
    {                                                                                              \
#model " is as exact as PyTorch in bf16 and f16", is_as_exact_as_pytorch, NULL, NULL,      \
            (void *)#model                                                                         \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(mlp),  TEST_OF(lenet), TEST_OF(resnet),    TEST_OF(transformer),
        TEST_OF(lstm), TEST_OF(gru),   TEST_OF(quantized),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
