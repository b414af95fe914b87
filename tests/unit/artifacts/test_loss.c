// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "artifacts/artifacts.h"
#include "evaluate.h"

static const ot_loss_options defaults = OT_LOSS_OPTIONS_INIT;

// The loss over outputs `x` (f64) and the target given, computed with the library's kernels.
static double loss_of(const char *declarations, const ot_loss_options *losses, int n_losses,
                      const char *const *names, ot_tensor *const *tensors, int n_tensors)
{
    ot_model *model;
    ot_value *loss;
    evaluation e = {0};
    char text[512];
    double value;

    snprintf(text, sizeof text, "<ir_version: 8, opset_import: [\"\" : 17]> g %s", declarations);
    model = read_prepared(text);
    assert_ok(ot__loss_attach(model->graph, losses, n_losses, &loss));
    for (int i = 0; i < n_tensors; i++)
        feed(&e, names[i], tensors[i]);
    compute(&e, model);
    value = element(&e, loss->name, 0);
    evaluation_deinit(&e);
    ot_model_destroy(model);
    return value;
}

static const double x_values[] = {0.5, -1.5, 2.0, 0.0, 30.0, -40.0};
static const double t_values[] = {1.0, 0.0, 1.0, 0.0, 1.0, 0.0};
enum { N_VALUES = 6 };
static const char plain[] = "(double[2,3] x) => (double[2,3] y) { y = Identity(x) }";

static double plain_loss(ot_loss_options options)
{
    const char *const names[] = {"x", "target"};
    ot_tensor *tensors[] = {new_tensor(OT_F64, OT_SHAPE(2, 3), x_values),
                            new_tensor(OT_F64, OT_SHAPE(2, 3), t_values)};

    return loss_of(plain, &options, 1, names, tensors, 2);
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fmax(1.0, fabs(expected))))
        fail_msg("%.17g, expected %.17g", found, expected);
}

static void mse_is_the_mean_of_squared_differences(void **state)
{
    ot_loss_options options = defaults;
    double sum = 0.0;

    (void)state;
    for (int k = 0; k < N_VALUES; k++)
        sum += (x_values[k] - t_values[k]) * (x_values[k] - t_values[k]);
    options.loss = OT_LOSS_MSE;
    assert_near(plain_loss(options), sum / N_VALUES);
    options.reduction = OT_REDUCTION_SUM;
    assert_near(plain_loss(options), sum);
    options.reduction = OT_REDUCTION_NONE;
    assert_near(plain_loss(options), 0.25);
}

static void l1_is_the_mean_of_absolute_differences(void **state)
{
    ot_loss_options options = defaults;
    double sum = 0.0;

    (void)state;
    for (int k = 0; k < N_VALUES; k++)
        sum += fabs(x_values[k] - t_values[k]);
    options.loss = OT_LOSS_L1;
    assert_near(plain_loss(options), sum / N_VALUES);
    options.reduction = OT_REDUCTION_SUM;
    assert_near(plain_loss(options), sum);
}

static void bce_is_stable_for_large_logits(void **state)
{
    ot_loss_options options = defaults;
    double sum = 0.0;

    (void)state;
    for (int k = 0; k < N_VALUES; k++)
        sum += fmax(x_values[k], 0.0) - x_values[k] * t_values[k] + log1p(exp(-fabs(x_values[k])));
    options.loss = OT_LOSS_BCE_WITH_LOGITS;
    assert_near(plain_loss(options), sum / N_VALUES);
}

static void bce_weighs_elements_and_positives(void **state)
{
    const double weights[] = {1.0, 2.0, 3.0}, positives[] = {0.5, 1.5, 2.5};
    ot_tensor *weight = new_tensor(OT_F64, OT_SHAPE(3), weights);
    ot_tensor *positive = new_tensor(OT_F32, OT_SHAPE(3), positives); // converted to x's type
    ot_loss_options options = defaults;
    double sum = 0.0;

    (void)state;
    for (int k = 0; k < N_VALUES; k++) {
        const double p = 1.0 / (1.0 + exp(-x_values[k])), q = 1.0 / (1.0 + exp(x_values[k]));

        sum -= weights[k % 3] *
               (positives[k % 3] * t_values[k] * log(p) + (1.0 - t_values[k]) * log(q));
    }
    options.loss = OT_LOSS_BCE_WITH_LOGITS;
    options.reduction = OT_REDUCTION_SUM;
    options.weight = weight;
    options.pos_weight = positive;
    assert_near(plain_loss(options), sum);
    ot_tensor_destroy(weight);
    ot_tensor_destroy(positive);
}

static double cross_entropy_of(ot_loss_options options)
{
    const char *const names[] = {"x", "labels"};
    const double labels[] = {2.0, 0.0};
    ot_tensor *tensors[] = {new_tensor(OT_F64, OT_SHAPE(2, 3), x_values),
                            new_tensor(OT_I64, OT_SHAPE(2), labels)};

    return loss_of(plain, &options, 1, names, tensors, 2);
}

static double log_softmax(const double *row, int n, int at)
{
    double sum = 0.0;

    for (int k = 0; k < n; k++)
        sum += exp(row[k] - row[at]);
    return -log(sum);
}

static void cross_entropy_takes_weights_and_ignores_a_label(void **state)
{
    const double weights[] = {0.5, 1.0, 4.0};
    ot_tensor *weight = new_tensor(OT_F64, OT_SHAPE(3), weights);
    const double first = -log_softmax(x_values, 3, 2), second = -log_softmax(x_values + 3, 3, 0);
    ot_loss_options options = defaults;

    (void)state;
    assert_near(cross_entropy_of(options), (first + second) / 2.0);
    options.reduction = OT_REDUCTION_SUM;
    assert_near(cross_entropy_of(options), first + second);
    options.reduction = OT_REDUCTION_MEAN;
    options.weight = weight;
    assert_near(cross_entropy_of(options), (4.0 * first + 0.5 * second) / 4.5);
    options.has_ignore_index = 1;
    options.ignore_index = 2;
    assert_near(cross_entropy_of(options), second);
    ot_tensor_destroy(weight);
}

// x_values are the scores of two tokens, then weighted, ignored, and one by one.
static void cross_entropy_takes_classes_on_the_last_axis(void **state)
{
    static const char tokens[] = "(double[N,2,3] x) => (double[N,2,3] y) { y = Identity(x) }";
    static const char reduced[] =
        "(double[N,2,3] x, int64[N,2] labels) => (double[N,2,3] y) { y = Identity(x) }";
    const char *const names[] = {"x", "labels"};
    const double weights[] = {0.5, 1.0, 4.0}, labels[] = {2.0, 0.0};
    const double first = -log_softmax(x_values, 3, 2), second = -log_softmax(x_values + 3, 3, 0);
    ot_tensor *weight = new_tensor(OT_F64, OT_SHAPE(3), weights);
    const struct {
        ot_reduction reduction;
        bool is_weighted, ignores_first;
        double expected;
    } table[] = {
        {OT_REDUCTION_MEAN, false, false, (first + second) / 2.0},
        {OT_REDUCTION_SUM, false, false, first + second},
        {OT_REDUCTION_NONE, false, false, first},
        {OT_REDUCTION_MEAN, true, false, (4.0 * first + 0.5 * second) / 4.5},
        {OT_REDUCTION_MEAN, true, true, second},
    };

    (void)state;
    for (size_t k = 0; k < OT_COUNT(table); k++) {
        ot_tensor *tensors[] = {new_tensor(OT_F64, OT_SHAPE(1, 2, 3), x_values),
                                new_tensor(OT_I64, OT_SHAPE(1, 2), labels)};
        ot_loss_options options = defaults;

        options.class_axis = -1;
        options.reduction = table[k].reduction;
        options.weight = table[k].is_weighted ? weight : NULL;
        options.has_ignore_index = table[k].ignores_first;
        options.ignore_index = 2;
        assert_near(loss_of(k % 2 ? tokens : reduced, &options, 1, names, tensors, 2),
                    table[k].expected);
    }
    ot_tensor_destroy(weight);
}

static ot_model *attach(const char *declarations, const ot_loss_options *losses, int n_losses,
                        ot_value **loss)
{
    char text[512];
    ot_model *model;

    snprintf(text, sizeof text, "<ir_version: 8, opset_import: [\"\" : 17]> g %s", declarations);
    model = read_prepared(text);
    assert_ok(ot__loss_attach(model->graph, losses, n_losses, loss));
    return model;
}

static void labels_have_the_shape_of_scores_without_the_class_axis(void **state)
{
    ot_value *loss;
    ot_model *model = attach("(float[N, 5, H, 7] x) => (float[N, 5, H, 7] y) { y = Relu(x) }",
                             &defaults, 1, &loss);
    const ot_value *labels = find_value(model, "labels");

    (void)state;
    assert_true(labels->is_input);
    assert_int_equal(labels->dtype, OT_I64);
    assert_int_equal(labels->shape.ndim, 3);
    assert_string_equal(ot__dim_name(model, labels->shape.dim[0]), "N");
    assert_string_equal(ot__dim_name(model, labels->shape.dim[1]), "H");
    assert_int_equal(labels->shape.dim[2], 7);
    assert_int_equal(loss->shape.ndim, 0);
    ot_model_destroy(model);
}

static void labels_of_scores_with_classes_last_lack_the_last_axis(void **state)
{
    ot_loss_options options = defaults;
    const ot_value *labels;
    ot_value *loss;
    ot_model *model;

    (void)state;
    options.class_axis = -1;
    options.reduction = OT_REDUCTION_NONE;
    model = attach("(float[N, T, 5] x) => (float[N, T, 5] y) { y = Relu(x) }", &options, 1, &loss);
    labels = find_value(model, "labels");
    assert_int_equal(labels->shape.ndim, 2);
    assert_string_equal(ot__dim_name(model, labels->shape.dim[0]), "N");
    assert_string_equal(ot__dim_name(model, labels->shape.dim[1]), "T");
    assert_int_equal(loss->shape.ndim, 2);
    ot_model_destroy(model);
    // Two axes: the second is the last, and nothing is added.
    model = attach("(float[N, 5] x) => (float[N, 5] y) { y = Relu(x) }", &options, 1, &loss);
    assert_string_equal(loss->producer->inputs[0]->name, "y");
    ot_model_destroy(model);
}

// Names as ONNX Runtime's blocks give them, counted from 1.
static void names_are_those_of_onnxblock(void **state)
{
    ot_value *loss;
    ot_model *model = attach(plain, &defaults, 1, &loss);
    ot_loss_options mse = defaults;

    (void)state;
    assert_string_equal(loss->name, "onnx::loss::2");
    assert_string_equal(loss->producer->outputs[1]->name, "onnx::log_prob::3");
    assert_string_equal(loss->producer->name, "onnx::SoftmaxCrossEntropyLoss::4");
    ot_model_destroy(model);
    mse.loss = OT_LOSS_MSE;
    model = attach(plain, &mse, 1, &loss);
    assert_non_null(ot__graph_find(model->graph, "onnx::sub_output::1"));
    assert_non_null(ot__graph_find(model->graph, "onnx::pow_exponent::3"));
    assert_non_null(ot__graph_find(model->graph, "onnx::pow_output::4"));
    assert_string_equal(loss->name, "onnx::reducemean_output::6");
    ot_model_destroy(model);
}

static void several_losses_are_summed_with_their_factors(void **state)
{
    const char *const names[] = {"x", "target"};
    ot_tensor *tensors[] = {new_tensor(OT_F64, OT_SHAPE(2, 3), x_values),
                            new_tensor(OT_F64, OT_SHAPE(2, 3), t_values)};
    ot_loss_options losses[2] = {defaults, defaults};
    double mse = 0.0, l1 = 0.0;

    (void)state;
    for (int k = 0; k < N_VALUES; k++) {
        mse += (x_values[k] - t_values[k]) * (x_values[k] - t_values[k]) / N_VALUES;
        l1 += fabs(x_values[k] - t_values[k]) / N_VALUES;
    }
    losses[0].loss = OT_LOSS_MSE;
    losses[0].factor = 0.25;
    losses[1].loss = OT_LOSS_L1;
    losses[1].factor = 3.0;
    assert_near(loss_of(plain, losses, 2, names, tensors, 2), 0.25 * mse + 3.0 * l1);
}

static void losses_with_different_targets_get_one_input_each(void **state)
{
    ot_loss_options losses[2] = {defaults, defaults};
    ot_value *loss;
    ot_model *model;

    (void)state;
    losses[0].loss = losses[1].loss = OT_LOSS_MSE;
    losses[0].input = "y";
    losses[0].target = "t1";
    losses[1].input = "z";
    losses[1].target = "t2";
    model = attach("(float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Neg(x) }", losses, 2,
                   &loss);
    assert_int_equal(model->graph->n_inputs, 3);
    assert_string_equal(model->graph->inputs[1]->name, "t1");
    assert_string_equal(model->graph->inputs[2]->name, "t2");
    ot_model_destroy(model);
}

static void the_first_output_is_the_loss_when_there_is_none(void **state)
{
    ot_value *loss;
    ot_model *model = attach(plain, NULL, 0, &loss);

    (void)state;
    assert_string_equal(loss->name, "y");
    assert_int_equal(model->graph->n_nodes, 1);
    ot_model_destroy(model);
}

static void losses_that_cannot_be_are_refused(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[4] x) => (float[4] y) { y = Relu(x) }");
    const double ones[] = {1.0, 1.0};
    ot_tensor *weight = new_tensor(OT_F32, OT_SHAPE(2), ones);
    ot_loss_options options = defaults;
    ot_value *loss;

    (void)state;
    assert_fails(ot__loss_attach(model->graph, &options, 1, &loss), OT_ERR_INVALID,
                 "scores 'y' have shape [4], expected [N, C, ...]");
    options.input = "nope";
    assert_fails(ot__loss_attach(model->graph, &options, 1, &loss), OT_ERR_NOT_FOUND, "'nope'");
    ot_model_destroy(model);
    model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                          "g (float[4, 3] x) => (float[4, 3] y) { y = Relu(x) }");
    options = defaults;
    options.weight = weight;
    assert_fails(ot__loss_attach(model->graph, &options, 1, &loss), OT_ERR_INVALID,
                 "class weights have shape [2]");
    ot_tensor_destroy(weight);
    ot_model_destroy(model);
}

static void class_axes_that_cannot_be_are_refused(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[N] x, float u) => (float[N] y) { y = Relu(x) }");
    ot_loss_options options = defaults;
    ot_value *loss;

    (void)state;
    options.class_axis = 0;
    assert_fails(ot__loss_attach(model->graph, &options, 1, &loss), OT_ERR_INVALID,
                 "cross entropy: class axis 0, expected 1, or -1: the last");
    options.class_axis = -1;
    assert_fails(ot__loss_attach(model->graph, &options, 1, &loss), OT_ERR_INVALID,
                 "scores 'y' have shape [N], expected [N, ..., C]");
    find_value(model, "y")->has_shape = false;
    assert_fails(ot__loss_attach(model->graph, &options, 1, &loss), OT_ERR_UNSUPPORTED,
                 "no known number of axes");
    ot_model_destroy(model);
}

static void terms_that_would_broadcast_are_refused(void **state)
{
    ot_model *model =
        read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                      "g (float[4, 3] x, float[4, 1] z) => (float[4, 3] y, float[4, 1] u)"
                      "{ y = Relu(x) u = Neg(z) }");
    ot_loss_options losses[2] = {defaults, defaults};
    ot_value *loss;

    (void)state;
    losses[0].loss = losses[1].loss = OT_LOSS_L1;
    losses[0].reduction = losses[1].reduction = OT_REDUCTION_NONE;
    losses[1].input = "u";
    losses[1].target = "t";
    assert_fails(ot__loss_attach(model->graph, losses, 2, &loss), OT_ERR_INVALID,
                 "loss terms have shapes [4,3] and [4,1]");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mse_is_the_mean_of_squared_differences),
        cmocka_unit_test(l1_is_the_mean_of_absolute_differences),
        cmocka_unit_test(bce_is_stable_for_large_logits),
        cmocka_unit_test(bce_weighs_elements_and_positives),
        cmocka_unit_test(cross_entropy_takes_weights_and_ignores_a_label),
        cmocka_unit_test(labels_have_the_shape_of_scores_without_the_class_axis),
        cmocka_unit_test(cross_entropy_takes_classes_on_the_last_axis),
        cmocka_unit_test(labels_of_scores_with_classes_last_lack_the_last_axis),
        cmocka_unit_test(names_are_those_of_onnxblock),
        cmocka_unit_test(several_losses_are_summed_with_their_factors),
        cmocka_unit_test(losses_with_different_targets_get_one_input_each),
        cmocka_unit_test(the_first_output_is_the_loss_when_there_is_none),
        cmocka_unit_test(losses_that_cannot_be_are_refused),
        cmocka_unit_test(class_axes_that_cannot_be_are_refused),
        cmocka_unit_test(terms_that_would_broadcast_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
