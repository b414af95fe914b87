// SPDX-License-Identifier: Apache-2.0
// Artifacts whose training model is in ONNX's own operators train to the same values, and say what
// those operators cannot.
#include <math.h>

#include "evaluate.h"
#include "onnxtrain/artifacts.h"
#include "onnxtrain/gradients.h"
#include "onnxtrain/session.h"

#define ONLY_ACCUMULATORS "com.microsoft.InPlaceAccumulatorV2"

typedef struct net {
    const char *text;
    ot_shape input, labels;
    const char *left; // operators that ONNX does not have
} net;

static const net mlp = {
    "<ir_version: 8, opset_import: [\"\" : 17]> net (double[N,3] x) => (double[N,4] y)"
    "<double[3,5] w1 = {1,-2,3,4,-5,6,7,-8,9,1,2,-3,4,5,6}, double[5] b1 = {1,2,-3,4,5},"
    " double[5,4] w2 = {1,2,3,4,-5,6,7,8,9,1,2,3,4,5,-6,7,8,9,1,2}, double[4] b2 = {1,-2,3,4},"
    " double tenth = {0.1}>"
    "{ s = Mul(x, tenth) h = Gemm(s, w1, b1) a = Tanh(h) r = LeakyRelu<alpha = 0.2>(a)"
    "  z = Gemm(r, w2, b2) y = Mul(z, tenth) }",
    OT_SHAPE(4, 3), OT_SHAPE(4), ONLY_ACCUMULATORS};

static const net cnn = {
    "<ir_version: 8, opset_import: [\"\" : 17]> net (double[N,1,6,6] x) => (double[N,2] y)"
    "<double[2,1,3,3] w1 = {1,-2,3,4,-5,6,7,-8,9,1,2,-3,4,5,6,-7,8,9}, double[2] b1 = {1,-2},"
    " double[18,2] w2 = {1,2,3,-4,5,6,7,8,-9,1,2,3,4,5,-6,7,8,9,1,-2,3,4,5,6,7,-8,9,1,2,3,-4,5,6,7,"
    "8,9}, double hundredth = {0.01}>"
    "{ c = Conv<pads = [1,1,1,1]>(x, w1, b1) r = Relu(c)"
    "  p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(r) f = Flatten(p) z = MatMul(f, w2)"
    "  y = Mul(z, hundredth) }",
    OT_SHAPE(3, 1, 6, 6), OT_SHAPE(3), ONLY_ACCUMULATORS};

static const net transformer = {
    "<ir_version: 8, opset_import: [\"\" : 20]>"
    " net (double[N,4,3] x) => (double[N,4,2] y)"
    "<double[3] g = {1,2,3}, double[3] b = {0.1,0.2,-0.3}, double[3,2] w = {1,-2,3,4,5,-6}>"
    "{ n = LayerNormalization(x, g, b) a = Gelu(n) e = Elu(a) t = MatMul(e, w)"
    "  s = Transpose<perm = [0,2,1]>(t) y = Transpose<perm = [0,2,1]>(s) }",
    OT_SHAPE(2, 4, 3), OT_SHAPE(2, 4), ONLY_ACCUMULATORS};

// The gradient of the filter needs the size of the images.
static const net open_cnn = {
    "<ir_version: 8, opset_import: [\"\" : 17]> net (double[N,1,H,W] x) => (double[N,2] y)"
    "<double[2,1,3,3] w1 = {1,-2,3,4,-5,6,7,-8,9,1,2,-3,4,5,6,-7,8,9}>"
    "{ c = Conv<pads = [1,1,1,1], strides = [2,2]>(x, w1) p = GlobalAveragePool(c) y = Flatten(p)"
    " }",
    OT_SHAPE(3, 1, 6, 6), OT_SHAPE(3), "com.microsoft.ConvGrad, " ONLY_ACCUMULATORS};

static ot_artifacts *artifacts_of(const net *n, int standard_ops)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts = NULL;
    ot_model *model = read_text(n->text);

    sgd.name = "SGDOptimizerV2";
    loss.class_axis = n->labels.ndim == 2 ? -1 : 1;
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &sgd;
    options.standard_ops = standard_ops;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static ot_session *trained(const net *n, ot_artifacts *artifacts)
{
    ot_tensor *in[2] = {NULL};
    ot_session *session = NULL;

    assert_ok(ot_tensor_create(OT_F64, &n->input, &in[0]));
    assert_ok(ot_tensor_create(OT_I64, &n->labels, &in[1]));
    for (int64_t k = 0; k < ot_tensor_count(in[0]); k++)
        ((double *)in[0]->data)[k] = (double)((k * 37 + 11) % 23) / 7.0 - 1.5;
    for (int64_t k = 0; k < ot_tensor_count(in[1]); k++)
        ((int64_t *)in[1]->data)[k] = k % 2;
    assert_ok(ot_session_create_from_artifacts(artifacts, NULL, &session));
    assert_ok(ot_session_set_learning_rate(session, 0.1));
    for (int step = 0; step < 5; step++) {
        assert_ok(ot_session_train_step(session, (const ot_tensor *const *)in, 2, NULL, 0));
        assert_ok(ot_session_optimizer_step(session));
        ot_session_reset_gradients(session);
    }
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(in[i]);
    return session;
}

static void assert_same_parameter(const char *name, const ot_checkpoint *a, const ot_checkpoint *b,
                                  const ot_checkpoint *before)
{
    ot_tensor *x = NULL, *y = NULL, *z = NULL;
    double moved = 0;

    assert_ok(ot_checkpoint_get_parameter(a, name, &x));
    assert_ok(ot_checkpoint_get_parameter(b, name, &y));
    assert_ok(ot_checkpoint_get_parameter(before, name, &z));
    for (int64_t k = 0; k < ot_tensor_count(x); k++) {
        const double found = ((double *)x->data)[k], expected = ((double *)y->data)[k];

        if (!(fabs(found - expected) <= 1e-11 * (1 + fabs(expected))))
            fail_msg("%s, element %d is %.17g, expected %.17g", name, (int)k, found, expected);
        moved += fabs(expected - ((double *)z->data)[k]);
    }
    assert_true(moved > 1e-6);
    ot_tensor_destroy(x);
    ot_tensor_destroy(y);
    ot_tensor_destroy(z);
}

static bool has_note(const ot_artifacts *artifacts, const char *text)
{
    for (int i = 0; i < ot_artifacts_note_count(artifacts); i++)
        if (strstr(ot_artifacts_note(artifacts, i, NULL), text) != NULL)
            return true;
    return false;
}

static void assert_trains_alike(const net *n)
{
    ot_artifacts *standard = artifacts_of(n, 1), *usual = artifacts_of(n, 0),
                 *before = artifacts_of(n, 0);
    const char *left =
        ot_model_metadata(ot_artifacts_training_model(standard), OT_METADATA_NONSTANDARD);
    ot_session *a = trained(n, standard), *b = trained(n, usual);
    const ot_checkpoint *was = ot_artifacts_checkpoint(before);

    assert_non_null(left);
    assert_string_equal(left, n->left);
    assert_true(has_note(standard, n->left));
    assert_false(has_note(usual, "ONNX's own operators"));
    assert_null(ot_model_metadata(ot_artifacts_training_model(usual), OT_METADATA_NONSTANDARD));
    for (int i = 0; i < ot_checkpoint_parameter_count(was); i++)
        assert_same_parameter(ot_checkpoint_parameter_name(was, i), ot_session_checkpoint(a),
                              ot_session_checkpoint(b), was);
    ot_session_destroy(a);
    ot_session_destroy(b);
    ot_artifacts_destroy(standard);
    ot_artifacts_destroy(usual);
    ot_artifacts_destroy(before);
}

static void an_mlp_trains_alike(void **state)
{
    (void)state;
    assert_trains_alike(&mlp);
}

static void a_cnn_trains_alike(void **state)
{
    (void)state;
    assert_trains_alike(&cnn);
}

static void normalisations_and_gelus_train_alike(void **state)
{
    (void)state;
    assert_trains_alike(&transformer);
}

static void what_has_no_standard_form_is_named_and_trains(void **state)
{
    (void)state;
    assert_trains_alike(&open_cnn);
}

// The models beside it, and the names of gradients, are the same.
static void the_eval_model_stays_as_it_is(void **state)
{
    ot_artifacts *standard = artifacts_of(&transformer, 1), *usual = artifacts_of(&transformer, 0);
    char *a = NULL, *b = NULL;

    (void)state;
    assert_ok(ot_model_to_text(ot_artifacts_eval_model(standard), &a));
    assert_ok(ot_model_to_text(ot_artifacts_eval_model(usual), &b));
    assert_string_equal(a, b);
    ot_string_free(a);
    ot_string_free(b);
    assert_ok(ot_model_to_text(ot_artifacts_training_model(standard), &a));
    assert_non_null(strstr(a, "w_grad"));
    ot_string_free(a);
    ot_artifacts_destroy(standard);
    ot_artifacts_destroy(usual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_mlp_trains_alike),
        cmocka_unit_test(a_cnn_trains_alike),
        cmocka_unit_test(normalisations_and_gelus_train_alike),
        cmocka_unit_test(what_has_no_standard_form_is_named_and_trains),
        cmocka_unit_test(the_eval_model_stays_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
