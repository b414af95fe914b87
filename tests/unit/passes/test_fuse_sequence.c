// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "onnxtrain/runner.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 18]>"                                                   \
    "g (float[2, 5] x) => (float[a, b] y)"                                                         \
    "<int64 zero = {0}, int64 one = {1}, int64 last = {-1}, int64 two = {2},"                      \
    " int64[2] sizes = {2, 3}, int64[1] axes = {0}>"

// The sum of the elements of y for x = 0, 1, 2, ... and its extents.
static void assert_result(const char *text, int64_t rows, int64_t columns, double first)
{
    const double x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    ot_model *model = read_prepared(text);
    evaluation e = {0};

    assert_null(find_node(model, "SplitToSequence"));
    feed(&e, "x", new_tensor(OT_F32, OT_SHAPE(2, 5), x));
    compute(&e, model);
    assert_int_equal(result(&e, "y")->shape.ndim, 2);
    assert_int_equal(result(&e, "y")->shape.dim[0], rows);
    assert_int_equal(result(&e, "y")->shape.dim[1], columns);
    assert_true(element(&e, "y", 0) == first);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

static void parts_taken_by_position_become_outputs_of_split(void **state)
{
    (void)state;
    assert_result(HEAD "{ s = SplitToSequence<axis = 1>(x, sizes) y = SequenceAt(s, one) }", 2, 3,
                  2);
    assert_result(HEAD "{ s = SplitToSequence<axis = -1>(x, sizes) y = SequenceAt(s, last) }", 2, 3,
                  2);
    assert_result(HEAD "{ s = SplitToSequence<axis = 1>(x, two) y = SequenceAt(s, last) }", 2, 1,
                  4);
    assert_result(HEAD "{ p = Constant<value = int64 {1}>() s = SplitToSequence<axis = 1>(x, two)"
                       "  y = SequenceAt(s, p) }",
                  2, 2, 2);
    assert_result(HEAD "{ p = Constant<value_int = 1>() k = Constant<value_ints = [2, 3]>()"
                       "  s = SplitToSequence<axis = 1>(x, k) y = SequenceAt(s, p) }",
                  2, 3, 2);
}

static void unbinding_drops_the_axis(void **state)
{
    (void)state;
    assert_result(HEAD "{ s = SplitToSequence<axis = 0, keepdims = 0>(x) a = SequenceAt(s, zero)"
                       "  b = SequenceAt(s, one) c = Add(a, b) d = Unsqueeze(c, axes) y = Neg(d) }",
                  1, 5, -5);
}

static void lists_are_joined(void **state)
{
    (void)state;
    assert_result(HEAD
                  "{ n = Neg(x) s = SequenceConstruct(x, n) y = ConcatFromSequence<axis = 1>(s) }",
                  2, 10, 0);
    // x's second row, its negative before it, both once.
    assert_result(HEAD "{ r = SplitToSequence<axis = 0, keepdims = 0>(x) a = SequenceAt(r, one)"
                       "  n = Neg(a) e = SequenceEmpty() f = SequenceInsert(e, a)"
                       "  g = SequenceInsert(f, n, zero) h = Identity(g)"
                       "  y = ConcatFromSequence<axis = 0, new_axis = 1>(h) }",
                  2, 5, -5);
    assert_result(HEAD "{ r = SplitToSequence<axis = 0, keepdims = 0>(x) q = SequenceErase(r, zero)"
                       "  y = ConcatFromSequence<axis = -1, new_axis = 1>(q) }",
                  5, 1, 5);
    assert_result(
        HEAD "{ s = SequenceConstruct(x, x, x) n = SequenceLength(s) f = Cast<to = 1>(n)"
             "  p = Sub(x, f) t = SequenceInsert(s, p) l = SequenceErase(t) q = SequenceAt(t, last)"
             "  o = SequenceAt(l, last) y = Sub(q, o) }",
        2, 5, -3);
}

// It waits for a step, which finds that a place is outside.
static void a_place_that_is_not_known_stays(void **state)
{
    const double elements[10] = {0};
    ot_model *model = read_text(HEAD "{ s = SplitToSequence<axis = 1>(x, sizes)"
                                     "  n = SequenceLength(s) t = SequenceAt(s, n) y = Neg(t) }");
    ot_tensor *x, *y;

    (void)state;
    assert_ok(ot__fuse_sequence(model));
    assert_non_null(find_node(model, "SplitToSequence"));
    assert_ok(ot__pass_prepare(model));
    x = new_tensor(OT_F32, *ot_value_shape(model->graph->inputs[0]), elements);
    assert_fails(ot_model_run(model, NULL, (const ot_tensor *const[]){x}, 1, &y, 1), OT_ERR_INVALID,
                 "a place is outside its sequence");
    ot_tensor_destroy(x);
    ot_model_destroy(model);
}

static void an_unknown_number_of_parts_stays(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 18]>"
                                "g (float[2, N] x) => (float[a, b] y) <int64 two = {2}>"
                                "{ s = SplitToSequence<axis = 1>(x, two) y = SequenceAt(s, two) }");

    (void)state;
    assert_ok(ot__fuse_sequence(model));
    assert_non_null(find_node(model, "SplitToSequence"));
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_taken_by_position_become_outputs_of_split),
        cmocka_unit_test(unbinding_drops_the_axis),
        cmocka_unit_test(lists_are_joined),
        cmocka_unit_test(a_place_that_is_not_known_stays),
        cmocka_unit_test(an_unknown_number_of_parts_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
