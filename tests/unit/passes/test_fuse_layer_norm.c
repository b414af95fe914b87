// SPDX-License-Identifier: Apache-2.0
#include "region_fixture.h"

#define INPUTS "double[2,3,8] x, double[8] w, double[8] b, double[2,3,8] dy"
#define CENTERED                                                                                   \
    "two = Constant<value = double {2.0}>() e = Constant<value = double {0.0078125}>()"            \
    "m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) "
#define NORMALISED                                                                                 \
    CENTERED "q = Pow(d, two) v = ReduceMean<axes = [-1]>(q) s = Add(v, e) r = Sqrt(s) "           \
             "n = Div(d, r) "

static const char *const all[] = {"x", "w", "b", NULL};

static void expect_norms(const char *graph, const char *const *from, const char *op_type, int n)
{
    ot_model *model = fuse_regions(graph, from);

    assert_int_equal(count_nodes(model, op_type), n);
    assert_int_equal(count_nodes(model, "Sqrt"), 0);
    assert_int_equal(count_nodes(model, "ReduceMean"), 0);
    assert_int_equal(count_nodes(model, "Sum"), 0);
    ot_model_destroy(model);
}

static void expect_left(const char *graph, const char *const *from)
{
    ot_model *model = fuse_regions(graph, from);

    assert_int_equal(count_nodes(model, "LayerNormalization"), 0);
    assert_int_equal(count_nodes(model, "Sqrt"), 1);
    ot_model_destroy(model);
}

static void a_normalisation_and_its_gradient_become_two_nodes(void **state)
{
    static const char graph[] =
        "g (" INPUTS ") => (double[2,3,8] y) { " NORMALISED "p = Mul(n, w) y = Add(p, b) }";
    ot_model *model = fuse_regions(graph, all);
    const ot_node *node = find_node(model, "LayerNormalization");

    (void)state;
    assert_non_null(node);
    assert_int_equal(ot_attr_int(node, "axis"), 2);
    assert_float_equal(ot_attr_float(node, "epsilon"), 0.0078125, 0);
    // besides them, y * dy and its sum, and what makes dy of the sum's gradient
    assert_int_equal(count_nodes(model, "LayerNormalizationGrad"), 1);
    assert_int_equal(count_nodes(model, "Div") + count_nodes(model, "DivGrad"), 0);
    ot_model_destroy(model);
    expect_norms(graph, NULL, "LayerNormalization", 1);
}

static void however_an_exporter_writes_it(void **state)
{
    (void)state;
    expect_norms("g (" INPUTS ") => (double[2,3,8] y) { " CENTERED
                 "q = Mul(d, d) v = ReduceMean<axes = [2]>(q) s = Add(e, v) r = Sqrt(s) "
                 "i = Reciprocal(r) n = Mul(d, i) p = Mul(w, n) y = Add(b, p) }",
                 all, "LayerNormalizationGrad", 1);
    expect_norms("g (" INPUTS ") => (double[2,3,8] y) { " NORMALISED "y = Mul(n, w) }",
                 (const char *const[]){"x", "w", NULL}, "LayerNormalizationGrad", 1);
    expect_norms("g (double[2,3,8] x, double[2,3,8] dy) => (double[2,3,8] n) { " NORMALISED "}",
                 (const char *const[]){"x", NULL}, "LayerNormalizationGrad", 1);
    expect_norms("g (double[2,3,8] x, double[3,8] w, double[3,8] b, double[2,3,8] dy)"
                 " => (double[2,3,8] y) { two = Constant<value = double {2.0}>()"
                 " e = Constant<value = double {0.0078125}>() m = ReduceMean<axes = [1, 2]>(x)"
                 " d = Sub(x, m) q = Pow(d, two) v = ReduceMean<axes = [1, 2]>(q)"
                 " s = Add(v, e) r = Sqrt(s) n = Div(d, r) p = Mul(n, w) y = Add(p, b) }",
                 all, "LayerNormalizationGrad", 1);
}

static void a_root_mean_square_has_no_mean(void **state)
{
    (void)state;
    expect_norms(
        "g (double[2,3,8] x, double[8] w, double[2,3,8] dy) => (double[2,3,8] y)"
        "{ two = Constant<value = double {2.0}>() e = Constant<value = double {0.0078125}>()"
        "  one = Constant<value = double {1.0}>() q = Pow(x, two)"
        "  v = ReduceMean<axes = [-1]>(q) s = Add(v, e) r = Sqrt(s) i = Div(one, r)"
        "  n = Mul(x, i) y = Mul(w, n) }",
        (const char *const[]){"x", "w", NULL}, "SimplifiedLayerNormalizationGrad", 1);
}

static void gradients_that_nobody_wants_are_not_made(void **state)
{
    ot_model *model = fuse_regions("g (" INPUTS ") => (double[2,3,8] y) { " NORMALISED
                                   "p = Mul(n, w) y = Add(p, b) }",
                                   (const char *const[]){"w", NULL});
    const ot_node *node = find_node(model, "LayerNormalizationGrad");

    (void)state;
    assert_non_null(node);
    assert_null(node->outputs[0]);
    assert_non_null(node->outputs[1]);
    assert_true(node->n_outputs < 3 || node->outputs[2] == NULL);
    ot_model_destroy(model);
}

// The gradient of x is a sum with what comes by another way.
static void a_residual_keeps_its_part(void **state)
{
    ot_model *model = fuse_regions("g (" INPUTS ") => (double[2,3,8] z) { " NORMALISED
                                   "p = Mul(n, w) y = Add(p, b) z = Add(y, x) }",
                                   all);

    (void)state;
    assert_int_equal(count_nodes(model, "LayerNormalizationGrad"), 1);
    assert_int_equal(count_nodes(model, "Sqrt"), 0);
    assert_int_equal(find_node(model, "Sum")->n_inputs, 2);
    ot_model_destroy(model);
}

static void one_normalisation_after_another(void **state)
{
    (void)state;
    expect_norms("g (" INPUTS ") => (double[2,3,8] y2) { " NORMALISED
                 "p = Mul(n, w) y = Add(p, b) m2 = ReduceMean<axes = [-1]>(y) d2 = Sub(y, m2)"
                 "q2 = Mul(d2, d2) v2 = ReduceMean<axes = [-1]>(q2) s2 = Add(v2, e) r2 = Sqrt(s2)"
                 "n2 = Div(d2, r2) p2 = Mul(n2, w) y2 = Add(p2, b) }",
                 (const char *const[]){"x", NULL}, "LayerNormalizationGrad", 2);
}

// What exporters leave of a Dropout.
static void a_node_that_hands_on_hides_nothing(void **state)
{
    (void)state;
    expect_norms("g (" INPUTS ") => (double[2,3,8] t) { " NORMALISED
                 "p = Mul(n, w) y = Add(p, b) i = Identity(y) j = Identity(i) t = Tanh(j) }",
                 all, "LayerNormalizationGrad", 1);
}

static void what_is_read_elsewhere_stays(void **state)
{
    (void)state;
    expect_left("g (" INPUTS ") => (double[2,3,8] y, double[2,3,8] n) { " NORMALISED
                "p = Mul(n, w) y = Add(p, b) }",
                all);
    expect_left("g (" INPUTS ") => (double[2,3,8] z) { " NORMALISED
                "p = Mul(n, w) y = Add(p, b) z = Mul(y, d) }",
                all);
}

static void groups_in_f64_are_rows(void **state)
{
    static const char *const from[] = {"x", "s", "b", NULL};
    ot_model *model =
        fuse_regions("<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> "
                     "g (double[2,4,3,5] x, double[4] s, double[4] b, double[2,4,3,5] dy)"
                     " => (double[2,4,3,5] y) { y = GroupNormalization<num_groups = 2>(x, s, b) }",
                     from);

    (void)state;
    assert_int_equal(count_nodes(model, "LayerNormalization"), 1);
    assert_int_equal(count_nodes(model, "LayerNormalizationGrad"), 1);
    assert_int_equal(count_nodes(model, "ReduceMean") + count_nodes(model, "Sqrt"), 0);
    ot_model_destroy(model);
}

static void what_is_no_normalisation_stays(void **state)
{
    (void)state;
    // Another axis, the mean of something else, a number that is no epsilon.
    expect_left("g (" INPUTS ") => (double[2,3,8] y) { " CENTERED
                "q = Pow(d, two) v = ReduceMean<axes = [1]>(q) s = Add(v, e) r = Sqrt(s) "
                "n = Div(d, r) p = Mul(n, w) y = Add(p, b) }",
                all);
    expect_left("g (" INPUTS ", double[2,3,1] f) => (double[2,3,8] y) { " CENTERED
                "q = Pow(d, two) v = ReduceMean<axes = [-1]>(q) s = Add(v, f) r = Sqrt(s) "
                "n = Div(d, r) p = Mul(n, w) y = Add(p, b) }",
                all);
    expect_left("g (" INPUTS ") => (double[2,3,8] y) { " CENTERED
                "three = Constant<value = double {3.0}>() q = Pow(d, three) a = Abs(q) "
                "v = ReduceMean<axes = [-1]>(a) s = Add(v, e) r = Sqrt(s) "
                "n = Div(d, r) p = Mul(n, w) y = Add(p, b) }",
                all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_normalisation_and_its_gradient_become_two_nodes),
        cmocka_unit_test(however_an_exporter_writes_it),
        cmocka_unit_test(a_root_mean_square_has_no_mean),
        cmocka_unit_test(gradients_that_nobody_wants_are_not_made),
        cmocka_unit_test(a_residual_keeps_its_part),
        cmocka_unit_test(one_normalisation_after_another),
        cmocka_unit_test(a_node_that_hands_on_hides_nothing),
        cmocka_unit_test(what_is_read_elsewhere_stays),
        cmocka_unit_test(groups_in_f64_are_rows),
        cmocka_unit_test(what_is_no_normalisation_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
