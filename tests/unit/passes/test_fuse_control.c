// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

#define OF_OPSET(opset, inputs, initializers, nodes)                                               \
    "<ir_version: 8, opset_import: [\"\" : " opset "]>"                                            \
    "g (" inputs ") => (float[a, b] y) <" initializers "> {" nodes "}"
#define MODEL(inputs, initializers, nodes) OF_OPSET("18", inputs, initializers, nodes)
#define BRANCHES                                                                                   \
    "<then_branch = yes () => (float[a, b] t) { t = Add(x, x) },"                                  \
    " else_branch = no () => (float[a, b] e) <float[1] three = {3}> { e = Mul(x, three) }>"

// The elements of y for x = 1, 2, 3, 4, 5, 6.
static void assert_values(const char *text, const double *wanted, int n)
{
    const double x[] = {1, 2, 3, 4, 5, 6};
    ot_model *model = read_prepared(text);
    evaluation e = {0};

    assert_null(find_node(model, "If"));
    assert_null(find_node(model, "Loop"));
    feed(&e, "x", new_tensor(OT_F32, OT_SHAPE(2, 3), x));
    compute(&e, model);
    assert_int_equal(ot_tensor_count(result(&e, "y")), n);
    for (int i = 0; i < n; i++)
        assert_true(element(&e, "y", i) == wanted[i]);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

static void an_if_of_constant_condition_becomes_its_branch(void **state)
{
    (void)state;
    assert_values(MODEL("float[2, 3] x", "bool c = {1}", "y = If (c) " BRANCHES),
                  (double[]){2, 4, 6, 8, 10, 12}, 6);
    assert_values(
        MODEL("float[2, 3] x", "", "c = Constant<value = bool {0}>() y = If (c) " BRANCHES),
        (double[]){3, 6, 9, 12, 15, 18}, 6);
}

// As PyTorch's exporter writes squeeze() of an axis whose extent it did not know.
static void a_condition_may_follow_from_shapes(void **state)
{
    (void)state;
    assert_values(MODEL("float[N, 3] x", "int64 one = {1}, int64 three = {3}",
                        "s = Shape(x) d = Gather(s, one) c = Equal(d, three) y = If (c) " BRANCHES),
                  (double[]){2, 4, 6, 8, 10, 12}, 6);
    // One If decides another, and reads what is outside.
    assert_values(MODEL("float[N, 3] x", "bool c = {1}, int64 one = {1}",
                        "s = If (c) <then_branch = yes () => (int64[k] t) { t = Shape(x) },"
                        "            else_branch = no () => (int64[k] e) { e = Constant<value = "
                        "int64[1] {0}>() }>"
                        "d = Gather(s, one) e = Equal(d, one) y = If (e) " BRANCHES),
                  (double[]){3, 6, 9, 12, 15, 18}, 6);
}

static void branches_inside_a_branch_are_taken_too(void **state)
{
    (void)state;
    assert_values(
        MODEL("float[2, 3] x", "bool c = {1}, bool d = {0}",
              "y = If (c) <then_branch = yes () => (float[a, b] t) { u = Neg(x) t = If (d) "
              "<then_branch = a () => (float[a, b] v) { v = Abs(u) },"
              " else_branch = b () => (float[a, b] w) { w = Add(u, u) }> },"
              " else_branch = no () => (float[a, b] e) { e = Identity(x) }>"),
        (double[]){-2, -4, -6, -8, -10, -12}, 6);
}

#define TURN                                                                                       \
    "<body = turn (int64 i, bool go, float[a, b] h) => (bool goes, float[a, b] g, float[b] o)"     \
    " { goes = Identity(go) f = Cast<to = 1>(i) k = Add(f, one) g = Mul(h, k) o = "                \
    "ReduceSum<keepdims = 0>(g, axes) }>"

// h = x * 1 * 2 * 3, and the sums of its columns after each turn.
static void a_loop_of_constant_count_becomes_its_turns(void **state)
{
    (void)state;
    assert_values(MODEL("float[2, 3] x",
                        "int64 n = {3}, bool go = {1}, float one = {1}, int64[1] axes = {0}",
                        "y, o = Loop (n, go, x) " TURN),
                  (double[]){6, 12, 18, 24, 30, 36}, 6);
    assert_values(MODEL("float[2, 3] x", "int64 n = {3}, float one = {1}, int64[1] axes = {0}",
                        "h, y = Loop (n, , x) " TURN),
                  (double[]){5, 7, 9, 10, 14, 18, 30, 42, 54}, 9);
    assert_values(MODEL("float[2, 3] x", "int64 zero = {0}, float one = {1}, int64[1] axes = {0}",
                        "s = Shape(x) n = Gather(s, zero) h, y = Loop (n, , x) " TURN),
                  (double[]){5, 7, 9, 10, 14, 18}, 6);
    assert_values(MODEL("float[2, 3] x", "float one = {1}, int64[1] axes = {0}",
                        "n = Constant<value_int = 2>() h, y = Loop (n, , x) " TURN),
                  (double[]){5, 7, 9, 10, 14, 18}, 6);
}

// Unsqueeze had its axes as an attribute then.
static void a_loop_of_an_older_opset(void **state)
{
    (void)state;
    assert_values(
        OF_OPSET("11", "float[2, 3] x", "int64 n = {2}",
                 "h, y = Loop (n, , x) <body = turn (int64 i, bool go, float[a, b] h) => "
                 "(bool goes, float[a, b] g, float[b] o) { goes = Identity(go) g = Add(h, h)"
                 " o = ReduceSum<axes = [0], keepdims = 0>(g) }>"),
        (double[]){10, 14, 18, 20, 28, 36}, 6);
}

// Sums of rows up to each, from the last row on, as columns; and the sum of all.
static void a_scan_of_known_length_becomes_its_turns(void **state)
{
    static const char sums[] = MODEL("float[2, 3] x", "float[3] none = {0, 0, 0}",
                                     "l, y = Scan <num_scan_inputs = 1, scan_input_directions = "
                                     "[1], scan_output_axes = [1], body = turn "
                                     "(float[3] h, float[3] r) => (float[3] g, float[3] o) { g = "
                                     "Add(h, r) o = Neg(g) }> (none, x)");
    static const char last[] =
        MODEL("float[3, 2] x", "float[3] none = {0, 0, 0}, int64[1] axes = {1}",
              "t = Neg(x) l, o = Scan <num_scan_inputs = 1, scan_input_axes = [-1], "
              "scan_output_directions = [1], "
              "body = turn (float[3] h, float[3] r) => (float[3] g, float[3] o) { g = Add(h, r) o "
              "= Identity(g) }> "
              "(none, t) u = Unsqueeze(l, axes) v = Transpose(o) y = Concat<axis = 1>(u, v)");
    const double x[] = {1, 2, 3, 4, 5, 6};
    ot_model *model = read_prepared(last);
    evaluation e = {0};

    (void)state;
    assert_values(sums, (double[]){-4, -5, -5, -7, -6, -9}, 6);
    assert_null(find_node(model, "Scan"));
    feed(&e, "x", new_tensor(OT_F32, OT_SHAPE(3, 2), x));
    compute(&e, model);
    // Of each row the sum, then that of both columns and of the first: the last turn's comes first.
    for (int i = 0; i < 9; i++)
        assert_true(element(&e, "y", i) ==
                    ((const double[]){-3, -3, -1, -7, -7, -3, -11, -11, -5})[i]);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

// A list that a loop fills.
static void sequences_of_a_loop_become_tensors(void **state)
{
    (void)state;
    assert_values(
        MODEL("float[2, 3] x", "int64 n = {2}",
              "s = SequenceEmpty() l = Loop (n, , s) <body = turn (int64 i, bool go, seq(float) q) "
              "=> "
              "(bool goes, seq(float) r) { goes = Identity(go) p = Gather<axis = 0>(x, i) "
              "d = Add(p, p) r = SequenceInsert(q, d) }> y = ConcatFromSequence<axis = 0, new_axis "
              "= 1>(l)"),
        (double[]){2, 4, 6, 8, 10, 12}, 6);
}

// As torch.atleast_1d() of a list is written: nothing says what the body makes.
static void a_map_over_a_list_becomes_what_it_does_with_each(void **state)
{
    (void)state;
    assert_values(MODEL("float[2, 3] x", "",
                        "n = Neg(x) s = SequenceConstruct(x, n) "
                        "m = SequenceMap <body = each (t) => (u) { u = Add(t, t) }> (s) "
                        "y = ConcatFromSequence<axis = 0>(m)"),
                  (double[]){2, 4, 6, 8, 10, 12, -2, -4, -6, -8, -10, -12}, 12);
}

static void what_data_decides_stays(void **state)
{
    static const char *const texts[] = {
        MODEL(
            "float[2, 3] x", "int64 n = {3}, bool go = {1}, float one = {1}",
            "y = Loop (n, go, x) <body = turn (int64 i, bool go, float[a, b] h) => (bool goes, "
            "float[a, b] g) { m = ReduceMax<keepdims = 0>(h) goes = Less(m, one) g = Add(h, h) }>"),
        MODEL("float[2, 3] x, int64 n", "float one = {1}, int64[1] axes = {0}",
              "y, o = Loop (n, , x) " TURN),
        MODEL("float[2, 3] x", "int64 n = {1000000000000}, float one = {1}, int64[1] axes = {0}",
              "y, o = Loop (n, , x) " TURN),
        MODEL("float[2, 3] x", "int64 n = {1000}",
              "y = Loop (n, , x) <body = outer (int64 i, bool go, float[a, b] h) => (bool goes, "
              "float[a, b] g)"
              " { goes = Identity(go) g = Loop (n, , h) <body = inner (int64 j, bool gi, float[a, "
              "b] k) => "
              "(bool gj, float[a, b] l) { gj = Identity(gi) l = Neg(k) }> }>"),
        MODEL("float[N, 3] x", "float[3] none = {0, 0, 0}",
              "l, y = Scan <num_scan_inputs = 1, body = turn (float[3] h, float[3] r) => (float[3] "
              "g, "
              "float[3] o) { g = Add(h, r) o = Neg(g) }> (none, x)"),
        MODEL("float[2, 3] x", "int64 n = {0}, float one = {1}, int64[1] axes = {0}",
              "h, y = Loop (n, , x) " TURN),
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(texts); i++) {
        ot_model *model = read_text(texts[i]);

        assert_ok(ot__pass_prepare(model));
        assert_non_null(find_node(model, i == 4 ? "Scan" : "Loop"));
        ot_model_destroy(model);
    }
}

#define OPEN_IF MODEL("float[2, 3] x, bool c", "float zero = {0}", "y = If (c) " BRANCHES)

// Both branches stand in the graph, and what one of them has for its own stays there.
static void an_if_that_data_decide_becomes_both_branches(void **state)
{
    ot_model *model = read_prepared(OPEN_IF);
    const ot_node *output = find_node(model, "BranchOutput");

    (void)state;
    assert_null(find_node(model, "If"));
    assert_ptr_equal(output->inputs[0], find_value(model, "c"));
    assert_string_equal(output->inputs[1]->producer->op_type, "Add");
    assert_string_equal(output->inputs[2]->producer->op_type, "Mul");
    assert_ptr_equal(output->outputs[0], model->graph->outputs[0]);
    assert_int_equal(model->graph->outputs[0]->shape.dim[1], 3);
    ot_model_destroy(model);
}

static ot_model *specialized(const char *text, bool condition, const char **question)
{
    ot_model *model = read_prepared(text);
    const double number = condition;
    ot_tensor *answer = new_tensor(OT_BOOL, (ot_shape){0}, &number);
    const ot_tensor *const answers[] = {answer};
    const ot_shape shapes[] = {OT_SHAPE(2, 3), {0}};

    assert_ok(ot__pass_specialize_by(model, shapes, 2, &(ot__answers){.tensors = answers, .n = 1},
                                     question));
    ot_tensor_destroy(answer);
    return model;
}

static void the_branch_that_is_taken_stays_alone(void **state)
{
    const char *question;

    (void)state;
    for (int condition = 0; condition < 2; condition++) {
        ot_model *model = specialized(OPEN_IF, condition != 0, &question);

        assert_null(question);
        assert_null(find_node(model, "BranchOutput"));
        assert_int_equal(count_nodes(model, "Add"), condition);
        assert_int_equal(count_nodes(model, "Mul"), !condition);
        ot_model_destroy(model);
    }
}

static const char inside_text[] =
    MODEL("float[2, 3] x, bool c", "",
          "y = If (c) <then_branch = yes () => (float[a, b] t) { m = ReduceMax<keepdims = 0>(x)"
          " d = Cast<to = 9>(m) t = If (d)"
          " <then_branch = a () => (float[a, b] v) { v = Abs(x) },"
          " else_branch = b () => (float[a, b] w) { w = Add(x, x) }> },"
          " else_branch = no () => (float[a, b] e) { e = Neg(x) }>");

// The condition of the inner one is computed where the outer one is taken.
static void branches_inside_branches_are_asked_one_after_the_other(void **state)
{
    const char *question;
    ot_model *model = specialized(inside_text, true, &question);

    (void)state;
    assert_non_null(question);
    assert_non_null(strstr(question, "which branch is taken"));
    assert_int_equal(count_nodes(model, "ReduceMax"), 1); // the question
    assert_int_equal(count_nodes(model, "Neg") + count_nodes(model, "Abs"), 0);
    ot_model_destroy(model);
    model = specialized(inside_text, false, &question);
    assert_null(question); // of a branch that is not taken nothing is asked
    assert_int_equal(count_nodes(model, "Neg"), 1);
    assert_int_equal(count_nodes(model, "ReduceMax"), 0);
    ot_model_destroy(model);
}

static const ot_graph *body_of(const ot_node *node, const char *name)
{
    const ot_attr *attr = ot__node_attr(node, name);

    assert_non_null(attr);
    return attr->g;
}

static void for_others_both_branches_become_an_if_again(void **state)
{
    ot_model *model = read_prepared(inside_text);
    const ot_graph *then;
    const ot_node *inner = NULL;

    (void)state;
    assert_ok(ot__branches_close(model));
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(model->graph->nodes[0]->op_type, "If");
    assert_int_equal(ot__model_opset(model, "ai.onnxtrain"), 0);
    then = body_of(model->graph->nodes[0], "then_branch");
    assert_int_equal(then->n_nodes, 3);
    for (int n = 0; n < then->n_nodes; n++)
        if (strcmp(then->nodes[n]->op_type, "If") == 0)
            inner = then->nodes[n];
    assert_non_null(inner);
    assert_ptr_equal(then->outputs[0]->producer, inner);
    assert_string_equal(body_of(inner, "then_branch")->nodes[0]->op_type, "Abs");
    assert_string_equal(body_of(inner, "else_branch")->nodes[0]->op_type, "Add");
    assert_string_equal(body_of(model->graph->nodes[0], "else_branch")->nodes[0]->op_type, "Neg");
    assert_ok(ot__pass_prepare(model)); // it is a model as any other
    assert_int_equal(count_nodes(model, "BranchOutput"), 2);
    ot_model_destroy(model);
    // What both branches hand on comes from outside.
    model =
        read_prepared(MODEL("float[2, 3] x, bool c", "float two = {2}",
                            "h = Mul(x, two) a, y = If (c) <then_branch = yes () => (float[a, b] s,"
                            " float[a, b] t) { s = Identity(h) t = Abs(h) },"
                            " else_branch = no () => (float[a, b] d, float[a, b] e)"
                            " { d = Neg(h) e = Identity(d) }>"));
    assert_ok(ot__branches_close(model));
    assert_int_equal(count_nodes(model, "If"), 1);
    assert_int_equal(count_nodes(model, "Mul"), 1);
    assert_int_equal(body_of(find_node(model, "If"), "then_branch")->n_outputs,
                     find_node(model, "If")->n_outputs);
    ot_model_destroy(model);
}

static void out_of_memory(void **state)
{
    static const char text[] =
        MODEL("float[N, 3] x", "int64 one = {1}, int64 three = {3}",
              "s = Shape(x) d = Gather(s, one) c = Equal(d, three) y = If (c) " BRANCHES);
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n++) {
        ot_model *model = read_text(text);

        ot__alloc_fail_after(n);
        st = ot__fuse_control(model);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        if (st == OT_OK)
            assert_null(find_node(model, "If"));
        ot_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_if_of_constant_condition_becomes_its_branch),
        cmocka_unit_test(a_condition_may_follow_from_shapes),
        cmocka_unit_test(branches_inside_a_branch_are_taken_too),
        cmocka_unit_test(a_loop_of_constant_count_becomes_its_turns),
        cmocka_unit_test(a_loop_of_an_older_opset),
        cmocka_unit_test(a_scan_of_known_length_becomes_its_turns),
        cmocka_unit_test(sequences_of_a_loop_become_tensors),
        cmocka_unit_test(a_map_over_a_list_becomes_what_it_does_with_each),
        cmocka_unit_test(what_data_decides_stays),
        cmocka_unit_test(an_if_that_data_decide_becomes_both_branches),
        cmocka_unit_test(the_branch_that_is_taken_stays_alone),
        cmocka_unit_test(branches_inside_branches_are_asked_one_after_the_other),
        cmocka_unit_test(for_others_both_branches_become_an_if_again),
        cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
