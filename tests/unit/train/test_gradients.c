// SPDX-License-Identifier: Apache-2.0
// Which gradients a caller can ask for, what the model for files looks like, and what is refused.
#include "gradients_fixture.h"

// y = x * w + b, with another output and an input that only that one reads.
static const char line_text[] =
    HEAD "g (float[batch,2] x, float[batch,2] other) => (float[batch,2] y, float[batch,2] z)"
         "<float[2,2] w = {1,2,3,4}, float[2] b = {5,6}>"
         "{ h = MatMul(x, w) y = Add(h, b) z = Mul(h, other) }";

static ot_gradients *make(const char *text, const char *of, const char *const *wrt, int n_wrt,
                          const ot_gradients_options *options)
{
    ot_model *model = model_of(text);
    ot_gradients *g = NULL;

    assert_ok(ot_gradients_create(model, of, wrt, n_wrt, options, &g));
    ot_model_destroy(model); // is borrowed for the call only
    return g;
}

static ot_tensor *floats(ot_shape shape, const double *elements)
{
    return new_tensor(OT_F32, shape, elements);
}

static void assert_elements(const ot_tensor *t, const double *expected)
{
    for (int64_t k = 0; k < ot_tensor_count(t); k++)
        assert_near(ot__tensor_get_f64(t, k), expected[k], 1e-6);
}

static void parameters_inputs_and_computed_values_have_gradients(void **state)
{
    ot_gradients *g = make(line_text, "y", (const char *const[]){"w", "x", "h", "b"}, 4, NULL);
    ot_tensor *in[] = {floats(OT_SHAPE(3, 2), (double[]){1, 2, 3, 4, 5, 6}),
                       floats(OT_SHAPE(3, 2), (double[]){1, 0, 0, 1, 1, -1})};
    ot_tensor *out[5] = {NULL};

    (void)state;
    assert_ok(ot_gradients_run(g, (const ot_tensor *const *)in, 2, out, 5));
    assert_elements(out[0], (double[]){12, 16, 20, 28, 28, 40});
    assert_elements(out[1], (double[]){6, -2, 8, -2});       // x^T seed
    assert_elements(out[2], (double[]){1, 3, 2, 4, -1, -1}); // seed w^T
    assert_elements(out[3], (double[]){1, 0, 0, 1, 1, -1});
    assert_elements(out[4], (double[]){2, 0});
    for (int i = 0; i < 5; i++)
        ot_tensor_destroy(out[i]);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(in[i]);
    ot_gradients_destroy(g);
}

static void the_model_keeps_names_and_shapes(void **state)
{
    ot_gradients *g = make(line_text, "y", (const char *const[]){"w", "x"}, 2, NULL);
    const ot_model *model = ot_gradients_model(g);
    char text[64];

    (void)state;
    assert_int_equal(ot_model_input_count(model), 2); // not `other`
    assert_string_equal(ot_model_input_name(model, 0), "x");
    assert_string_equal(ot_model_input_name(model, 1), "y_grad");
    assert_int_equal(ot_model_output_count(model), 3);
    assert_string_equal(ot_model_output_name(model, 0), "y");
    assert_string_equal(ot_model_output_name(model, 1), "w_grad");
    assert_string_equal(ot_model_output_name(model, 2), "x_grad");
    assert_string_equal(
        ot__dims_text(model, &find_value(model, "x_grad")->shape, text, sizeof text), "[batch,2]");
    assert_string_equal(
        ot__dims_text(model, &find_value(model, "y_grad")->shape, text, sizeof text), "[batch,2]");
    assert_true(find_value(model, "w")->is_initializer);
    assert_false(find_value(model, "w")->is_input);
    assert_null(find_node(model, "FusedMatMul"));
    assert_null(ot_model_metadata(model, OT_METADATA_NONSTANDARD));
    assert_int_equal(ot__model_opset(model, "com.microsoft"), 0);
    assert_ok(ot__model_verify(model));
    ot_gradients_destroy(g);
}

static void a_scalar_needs_no_seed_unless_asked_for(void **state)
{
    static const char text[] = HEAD "g (float[N] x) => (float y) { s = Mul(x, x)"
                                    " y = ReduceSum<keepdims = 0>(s) }";
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_gradients *g = make(text, "y", (const char *const[]){"x"}, 1, NULL);

    (void)state;
    assert_int_equal(ot_model_input_count(ot_gradients_model(g)), 1);
    ot_gradients_destroy(g);
    options.seed = OT_SEED_INPUT;
    g = make(text, "y", (const char *const[]){"x"}, 1, &options);
    assert_int_equal(ot_model_input_count(ot_gradients_model(g)), 2);
    ot_gradients_destroy(g);
    options.seed = OT_SEED_ONES;
    g = make(text, "s", (const char *const[]){"x"}, 1, &options);
    assert_int_equal(ot_model_input_count(ot_gradients_model(g)), 1);
    ot_gradients_destroy(g);
}

// Whatever the file says of training: dx = dy * scale / sqrt(var + epsilon), without the batch.
static void the_model_counts_as_an_inference_model(void **state)
{
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_tensor *x = floats(OT_SHAPE(2, 2), (double[]){1, 2, 3, 4}), *out[2] = {NULL};
    ot_gradients *g;

    (void)state;
    options.seed = OT_SEED_ONES;
    g = make(HEAD "g (float[N,2] x) => (float[N,2] y)"
                  "<float[2] s = {3,5}, float[2] b = {0,0}, float[2] m = {1,1},"
                  " float[2] v = {0.75,3}, float r = {0.9}, bool on = {1}>"
                  "{ n, rm, rv = BatchNormalization<training_mode = 1, epsilon = 0.25>"
                  "(x, s, b, m, v) y = Dropout(n, r, on) }",
             "y", (const char *const[]){"x"}, 1, &options);
    assert_ok(ot_gradients_run(g, (const ot_tensor *const[]){x}, 1, out, 2));
    assert_elements(out[1], (double[]){3, 5 / sqrt(3.25), 3, 5 / sqrt(3.25)});
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(out[i]);
    ot_tensor_destroy(x);
    ot_gradients_destroy(g);
}

// As files of IR version 3 and some exporters have them.
static void parameters_may_be_inputs_with_defaults_or_constants_of_nodes(void **state)
{
    ot_gradients *g =
        make("<ir_version: 3, opset_import: [\"\" : 9]> g (float[1,2] x, float[2,1] w)"
             " => (float[1,1] y) <float[2,1] w = {2,3}>"
             "{ c = Constant<value = float[1] {4}>() p = MatMul(x, w) y = Mul(p, c) }",
             "y", (const char *const[]){"w", "c"}, 2, NULL);
    ot_tensor *x = floats(OT_SHAPE(1, 2), (double[]){10, 20}), *out[3] = {NULL};

    (void)state;
    assert_int_equal(ot_model_input_count(ot_gradients_model(g)), 1);
    assert_ok(ot_gradients_run(g, (const ot_tensor *const[]){x}, 1, out, 3));
    assert_elements(out[1], (double[]){40, 80});
    assert_elements(out[2], (double[]){80});
    for (int i = 0; i < 3; i++)
        ot_tensor_destroy(out[i]);
    ot_tensor_destroy(x);
    ot_gradients_destroy(g);
}

static void operators_are_kept_on_request(void **state)
{
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_gradients *g;

    (void)state;
    options.keep_operators = 1;
    g = make(HEAD "g (float[N] x) => (float[N] y) { r = Relu(x) y = Tanh(r) }", "y",
             (const char *const[]){"x"}, 1, &options);
    assert_string_equal(ot_model_metadata(ot_gradients_model(g), OT_METADATA_NONSTANDARD),
                        "com.microsoft.TanhGrad, com.microsoft.ReluGrad");
    ot_gradients_destroy(g);
}

static void the_gradient_model_can_be_differentiated_again(void **state)
{
    ot_gradients *first = make(HEAD "g (float[N] x) => (float y) { s = Mul(x, x) t = Mul(s, x)"
                                    " y = ReduceSum<keepdims = 0>(t) }",
                               "y", (const char *const[]){"x"}, 1, NULL);
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_tensor *x = floats(OT_SHAPE(3), (double[]){1, -2, 0.5}), *out[2] = {NULL};
    ot_gradients *second = NULL;

    (void)state;
    options.seed = OT_SEED_ONES;
    assert_ok(ot_gradients_create(ot_gradients_model(first), "x_grad", (const char *const[]){"x"},
                                  1, &options, &second));
    // The name is taken, so a number stands behind.
    assert_memory_equal(ot_model_output_name(ot_gradients_model(second), 1), "x_grad_", 7);
    assert_ok(ot_gradients_run(second, (const ot_tensor *const[]){x}, 1, out, 2));
    assert_elements(out[0], (double[]){3, 12, 0.75}); // 3 x^2
    assert_elements(out[1], (double[]){6, -12, 3});   // 6 x
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(out[i]);
    ot_tensor_destroy(x);
    ot_gradients_destroy(second);
    ot_gradients_destroy(first);
}

// ---- bad input ----

static const char knotted_text[] =
    HEAD "g (float[N,3] x, int64[N] i, float[N,3] far, float[N,3] blocked) => (float[N,3] y,"
         " float[N,3] far_y)"
         "{ [rounding] f = Floor(blocked) s = Add(x, f) c = Cast<to = 1>(i)"
         "  q = Shape(s) y = Mul(s, x)"
         "  far_y = Mul(far, far) m = ArgMax(x) }";

static const struct {
    const char *of, *wrt;
    ot_status status;
    const char *message;
} refusals[] = {
    {"nothing", "x", OT_ERR_NOT_FOUND, "of: the model has no value 'nothing'"},
    {"y", "nothing", OT_ERR_NOT_FOUND, "wrt: the model has no value 'nothing'"},
    {"x", "y", OT_ERR_INVALID, "of: 'x' is computed by no operator"},
    {"m", "x", OT_ERR_INVALID, "of: 'm' is i64, expected f32 or f64"},
    {"y", "i", OT_ERR_INVALID, "wrt: 'i' is i64, expected f32 or f64"},
    {"y", "y", OT_ERR_INVALID, "wrt: 'y' is the value to differentiate"},
    {"y", "far", OT_ERR_INVALID, "no path from 'far' to 'y'"},
    {"y", "blocked", OT_ERR_INVALID,
     "from 'blocked' to 'y': Floor 'rounding' passes on no gradient"},
};

static void what_has_no_gradient_is_refused_with_the_reason(void **state)
{
    ot_model *model = model_of(knotted_text);
    ot_gradients *g;

    (void)state;
    for (size_t k = 0; k < OT_COUNT(refusals); k++) {
        g = (ot_gradients *)model;
        assert_fails(ot_gradients_create(model, refusals[k].of, &refusals[k].wrt, 1, NULL, &g),
                     refusals[k].status, refusals[k].message);
        assert_null(g);
    }
    assert_fails(ot_gradients_create(model, "y", (const char *const[]){"x", "x"}, 2, NULL, &g),
                 OT_ERR_INVALID, "wrt: 'x' is named twice");
    assert_fails(ot_gradients_create(model, "y", (const char *const[]){"x"}, 0, NULL, &g),
                 OT_ERR_INVALID, "gradients need at least one value to derive by");
    ot_model_destroy(model);
    ot_gradients_destroy(NULL);
}

static void seeds_that_are_none_are_refused(void **state)
{
    ot_model *model = model_of(line_text);
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_gradients *g;

    (void)state;
    options.seed = (ot_gradient_seed)9;
    assert_fails(ot_gradients_create(model, "y", (const char *const[]){"x"}, 1, &options, &g),
                 OT_ERR_INVALID, "unknown gradient seed 9 (known: auto, input, ones)");
    ot_model_destroy(model);
}

static void inputs_that_do_not_fit_are_refused(void **state)
{
    ot_gradients *g = make(line_text, "y", (const char *const[]){"x"}, 1, NULL);
    ot_tensor *x = floats(OT_SHAPE(3, 2), (double[]){1, 2, 3, 4, 5, 6});
    ot_tensor *seed = floats(OT_SHAPE(2, 2), (double[]){1, 2, 3, 4});
    ot_tensor *out[2] = {NULL};

    (void)state;
    assert_fails(ot_gradients_run(g, (const ot_tensor *const[]){x}, 1, out, 2), OT_ERR_INVALID,
                 "input 1 'y_grad' is missing");
    assert_int_not_equal(ot_gradients_run(g, (const ot_tensor *const[]){x, seed}, 2, out, 2),
                         OT_OK);
    assert_non_null(strstr(ot_error_message(), "batch"));
    assert_null(out[0]);
    ot_tensor_destroy(x);
    ot_tensor_destroy(seed);
    ot_gradients_destroy(g);
}

static void every_failing_allocation_is_reported(void **state)
{
    ot_model *model = model_of(
        HEAD "g (float[N,2,5,5] x, int64[N] i, float[3,2,3,3] w, float[3,3] e) => (float[N] y)"
             "{ c = Conv(x, w) r = Relu(c) p = MaxPool<kernel_shape = [3,3]>(r)"
             "  f = Flatten(p) s = Softmax(f) t = Gather(e, i) u = Mul(s, t)"
             "  one = Constant<value_ints = [1]>()"
             "  y = ReduceSum<keepdims = 0>(u, one) }");
    ot_status st = OT_ERR_NO_MEMORY;
    int64_t n = 0;

    (void)state;
    for (; st != OT_OK; n++) {
        ot_gradients *g = NULL;

        ot__alloc_fail_after(n);
        st = ot_gradients_create(model, "y", (const char *const[]){"w", "e"}, 2, NULL, &g);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && g == NULL));
        ot_gradients_destroy(g);
    }
    assert_true(n > 20);
    ot_model_destroy(model);
}

#define AXES                                                                                       \
    "<float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[1, 1, 2, 2] k = {2, 3, 5, 7},"                     \
    " float[3] s = {1, 2, 3}, int64[3] sizes = {1, 2, 1}, int64[6] around = {0, 1, 1, 0, 0, 2},"   \
    " bool[2] some = {0, 1}>"

// dy/dx for a y that weighs its elements differently, where x has the stated shape, or none.
static ot_tensor *gradient_of(const char *node, const char *stated, const ot_tensor *x)
{
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_tensor *out[2] = {NULL};
    ot_gradients *g;
    char text[700];

    options.seed = OT_SEED_ONES;
    snprintf(text, sizeof text,
             HEAD "g (float[%s] x) => (float[] z) " AXES " { h = Exp(x) %s z = Mul(y, y) }", stated,
             node);
    g = make(text, "z", (const char *const[]){"x"}, 1, &options);
    assert_ok(ot_gradients_run(g, &x, 1, out, 2));
    ot_gradients_destroy(g);
    ot_tensor_destroy(out[0]);
    return out[1];
}

// The rule has its say when the inputs are there.
static void a_rule_that_needs_to_know_how_many_axes_there_are_waits_for_a_run(void **state)
{
    static const struct {
        const char *node, *stated;
        ot_shape shape;
    } cases[] = {
        {"y = MatMul(h, w)", "B, 4, 2", OT_SHAPE(1, 4, 2)},
        {"y = MatMul(w, h)", "B, 3, 2", OT_SHAPE(2, 3, 2)},
        {"y = Concat<axis = -1>(h, h, h)", "A, B", OT_SHAPE(3, 4)},
        {"y = Conv<pads = [1, 0, 0, 1]>(h, k)", "N, 1, 3, 4", OT_SHAPE(2, 1, 3, 4)},
        {"y = ConvTranspose(h, k)", "N, 1, 3, 2", OT_SHAPE(1, 1, 3, 2)},
        {"y = InstanceNormalization(h, s, s)", "N, 3, 4", OT_SHAPE(2, 3, 4)},
        {"y = GlobalMaxPool(h)", "N, 2, 3, 2", OT_SHAPE(1, 2, 3, 2)},
        {"y = BatchNormalization(h, s, s, s, s)", "N, 3, 2", OT_SHAPE(2, 3, 2)},
        {"y, i = MaxPool<kernel_shape = [2, 2]>(h)", "N, 1, 3, 4", OT_SHAPE(2, 1, 3, 4)},
        {"y = Pad<mode = \"reflect\">(h, around)", "2, N, 4", OT_SHAPE(2, 3, 4)},
        {"y = Tile(h, sizes)", "N, 2, 3", OT_SHAPE(2, 2, 3)},
        {"y = ReduceMax<axes = [-1], keepdims = 0>(h)", "N, 2, 3", OT_SHAPE(2, 2, 3)},
        {"y = Compress<axis = -1>(h, some)", "N, 2", OT_SHAPE(3, 2)},
    };
    double elements[24];

    (void)state;
    for (int i = 0; i < 24; i++)
        elements[i] = 0.1 * (i * 7 % 24) - 1;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_tensor *x = new_tensor(OT_F32, cases[i].shape, elements);
        ot_tensor *expected = gradient_of(cases[i].node, cases[i].stated, x);
        ot_tensor *dx = gradient_of(cases[i].node, "", x);

        assert_true(ot__shape_equal(&dx->shape, &cases[i].shape));
        assert_memory_equal(dx->data, expected->data, ot_tensor_bytes(expected));
        ot_tensor_destroy(expected);
        ot_tensor_destroy(dx);
        ot_tensor_destroy(x);
    }
}

static void the_rows_of_a_product_are_found_when_it_runs(void **state)
{
    const double a[] = {1, 2, 3, 4, 5, 6, 7, 8}, expected[] = {16, 16, 16, 20, 20, 20};
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(1, 4, 2), a), *out[2] = {NULL};
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_gradients *g;

    (void)state;
    options.seed = OT_SEED_ONES;
    g = make(HEAD "g (float[] x) => (float[] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}>"
                  "{ y = MatMul(x, w) }",
             "y", (const char *const[]){"w"}, 1, &options);
    assert_ok(ot_gradients_run(g, (const ot_tensor *const[]){x}, 1, out, 2));
    for (int k = 0; k < 6; k++) // sums over all rows of x
        assert_true(((const float *)ot_tensor_data(out[1]))[k] == (float)expected[k]);
    ot_tensor_destroy(x);
    ot_tensor_destroy(out[0]);
    ot_tensor_destroy(out[1]);
    ot_gradients_destroy(g);
}

// How many axes Reshape gives is decided by elements; where the file says it no rule waits.
static void a_stated_shape_says_how_many_axes_there_are(void **state)
{
    static const char *const stated[] = {"", ", float[M, 3] r"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[400];
        const char *waiting;
        ot_gradients *g;

        snprintf(text, sizeof text,
                 HEAD
                 "g (float[N, 6] x, int64[K] s) => (float[] y) "
                 "<float[3, 2] w = {1, 2, 3, 4, 5, 6}%s> { r = Reshape(x, s) y = MatMul(r, w) }",
                 stated[i]);
        g = make(text, "y", (const char *const[]){"x"}, 1, NULL);
        waiting = ot_model_metadata(ot_gradients_model(g), OT_METADATA_NONSTANDARD);
        assert_int_equal(waiting && strstr(waiting, "NodeGradient"), i == 0);
        ot_gradients_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_inputs_and_computed_values_have_gradients),
        cmocka_unit_test(the_model_keeps_names_and_shapes),
        cmocka_unit_test(a_scalar_needs_no_seed_unless_asked_for),
        cmocka_unit_test(the_model_counts_as_an_inference_model),
        cmocka_unit_test(parameters_may_be_inputs_with_defaults_or_constants_of_nodes),
        cmocka_unit_test(operators_are_kept_on_request),
        cmocka_unit_test(the_gradient_model_can_be_differentiated_again),
        cmocka_unit_test(what_has_no_gradient_is_refused_with_the_reason),
        cmocka_unit_test(seeds_that_are_none_are_refused),
        cmocka_unit_test(inputs_that_do_not_fit_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(a_rule_that_needs_to_know_how_many_axes_there_are_waits_for_a_run),
        cmocka_unit_test(the_rows_of_a_product_are_found_when_it_runs),
        cmocka_unit_test(a_stated_shape_says_how_many_axes_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
