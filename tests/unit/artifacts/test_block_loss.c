// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "block_tests.h"
#include "onnxtrain/session.h"

static const char forward[] = "(float[N, 3] x) => (float[N, 2] y)"
                              "<float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {0.5, -0.5}>"
                              "{ y = Gemm(x, w, b) }";

enum { N_ROWS = 2, N_CLASSES = 3, N_X = N_ROWS * N_CLASSES };
static const double x_values[N_X] = {0.5, -1.5, 2.0, 0.75, 3.0, -0.25};
static const double t_values[N_X] = {1.0, 0.0, 0.25, 0.0, 1.0, 0.5};
static const double w_values[N_CLASSES] = {1.25, -0.5, 0.8};
static const double weights[N_CLASSES] = {0.5, 1.0, 4.0}, positives[N_CLASSES] = {2.0, 0.25, 1.5};
static const int labels[N_ROWS] = {2, 0};

typedef struct loss_case {
    ot_loss loss;
    ot_reduction reduction;
    bool has_weight, has_positives;
    int ignored; // label; -1: none
} loss_case;

static double element_loss(const loss_case *c, const double *w, int k)
{
    const double y = x_values[k] * w[k % N_CLASSES], t = t_values[k];
    const double p = c->has_positives ? positives[k % N_CLASSES] : 1.0;

    if (c->loss == OT_LOSS_MSE)
        return (y - t) * (y - t);
    if (c->loss == OT_LOSS_L1)
        return fabs(y - t);
    return (c->has_weight ? weights[k % N_CLASSES] : 1.0) *
           (p * t * log1p(exp(-y)) + (1 - t) * log1p(exp(y)));
}

static double cross_entropy(const loss_case *c, const double *w)
{
    double sum = 0.0, count = 0.0;

    for (int row = 0; row < N_ROWS; row++) {
        const double factor = c->has_weight ? weights[labels[row]] : 1.0;
        double total = 0.0;

        if (labels[row] == c->ignored)
            continue;
        for (int k = 0; k < N_CLASSES; k++)
            total += exp(x_values[row * N_CLASSES + k] * w[k]);
        sum += factor * (log(total) - x_values[row * N_CLASSES + labels[row]] * w[labels[row]]);
        count += factor;
    }
    return c->reduction == OT_REDUCTION_MEAN ? sum / count : sum;
}

// The sum of the loss's elements, which is what its gradient is of.
static double loss_by_formula(const loss_case *c, const double *w)
{
    double sum = 0.0;

    if (c->loss == OT_LOSS_CROSS_ENTROPY)
        return cross_entropy(c, w);
    for (int k = 0; k < N_X; k++)
        sum += element_loss(c, w, k);
    return c->reduction == OT_REDUCTION_MEAN ? sum / N_X : sum;
}

static ot_artifacts *loss_artifacts(const loss_case *c)
{
    ot_tensor *weight = new_tensor(OT_F64, OT_SHAPE(N_CLASSES), weights);
    ot_tensor *positive = new_tensor(OT_F64, OT_SHAPE(N_CLASSES), positives);
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_block *b =
        block_over("(double[2, 3] x) => (double[2, 3] y) <double[3] w = {1.25, -0.5, 0.8}>"
                   "{ y = Mul(x, w) }");
    ot_artifacts *artifacts;

    loss.loss = c->loss;
    loss.reduction = c->reduction;
    loss.weight = c->has_weight ? weight : NULL;
    loss.pos_weight = c->has_positives ? positive : NULL;
    loss.has_ignore_index = c->ignored >= 0;
    loss.ignore_index = c->ignored;
    options.optimizer = &optimizer;
    optimizer.name = "SGDOptimizerV2";
    artifacts = train_with(b, ot_block_loss(b, ot_block_output(b, 0), &loss), &options);
    ot_tensor_destroy(weight);
    ot_tensor_destroy(positive);
    return artifacts;
}

static void check_loss(const loss_case *c)
{
    static const float lr = 0.25f;
    const double label_values[] = {labels[0], labels[1]}, h = 1e-5;
    const bool is_classes = c->loss == OT_LOSS_CROSS_ENTROPY;
    ot_artifacts *artifacts = loss_artifacts(c);
    ot_tensor *x = new_tensor(OT_F64, OT_SHAPE(N_ROWS, N_CLASSES), x_values);
    ot_tensor *t = is_classes ? new_tensor(OT_I64, OT_SHAPE(N_ROWS), label_values)
                              : new_tensor(OT_F64, OT_SHAPE(N_ROWS, N_CLASSES), t_values);
    ot_tensor *loss = NULL, *w = NULL;
    ot_session *session;
    double sum = 0.0;

    assert_ok(ot_session_create_from_artifacts(artifacts, NULL, &session));
    assert_ok(ot_session_set_learning_rate(session, lr));
    assert_ok(ot_session_train_step(session, (const ot_tensor *[]){x, t}, 2, &loss, 1));
    assert_ok(ot_session_optimizer_step(session));
    assert_ok(ot_checkpoint_get_parameter(ot_artifacts_checkpoint(artifacts), "w", &w));
    assert_int_equal(ot_tensor_count(loss), c->reduction != OT_REDUCTION_NONE ? 1
                                            : is_classes                      ? N_ROWS
                                                                              : N_X);
    for (int64_t k = 0; k < ot_tensor_count(loss); k++)
        sum += ot__tensor_get_f64(loss, k);
    if (!(fabs(sum - loss_by_formula(c, w_values)) < 1e-12 * 100))
        fail_msg("loss %d: %.17g, expected %.17g", (int)c->loss, sum, loss_by_formula(c, w_values));
    for (int k = 0; k < N_CLASSES; k++) {
        double above[N_CLASSES], below[N_CLASSES], slope;

        memcpy(above, w_values, sizeof above);
        memcpy(below, w_values, sizeof below);
        above[k] += h;
        below[k] -= h;
        slope = (loss_by_formula(c, above) - loss_by_formula(c, below)) / (2 * h);
        if (!(fabs(ot__tensor_get_f64(w, k) - (w_values[k] - (double)lr * slope)) < 1e-8))
            fail_msg("loss %d reduction %d: w[%d] is %.17g, expected %.17g", (int)c->loss,
                     (int)c->reduction, k, ot__tensor_get_f64(w, k),
                     w_values[k] - (double)lr * slope);
    }
    ot_tensor_destroy(w);
    ot_tensor_destroy(loss);
    ot_tensor_destroy(t);
    ot_tensor_destroy(x);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
}

static void losses_train_by_their_formulas_under_every_reduction(void **state)
{
    static const loss_case cases[] = {
        {OT_LOSS_MSE, OT_REDUCTION_MEAN, false, false, -1},
        {OT_LOSS_L1, OT_REDUCTION_MEAN, false, false, -1},
        {OT_LOSS_BCE_WITH_LOGITS, OT_REDUCTION_MEAN, false, false, -1},
        {OT_LOSS_BCE_WITH_LOGITS, OT_REDUCTION_MEAN, true, true, -1},
        {OT_LOSS_CROSS_ENTROPY, OT_REDUCTION_MEAN, false, false, -1},
        {OT_LOSS_CROSS_ENTROPY, OT_REDUCTION_MEAN, true, false, -1},
        {OT_LOSS_CROSS_ENTROPY, OT_REDUCTION_MEAN, true, false, 2},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        for (int r = OT_REDUCTION_MEAN; r <= OT_REDUCTION_NONE; r++) {
            loss_case c = cases[i];

            c.reduction = (ot_reduction)r;
            check_loss(&c);
        }
    }
}

static void two_losses_of_one_target_name_share_the_input(void **state)
{
    ot_loss_options l1 = OT_LOSS_OPTIONS_INIT;
    ot_block *b = block_over(forward);
    ot_value *y = ot_block_output(b, 0), *sum;
    ot_model *model;

    (void)state;
    l1.loss = OT_LOSS_L1;
    l1.factor = 0.5;
    sum = ot_block_add(b, mse_of(b, y), ot_block_loss(b, NULL, &l1)); // NULL: the first output
    model = finished(b, sum);
    assert_int_equal(ot_model_input_count(model), 2);
    assert_string_equal(ot_model_input_name(model, 1), "target");
    ot_model_destroy(model);
}

static void a_loss_given_as_a_model_binds_to_the_value(void **state)
{
    ot_model *custom = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                 "l (float[M, 2] a, float[M, 2] truth) => (float z)"
                                 "{ d = Sub(a, truth) z = ReduceSum<keepdims = 0>(d) }");
    ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_block *b = block_over(forward);
    ot_value *y = ot_block_abs(b, ot_block_output(b, 0));
    ot_model *model;

    (void)state;
    options.loss = OT_LOSS_CUSTOM;
    options.custom = custom;
    model = finished(b, ot_block_loss(b, y, &options));
    ot_model_destroy(custom);
    assert_nodes(model, "   y = Gemm (x, w, b)\n"
                        "   [\"onnx::Abs::2\"] \"onnx::abs_output::1\" = Abs (y)\n"
                        "   d = Sub (\"onnx::abs_output::1\", truth)\n"
                        "   z = ReduceSum <keepdims: int = 0> (d)\n");
    assert_string_equal(ot_model_input_name(model, 1), "truth");
    ot_model_destroy(model);
}

static void losses_that_cannot_be_are_refused_with_their_name(void **state)
{
    const double ones[] = {1, 1, 1};
    ot_tensor *three = new_tensor(OT_F32, OT_SHAPE(3), ones);
    ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_block *b = block_over(forward);

    (void)state;
    options.weight = three; // the scores have two classes
    assert_refused(b, ot_block_loss(b, NULL, &options), OT_ERR_INVALID,
                   "cross entropy: class weights have shape [3]");
    b = block_over("(float[4] x) => (float[4] x) { }");
    options.weight = NULL;
    assert_refused(b, ot_block_loss(b, NULL, &options), OT_ERR_INVALID,
                   "cross entropy: scores 'x' have shape [4]");
    b = block_over(forward);
    options.loss = OT_LOSS_MSE;
    options.input = "nope";
    assert_refused(b, ot_block_loss(b, NULL, &options), OT_ERR_NOT_FOUND,
                   "mse: loss input 'nope' is not a value of the model");
    b = block_over(forward);
    options.reduction = (ot_reduction)9;
    assert_refused(b, ot_block_loss(b, NULL, &options), OT_ERR_INVALID,
                   "loss: unknown reduction 9 (known: mean, sum, none)");
    b = block_over(forward);
    options.size = 0;
    assert_refused(b, ot_block_loss(b, NULL, &options), OT_ERR_INVALID,
                   "loss: ot_loss_options: size is 0");
    ot_tensor_destroy(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_train_by_their_formulas_under_every_reduction),
        cmocka_unit_test(a_loss_given_as_a_model_binds_to_the_value),
        cmocka_unit_test(losses_that_cannot_be_are_refused_with_their_name),
        cmocka_unit_test(two_losses_of_one_target_name_share_the_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
