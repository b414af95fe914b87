// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "

// Sums dy to the shape of x with an emitter and says which operators that took.
static ot_model *sum_to(const char *inputs, ot_value **out)
{
    char text[400];
    ot_model *model;
    ot_grad *g;

    snprintf(text, sizeof(text), HEAD "g (%s) => (float[1] u) { u = Neg(u0) }", inputs);
    model = read_text(text);
    g = ot__emitter_create(model->graph, "p");
    assert_non_null(g);
    *out = ot_emit_sum_to(g, find_value(model, "dy"), find_value(model, "x"));
    assert_ok(ot__emitter_destroy(g));
    assert_non_null(*out);
    return model;
}

static void check_sum(const char *inputs, int n_reduce, int n_squeeze, int n_dynamic)
{
    char with_u[200];
    ot_value *dx;
    ot_model *model;

    snprintf(with_u, sizeof(with_u), "%s, float[1] u0", inputs);
    model = sum_to(with_u, &dx);
    assert_int_equal(count_nodes(model, "ReduceSum"), n_reduce);
    assert_int_equal(count_nodes(model, "Squeeze"), n_squeeze);
    assert_int_equal(count_nodes(model, "BroadcastGradientArgs"), n_dynamic);
    assert_int_equal(dx->shape.ndim, find_value(model, "x")->shape.ndim);
    for (int k = 0; k < dx->shape.ndim; k++)
        assert_true(ot__dim_same(dx->shape.dim[k], find_value(model, "x")->shape.dim[k]));
    ot_model_destroy(model);
}

static void equal_extents_need_no_sum(void **state)
{
    (void)state;
    check_sum("float[2,3] dy, float[2,3] x", 0, 0, 0);
    check_sum("float[N,3] dy, float[N,3] x", 0, 0, 0);
}

static void numbers_settle_the_axes(void **state)
{
    (void)state;
    check_sum("float[2,3] dy, float[3] x", 1, 0, 0);
    check_sum("float[2,3] dy, float[2,1] x", 1, 0, 0);
    check_sum("float[4,2,3] dy, float[2,1] x", 1, 1, 0);
    check_sum("float[N,3] dy, float[3] x", 1, 0, 0); // the leading axis goes whatever its extent
    check_sum("float[N,3] dy, float[1,3] x", 1, 0, 0);
}

static void symbols_that_differ_are_settled_when_running(void **state)
{
    (void)state;
    check_sum("float[N,3] dy, float[M,3] x", 1, 0, 1);
    check_sum("float[5,3] dy, float[M,3] x", 1, 0, 1);
}

static void names_count_up_under_the_prefix(void **state)
{
    ot_model *model = read_text(HEAD "g (float[2] a) => (float[2] y) { [fc] y = Tanh(a) }");
    ot_grad *g = ot__emitter_create(model->graph, "fc_Grad");
    ot_value *a = find_value(model, "a"), *v;

    (void)state;
    v = ot_emit2(g, "Mul", ot_emit1(g, "Neg", a), a);
    assert_string_equal(v->name, "fc_Grad/Mul_1_y");
    assert_string_equal(v->producer->name, "fc_Grad/Mul_1");
    assert_string_equal(v->producer->inputs[0]->producer->name, "fc_Grad/Neg_0");
    assert_int_equal(v->shape.dim[0], 2);
    assert_ok(ot__emitter_destroy(g));
    ot_model_destroy(model);
}

static void numbers_are_shared_by_type(void **state)
{
    ot_model *model = read_text(HEAD "g (float[2] a, double[2] d) => (float[2] y) { y = Neg(a) }");
    ot_grad *g = ot__emitter_create(model->graph, "p");
    const ot_value *a = find_value(model, "a"), *d = find_value(model, "d");
    ot_value *one = ot_emit_constant(g, 1.0, a);

    (void)state;
    assert_string_equal(one->name, "OneConstant_Typefloat");
    assert_ptr_equal(ot_emit_constant(g, 1.0, a), one);
    assert_ptr_not_equal(ot_emit_constant(g, 1.0, d), one);
    assert_ptr_not_equal(ot_emit_constant(g, 2.5, a), one);
    assert_true(ot__tensor_get_f64(ot_emit_constant(g, 2.5, d)->constant, 0) == 2.5);
    assert_ok(ot__emitter_destroy(g));
    ot_model_destroy(model);
}

static void domains_are_imported_when_first_used(void **state)
{
    ot_model *model = read_text(HEAD "g (float[2] a) => (float[2] y) { y = Neg(a) }");
    ot_grad *g = ot__emitter_create(model->graph, "p");

    (void)state;
    ot_emit1(g, "com.microsoft.QuickGelu", find_value(model, "a"));
    assert_ok(ot__emitter_destroy(g));
    assert_int_equal(ot__model_opset(model, "com.microsoft"), 1);
    ot_model_destroy(model);
}

static void after_an_error_nothing_more_is_emitted(void **state)
{
    ot_model *model = read_text(HEAD "g (float[2] a) => (float[2] y) { y = Neg(a) }");
    ot_grad *g = ot__emitter_create(model->graph, "p");
    ot_value *a = find_value(model, "a");
    int n_nodes;

    (void)state;
    assert_null(ot_emit1(g, "NoSuchOperator", a));
    n_nodes = model->graph->n_nodes;
    assert_null(ot_emit1(g, "Neg", a));
    assert_null(ot_emit_constant(g, 3.0, a));
    assert_int_equal(model->graph->n_nodes, n_nodes);
    assert_fails(ot__emitter_destroy(g), OT_ERR_UNSUPPORTED, "NoSuchOperator");
    ot_model_destroy(model);
}

static void reshaping_to_one_open_extent_needs_no_shape_node(void **state)
{
    ot_model *model = read_text(HEAD "g (float[N,6] v, float[N,2,3] x, float[A,B] z, float[N,6] w)"
                                     " => (float[N,6] y) { y = Neg(v) }");
    ot_grad *g = ot__emitter_create(model->graph, "p");
    ot_value *v = find_value(model, "v"), *r;

    (void)state;
    r = ot_emit_reshape_like(g, v, find_value(model, "x"));
    assert_int_equal(count_nodes(model, "Shape"), 0);
    assert_int_equal(r->shape.ndim, 3);
    assert_ptr_equal(ot_emit_reshape_like(g, v, find_value(model, "w")), v);
    ot_emit_reshape_like(g, v, find_value(model, "z"));
    assert_int_equal(count_nodes(model, "Shape"), 1);
    assert_ok(ot__emitter_destroy(g));
    ot_model_destroy(model);
}

static void attributes_are_read_from_text(void **state)
{
    ot_model *model = read_text(HEAD "g (float[2] a) => (float[2] y) { y = LeakyRelu(a) }");
    ot_node *node = model->graph->nodes[0];
    const int64_t *ints;
    const float *floats;
    int n;

    (void)state;
    assert_ok(ot__op_lookup(model, node, &node->op));
    assert_ok(ot__node_set_attrs_text(
        node, "alpha = 2, i = -3 s=\"a b\", v = [1, -2,3], w = [0.5, 2] t = f32[2]{1.5, 2}"));
    assert_true(ot_attr_float(node, "alpha") == 2.0F);
    assert_int_equal(ot_attr_int(node, "i"), -3);
    assert_string_equal(ot_attr_string(node, "s"), "a b");
    ints = ot_attr_ints(node, "v", &n);
    assert_int_equal(n, 3);
    assert_int_equal(ints[1], -2);
    floats = ot_attr_floats(node, "w", &n);
    assert_int_equal(n, 2);
    assert_true(floats[1] == 2.0F);
    assert_true(ot__tensor_get_f64(ot_attr_tensor(node, "t"), 0) == 1.5);
    assert_fails(ot__node_set_attrs_text(node, "a = "), OT_ERR_FORMAT, "'a'");
    assert_fails(ot__node_set_attrs_text(node, "a"), OT_ERR_FORMAT, "expected '='");
    assert_fails(ot__node_set_attrs_text(node, "a = \"x"), OT_ERR_FORMAT, "closing quote");
    assert_fails(ot__node_set_attrs_text(node, "a = [1, x]"), OT_ERR_FORMAT, "a number");
    assert_fails(ot__node_set_attrs_text(node, "a = f32[2]{1}"), OT_ERR_FORMAT, "as many elements");
    ot_model_destroy(model);
}

static void evaluating_frees_everything_when_memory_runs_out(void **state)
{
    ot_model *model = read_prepared(HEAD "g (float[2,3] a, float[3] b) => (float[2,3] y)"
                                         "{ y = Add(a, b) }");
    const double numbers[6] = {1, 2, 3, 4, 5, 6};
    ot_tensor *a = new_tensor(OT_F32, OT_SHAPE(2, 3), numbers);
    ot_tensor *b = new_tensor(OT_F32, OT_SHAPE(3), numbers), *y;
    const ot_tensor *const in[] = {a, b};
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int64_t n = 0; n < 1000 && st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = ot__op_eval(model->graph->nodes[0], in, 2, &y, 1);
        ot__alloc_fail_after(-1);
    }
    assert_ok(st);
    assert_true(ot__tensor_get_f64(y, 5) == 9.0);
    ot_tensor_destroy(y);
    ot_tensor_destroy(a);
    ot_tensor_destroy(b);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_extents_need_no_sum),
        cmocka_unit_test(numbers_settle_the_axes),
        cmocka_unit_test(symbols_that_differ_are_settled_when_running),
        cmocka_unit_test(names_count_up_under_the_prefix),
        cmocka_unit_test(numbers_are_shared_by_type),
        cmocka_unit_test(domains_are_imported_when_first_used),
        cmocka_unit_test(after_an_error_nothing_more_is_emitted),
        cmocka_unit_test(reshaping_to_one_open_extent_needs_no_shape_node),
        cmocka_unit_test(attributes_are_read_from_text),
        cmocka_unit_test(evaluating_frees_everything_when_memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
