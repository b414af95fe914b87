// SPDX-License-Identifier: Apache-2.0
// Operators of libraries run and train as those here; what is wrong with one is said, and nothing
// is loaded. The libraries: examples/op_library, and wrong.c, which is told what it has wrong.
#include <pthread.h>
#include <unistd.h>

#include "onnxtrain/artifacts.h"
#include "onnxtrain/operators.h"
#include "onnxtrain/session.h"
#include "op/op.h"
#include "unit/train/gradients_fixture.h"

#define EXAMPLE_HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"example\" : 1]> "

static int load_example(void **state)
{
    (void)state;
    return ot_op_library_load(OT_EXAMPLE_LIBRARY) == OT_OK ? 0 : -1;
}

static ot_status load_wrong(const char *what)
{
    setenv("OT_TEST_LIBRARY", what, 1);
    return ot_op_library_load(OT_WRONG_LIBRARY);
}

// ---- what is loaded works ----

// The reference is the formula in f64.
static void kernels_give_the_formula_in_every_type(void **state)
{
    static const char *const types[] = {"float", "double", "float16", "bfloat16"};
    static const double tolerance[] = {1e-6, 1e-14, 2e-3, 2e-2};
    static const ot_dtype dtypes[] = {OT_F32, OT_F64, OT_F16, OT_BF16};
    const double x[] = {-3, -0.5, 0, 1, 2.5, 100};

    (void)state;
    for (int i = 0; i < 4; i++) {
        ot_tensor *in = new_tensor(dtypes[i], OT_SHAPE(2, 3), x), *out = NULL;
        char text[300];
        ot_model *model;

        snprintf(text, sizeof text,
                 EXAMPLE_HEAD "g (%s[A,3] x) => (%s[A,3] y) { y = example.Squareplus<b = 2.0>(x) }",
                 types[i], types[i]);
        model = model_of(text);
        assert_ok(ot_model_run(model, NULL, (const ot_tensor *const *)&in, 1, &out, 1));
        for (int k = 0; k < 6; k++)
            assert_near(ot__tensor_get_f64(out, k), (x[k] + sqrt(x[k] * x[k] + 2)) / 2,
                        tolerance[i]);
        ot_tensor_destroy(out);
        ot_tensor_destroy(in);
        ot_model_destroy(model);
    }
}

static void gradients_are_central_differences(void **state)
{
    static const char *const wrt[] = {"x", "w"};
    char *left =
        check_gradients(EXAMPLE_HEAD "g (double[N,K] x, double[K,4] w) => (double[N,4] y) { "
                                     "h = MatMul(x, w) c = example.Center(h) s = Sigmoid(c) "
                                     "y = example.Squareplus<b = 0.7>(s) }",
                        wrt, 2);

    (void)state;
    assert_non_null(strstr(left, "example"));
    free(left);
}

// An MSE that the network can bring to about 0.
static void a_small_model_trains(void **state)
{
    static const char net[] =
        EXAMPLE_HEAD "net (float[N,2] x) => (float[N,1] y)"
                     "<float[2,3] w1 = {0.5,-0.3,0.8,0.1,0.9,-0.4}, float[3,1] w2 = {0.3,-0.2,0.5}>"
                     "{ h = MatMul(x, w1) c = example.Center(h) a = example.Squareplus(c) "
                     "y = MatMul(a, w2) }";
    const double inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 2};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = model_of(net);
    ot_artifacts *artifacts = NULL;
    ot_session *session = NULL;
    ot_tensor *in[] = {new_tensor(OT_F32, OT_SHAPE(4, 2), inputs),
                       new_tensor(OT_F32, OT_SHAPE(4, 1), targets)};
    double first = 0, last = 0;

    (void)state;
    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_ok(ot_session_create_from_artifacts(artifacts, NULL, &session));
    assert_ok(ot_session_set_learning_rate(session, 0.02));
    for (int step = 0; step < 200; step++) {
        ot_tensor *out = NULL;

        assert_ok(ot_session_train_step(session, (const ot_tensor *const *)in, 2, &out, 1));
        assert_ok(ot_session_optimizer_step(session));
        ot_session_reset_gradients(session);
        last = ot__tensor_get_f64(out, 0);
        first = step == 0 ? last : first;
        ot_tensor_destroy(out);
    }
    assert_true(first > 0.3);
    assert_true(last < first / 20);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(in[i]);
}

static void what_infer_refuses_names_the_node(void **state)
{
    ot_model *model = model_of(EXAMPLE_HEAD "g (float x) => (float y) { y = example.Center(x) }");
    const double one = 1;
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE_SCALAR, &one), *y = NULL;

    (void)state;
    assert_fails(ot_model_run(model, NULL, (const ot_tensor *const *)&x, 1, &y, 1), OT_ERR_INVALID,
                 "X is a scalar, expected at least one axis");
    assert_non_null(strstr(ot_error_message(), "Center"));
    ot_tensor_destroy(x);
    ot_model_destroy(model);
}

// ---- loading ----

static void loading_twice_changes_nothing(void **state)
{
    const int n = ot__op_count();

    (void)state;
    assert_ok(ot_op_library_load(OT_EXAMPLE_LIBRARY));
    assert_int_equal(ot__op_count(), n);
    assert_string_equal(ot__op_records(n - 1)->name, "Center");
}

static void *load_again(void *context)
{
    (void)context;
    return ot_op_library_load(OT_EXAMPLE_LIBRARY) == OT_OK && ot__op_find("example", "Center", 1)
               ? NULL
               : (void *)"failed";
}

static void threads_may_load_at_once(void **state)
{
    pthread_t thread[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, load_again, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *result;

        pthread_join(thread[i], &result);
        assert_null(result);
    }
}

static void files_that_are_no_library_are_refused(void **state)
{
    (void)state;
    assert_fails(ot_op_library_load("/no/such/file.so"), OT_ERR_IO,
                 "/no/such/file.so: cannot be opened: No such file");
    assert_fails(ot_op_library_load("missing.so"), OT_ERR_IO, "missing.so: cannot be opened");
    assert_fails(ot_op_library_load(OT_TEST_DIR "/wrong.c"), OT_ERR_FORMAT, "cannot be loaded");
    assert_fails(ot_op_library_load(OT_NO_LIBRARY), OT_ERR_FORMAT,
                 "does not define ot_op_library()");
}

static void another_abi_is_refused_with_both_numbers(void **state)
{
    char numbers[80];

    (void)state;
    snprintf(numbers, sizeof numbers, "version %d of the interface", OT_OP_ABI + 41);
    assert_fails(load_wrong("abi"), OT_ERR_UNSUPPORTED, numbers);
    snprintf(numbers, sizeof numbers, "this is version %d", OT_OP_ABI);
    assert_non_null(strstr(ot_error_message(), numbers));
    assert_non_null(strstr(ot_error_message(), OT_WRONG_LIBRARY));
}

static const struct refusal {
    const char *what, *message;
} refusals[] = {
    {"infer", "wrong.Thing, opset 1: infer is NULL"},
    {"kernels", "wrong.Thing, opset 1: there is no reference kernel"},
    {"reference", "there is no reference kernel"},
    {"run", "kernel 'ref' has no run"},
    {"f64", "no reference kernel takes f64 at X"},
    {"gradient", "neither grad nor OT_OP_NO_GRAD"},
    {"both", "both grad and OT_OP_NO_GRAD"},
    {"port", "input 0 has an empty name"},
    {"type", "input 0 (X) has type ''"},
    {"variable", "input 0 (X) has type 'U', which is neither a variable of 'T: f32' nor a type"},
    {"types", "types 'T f32' are not as in 'T: f32 f64; I: i64'"},
    {"outputs", "outputs is NULL"},
    {"flags", "unknown flags 0x40000000"},
    {"since", "opsets count from 1"},
    {"order", "wrong.Thing, opset 1: stands behind opset 2"},
    {"other", "wrong.Another, opset 2: stands among the records of Thing"},
    {"builtin", "there is an operator ai.onnx.Relu already"},
    {"loaded", "there is an operator example.Center already"},
    {"twice", "wrong.Good stands twice in it"},
    {"tile without f64", "it has f64"},
    {"tile of i64", "it has i32 or i64 where T may be that"},
    {"tile of another port", "its inputs are of the variable T"},
    {"none", "it has 0 operators"},
    {"no ops", "ops is NULL"},
    {"missing", "operator 1 of it is NULL"},
};

// The first operator of the library is right: it is not there afterwards either.
static void wrong_records_are_refused_and_nothing_is_loaded(void **state)
{
    const int n = ot__op_count();

    (void)state;
    for (size_t i = 0; i < OT_COUNT(refusals); i++) {
        assert_fails(load_wrong(refusals[i].what), OT_ERR_INVALID, refusals[i].message);
        assert_non_null(strstr(ot_error_message(), OT_WRONG_LIBRARY));
        assert_int_equal(ot__op_count(), n);
        assert_null(ot__op_find("wrong", "Good", 1));
    }
    assert_fails(load_wrong("null"), OT_ERR_FORMAT, "ot_op_library() gives NULL");
    assert_fails(load_wrong("optimizer"), OT_ERR_UNSUPPORTED, "optimizers (rule)");
    assert_int_equal(ot__op_count(), n);
}

static void an_allocation_that_fails_loads_nothing(void **state)
{
    const int n = ot__op_count();
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int after = 0; st != OT_OK; after++) {
        ot__alloc_fail_after(after);
        st = load_wrong("fine");
        ot__alloc_fail_after(-1);
        if (st != OT_OK) {
            assert_int_equal(st, OT_ERR_NO_MEMORY);
            assert_int_equal(ot__op_count(), n);
        }
    }
    assert_int_equal(ot__op_count(), n + 2);
}

// What run says of a value, with the node's name before it. The library is that of the test before.
static void a_kernel_says_what_is_wrong(void **state)
{
    ot_model *model = model_of("<ir_version: 8, opset_import: [\"\" : 17, \"wrong\" : 1]> "
                               "g (float[1] x) => (float[1] y) { y = wrong.Fine(x) }");
    const double one = 1;
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(1), &one), *y = NULL;

    (void)state;
    assert_fails(ot_model_run(model, NULL, (const ot_tensor *const *)&x, 1, &y, 1), OT_ERR_INVALID,
                 "7 is not what it is run for");
    assert_non_null(strstr(ot_error_message(), "Fine"));
    ot_tensor_destroy(x);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_give_the_formula_in_every_type),
        cmocka_unit_test(gradients_are_central_differences),
        cmocka_unit_test(a_small_model_trains),
        cmocka_unit_test(what_infer_refuses_names_the_node),
        cmocka_unit_test(loading_twice_changes_nothing),
        cmocka_unit_test(threads_may_load_at_once),
        cmocka_unit_test(files_that_are_no_library_are_refused),
        cmocka_unit_test(another_abi_is_refused_with_both_numbers),
        cmocka_unit_test(wrong_records_are_refused_and_nothing_is_loaded),
        cmocka_unit_test(an_allocation_that_fails_loads_nothing),
        cmocka_unit_test(a_kernel_says_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, load_example, NULL);
}
