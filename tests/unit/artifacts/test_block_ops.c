// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "block_tests.h"
#include "onnxtrain/session.h"

// ---- what they emit ----

static const char one_input[] = "(double[N, 3] x) => (double[N, 3] x) { }";

typedef ot_value *(*build_function)(ot_block *b, ot_value *x);

static ot_value *build_add(ot_block *b, ot_value *x)
{
    return ot_block_add(b, x, x);
}
static ot_value *build_sub(ot_block *b, ot_value *x)
{
    return ot_block_sub(b, x, ot_block_constant(b, 3.0, OT_F64));
}
static ot_value *build_mul(ot_block *b, ot_value *x)
{
    return ot_block_mul(b, x, x);
}
static ot_value *build_div(ot_block *b, ot_value *x)
{
    return ot_block_div(b, ot_block_constant(b, 2.0, OT_F64), x);
}
static ot_value *build_pow(ot_block *b, ot_value *x)
{
    return ot_block_pow(b, x, 3.0);
}
static ot_value *build_sigmoid(ot_block *b, ot_value *x)
{
    return ot_block_sigmoid(b, x);
}
static ot_value *build_log(ot_block *b, ot_value *x)
{
    return ot_block_log(b, x);
}
static ot_value *build_neg(ot_block *b, ot_value *x)
{
    return ot_block_neg(b, x);
}
static ot_value *build_abs(ot_block *b, ot_value *x)
{
    return ot_block_abs(b, x);
}
static ot_value *build_clip(ot_block *b, ot_value *x)
{
    return ot_block_clip(b, x, 0.5, 2.0);
}
static ot_value *build_clip_above(ot_block *b, ot_value *x)
{
    return ot_block_clip(b, x, -INFINITY, 2.0);
}
static ot_value *build_clip_nothing(ot_block *b, ot_value *x)
{
    return ot_block_clip(b, x, -INFINITY, INFINITY);
}
static ot_value *build_mean(ot_block *b, ot_value *x)
{
    return ot_block_reduce_mean(b, x, OT_KEEPDIMS);
}
static ot_value *build_sum(ot_block *b, ot_value *x)
{
    return ot_block_reduce_sum(b, x, OT_SCALAR);
}
static ot_value *build_cast(ot_block *b, ot_value *x)
{
    return ot_block_cast(b, x, OT_F32);
}
static ot_value *build_pass_through(ot_block *b, ot_value *x)
{
    return ot_block_pass_through(b, &x, 1);
}
static ot_value *build_norm(ot_block *b, ot_value *x)
{
    return ot_block_reduce_all_l2(b, (ot_value *[]){x, x}, 2);
}
static ot_value *build_sequence(ot_block *b, ot_value *x)
{
    return ot_block_sequence_construct(b, (ot_value *[]){x, x}, 2);
}

// The first block of a build, by onnxblock's rules: initializers, then the value, then the node.
static const struct {
    build_function build;
    const char *nodes;
} emitted[] = {
    {build_add, "   [\"onnx::Add::2\"] \"onnx::add_output::1\" = Add (x, x)\n"},
    {build_sub,
     "   [\"onnx::Sub::3\"] \"onnx::sub_output::2\" = Sub (x, \"onnx::initializer::1\")\n"},
    {build_mul, "   [\"onnx::Mul::2\"] \"onnx::mul_output::1\" = Mul (x, x)\n"},
    {build_div,
     "   [\"onnx::Div::3\"] \"onnx::div_output::2\" = Div (\"onnx::initializer::1\", x)\n"},
    {build_pow,
     "   [\"onnx::Pow::3\"] \"onnx::pow_output::2\" = Pow (x, \"onnx::pow_exponent::1\")\n"},
    {build_sigmoid, "   [\"onnx::Sigmoid::2\"] \"onnx::sigmoid_output::1\" = Sigmoid (x)\n"},
    {build_log, "   [\"onnx::Log::2\"] \"onnx::log_output::1\" = Log (x)\n"},
    {build_neg, "   [\"onnx::Neg::2\"] \"onnx::neg_output::1\" = Neg (x)\n"},
    {build_abs, "   [\"onnx::Abs::2\"] \"onnx::abs_output::1\" = Abs (x)\n"},
    {build_clip, "   [\"onnx::Clip::4\"] \"onnx::clip_output::3\" = Clip (x, "
                 "\"onnx::clip_min::1\", \"onnx::clip_max::2\")\n"},
    {build_clip_above, "   [\"onnx::Clip::3\"] \"onnx::clip_output::2\" = Clip (x, \"\", "
                       "\"onnx::clip_max::1\")\n"},
    {build_clip_nothing, "   [\"onnx::Clip::2\"] \"onnx::clip_output::1\" = Clip (x)\n"},
    {build_mean, "   [\"onnx::ReduceMean::2\"] \"onnx::reducemean_output::1\" = ReduceMean "
                 "<keepdims: int = 1> (x)\n"},
    {build_sum, "   [\"onnx::ReduceSum::2\"] \"onnx::reducesum_output::1\" = ReduceSum "
                "<keepdims: int = 0> (x)\n"},
    {build_cast, "   [\"onnx::Cast::2\"] \"onnx::cast.output::1\" = Cast <to: int = 1> (x)\n"},
    {build_pass_through, ""},
    {build_norm, "   [\"onnx::ReduceAllL2::2\"] \"onnx::reducealll2_output::1\" = "
                 "com.microsoft.ReduceAllL2 (x, x)\n"},
    {build_sequence, "   [\"onnx::SequenceConstruct::2\"] \"onnx::sequenceconstruct_output::1\" = "
                     "SequenceConstruct (x, x)\n"},
};

static void blocks_emit_what_onnxblock_emits(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(emitted); i++) {
        ot_block *b = block_over(one_input);
        ot_model *model = finished(b, emitted[i].build(b, ot_block_value(b, "x")));

        assert_nodes(model, emitted[i].nodes);
        ot_model_destroy(model);
    }
}

static void linear_has_its_weights_before_its_output(void **state)
{
    ot_linear_options options = OT_LINEAR_OPTIONS_INIT;
    ot_block *b = block_over("(float[N, 3] x) => (float[N, 3] x) { }");
    ot_value *y = ot_block_linear(b, ot_block_value(b, "x"), 3, 2, NULL);
    ot_model *model;

    (void)state;
    options.has_bias = 0;
    options.alpha = 0.5f;
    model = finished(b, ot_block_linear(b, y, 2, 4, &options));
    assert_nodes(model,
                 "   [\"onnx::linear::4\"] \"onnx::linear.output::3\" = Gemm <alpha: float = 1, "
                 "beta: float = 1> (x, \"onnx::linear.weight::1\", \"onnx::linear.bias::2\")\n"
                 "   [\"onnx::linear::7\"] \"onnx::linear.output::6\" = Gemm <alpha: float = 0.5, "
                 "beta: float = 1> (\"onnx::linear.output::3\", \"onnx::linear.weight::5\")\n");
    assert_int_equal(find_value(model, "onnx::linear.weight::1")->shape.dim[0], 3);
    assert_int_equal(find_value(model, "onnx::linear.bias::2")->shape.dim[0], 2);
    ot_model_destroy(model);
}

static void weights_of_linear_are_a_standard_normal_sample(void **state)
{
    ot_block *b = block_over("(float[N, 100] x) => (float[N, 100] x) { }");
    ot_model *model = finished(b, ot_block_linear(b, ot_block_value(b, "x"), 100, 100, NULL));
    const ot_tensor *w = find_value(model, "onnx::linear.weight::1")->constant;
    double sum = 0.0, squares = 0.0;

    (void)state;
    for (int k = 0; k < 10000; k++) {
        const double v = ot__tensor_get_f64(w, k);

        sum += v;
        squares += v * v;
    }
    // Five standard errors of mean and variance of 10000 draws.
    assert_true(fabs(sum / 10000) < 5 * 0.01);
    assert_true(fabs(squares / 10000 - 1.0) < 5 * 0.0142);
    ot_model_destroy(model);
}

static void label_encoder_maps_labels_before_a_loss(void **state)
{
    const double keys[] = {30, 10, 20}, values[] = {0, 1, 2}, labels[] = {20, 30};
    ot_tensor *key_list = new_tensor(OT_I64, OT_SHAPE(3), keys);
    ot_tensor *value_list = new_tensor(OT_I64, OT_SHAPE(3), values);
    ot_label_encoder_options options = OT_LABEL_ENCODER_OPTIONS_INIT;
    ot_block *b = block_over("(int64[2] x) => (int64[2] x) { }");
    evaluation e = {0};
    ot_model *model;

    (void)state;
    options.keys = key_list;
    options.values = value_list;
    model = finished(b, ot_block_label_encoder(b, ot_block_value(b, "x"), &options));
    assert_int_equal(ot__model_opset(model, "ai.onnx.ml"), 3);
    assert_nodes(model, "   [\"onnx::LabelEncoder::2\"] \"onnx::label_encoder.output::1\" = "
                        "ai.onnx.ml.LabelEncoder <default_float: float = 0, default_int64: int = "
                        "-1, default_string: string = \"_Unused\", keys_int64s: ints = [30, 10, "
                        "20], values_int64s: ints = [0, 1, 2]> (x)\n");
    feed(&e, "x", new_tensor(OT_I64, OT_SHAPE(2), labels));
    compute(&e, model);
    assert_true(element(&e, "onnx::label_encoder.output::1", 0) == 2.0);
    assert_true(element(&e, "onnx::label_encoder.output::1", 1) == 0.0);
    evaluation_deinit(&e);
    ot_model_destroy(model);
    ot_tensor_destroy(key_list);
    ot_tensor_destroy(value_list);
}

// ---- what they train ----

// loss = sum of f(x * w) over three elements; a step of SGD: w -= lr * x * f'(x * w).
static const double x_values[] = {1.5, -0.75, 2.0}, w_values[] = {0.8, -1.25, 1.75};
static const double lr = 0.125;

typedef double (*formula)(double y);

static double twice(double y)
{
    return 2 * y;
}
static double two(double y)
{
    (void)y;
    return 2;
}
static double minus_three(double y)
{
    return y - 3;
}
static double one(double y)
{
    (void)y;
    return 1;
}
static double minus_one(double y)
{
    (void)y;
    return -1;
}
static double square(double y)
{
    return y * y;
}
static double two_over(double y)
{
    return 2 / y;
}
static double two_over_slope(double y)
{
    return -2 / (y * y);
}
static double cube(double y)
{
    return y * y * y;
}
static double cube_slope(double y)
{
    return 3 * y * y;
}
static double sigmoid(double y)
{
    return 1 / (1 + exp(-y));
}
static double sigmoid_slope(double y)
{
    return sigmoid(y) * (1 - sigmoid(y));
}
static double reciprocal(double y)
{
    return 1 / y;
}
static double negative(double y)
{
    return -y;
}
static double sign(double y)
{
    return y > 0 ? 1 : -1;
}
static double clipped(double y)
{
    return fmin(fmax(y, 0.5), 2.0);
}
static double is_within(double y)
{
    return y >= 0.5 && y <= 2.0;
}
static double third(double y)
{
    return y / 3;
}
static double one_third(double y)
{
    (void)y;
    return 1.0 / 3;
}

static ot_value *build_cast_back(ot_block *b, ot_value *x)
{
    return ot_block_cast(b, ot_block_cast(b, x, OT_F32), OT_F64);
}

static const struct {
    const char *name;
    build_function build;
    formula f, slope;
    double tolerance;
} trained[] = {
    {"Add", build_add, twice, two, 1e-12},
    {"Mul", build_mul, square, twice, 1e-12},
    {"Div", build_div, two_over, two_over_slope, 1e-12},
    {"Pow", build_pow, cube, cube_slope, 1e-12},
    {"Sigmoid", build_sigmoid, sigmoid, sigmoid_slope, 1e-12},
    {"Log", build_log, log, reciprocal, 1e-12},
    {"Neg", build_neg, negative, minus_one, 1e-12},
    {"Abs", build_abs, fabs, sign, 1e-12},
    {"Clip", build_clip, clipped, is_within, 1e-12},
    {"Sub", build_sub, minus_three, one, 1e-12},
    {"ReduceMean", build_mean, third, one_third, 1e-12},
    {"ReduceSum", build_sum, fabs, one, 1e-12}, // all products are positive
    {"Cast", build_cast_back, fabs, one, 1e-6},
};

static void train_once(build_function build, double *loss, double *w)
{
    ot_block *b = block_over("(double[3] x) => (double[3] y) <double[3] w = {0.8, -1.25, 1.75}>"
                             "{ y = Mul(x, w) }");
    ot_value *value = ot_block_reduce_sum(b, build(b, ot_block_output(b, 0)), OT_SCALAR);
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_tensor *x = new_tensor(OT_F64, OT_SHAPE(3), x_values), *found = NULL, *after = NULL;
    ot_artifacts *artifacts;
    ot_session *session;

    options.optimizer = &optimizer;
    optimizer.name = "SGDOptimizerV2";
    assert_ok(ot_block_finish_training(b, &value, 1, &options, &artifacts));
    ot_block_destroy(b);
    assert_ok(ot_session_create_from_artifacts(artifacts, NULL, &session));
    assert_ok(ot_session_set_learning_rate(session, (float)lr));
    assert_ok(ot_session_train_step(session, (const ot_tensor *[]){x}, 1, &found, 1));
    assert_ok(ot_session_optimizer_step(session));
    assert_ok(ot_checkpoint_get_parameter(ot_artifacts_checkpoint(artifacts), "w", &after));
    *loss = ot__tensor_get_f64(found, 0);
    for (int k = 0; k < 3; k++)
        w[k] = ot__tensor_get_f64(after, k);
    ot_tensor_destroy(x);
    ot_tensor_destroy(found);
    ot_tensor_destroy(after);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
}

static void blocks_train_by_their_formulas(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(trained); i++) {
        double loss, w[3], expected = 0.0;

        train_once(trained[i].build, &loss, w);
        for (int k = 0; k < 3; k++) {
            const double y = x_values[k] * w_values[k];
            const double after = w_values[k] - lr * x_values[k] * trained[i].slope(y);

            expected += trained[i].f(y);
            if (!(fabs(w[k] - after) <= trained[i].tolerance))
                fail_msg("%s: w[%d] is %.17g, expected %.17g", trained[i].name, k, w[k], after);
        }
        if (!(fabs(loss - expected) <= trained[i].tolerance * 10))
            fail_msg("%s: loss %.17g, expected %.17g", trained[i].name, loss, expected);
    }
}

static void the_norm_of_several_values_is_that_of_all_their_elements(void **state)
{
    ot_block *b = block_over(one_input);
    ot_model *model = finished(b, build_norm(b, ot_block_value(b, "x")));
    evaluation e = {0};

    (void)state;
    feed(&e, "x", new_tensor(OT_F64, OT_SHAPE(1, 3), x_values));
    compute(&e, model);
    assert_true(fabs(element(&e, "onnx::reducealll2_output::1", 0) -
                     sqrt(2 * (1.5 * 1.5 + 0.75 * 0.75 + 4))) < 1e-12);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

// ---- what they refuse ----

static void arguments_that_cannot_be_are_refused(void **state)
{
    ot_label_encoder_options encoder = OT_LABEL_ENCODER_OPTIONS_INIT;
    ot_linear_options linear = OT_LINEAR_OPTIONS_INIT;
    ot_block *b = block_over("(float[4, 3] x, int64[2] n) => (float[4, 3] x, int64[2] n) { }");

    (void)state;
    assert_refused(b, ot_block_linear(b, ot_block_value(b, "x"), 5, 2, NULL), OT_ERR_INVALID,
                   "Linear: Gemm 'onnx::linear::4': inner dimensions differ");
    b = block_over(one_input);
    assert_refused(b, ot_block_linear(b, ot_block_value(b, "x"), 0, 2, NULL), OT_ERR_INVALID,
                   "Linear: 0 and 2 features");
    b = block_over(one_input);
    linear.size = 1;
    assert_refused(b, ot_block_linear(b, ot_block_value(b, "x"), 3, 2, &linear), OT_ERR_INVALID,
                   "Linear: ot_linear_options: size is 1");
    b = block_over("(int64[2, 3] x) => (int64[2, 3] x) { }");
    assert_refused(b, ot_block_linear(b, ot_block_value(b, "x"), 3, 2, NULL), OT_ERR_INVALID,
                   "Linear: 'x' is i64, expected a float type");
    b = block_over(one_input);
    assert_refused(b, ot_block_linear(b, ot_block_value(b, "x"), INT64_MAX / 2, 3, NULL),
                   OT_ERR_NO_MEMORY, "Linear: ");
    b = block_over(one_input);
    assert_refused(b, ot_block_clip(b, ot_block_value(b, "x"), 2.0, 1.0), OT_ERR_INVALID,
                   "Clip: bounds 2 and 1");
    b = block_over(one_input);
    assert_refused(b, ot_block_clip(b, ot_block_value(b, "x"), NAN, 1.0), OT_ERR_INVALID,
                   "Clip: bounds nan and 1");
    b = block_over(one_input);
    assert_refused(b, ot_block_clip(b, ot_block_value(b, "x"), INFINITY, INFINITY), OT_ERR_INVALID,
                   "Clip: bounds inf and inf");
    b = block_over(one_input);
    assert_refused(b, ot_block_cast(b, ot_block_value(b, "x"), (ot_dtype)99), OT_ERR_INVALID,
                   "Cast");
    b = block_over(one_input);
    assert_refused(b, ot_block_reduce_sum(b, ot_block_value(b, "x"), (ot_keepdims)7),
                   OT_ERR_INVALID, "ReduceSum: keepdims is 7");
    b = block_over("(int64[2] x, float[2] y) => (int64[2] x, float[2] y) { }");
    assert_refused(b,
                   ot_block_sequence_construct(
                       b, (ot_value *[]){ot_block_value(b, "x"), ot_block_value(b, "y")}, 2),
                   OT_ERR_INVALID,
                   "SequenceConstruct: 'x' and 'y' are not tensors of one element type");
    b = block_over(one_input);
    assert_refused(b, ot_block_reduce_all_l2(b, NULL, 1), OT_ERR_INVALID, "ReduceAllL2: ");
    b = block_over(one_input);
    assert_refused(b, ot_block_label_encoder(b, ot_block_value(b, "x"), &encoder), OT_ERR_INVALID,
                   "LabelEncoder: its keys are NULL");
    b = block_over(one_input);
    assert_refused(b, ot_block_log(b, NULL), OT_ERR_INVALID, "Log: a value is NULL");
}

static void shapes_that_do_not_broadcast_are_refused_by_the_block_that_meets_them(void **state)
{
    ot_block *b = block_over("(float[4, 3] x, float[2] z) => (float[4, 3] x, float[2] z) { }");
    ot_value *sum = ot_block_add(b, ot_block_value(b, "x"), ot_block_value(b, "z"));

    (void)state;
    assert_refused(b, ot_block_neg(b, sum), OT_ERR_INVALID, "Add 'onnx::Add::2': ");
}

static void a_sequence_is_built_but_cannot_be_run_here(void **state)
{
    ot_block *b = block_over("(float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}>"
                             "{ y = Mul(x, w) }");
    ot_value *y = ot_block_output(b, 0);
    ot_artifacts *artifacts;
    ot_model *model;

    (void)state;
    model = finished(b, build_sequence(b, y));
    assert_int_equal(model->graph->outputs[0]->kind, OT_VALUE_SEQUENCE);
    assert_fails(ot_artifacts_generate(model, NULL, &artifacts), OT_ERR_INVALID, "is not a tensor");
    ot_model_destroy(model);
    b = block_over("(float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}>"
                   "{ y = Mul(x, w) }");
    y = ot_block_output(b, 0);
    y = build_sequence(b, y);
    assert_fails(ot_block_finish_training(b, &y, 1, NULL, &artifacts), OT_ERR_INVALID,
                 "is not a tensor");
    ot_block_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_emit_what_onnxblock_emits),
        cmocka_unit_test(linear_has_its_weights_before_its_output),
        cmocka_unit_test(weights_of_linear_are_a_standard_normal_sample),
        cmocka_unit_test(label_encoder_maps_labels_before_a_loss),
        cmocka_unit_test(blocks_train_by_their_formulas),
        cmocka_unit_test(the_norm_of_several_values_is_that_of_all_their_elements),
        cmocka_unit_test(arguments_that_cannot_be_are_refused),
        cmocka_unit_test(shapes_that_do_not_broadcast_are_refused_by_the_block_that_meets_them),
        cmocka_unit_test(a_sequence_is_built_but_cannot_be_run_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
