// SPDX-License-Identifier: Apache-2.0
// Artifacts in which inputs of the model have gradients, as requires_grad of ONNX Runtime's
// generate_artifacts may name them.
#include <math.h>
#include <stdlib.h>

#include "artifacts/artifacts.h"
#include "evaluate.h"
#include "onnxtrain/session.h"

enum { ROWS = 2, IN = 2, OUT = 3 };

// loss = mean((x w - target)^2), so dx = 2 / (rows * OUT) * (x w - target) w^T
static const char forward_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "f (double[n,2] x) => (double[n,3] y)\n"
    "<double[2,3] w = {0.5, -1, 2, 1.5, 0.25, -0.75}, double[3] b = {0, 0, 0}>\n"
    "{ p = MatMul (x, w)  y = Add (p, b) }";
static const double w[IN][OUT] = {{0.5, -1, 2}, {1.5, 0.25, -0.75}};
static const double x_data[ROWS + 1][IN] = {{1, -2}, {0.5, 3}, {-1, 0.25}};
static const double target_data[ROWS + 1][OUT] = {{1, 0, -1}, {0.5, 2, 0}, {0, 0, 1}};

static void residual(int rows, double r[][OUT])
{
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < OUT; k++)
            r[i][k] = (x_data[i][0] * w[0][k] + x_data[i][1] * w[1][k] - target_data[i][k]) * 2 /
                      (rows * OUT);
}

typedef struct fixture {
    ot_model *forward;
    ot_artifacts *artifacts;
    ot_session *session;
} fixture;

static int setup(void **state)
{
    *state = calloc(1, sizeof(fixture));
    ((fixture *)*state)->forward = read_text(forward_text);
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    ot_session_destroy(f->session);
    ot_artifacts_destroy(f->artifacts);
    ot_model_destroy(f->forward);
    free(f);
    return 0;
}

static const ot_loss_options mse = {.size = sizeof mse, .loss = OT_LOSS_MSE, .factor = 1};
static const ot_optimizer_options no_optimizer = {.size = sizeof no_optimizer, .name = NULL};

static ot_artifacts_options options_for(const char *const *trainable, int n)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    options.losses = &mse;
    options.n_losses = 1;
    options.trainable = trainable;
    options.n_trainable = n;
    options.optimizer = &no_optimizer;
    options.input_gradients = 1;
    return options;
}

static void open(fixture *f, const char *const *trainable, int n)
{
    const ot_artifacts_options options = options_for(trainable, n);

    assert_ok(ot_artifacts_generate(f->forward, &options, &f->artifacts));
    assert_ok(ot_session_create_from_artifacts(f->artifacts, NULL, &f->session));
}

static ot_status step(fixture *f, int rows)
{
    ot_tensor *x, *target, *loss = NULL;
    const ot_tensor *inputs[2];
    ot_status st;

    assert_ok(ot_tensor_wrap(OT_F64, &OT_SHAPE(rows, IN), (void *)x_data,
                             (size_t)(rows * IN) * sizeof(double), &x));
    assert_ok(ot_tensor_wrap(OT_F64, &OT_SHAPE(rows, OUT), (void *)target_data,
                             (size_t)(rows * OUT) * sizeof(double), &target));
    inputs[0] = x;
    inputs[1] = target;
    st = ot_session_train_step(f->session, inputs, 2, &loss, 1);
    ot_tensor_destroy(loss);
    ot_tensor_destroy(x);
    ot_tensor_destroy(target);
    return st;
}

static void assert_gradient(const fixture *f, const char *name, int rows, int columns,
                            const double *expected, double factor)
{
    ot_tensor *found;

    assert_ok(ot_session_get_input_gradient(f->session, name, &found));
    assert_int_equal(ot_tensor_shape(found)->ndim, 2);
    assert_int_equal(ot_tensor_shape(found)->dim[0], rows);
    assert_int_equal(ot_tensor_shape(found)->dim[1], columns);
    for (int i = 0; i < rows * columns; i++)
        assert_true(fabs(ot__tensor_get_f64(found, i) - factor * expected[i]) < 1e-14);
    ot_tensor_destroy(found);
}

static void assert_x_gradient(const fixture *f, int rows, double factor)
{
    double r[ROWS + 1][OUT], dx[ROWS + 1][IN] = {{0}};

    residual(rows, r);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < IN; j++)
            for (int k = 0; k < OUT; k++)
                dx[i][j] += r[i][k] * w[j][k];
    assert_gradient(f, "x", rows, IN, &dx[0][0], factor);
}

// ---- the training model ----

static void the_training_model_is_as_the_original_makes_it(void **state)
{
    static const char *const trainable[] = {"w", "x"};
    static const char *const inputs[] = {"x",
                                         "target",
                                         "w",
                                         "x_grad.accumulation.buffer",
                                         "w_grad.accumulation.buffer",
                                         "lazy_reset_grad"};
    fixture *f = *state;
    const ot_model *training, *eval;

    open(f, trainable, 2);
    training = ot_artifacts_training_model(f->artifacts);
    assert_int_equal(ot_model_input_count(training), OT_COUNT(inputs));
    for (size_t i = 0; i < OT_COUNT(inputs); i++)
        assert_string_equal(ot_model_input_name(training, (int)i), inputs[i]);
    assert_int_equal(ot_model_output_count(training), 3);
    assert_string_equal(ot_model_output_name(training, 1), "x_grad.accumulation.out");
    assert_string_equal(ot_model_output_name(training, 2), "w_grad.accumulation.out");
    eval = ot_artifacts_eval_model(f->artifacts);
    assert_int_equal(ot_model_input_count(eval), 3);
    assert_int_equal(ot_checkpoint_parameter_count(ot_artifacts_checkpoint(f->artifacts)), 1);
    assert_int_equal(ot_session_input_count(f->session, OT_MODE_TRAIN), 2);
    assert_int_equal(ot_session_output_count(f->session, OT_MODE_TRAIN), 1);
}

static void names_of_integers_and_unknown_names_are_refused(void **state)
{
    static const char *const x[] = {"x"}, *const unknown[] = {"z"}, *const computed[] = {"p"};
    fixture *f = *state;
    ot_artifacts_options options = options_for(unknown, 1);
    ot_artifacts *artifacts;
    ot_model *other;

    assert_fails(ot_artifacts_generate(f->forward, &options, &artifacts), OT_ERR_NOT_FOUND,
                 "trainable 'z' matches no initializer");
    options = options_for(computed, 1);
    assert_fails(ot_artifacts_generate(f->forward, &options, &artifacts), OT_ERR_INVALID,
                 "'p' is computed by MatMul");
    options = options_for(x, 1);
    options.input_gradients = 0;
    assert_fails(ot_artifacts_generate(f->forward, &options, &artifacts), OT_ERR_INVALID,
                 "trainable 'x' is an input of the model, not a parameter");
    other = read_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                      "f (int64[n] x) => (float[n,2] y)\n"
                      "<float[3,2] w = {1, 2, 3, 4, 5, 6}> { y = Gather (w, x) }");
    options = options_for(x, 1);
    assert_fails(ot_artifacts_generate(other, &options, &artifacts), OT_ERR_INVALID,
                 "trainable 'x' is an input of element type i64, expected a float type");
    ot_model_destroy(other);
}

// ---- steps ----

static void gradients_of_inputs_add_up_until_they_are_reset(void **state)
{
    static const char *const trainable[] = {"x", "target", "w"};
    fixture *f = *state;
    double r[ROWS][OUT];

    open(f, trainable, 3);
    assert_ok(step(f, ROWS));
    assert_x_gradient(f, ROWS, 1);
    residual(ROWS, r);
    assert_gradient(f, "target", ROWS, OUT, &r[0][0], -1);
    assert_ok(step(f, ROWS));
    assert_x_gradient(f, ROWS, 2);
    assert_ok(ot_session_scale_gradients(f->session, 0.25));
    assert_x_gradient(f, ROWS, 0.5);
    ot_session_reset_gradients(f->session);
    assert_ok(step(f, ROWS));
    assert_x_gradient(f, ROWS, 1);
}

static void another_shape_needs_a_reset(void **state)
{
    static const char *const trainable[] = {"x"};
    fixture *f = *state;

    open(f, trainable, 1);
    assert_ok(step(f, ROWS));
    assert_fails(step(f, ROWS + 1), OT_ERR_STATE,
                 "input 'x' has shape [3,2], but its gradient so far is of [2,2]");
    assert_x_gradient(f, ROWS, 1); // as it was
    ot_session_reset_gradients(f->session);
    assert_ok(step(f, ROWS + 1));
    assert_x_gradient(f, ROWS + 1, 1);
}

static void what_has_no_gradient_says_so(void **state)
{
    static const char *const trainable[] = {"x"};
    fixture *f = *state;
    ot_tensor *gradient;

    open(f, trainable, 1);
    assert_fails(ot_session_get_input_gradient(f->session, "x", &gradient), OT_ERR_STATE,
                 "no gradient before the first train step");
    assert_fails(ot_session_get_input_gradient(f->session, "target", &gradient), OT_ERR_NOT_FOUND,
                 "no gradient of an input 'target' is summed");
}

static void state_counts_the_buffers(void **state)
{
    static const char *const trainable[] = {"x"};
    fixture *f = *state;
    size_t before;

    open(f, trainable, 1);
    before = ot_session_state_bytes(f->session);
    assert_ok(step(f, ROWS));
    assert_int_equal(ot_session_state_bytes(f->session) - before, ROWS * IN * sizeof(double));
}

static void every_allocation_of_a_step_may_fail(void **state)
{
    static const char *const trainable[] = {"x", "w"};
    fixture *f = *state;
    ot_status st = OT_ERR_NO_MEMORY;

    open(f, trainable, 2);
    for (int n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n + 10); // after those of the test itself
        st = step(f, ROWS);
        ot__alloc_fail_after(-1);
    }
    assert_int_equal(st, OT_OK);
    assert_x_gradient(f, ROWS, 1);
}

// ---- nothing to train ----

static int n_warnings;

static void count_warning(void *context, ot_log_level level, const char *line)
{
    (void)context;
    n_warnings += level == OT_LOG_WARNING && strstr(line, "nothing to train") != NULL;
}

static void without_an_optimizer_nothing_need_train(void **state)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "f (double[n,2] x) => (double[n,2] y) { y = Dropout (x) }";
    fixture *f = *state;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    ot_model_destroy(f->forward);
    f->forward = read_text(text);
    options.losses = &mse;
    options.n_losses = 1;
    assert_fails(ot_artifacts_generate(f->forward, &options, &f->artifacts), OT_ERR_INVALID,
                 "nothing to train: the model has no initializers");
    options.optimizer = &no_optimizer;
    n_warnings = 0;
    ot_set_log(count_warning, NULL);
    assert_ok(ot_artifacts_generate(f->forward, &options, &f->artifacts));
    ot_set_log(NULL, NULL);
    assert_int_equal(n_warnings, 1);
    assert_int_equal(ot_checkpoint_parameter_count(ot_artifacts_checkpoint(f->artifacts)), 0);
    assert_ok(ot_session_create_from_artifacts(f->artifacts, NULL, &f->session));
    assert_int_equal(ot_session_input_count(f->session, OT_MODE_TRAIN), 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(the_training_model_is_as_the_original_makes_it),
        TEST(names_of_integers_and_unknown_names_are_refused),
        TEST(gradients_of_inputs_add_up_until_they_are_reset),
        TEST(another_shape_needs_a_reset),
        TEST(what_has_no_gradient_says_so),
        TEST(state_counts_the_buffers),
        TEST(every_allocation_of_a_step_may_fail),
        TEST(without_an_optimizer_nothing_need_train),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
