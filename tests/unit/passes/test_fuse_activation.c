// SPDX-License-Identifier: Apache-2.0
#include "region_fixture.h"

#define NUMBER(name, value) name " = Constant<value = double {" value "}>() "
#define GRAPH(body) "g (double[5,9] x, double[5,9] dy) => (double[5,9] y) { " body "}"
#define ROOT NUMBER("c", "0.7978845608028654") NUMBER("k", "0.044715")
#define HALVES NUMBER("h", "0.5") NUMBER("one", "1.0") NUMBER("two", "2.0")
#define ERF HALVES NUMBER("s", "1.4142135623730951") "t = Div(x, s) f = Erf(t) a = Add(f, one) "

static const char *const from_x[] = {"x", NULL};

static void expect_one(const char *graph, const char *op_type, const char *gradient)
{
    ot_model *model = fuse_regions(graph, from_x);

    assert_int_equal(count_nodes(model, op_type), 1);
    assert_int_equal(count_nodes(model, gradient), 1);
    assert_int_equal(
        count_nodes(model, "Erf") + count_nodes(model, "Tanh") + count_nodes(model, "Sigmoid"), 0);
    assert_int_equal(count_nodes(model, "Sum"), 0);
    ot_model_destroy(model);
    model = fuse_regions(graph, NULL);
    assert_int_equal(model->graph->n_nodes, 1);
    ot_model_destroy(model);
}

static void expect_left(const char *graph, const char *op_type)
{
    ot_model *model = fuse_regions(graph, from_x);

    assert_int_equal(count_nodes(model, op_type), 1);
    ot_model_destroy(model);
}

static void gelu_by_erf(void **state)
{
    (void)state;
    expect_one(GRAPH(ERF "p = Mul(x, a) y = Mul(p, h) "), "Gelu", "GeluGrad");
    expect_one(GRAPH(ERF "p = Mul(a, h) y = Mul(x, p) "), "Gelu", "GeluGrad");
    expect_one(GRAPH(ERF "p = Mul(x, h) y = Mul(p, a) "), "Gelu", "GeluGrad");
    expect_one(GRAPH(ERF "p = Mul(a, x) y = Div(p, two) "), "Gelu", "GeluGrad");
    expect_one(GRAPH(HALVES NUMBER("s", "0.7071067811865476") //
                     "t = Mul(s, x) f = Erf(t) a = Add(one, f) p = Mul(x, a) y = Mul(h, p) "),
               "Gelu", "GeluGrad");
}

static void gelu_by_tanh(void **state)
{
    (void)state;
    expect_one(GRAPH(HALVES ROOT NUMBER("three", "3.0") //
                     "x3 = Pow(x, three) kx = Mul(x3, k) i = Add(x, kx) t = Mul(i, c) "
                     "f = Tanh(t) a = Add(f, one) p = Mul(x, h) y = Mul(p, a) "),
               "FastGelu", "FastGeluGrad");
    expect_one(GRAPH(HALVES ROOT "x2 = Mul(x, x) kx = Mul(k, x2) i = Add(one, kx) cx = Mul(c, x) "
                                 "t = Mul(cx, i) f = Tanh(t) a = Add(one, f) p = Mul(h, a) "
                                 "y = Mul(x, p) "),
               "FastGelu", "FastGeluGrad");
}

static void swish(void **state)
{
    ot_model *model;

    (void)state;
    expect_one(GRAPH("f = Sigmoid(x) y = Mul(x, f) "), "QuickGelu", "QuickGeluGrad");
    expect_one(GRAPH(NUMBER("q", "1.75") "t = Mul(q, x) f = Sigmoid(t) y = Mul(f, x) "),
               "QuickGelu", "QuickGeluGrad");
    model = fuse_regions(GRAPH(NUMBER("q", "1.5") "t = Mul(q, x) f = Sigmoid(t) y = Mul(f, x) "),
                         from_x);
    assert_float_equal(ot_attr_float(find_node(model, "QuickGelu"), "alpha"), 1.5, 1e-6);
    ot_model_destroy(model);
}

static void other_numbers_are_other_functions(void **state)
{
    (void)state;
    expect_left(GRAPH(HALVES NUMBER("s", "1.5") "t = Div(x, s) f = Erf(t) a = Add(f, one) "
                                                "p = Mul(x, a) y = Mul(p, h) "),
                "Erf");
    expect_left(GRAPH(ERF "y = Mul(x, a) "), "Erf");
    expect_left(GRAPH(HALVES ROOT "x2 = Mul(x, x) kx = Mul(h, x2) i = Add(one, kx) cx = Mul(c, x) "
                                  "t = Mul(cx, i) f = Tanh(t) a = Add(one, f) p = Mul(h, a) "
                                  "y = Mul(x, p) "),
                "Tanh");
    expect_left("g (double[5,9] x, double[5,9] z, double[5,9] dy) => (double[5,9] y)"
                "{ f = Sigmoid(x) y = Mul(z, f) }",
                "Sigmoid");
}

static void what_is_read_elsewhere_stays(void **state)
{
    (void)state;
    expect_left("g (double[5,9] x, double[5,9] dy) => (double[5,9] y, double[5,9] f)"
                "{ f = Sigmoid(x) y = Mul(x, f) }",
                "Sigmoid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_by_erf),
        cmocka_unit_test(gelu_by_tanh),
        cmocka_unit_test(swish),
        cmocka_unit_test(other_numbers_are_other_functions),
        cmocka_unit_test(what_is_read_elsewhere_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
