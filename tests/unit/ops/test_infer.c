// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "

// Resolves every node and infers the first one.
static ot_status infer_first(ot_model *model)
{
    ot_node *node = model->graph->nodes[0];

    OT_TRY(ot__op_lookup(model, node, &node->op));
    OT_TRY(ot__op_check_node(node));
    return ot__op_infer(node);
}

static void check(const char *text, ot_status status, const char *message)
{
    ot_model *model = read_text(text);

    assert_fails(infer_first(model), status, message);
    ot_model_destroy(model);
}

static void a_declared_shape_that_contradicts_is_refused_with_both(void **state)
{
    (void)state;
    check(HEAD "g (float[2,3] a) => (float[2,4] y) { y = Neg(a) }", OT_ERR_INVALID,
          "output 0 'y' is declared [2,4], inferred [2,3]");
    check(HEAD "g (float[2,3] a) => (float[2] y) { y = Neg(a) }", OT_ERR_INVALID, "declared [2]");
    check(HEAD "g (float[2,3] a) => (double[2,3] y) { y = Neg(a) }", OT_ERR_INVALID,
          "declared f64, inferred f32");
}

static void of_two_extents_the_better_known_is_kept(void **state)
{
    ot_model *model = read_text(HEAD "g (float[N,3] a) => (float[2,M] y) { y = Neg(a) }");
    const ot_value *y = find_value(model, "y");

    (void)state;
    assert_ok(infer_first(model));
    assert_int_equal(y->shape.dim[0], 2);
    assert_int_equal(y->shape.dim[1], 3);
    ot_model_destroy(model);
}

static void of_two_symbols_the_inferred_one_is_kept(void **state)
{
    ot_model *model = read_text(HEAD "g (float[N,3] a) => (float[out_0,3] y) { y = Neg(a) }");

    (void)state;
    assert_ok(infer_first(model));
    assert_true(find_value(model, "y")->shape.dim[0] == find_value(model, "a")->shape.dim[0]);
    ot_model_destroy(model);
}

static void types_of_one_variable_must_agree(void **state)
{
    (void)state;
    check(HEAD "g (float[2] a, double[2] b) => (float[2] y) { y = Add(a, b) }", OT_ERR_INVALID,
          "input 1 (B) is f64, the inputs before it are f32");
    check(HEAD "g (string[2] a) => (string[2] y) { y = Neg(a) }", OT_ERR_UNSUPPORTED,
          "input 0 (X) is string, supported: f32 i8 i16 i32 i64 f16 f64 bf16");
}

static void messages_name_the_node(void **state)
{
    (void)state;
    check(HEAD "g (float[2] a, float[3] b) => (float[2] y) { [sum] y = Add(a, b) }", OT_ERR_INVALID,
          "Add 'sum': shapes [2] and [3] do not broadcast");
}

static void shape_arithmetic_is_followed_through_symbols(void **state)
{
    ot_model *model = read_text(HEAD "g (float[N,3] a) => (int64[2] y) <int64[1] two = {2}>"
                                     "{ s = Shape(a) y = Mul(s, two) }");
    const ot_value *y = find_value(model, "y");

    (void)state;
    for (int i = 0; i < 2; i++) {
        ot_node *node = model->graph->nodes[i];

        assert_ok(ot__op_lookup(model, node, &node->op));
        assert_ok(ot__op_infer(node));
    }
    assert_int_equal(y->n_known, 2);
    assert_int_equal(y->known[1], 6);
    assert_true(y->known[0] == ot__dim_mul(model, 2, find_value(model, "a")->shape.dim[0]));
    ot_model_destroy(model);
}

static void without_a_rank_the_type_still_follows(void **state)
{
    ot_model *model = read_text(HEAD "g (float a) => (float y) { y = Neg(a) }");
    ot_value *a = find_value(model, "a"), *y = find_value(model, "y");

    (void)state;
    ot__value_set(a, OT_F32, NULL);
    y->kind = OT_VALUE_UNTYPED;
    y->dtype = OT_DTYPE_UNDEFINED;
    y->has_shape = false;
    assert_ok(infer_first(model));
    assert_int_equal(y->dtype, OT_F32);
    assert_false(y->has_shape);
    ot_model_destroy(model);
}

static void unknown_operators_and_versions_are_named(void **state)
{
    (void)state;
    check(HEAD "g (float[2] a) => (float[2] y) { [n] y = Foo(a) }", OT_ERR_UNSUPPORTED,
          "Foo 'n': domain ai.onnx has no operator of that name");
    check("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] a) => (float[2] y) "
          "{ y = com.microsoft.QuickGelu(a) }",
          OT_ERR_FORMAT, "imports no opset of domain com.microsoft");
    check("<ir_version: 8, opset_import: [\"\" : 12]> g (float[2] a) => (float[2] y) "
          "{ y = CastLike(a, a) }",
          OT_ERR_UNSUPPORTED, "opset 12 is not supported, versions known start at 15");
    check("<ir_version: 8, opset_import: [\"\" : 999]> g (float[2] a) => (float[2] y) "
          "{ y = Neg(a) }",
          OT_ERR_UNSUPPORTED, "opset 999 is newer than the newest known");
}

static void structure_is_checked_against_the_record(void **state)
{
    (void)state;
    check(HEAD "g (float[2] a) => (float[2] y) { y = Add(a) }", OT_ERR_INVALID,
          "input 1 (B) is missing");
    check(HEAD "g (float[2] a) => (float[2] y) { y = Neg(a, a) }", OT_ERR_INVALID,
          "2 inputs, expected at most 1");
    check(HEAD "g (float[2] a) => (float[2] y) { y = Neg<axis = 1>(a) }", OT_ERR_INVALID,
          "unknown attribute 'axis'");
    check(HEAD "g (float[2] a) => (float[2] y) { y = LeakyRelu<alpha = 1>(a) }", OT_ERR_INVALID,
          "attribute 'alpha' is int, expected float");
    check(HEAD "g (float[2] a) => (float[2] y) { y = Cast(a) }", OT_ERR_INVALID,
          "attribute 'to' is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_declared_shape_that_contradicts_is_refused_with_both),
        cmocka_unit_test(of_two_extents_the_better_known_is_kept),
        cmocka_unit_test(of_two_symbols_the_inferred_one_is_kept),
        cmocka_unit_test(types_of_one_variable_must_agree),
        cmocka_unit_test(messages_name_the_node),
        cmocka_unit_test(shape_arithmetic_is_followed_through_symbols),
        cmocka_unit_test(without_a_rank_the_type_still_follows),
        cmocka_unit_test(unknown_operators_and_versions_are_named),
        cmocka_unit_test(structure_is_checked_against_the_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
