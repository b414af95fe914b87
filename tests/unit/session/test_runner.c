// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "onnxtrain/runner.h"

static const char scale_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) <float[2] w = {2, 3}>"
    "{ y = Mul(x, w) z = Add(y, x) }";

// The pair of graphs that train y = x * w on the sum of y, by hand.
static const char training_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"
    "g (float[2] x, float[2] buffer, bool[1] reset) => (bool[1] done)"
    "{ done = com.microsoft.InPlaceAccumulatorV2(buffer, x, reset) }";
static const char sgd_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"
    "g (float[1] rate, seq(float[]) params, seq(float[]) gradients) => (bool[1] done)"
    "{ done = com.microsoft.SGDOptimizerV2(rate, params, gradients) }";

static const char mixed_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"
    "g (float[1] rate, seq(float[]) params, seq(float[]) gradients, float[4] x)"
    " => (bool[1] done, float[4] y)"
    "{ done = com.microsoft.SGDOptimizerV2(rate, params, gradients) y = Relu(x) }";

static ot_runner *runner_of(const char *text)
{
    ot_model *model = read_text(text);
    ot_runner *runner;

    assert_ok(ot_runner_create(model, NULL, &runner));
    ot_model_destroy(model);
    return runner;
}

static ot_tensor *zeros(ot_dtype dtype, ot_shape shape)
{
    ot_tensor *tensor;

    assert_ok(ot_tensor_create(dtype, &shape, &tensor));
    return tensor;
}

static const float *elements(const ot_tensor *tensor)
{
    return ot_tensor_data_const(tensor);
}

static void outputs_are_those_wanted_for_any_shape(void **state)
{
    ot_runner *runner = runner_of(scale_text);
    const int second = 1;

    (void)state;
    for (int rows = 1; rows <= 6; rows++) {
        ot_tensor *x = zeros(OT_F32, OT_SHAPE(rows, 2)), *z;
        float *to = ot_tensor_data(x);

        for (int i = 0; i < 2 * rows; i++)
            to[i] = (float)i;
        assert_ok(
            ot_runner_run(runner, &(ot_feed){(const ot_tensor *const *)&x, 1}, 1, &second, &z, 1));
        assert_int_equal(ot_tensor_shape(z)->dim[0], rows);
        assert_true(elements(z)[2 * rows - 1] == 4.0f * (float)(2 * rows - 1)); // 3 * x + x
        ot_tensor_destroy(x);
        ot_tensor_destroy(z);
    }
    ot_runner_destroy(runner);
}

// What has the shape that the model declares is not asked of data, so that it is checked where it
// runs.
static void a_declared_shape_that_has_no_room_is_an_error(void **state)
{
    static const struct {
        const char *node, *shape, *error;
    } cases[] = {
        {"Reshape(x, sizes)", "4", "output 0 has room for 4 elements, input 0 has 9"},
        {"Squeeze(x, sizes)", "4", "output 0 has room for 4 elements, input 0 has 9"},
        {"Tile(x, pair)", "1, 13", "axis 1 of size 9 is not repeated to 13"},
    };
    const int first = 0;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        char text[250];
        ot_tensor *x = zeros(OT_F32, OT_SHAPE(1, 9)), *y = NULL;
        ot_tensor *sizes = zeros(OT_I64, OT_SHAPE(1));
        const ot_tensor *const in[] = {x, sizes};
        ot_runner *runner;

        snprintf(text, sizeof(text),
                 "<ir_version: 8, opset_import: [\"\" : 17]>"
                 "g (float[1, 9] x, int64[] sizes) => (float[%s] y)"
                 "{ pair = Concat <axis = 0> (sizes, sizes) y = %s }",
                 cases[i].shape, cases[i].node);
        runner = runner_of(text);
        assert_int_equal(
            ot_runner_run(runner, (const ot_feed[]){{&in[0], 1}, {&in[1], 1}}, 2, &first, &y, 1),
            OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), cases[i].error));
        ot_runner_destroy(runner);
        ot_tensor_destroy(sizes);
        ot_tensor_destroy(x);
    }
}

static void a_training_graph_changes_the_buffer_that_is_fed(void **state)
{
    ot_runner *runner = runner_of(training_text);
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(2), (const double[]){1, 2});
    ot_tensor *buffer = new_tensor(OT_F32, OT_SHAPE(2), (const double[]){10, 20});
    ot_tensor *reset = new_tensor(OT_BOOL, OT_SHAPE(1), (const double[]){0}), *done;
    const ot_tensor *const in[] = {x, buffer, reset};
    const ot_feed feeds[] = {{&in[0], 1}, {&in[1], 1}, {&in[2], 1}};

    (void)state;
    assert_ok(ot_runner_run(runner, feeds, 3, NULL, &done, 1));
    assert_true(elements(buffer)[0] == 11.0f && elements(buffer)[1] == 22.0f);
    ot_tensor_destroy(done);
    *(unsigned char *)ot_tensor_data(reset) = 1;
    assert_ok(ot_runner_run(runner, feeds, 3, NULL, &done, 1));
    assert_true(elements(buffer)[0] == 1.0f && elements(buffer)[1] == 2.0f);
    ot_tensor_destroy(done);
    ot_tensor_destroy(x);
    ot_tensor_destroy(buffer);
    ot_tensor_destroy(reset);
    ot_runner_destroy(runner);
}

static void an_optimizer_graph_takes_sequences_of_any_length(void **state)
{
    ot_runner *runner = runner_of(sgd_text);
    ot_tensor *rate = new_tensor(OT_F32, OT_SHAPE(1), (const double[]){0.5});
    ot_tensor *params[2], *gradients[2], *done;

    (void)state;
    for (int n = 1; n <= 2; n++) {
        const ot_feed feeds[] = {{(const ot_tensor *const *)&rate, 1},
                                 {(const ot_tensor *const *)params, n},
                                 {(const ot_tensor *const *)gradients, n}};

        for (int k = 0; k < n; k++) {
            params[k] = new_tensor(OT_F32, OT_SHAPE(k + 1), (const double[]){1, 2});
            gradients[k] = new_tensor(OT_F32, OT_SHAPE(k + 1), (const double[]){4, 8});
        }
        assert_ok(ot_runner_run(runner, feeds, 3, NULL, &done, 1));
        for (int k = 0; k < n; k++) {
            assert_true(elements(params[k])[k] == (k == 0 ? -1.0f : -2.0f)); // p - 0.5 * g
            ot_tensor_destroy(params[k]);
            ot_tensor_destroy(gradients[k]);
        }
        ot_tensor_destroy(done);
    }
    ot_tensor_destroy(rate);
    ot_runner_destroy(runner);
}

static void what_does_not_fit_is_named(void **state)
{
    ot_runner *runner = runner_of(scale_text);
    ot_tensor *x = zeros(OT_F32, OT_SHAPE(1, 3));
    ot_tensor *d = zeros(OT_F64, OT_SHAPE(1, 2)), *out[2];
    const ot_tensor *const pair[] = {x, x};
    const int wrong = 2, twice[] = {0, 0};

    (void)state;
    assert_fails(ot_runner_run(runner, &(ot_feed){pair, 1}, 1, NULL, out, 1), OT_ERR_INVALID,
                 "'x'");
    assert_fails(ot_runner_run(runner, &(ot_feed){pair, 2}, 1, NULL, out, 1), OT_ERR_INVALID,
                 "is a tensor, got a sequence of 2");
    assert_fails(
        ot_runner_run(runner, &(ot_feed){(const ot_tensor *const *)&d, 1}, 1, NULL, out, 1),
        OT_ERR_INVALID, "is f64, expected f32");
    assert_fails(ot_runner_run(runner, NULL, 0, NULL, out, 1), OT_ERR_INVALID, "'x' is missing");
    assert_fails(ot_runner_run(runner, &(ot_feed){pair, 1}, 1, &wrong, out, 1), OT_ERR_INVALID,
                 "output 2 is wanted, the model has 2");
    assert_fails(ot_runner_run(runner, &(ot_feed){pair, 1}, 1, twice, out, 2), OT_ERR_INVALID,
                 "'y' is wanted twice");
    assert_null(out[0]);
    ot_tensor_destroy(x);
    ot_tensor_destroy(d);
    ot_runner_destroy(runner);
}

static void tensors_beside_sequences_have_the_shapes_declared(void **state)
{
    ot_runner *runner = runner_of(mixed_text);
    ot_tensor *one = new_tensor(OT_F32, OT_SHAPE(1), (const double[]){1});
    ot_tensor *x = zeros(OT_F32, OT_SHAPE(1000)), *short_x = zeros(OT_F32, OT_SHAPE(4)), *out[2];
    const ot_tensor *const list[] = {one, x, short_x};
    const ot_feed feeds[] = {{list, 1}, {list, 1}, {list, 1}, {&list[1], 1}};
    const ot_feed fitting[] = {{list, 1}, {list, 1}, {list, 1}, {&list[2], 1}};

    (void)state;
    assert_fails(ot_runner_run(runner, feeds, 4, NULL, out, 2), OT_ERR_INVALID, "'x'");
    assert_ok(ot_runner_run(runner, fitting, 4, NULL, out, 2));
    ot_tensor_destroy(out[0]);
    ot_tensor_destroy(out[1]);
    ot_tensor_destroy(one);
    ot_tensor_destroy(x);
    ot_tensor_destroy(short_x);
    ot_runner_destroy(runner);
}

static void values_tell_sequences_and_symbols(void **state)
{
    ot_model *model = read_text(sgd_text), *scale = read_text(scale_text);

    (void)state;
    assert_int_equal(ot_model_value_is_sequence(model, "params"), 1);
    assert_int_equal(ot_model_value_is_sequence(model, "rate"), 0);
    assert_string_equal(ot_model_value_dim(scale, "x", 0), "N");
    assert_null(ot_model_value_dim(scale, "x", 1));
    assert_null(ot_model_value_dim(scale, "x", 2));
    assert_null(ot_model_value_dim(scale, "nothing", 0));
    ot_model_destroy(model);
    ot_model_destroy(scale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_those_wanted_for_any_shape),
        cmocka_unit_test(a_declared_shape_that_has_no_room_is_an_error),
        cmocka_unit_test(a_training_graph_changes_the_buffer_that_is_fed),
        cmocka_unit_test(an_optimizer_graph_takes_sequences_of_any_length),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(tensors_beside_sequences_have_the_shapes_declared),
        cmocka_unit_test(values_tell_sequences_and_symbols),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
