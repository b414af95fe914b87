// SPDX-License-Identifier: Apache-2.0
// The loss scale: an input of the training model that the gradients are multiplied with, and that
// the update divides them by again. By a power of two both are exact.
#include "session_fixture.h"

static const char net_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "net (T[N,3] x) => (T[N,2] y) <T[3,2] w = {1, 2, 3, 4, 5, 6}>\n"
                               "{ z = MatMul(x, w)  y = Tanh(z) }\n";
// Its loss is a vector: the backward pass starts from as many numbers.
static const char rows_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (T[N,3] x) => (T[N] loss) <T[3] w = {1, 2, 3}>\n"
                                "{ p = Mul(x, w)  last = Constant<value_ints = [1]>()\n"
                                "  loss = ReduceSum<keepdims = 0>(p, last) }\n";

enum { N_ROWS = 2 };

typedef struct made {
    ot_artifacts *artifacts;
    ot_session *session;
    ot_tensor *x, *target;
    int n_inputs;
} made;

static made make_session(const char *text, ot_dtype dtype, bool with_loss, int loss_scale)
{
    const double x[] = {0.5, -1, 2, 0.25, 3, -3}, target[] = {0, 1, 1, 0};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = mlp_model(text, type_names[dtype]);
    made m = {.n_inputs = with_loss ? 2 : 1};

    loss.loss = OT_LOSS_MSE;
    options.losses = with_loss ? &loss : NULL;
    options.n_losses = with_loss;
    options.loss_scale = loss_scale;
    if (ot_artifacts_generate(model, &options, &m.artifacts) != OT_OK ||
        ot_session_create_from_artifacts(m.artifacts, NULL, &m.session) != OT_OK)
        fail_msg("%s", ot_error_message());
    ot_model_destroy(model);
    m.x = mlp_tensor(dtype, OT_SHAPE(N_ROWS, 3), x);
    m.target = mlp_tensor(dtype, OT_SHAPE(N_ROWS, 2), target);
    return m;
}

static void drop_session(made *m)
{
    ot_session_destroy(m->session);
    ot_artifacts_destroy(m->artifacts);
    ot_tensor_destroy(m->x);
    ot_tensor_destroy(m->target);
}

// The loss, or the first of them.
static double train_made(const made *m)
{
    const ot_tensor *const inputs[] = {m->x, m->target};
    ot_tensor *loss = NULL;
    double value;

    if (ot_session_train_step(m->session, inputs, m->n_inputs, &loss, 1) != OT_OK)
        fail_msg("%s", ot_error_message());
    value = ot__tensor_get_f64(loss, 0);
    ot_tensor_destroy(loss);
    return value;
}

static void compare(const char *text, ot_dtype dtype, bool with_loss)
{
    enum { N_MAX = 6 };
    const double scale = 1024;
    made plain = make_session(text, dtype, with_loss, 0);
    made scaled = make_session(text, dtype, with_loss, 1);
    const int64_t n = ot_session_parameters_size(plain.session, OT_PARAMETERS_ALL);
    float a[N_MAX], b[N_MAX];

    assert_int_equal(ot_session_input_count(scaled.session, OT_MODE_TRAIN), plain.n_inputs);
    assert_int_equal(ot_session_set_loss_scale(scaled.session, scale), OT_OK);
    for (int k = 0; k < 2; k++)
        assert_near(train_made(&scaled), train_made(&plain), 0);
    assert_int_equal(ot_session_get_gradients(plain.session, a, n), OT_OK);
    assert_int_equal(ot_session_get_gradients(scaled.session, b, n), OT_OK);
    for (int i = 0; i < n; i++)
        assert_true(fabs((double)a[i]) > 0 && fabs((double)b[i] - scale * (double)a[i]) <= 0);
    assert_int_equal(ot_session_update(plain.session, 2, NULL), OT_OK);
    assert_int_equal(ot_session_update(scaled.session, 2, NULL), OT_OK);
    assert_int_equal(ot_session_get_parameters(plain.session, OT_PARAMETERS_ALL, a, n), OT_OK);
    assert_int_equal(ot_session_get_parameters(scaled.session, OT_PARAMETERS_ALL, b, n), OT_OK);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    drop_session(&plain);
    drop_session(&scaled);
}

static void gradients_are_scaled_and_neither_loss_nor_update(void **state)
{
    (void)state;
    compare(net_text, OT_F32, true);
}

static void the_scale_takes_the_type_of_the_loss(void **state)
{
    (void)state;
    compare(net_text, OT_F64, true);
}

static void every_element_of_a_loss_is_scaled(void **state)
{
    (void)state;
    compare(rows_text, OT_F32, false);
}

static void a_model_may_be_made_for_a_scale_and_used_without(void **state)
{
    made plain = make_session(net_text, OT_F32, true, 0), scalable;
    float a[6], b[6];

    (void)state;
    scalable = make_session(net_text, OT_F32, true, 1);
    (void)train_made(&plain);
    (void)train_made(&scalable);
    assert_int_equal(ot_session_get_gradients(plain.session, a, 6), OT_OK);
    assert_int_equal(ot_session_get_gradients(scalable.session, b, 6), OT_OK);
    assert_memory_equal(a, b, sizeof a);
    drop_session(&plain);
    drop_session(&scalable);
}

static void scales_that_cannot_be_are_refused(void **state)
{
    static const double scales[] = {0, -1, (double)INFINITY, (double)NAN, 1e39, 1e-60};
    made plain = make_session(net_text, OT_F32, true, 0);
    made scaled = make_session(net_text, OT_F32, true, 1);

    (void)state;
    for (size_t i = 0; i < OT_COUNT(scales); i++)
        assert_int_equal(ot_session_set_loss_scale(scaled.session, scales[i]), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "the loss scale is 1e-60, expected a finite f32 "
                                               "number above 0"));
    assert_int_equal(ot_session_set_loss_scale(plain.session, 1), OT_OK);
    assert_int_equal(ot_session_set_loss_scale(plain.session, 2), OT_ERR_STATE);
    assert_non_null(strstr(ot_error_message(), "no input 'onnxtrain.loss_scale'"));
    drop_session(&plain);
    drop_session(&scaled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_scaled_and_neither_loss_nor_update),
        cmocka_unit_test(the_scale_takes_the_type_of_the_loss),
        cmocka_unit_test(every_element_of_a_loss_is_scaled),
        cmocka_unit_test(a_model_may_be_made_for_a_scale_and_used_without),
        cmocka_unit_test(scales_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
