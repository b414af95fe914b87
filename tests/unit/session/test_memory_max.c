// SPDX-License-Identifier: Apache-2.0
// Small models that ask for much, on a machine of 8 GiB: refused before anything is taken.
#include "evaluate.h"
#include "onnxtrain/onnxtrain.h"

static const size_t gib = (size_t)1 << 30;

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "

static int small_machine(void **state)
{
    (void)state;
    ot__memory_set_machine(8 * gib);
    return 0;
}

static int real_machine(void **state)
{
    (void)state;
    ot__memory_set_machine(0);
    return 0;
}

// 1024 x 1024 x 2816 elements of f32 are 11 GiB.
static const char large_step[] =
    HEAD "g (float[n, 1] x) => (float[n, 1] y)"
         "<float[1, 1] w = {2}, int64[3] s = {1024, 1024, 2816}>"
         "{ h = MatMul(x, w) k = ConstantOfShape(s) t = ReduceSum<keepdims = 0>(k) y = Add(h, t) }";
static const char large_parameter[] =
    HEAD "g (float[n, 1] x) => (float[n, 1] y)"
         "{ w = RandomNormal<shape = [1, 2952790016]>() h = MatMul(x, w)"
         " y = ReduceSum<keepdims = 1>(h) }";
static const char many_constants[] = // ten times 60 MiB, each small enough to be folded
    HEAD "g (float[n, 1] x) => (float[n, 1] y) <float[1, 1] w = {2}, int64[1] s = {15728640}>"
         "{ h = MatMul(x, w)"
         " a = ConstantOfShape(s) b = Neg(a) c = Exp(b) d = Neg(c) e = Exp(d) f = Neg(e) i = Exp(f)"
         " j = Neg(i) k = Exp(j) l = Neg(k) t = ReduceSum<keepdims = 0>(l) y = Add(h, t) }";

static ot_artifacts_options mse(ot_loss_options *loss)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    *loss = (ot_loss_options)OT_LOSS_OPTIONS_INIT;
    loss->loss = OT_LOSS_MSE;
    options.losses = loss;
    options.n_losses = 1;
    return options;
}

static ot_status train_once(const char *text, const ot_session_options *how)
{
    ot_loss_options loss;
    const ot_artifacts_options options = mse(&loss);
    ot_model *model = read_text(text);
    ot_artifacts *artifacts = NULL;
    ot_session *session = NULL;
    ot_tensor *x = NULL, *target = NULL;
    ot_status st = ot_artifacts_generate(model, &options, &artifacts);

    if (st == OT_OK)
        st = ot_session_create_from_artifacts(artifacts, how, &session);
    if (st == OT_OK) {
        assert_ok(ot_tensor_create(OT_F32, &OT_SHAPE(2, 1), &x));
        assert_ok(ot_tensor_create(OT_F32, &OT_SHAPE(2, 1), &target));

        const ot_tensor *const inputs[] = {x, target};

        st = ot_session_train_step(session, inputs, 2, NULL, 0);
    }
    ot_tensor_destroy(x);
    ot_tensor_destroy(target);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
    return st;
}

static void a_step_of_11_gib_is_refused(void **state)
{
    (void)state;
    assert_fails(train_once(large_step, NULL), OT_ERR_NO_MEMORY, "largest: 'k' 11811160064");
    assert_int_equal(ot__memory_taken(), 0);
}

static void a_parameter_of_11_gib_is_refused(void **state)
{
    (void)state;
    assert_fails(train_once(large_parameter, NULL), OT_ERR_NO_MEMORY,
                 "11811160064 bytes are needed");
    assert_int_equal(ot__memory_taken(), 0);
}

static void a_run_of_11_gib_is_refused(void **state)
{
    ot_model *model = read_text(large_step);
    ot_tensor *x, *y = NULL;

    (void)state;
    assert_ok(ot_tensor_create(OT_F32, &OT_SHAPE(2, 1), &x));

    const ot_tensor *const inputs[] = {x};

    assert_fails(ot_model_run(model, NULL, inputs, 1, &y, 1), OT_ERR_NO_MEMORY, "largest: 'k'");
    assert_null(y);
    ot_tensor_destroy(x);
    ot_model_destroy(model);
}

static void constants_computed_when_a_model_is_built_count(void **state)
{
    (void)state;
    ot__memory_set_machine(gib / 4);
    assert_fails(train_once(many_constants, NULL), OT_ERR_NO_MEMORY, "are allowed");
    assert_int_equal(ot__memory_taken(), 0);
}

static void a_session_may_ask_for_more_than_the_default(void **state)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    (void)state;
    ot__memory_set_machine(1000); // parameters, gradients and a step of two rows take more
    assert_fails(train_once(HEAD "g (float[n, 1] x) => (float[n, 200] y)"
                                 "{ w = RandomNormal<shape = [1, 200]>() y = MatMul(x, w) }",
                            NULL),
                 OT_ERR_NO_MEMORY, "750 are allowed");
    ot_set_memory_max(100000);
    options.memory_max = 50000;
    assert_fails(train_once(large_step, &options), OT_ERR_NO_MEMORY, "largest: 'k'");
    ot_set_memory_max(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_machine, real_machine)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_of_11_gib_is_refused),
        TEST(a_parameter_of_11_gib_is_refused),
        TEST(a_run_of_11_gib_is_refused),
        TEST(constants_computed_when_a_model_is_built_count),
        TEST(a_session_may_ask_for_more_than_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
