// SPDX-License-Identifier: Apache-2.0
// Gradients through Loop and Scan whose turns only a run tells, beside central differences.
#include <math.h>

#include "evaluate.h"
#include "onnxtrain/onnxtrain.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> g "

// v, a value from outside, in every turn; what each turn leaves, too.
static const char counted_text[] =
    HEAD "(double[2,2] x, double[2,2] v, int64 n) => (double z)"
         "{ y, all = Loop (n, , x) <body = turn (int64 i, bool go, double[2,2] h) =>"
         "  (bool goes, double[2,2] g, double place) { goes = Identity(go) m = MatMul(h, v)"
         "    g = Tanh(m) s = Mul(g, g) place = ReduceSum<keepdims = 0>(s) }>"
         "  a = ReduceSum<keepdims = 0>(y) b = ReduceSumSquare<keepdims = 0>(all) z = Add(a, b) }";

// Grows until it is large enough.
static const char until_text[] =
    HEAD "(double[2] x, double[2] v, double limit) => (double z)"
         "{ m = ReduceMax<keepdims = 0>(x) below = Less(m, limit)"
         "  y = Loop (, below, x) <body = turn (int64 i, bool go, double[2] h) =>"
         "  (bool goes, double[2] g) { e = Exp(v) g = Mul(h, e)"
         "    k = ReduceMax<keepdims = 0>(g) goes = Less(k, limit) }>"
         "  z = ReduceSumSquare<keepdims = 0>(y) }";

// A layer of as many steps as x has rows, which nothing says before.
static const char scanned_text[] =
    HEAD "(double[steps,2] x, double[2,2] v, double[2] s) => (double z)"
         "{ last, all = Scan (s, x) <num_scan_inputs = 1, body = step (double[2] h, double[2] p) =>"
         "  (double[2] g, double[2] o) { m = MatMul(h, v) a = Add(m, p) g = Tanh(a)"
         "    o = Mul(g, p) }>"
         "  q = ReduceSum<keepdims = 0>(all) r = ReduceSumSquare<keepdims = 0>(last)"
         "  z = Add(q, r) }";

// Slices of a table whose ends are elements, one for each turn, as the classic exporter writes bags
// of embeddings; the number of turns is a dim size.
static const char bags_text[] =
    HEAD "(double[6,2] x, double[2,2] v, int64[bags] ends) => (double z)"
         "<int64[1] one = {1}, int64[1] zero = {0}, bool yes = {1}, int64 first = {0}>"
         "{ sizes = Shape(ends) n = Gather(sizes, first) h = MatMul(x, v)"
         "  bags = Loop (n, yes) <body = turn (int64 i, bool go) => (bool goes, double[2] mean) {"
         "    goes = Cast<to = 9>(yes) end = Gather(ends, i) last = Unsqueeze(end, zero)"
         "    rows = Slice(h, zero, last, zero) mean = ReduceMean<axes = [0], keepdims = 0>(rows)"
         "  }>"
         "  z = ReduceSumSquare<keepdims = 0>(bags) }";

// A list that a loop puts together, one tensor a turn: of two kinds, in an order that alternates.
static const char listed_text[] =
    HEAD "(double[2,2] x, double[2,2] v, int64 n) => (double z)"
         "<int64 zero = {0}, int64 two = {2}, double half = {0.5}>"
         "{ none = SequenceEmpty<dtype = 11>() m = Mul(x, v)"
         "  h, list = Loop (n, , m, none) <body = turn (int64 i, bool go, double[2,2] a,"
         "    seq(double[2,2]) l) => (bool goes, double[2,2] b, seq(double[2,2]) k) {"
         "    goes = Identity(go) s = ReduceSum<keepdims = 0>(a) big = Greater(s, half)"
         "    b = If (big) <then_branch = large () => (double[2,2] p) { p = Mul(a, v) },"
         "      else_branch = small () => (double[2,2] q) { q = Add(a, x) }>"
         "    place = Mod(i, two) k = SequenceInsert(l, b, place) }>"
         "  first = SequenceAt(list, zero) all = ConcatFromSequence<axis = 1>(list)"
         "  c = ReduceSumSquare<keepdims = 0>(all) d = ReduceSum<keepdims = 0>(first)"
         "  z = Mul(c, d) }";

static double value_of(const ot_model *model, ot_tensor *const *in)
{
    ot_tensor *z = NULL;
    double value;

    assert_ok(ot_model_run(model, NULL, (const ot_tensor *const *)in, 3, &z, 1));
    value = ot__tensor_get_f64(z, 0);
    ot_tensor_destroy(z);
    return value;
}

static double slope_of(const ot_model *model, ot_tensor *const *in, int i_input, int64_t i)
{
    double *element = (double *)in[i_input]->data + i;
    const double was = *element, step = 1e-6;
    double up, down;

    *element = was + step;
    up = value_of(model, in);
    *element = was - step;
    down = value_of(model, in);
    *element = was;
    return (up - down) / (2 * step);
}

// The third input decides. One ot_gradients for all: each set of turns has a plan of its own.
static void assert_gradients(const ot_model *model, ot_gradients *g, ot_tensor *const *in)
{
    ot_tensor *out[3] = {NULL};

    assert_ok(ot_gradients_run(g, (const ot_tensor *const *)in, 3, out, 3));
    assert_true(ot__tensor_get_f64(out[0], 0) == value_of(model, in));
    for (int k = 0; k < 2; k++) {
        assert_true(ot__shape_equal(&out[1 + k]->shape, &in[k]->shape));
        for (int64_t i = 0; i < ot_tensor_count(in[k]); i++) {
            const double expected = slope_of(model, in, k, i);

            assert_true(fabs(ot__tensor_get_f64(out[1 + k], i) - expected) <
                        1e-7 * (1 + fabs(expected)));
        }
    }
    for (int k = 0; k < 3; k++)
        ot_tensor_destroy(out[k]);
}

static ot_gradients *gradients_of(const ot_model *model)
{
    ot_gradients *g;

    assert_ok(ot_gradients_create(model, "z", (const char *const[]){"x", "v"}, 2, NULL, &g));
    return g;
}

static const double numbers[] = {0.5, -0.25, 0.75, 1, 0.125, -0.5, 0.3, 0.9, -0.8, 0.2, 0.6, -0.1};

static void check_numbers(const char *text, ot_shape x_shape, ot_shape v_shape, ot_dtype decider,
                          const double *rows, int n_rows)
{
    ot_model *model = read_text(text);
    ot_gradients *g = gradients_of(model);
    ot_tensor *in[3] = {new_tensor(OT_F64, x_shape, numbers),
                        new_tensor(OT_F64, v_shape, numbers + 2)};

    for (int i = 0; i < n_rows; i++) {
        in[2] = new_tensor(decider, (ot_shape){0}, &rows[i]);
        assert_gradients(model, g, in);
        ot_tensor_destroy(in[2]);
    }
    ot_tensor_destroy(in[0]);
    ot_tensor_destroy(in[1]);
    ot_gradients_destroy(g);
    ot_model_destroy(model);
}

static void a_gradient_goes_through_as_many_turns_as_an_element_says(void **state)
{
    (void)state;
    check_numbers(counted_text, OT_SHAPE(2, 2), OT_SHAPE(2, 2), OT_I64, (const double[]){3, 1, 7},
                  3);
}

// Where no turn is taken v has no part in it.
static void a_condition_that_ends_a_loop_ends_its_gradient(void **state)
{
    (void)state;
    check_numbers(until_text, OT_SHAPE(2), OT_SHAPE(2), OT_F64, (const double[]){0.9, 0.2, 40}, 3);
}

static void a_list_that_a_loop_puts_together_has_a_gradient(void **state)
{
    (void)state;
    check_numbers(listed_text, OT_SHAPE(2, 2), OT_SHAPE(2, 2), OT_I64, (const double[]){1, 5}, 2);
}

static void a_layer_of_any_number_of_steps_has_a_gradient(void **state)
{
    ot_model *model = read_text(scanned_text);
    ot_gradients *g = gradients_of(model);

    (void)state;
    for (int n = 1; n <= 6; n += 2) {
        ot_tensor *in[] = {new_tensor(OT_F64, OT_SHAPE(n, 2), numbers),
                           new_tensor(OT_F64, OT_SHAPE(2, 2), numbers + 1),
                           new_tensor(OT_F64, OT_SHAPE(2), numbers + 3)};

        assert_gradients(model, g, in);
        for (int k = 0; k < 3; k++)
            ot_tensor_destroy(in[k]);
    }
    ot_gradients_destroy(g);
    ot_model_destroy(model);
}

static int n_specialized;

static void count_specialized(const ot_model *model, const char *pass)
{
    (void)model;
    n_specialized += strcmp(pass, "specialize") == 0;
}

static void what_many_turns_ask_is_asked_at_once(void **state)
{
    static const double ends[] = {1, 4, 6, 3, 2, 5};
    ot_model *model = read_text(bags_text);
    ot_gradients *g = gradients_of(model);
    ot_tensor *in[3] = {new_tensor(OT_F64, OT_SHAPE(6, 2), numbers),
                        new_tensor(OT_F64, OT_SHAPE(2, 2), numbers + 5)};

    (void)state;
    for (int n = 6; n >= 2; n -= 2) {
        ot_tensor *out[3] = {NULL};

        in[2] = new_tensor(OT_I64, OT_SHAPE(n), ends + 6 - n);
        ot__pass_set_observer(count_specialized);
        n_specialized = 0;
        assert_ok(ot_gradients_run(g, (const ot_tensor *const *)in, 3, out, 3));
        ot__pass_set_observer(NULL);
        assert_int_equal(n_specialized, 1); // after one question
        for (int k = 0; k < 3; k++)
            ot_tensor_destroy(out[k]);
        assert_gradients(model, g, in);
        ot_tensor_destroy(in[2]);
    }
    ot_tensor_destroy(in[0]);
    ot_tensor_destroy(in[1]);
    ot_gradients_destroy(g);
    ot_model_destroy(model);
}

static void a_wrong_backward_is_refused(void **state)
{
    static const char *const calls[] = {
        "dx = ai.onnxtrain.Backward()",           "dx = ai.onnxtrain.Backward(z)",
        "dx = ai.onnxtrain.Backward(, , x)",      "dx = ai.onnxtrain.Backward(x, , x)",
        "dx, dy = ai.onnxtrain.Backward(z, , x)", "dx = ai.onnxtrain.Backward(z, , i)",
    };
    char text[400];

    (void)state;
    for (size_t k = 0; k < OT_COUNT(calls); k++) {
        const double element = 2;
        ot_tensor *x = new_tensor(OT_F64, OT_SHAPE(1), &element), *y = NULL;
        ot_model *model;
        ot_status st;

        snprintf(text, sizeof text,
                 "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]> g "
                 "(double[1] x) => (double[1] dx) { z = Exp(x) i = Cast<to = 7>(x) %s }",
                 calls[k]);
        model = read_text(text);
        st = ot_model_run(model, NULL, (const ot_tensor *const[]){x}, 1, &y, 1);
        assert_true(st == OT_ERR_INVALID || (k == 5 && st == OT_OK)); // no gradient: zeros
        ot_tensor_destroy(x);
        ot_tensor_destroy(y);
        ot_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gradient_goes_through_as_many_turns_as_an_element_says),
        cmocka_unit_test(a_condition_that_ends_a_loop_ends_its_gradient),
        cmocka_unit_test(a_list_that_a_loop_puts_together_has_a_gradient),
        cmocka_unit_test(a_layer_of_any_number_of_steps_has_a_gradient),
        cmocka_unit_test(what_many_turns_ask_is_asked_at_once),
        cmocka_unit_test(a_wrong_backward_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
