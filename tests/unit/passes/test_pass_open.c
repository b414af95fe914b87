// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> g "

typedef struct opening {
    ot_model *model;
    ot__choices choices;
    ot__opened opened;
} opening;

static opening open_text(const char *text)
{
    opening o = {.model = read_prepared(text)};

    assert_ok(ot__pass_open_batch(o.model, &o.choices, &o.opened));
    return o;
}

// Elements of the shape that a node reads, as text.
static const char *entries(const opening *o, const char *op_type, int i_input)
{
    static char text[160];
    const ot_node *node = find_node(o->model, op_type);
    size_t used = 0;
    int n;

    assert_non_null(node);
    const int64_t *known = ot_value_known(node->inputs[i_input], &n);

    if (!known)
        return "unknown";
    text[0] = '\0';
    for (int k = 0; k < n; k++) {
        char dim[64];

        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k ? "," : "",
                                 ot__dim_text(o->model, known[k], dim, sizeof dim));
    }
    return text;
}

static const char *shape_of(const opening *o, const char *name)
{
    static char text[160];

    return ot__dims_text(o->model, &find_value(o->model, name)->shape, text, sizeof text);
}

static void assert_open(const opening *o, int n_changes)
{
    if (o->opened.obstacle)
        fail_msg("%s", o->opened.obstacle);
    assert_int_equal(o->opened.n_changes, n_changes);
}

static void assert_obstacle(const char *text, const char *part)
{
    opening o = open_text(text);

    if (!o.opened.obstacle || !strstr(o.opened.obstacle, part))
        fail_msg("obstacle '%s' lacks '%s'", o.opened.obstacle ? o.opened.obstacle : "none", part);
    ot_model_destroy(o.model);
}

// ---- inputs ----

static void all_inputs_that_have_the_first_ones_number_at_axis_0_get_one_symbol(void **state)
{
    opening o = open_text(HEAD "(float[4, 3] x, float[4] w, float[3] v) => (float[4, 3] y) {"
                               " a = Add(x, v) s = Constant<value_ints = [-1, 1]>()"
                               " u = Reshape(w, s) y = Mul(a, u) }");

    (void)state;
    assert_open(&o, 0);
    assert_int_equal(o.opened.batch, 4);
    assert_string_equal(shape_of(&o, "x"), "[batch,3]");
    assert_string_equal(shape_of(&o, "w"), "[batch]");
    assert_string_equal(shape_of(&o, "v"), "[3]");
    assert_string_equal(shape_of(&o, "y"), "[batch,3]");
    assert_int_equal(o.opened.inputs[1].axis, 0);
    assert_int_equal(o.opened.inputs[2].axis, -1);
    assert_int_equal(o.opened.outputs[0].axis, 0);
    ot_model_destroy(o.model);
}

static void a_batch_that_is_no_number_stays(void **state)
{
    opening o = open_text(HEAD "(float[N, 3] x, float[4] w) => (float[N, 3] y) { y = Relu(x) }");

    (void)state;
    assert_int_equal(o.opened.batch, 0);
    assert_string_equal(shape_of(&o, "w"), "[4]");
    ot_model_destroy(o.model);
}

static void a_name_that_another_axis_has_is_not_taken(void **state)
{
    opening o = open_text(HEAD "(float[4, batch] x) => (float[4, batch] y) { y = Relu(x) }");

    (void)state;
    assert_open(&o, 0);
    assert_string_equal(shape_of(&o, "y"), "[batch_1,batch]");
    ot_model_destroy(o.model);
}

// ---- Reshape ----

static void the_entry_that_the_batch_comes_to_follows_it(void **state)
{
    opening o = open_text(HEAD "(float[4, 4, 4] x) => (float[4, 4, 2, 2] y)"
                               "<int64[4] s = {4, 4, 2, 2}> { y = Reshape(x, s) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(entries(&o, "Reshape", 1), "0,4,2,2");
    assert_string_equal(shape_of(&o, "y"), "[batch,4,2,2]");
    ot_model_destroy(o.model);
}

static void other_readers_of_the_same_constant_keep_it(void **state)
{
    opening o = open_text(HEAD "(float[4, 6] x) => (float[4, 2, 3] y, float[4, 2, 3] z)"
                               "<int64[3] s = {4, 2, 3}, float[24] w = {1,2,3,4,5,6,7,8,9,10,11,12,"
                               "13,14,15,16,17,18,19,20,21,22,23,24}> {"
                               " z = Reshape(w, s) y = Reshape(x, s) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(entries(&o, "Reshape", 1), "4,2,3"); // of z, which no batch reaches
    assert_string_equal(shape_of(&o, "y"), "[batch,2,3]");
    ot_model_destroy(o.model);
}

static void a_batch_behind_other_axes_is_found_by_what_stands_in_front_of_it(void **state)
{
    opening o = open_text(HEAD "(float[4, 4, 6] x) => (float[4, 8, 3] y)"
                               "<int64[3] s = {4, 8, 3}> {"
                               " t = Transpose<perm = [1, 0, 2]>(x) y = Reshape(t, s) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(entries(&o, "Reshape", 1), "4,-1,3");
    assert_string_equal(shape_of(&o, "y"), "[4,2*batch,3]");
    ot_model_destroy(o.model);
}

static void windows_in_one_axis_with_the_batch_come_apart_where_they_were_joined(void **state)
{
    // [b, 2, 2, 3] -> [b * 2, 2, 3] -> [b, 2, 2, 3], once as windows in front of the batch.
    opening o =
        open_text(HEAD "(float[2, 2, 2, 3] x) => (float[2, 2, 2, 3] y, float[2, 2, 2, 3] z)"
                       "<int64[3] joined = {4, 2, 3}, int64[4] apart = {2, 2, 2, 3}> {"
                       " a = Reshape(x, joined) b = Relu(a) y = Reshape(b, apart)"
                       " t = Transpose<perm = [1, 0, 2, 3]>(x) c = Reshape(t, joined) d = Relu(c)"
                       " z = Reshape(d, apart) }");

    (void)state;
    assert_open(&o, 4);
    assert_string_equal(shape_of(&o, "a"), "[2*batch,2,3]");
    assert_string_equal(shape_of(&o, "y"), "[batch,2,2,3]");
    assert_string_equal(shape_of(&o, "c"), "[2*batch,2,3]");
    assert_string_equal(shape_of(&o, "z"), "[2,batch,2,3]");
    ot_model_destroy(o.model);
}

static void what_the_entry_left_to_be_computed_becomes_a_number(void **state)
{
    opening o = open_text(HEAD "(float[4, 6] x) => (float[4, 2, 3] y)"
                               "<int64[3] s = {4, 2, -1}> { y = Reshape(x, s) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch,2,3]");
    ot_model_destroy(o.model);
}

static void an_entry_that_follows_already_stays(void **state)
{
    opening o = open_text(HEAD "(float[4, 6] x) => (float[4, 2, 3] y)"
                               "<int64[3] s = {-1, 2, 3}> { y = Reshape(x, s) }");

    (void)state;
    assert_open(&o, 0);
    assert_ptr_equal(find_node(o.model, "Reshape")->inputs[1], find_value(o.model, "s"));
    ot_model_destroy(o.model);
}

static void a_batch_of_1_has_several_places_and_the_next_one_can_be_tried(void **state)
{
    static const char text[] = HEAD "(float[1, 5, 6] x) => (float[5, 6] y)"
                                    "<int64[2] s = {5, 6}> {"
                                    " t = Transpose<perm = [1, 0, 2]>(x) y = Reshape(t, s) }";
    opening o = open_text(text);

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[5*batch,6]");
    ot_model_destroy(o.model);
    o.model = read_prepared(text);
    assert_true(ot__choices_next(&o.choices));
    assert_ok(ot__pass_open_batch(o.model, &o.choices, &o.opened));
    assert_string_equal(shape_of(&o, "y"), "[5,6*batch]");
    assert_false(ot__choices_next(&o.choices));
    ot_model_destroy(o.model);
}

// ---- Expand, Slice, Concat, broadcasting ----

static void a_class_token_becomes_one_row_expanded_and_keeps_its_name(void **state)
{
    opening o = open_text(HEAD "(float[2, 3, 2] x) => (float[2, 4, 2] y)"
                               "<float[2, 1, 2] token = {5, 6, 5, 6}> {"
                               " y = Concat<axis = 1>(token, x) }");
    const ot_value *token = find_value(o.model, "token");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch,4,2]");
    assert_true(token->is_initializer);
    assert_int_equal(token->constant->shape.dim[0], 1);
    assert_true(ot__tensor_get_f64(token->constant, 1) == 6);
    assert_int_equal(o.model->graph->n_initializers, 1);
    ot_model_destroy(o.model);
}

static void a_class_token_that_is_expanded_follows_the_batch(void **state)
{
    opening o = open_text(HEAD "(float[2, 3, 2] x) => (float[2, 4, 2] y)"
                               "<float[1, 1, 2] token = {5, 6}, int64[3] s = {2, -1, -1},"
                               " int64[3] ones = {1, 1, 1}, int64[3] no = {-1, -1, -1}> {"
                               " c = Equal(s, no) t = Where(c, ones, s) e = Expand(token, t)"
                               " y = Concat<axis = 1>(e, x) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch,4,2]");
    assert_string_equal(entries(&o, "Expand", 1), "batch,1,1");
    ot_model_destroy(o.model);
}

static void rows_that_differ_are_an_obstacle(void **state)
{
    (void)state;
    assert_obstacle(HEAD "(float[2, 3, 2] x) => (float[2, 4, 2] y)"
                         "<float[2, 1, 2] token = {5, 6, 5, 7}> {"
                         " y = Concat<axis = 1>(token, x) }",
                    "Concat of 'y' reads 'token', which holds the batch size 2");
    assert_obstacle(HEAD "(float[2, 3] x) => (float[2, 3] y)"
                         "<float[2, 1] w = {5, 6}> { y = Mul(x, w) }",
                    "Mul of 'y' reads 'w', which holds the batch size 2");
}

static void equal_rows_beside_the_batch_become_one(void **state)
{
    // Token types of a language model: a table gathered at [b, 3] zeros.
    opening o = open_text(HEAD "(int64[2, 3] x) => (float[2, 3, 2] y)"
                               "<float[4, 2] words = {1, 2, 3, 4, 5, 6, 7, 8},"
                               " float[2, 2] types = {1, 2, 3, 4},"
                               " int64[2, 3] zeros = {0, 0, 0, 0, 0, 0}> {"
                               " a = Gather(words, x) b = Gather(types, zeros) y = Add(a, b) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch,3,2]");
    assert_int_equal(find_value(o.model, "zeros")->constant->shape.dim[0], 1);
    assert_null(ot__graph_find(o.model->graph, "b"));
    ot_model_destroy(o.model);
}

// CumSum is none of the operators whose rows are followed.
static void rows_computed_of_numbers_alone_are_known_by_computing_them(void **state)
{
    opening o = open_text(HEAD "(float[4, 3] x) => (float[4, 3] y) {"
                               " s = Constant<value_ints = [4, 3]>() ones = ConstantOfShape(s)"
                               " axis = Constant<value_int = 1>() steps = CumSum(ones, axis)"
                               " y = Add(x, steps) }");
    const ot_tensor *row;

    (void)state;
    assert_open(&o, 1);
    row = find_node(o.model, "Add")->inputs[1]->constant;
    assert_non_null(row);
    assert_int_equal(row->shape.dim[0], 1);
    assert_int_equal(row->shape.dim[1], 3);
    ot_model_destroy(o.model);
}

static void rows_computed_of_a_parameter_never_become_constant(void **state)
{
    (void)state;
    assert_obstacle(HEAD "(float[4, 3] x) => (float[4, 3] y)"
                         "<float[1, 3] w = {1, 2, 3}> {"
                         " s = Constant<value_ints = [4, 3]>() axis = Constant<value_int = 1>()"
                         " rows = Expand(w, s) steps = CumSum(rows, axis) y = Add(x, steps) }",
                    "reads 'steps', which holds the batch size 4");
}

static void halves_of_what_was_joined_are_cut_where_the_batch_ends(void **state)
{
    opening o = open_text(HEAD "(float[2, 3] a, float[2, 3] b) => (float[2, 3] y)"
                               "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}> {"
                               " j = Concat<axis = 0>(a, b) r = Relu(j)"
                               " p = Slice(r, zero, two, zero) q = Slice(r, two, four, zero)"
                               " y = Sub(p, q) }");

    (void)state;
    assert_open(&o, 3);
    assert_string_equal(shape_of(&o, "j"), "[2*batch,3]");
    ot_model_destroy(o.model);
}

static void zeros_that_elements_are_put_into_have_as_many_rows(void **state)
{
    opening o = open_text(HEAD "(float[2, 3] x, int64[2, 3] at) => (float[2, 5] y)"
                               "<float[2, 5] zeros = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> {"
                               " y = ScatterElements<axis = 1>(zeros, at, x) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch,5]");
    assert_string_equal(entries(&o, "Expand", 1), "batch,1");
    ot_model_destroy(o.model);
}

static void elements_that_are_taken_at_the_same_places_of_each_row(void **state)
{
    opening o = open_text(HEAD "(float[2, 3] x) => (float[2, 2] y)<int64[2, 2] at = {2, 0, 2, 0}> {"
                               " y = GatherElements<axis = 1>(x, at) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch,2]");
    ot_model_destroy(o.model);
    assert_obstacle(HEAD "(float[2, 3] x) => (float[2, 2] y)<int64[2, 2] at = {2, 0, 2, 1}> {"
                         " y = GatherElements<axis = 1>(x, at) }",
                    "reads 'at', which holds the batch size 2");
}

static void sizes_that_hold_the_batch_follow_it(void **state)
{
    opening o = open_text("<ir_version: 8, opset_import: [\"\" : 20]> g"
                          " (float[2, 1, 3, 3] x, float[2, 2, 3] t) => (float[2, 1, 6, 5] y)"
                          "<int64[4] s = {2, 1, 6, 5}, int64[4] z = {2, 1, 4, 4}> {"
                          " g = AffineGrid(t, z) i = GridSample(x, g)"
                          " y = Resize<mode = \"linear\">(i, , , s) }");

    (void)state;
    assert_open(&o, 2);
    assert_string_equal(shape_of(&o, "i"), "[batch,1,4,4]");
    assert_string_equal(shape_of(&o, "y"), "[batch,1,6,5]");
    assert_string_equal(entries(&o, "Resize", 3), "batch,1,6,5");
    ot_model_destroy(o.model);
    o = open_text("<ir_version: 8, opset_import: [\"\" : 20]> g"
                  " (float[2, 1, 3, 3] x) => (float[2, 1, 2, 6] y)<int64[2] s = {2, 6}> {"
                  " y = Resize<axes = [2, 3]>(x, , , s) }");
    assert_open(&o, 0); // two rows of an image are no batch
    ot_model_destroy(o.model);
}

static void numbers_of_rows_follow_the_batch(void **state)
{
    // y[b] = x[b, at[b]], as both exporters write it.
    opening o = open_text(HEAD "(float[3, 4] x, int64[3] at) => (float[3] y)"
                               "<int64[3] rows = {0, 1, 2}, int64[1] wide = {4},"
                               " int64[1] flat = {-1}> {"
                               " f = Reshape(x, flat) r = Mul(rows, wide) i = Add(at, r)"
                               " y = Gather(f, i) }");

    (void)state;
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch]");
    ot_model_destroy(o.model);
    o = open_text(HEAD "(float[3, 4] x, int32[3, 1] at) => (float[3] y)"
                       "<int32[3, 1] rows = {0, 1, 2}> {"
                       " j = Concat<axis = 1>(rows, at) i = Cast<to = 7>(j) y = GatherND(x, i) }");
    assert_open(&o, 1);
    assert_string_equal(shape_of(&o, "y"), "[batch]");
    ot_model_destroy(o.model);
    // As opset 23 has it: both are expanded to the size of what they are together.
    o = open_text(HEAD "(float[3, 4] x, int64[3] at) => (float[3] y)"
                       "<int64[3] rows = {0, 1, 2}, int64[1] last = {-1}> {"
                       " m = Max(rows, at) s = Shape(m) e = Expand(rows, s) f = Expand(at, s)"
                       " e1 = Unsqueeze(e, last) f1 = Unsqueeze(f, last)"
                       " j = Concat<axis = -1>(e1, f1) y = GatherND(x, j) }");
    assert_open(&o, 2);
    assert_string_equal(shape_of(&o, "y"), "[batch]");
    ot_model_destroy(o.model);
    assert_obstacle(HEAD "(float[3, 4] x, int64[3] at) => (float[3] y)"
                         "<int64[3] rows = {0, 4, 7}, int64[1] flat = {-1}> {"
                         " f = Reshape(x, flat) i = Add(at, rows) y = Gather(f, i) }",
                    "reads 'rows', which holds the batch size 3");
}

// Two heads in one axis with the batch, as often as there are rows: relative positions, biases.
static void what_is_the_same_for_the_heads_of_each_row_follows_the_batch(void **state)
{
    static const char before[] =
        HEAD "(float[3, 2, 4, 1] x) => (float[3, 2, 4, 5] y)"
             "<int64[3] joined = {-1, 4, 1}, int64[4] apart = {-1, 2, 4, 5},"
             " float[2, 5, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, int64[3] times = {3, 1, 1},"
             " int64[3] wide = {6, 1, 5}, float[5] b = {1, 2, 3, 4, 5}> {"
             " r = Reshape(x, joined) ";
    char text[sizeof before + 160];
    opening o;

    (void)state;
    snprintf(text, sizeof text, "%s%s", before,
             "t = Tile(w, times) u = Transpose<perm = [0, 2, 1]>(t) m = MatMul(r, u)"
             " e = Expand(b, wide) z = Add(m, e) y = Reshape(z, apart) }");
    o = open_text(text);
    assert_open(&o, 2);
    assert_string_equal(shape_of(&o, "m"), "[2*batch,4,5]");
    assert_string_equal(shape_of(&o, "z"), "[2*batch,4,5]");
    assert_string_equal(shape_of(&o, "y"), "[batch,2,4,5]");
    ot_model_destroy(o.model);
}

// Queries of a decoder: rows of a table, whose heads come into one axis with the batch.
static void heads_that_are_cut_from_equal_rows_follow_the_batch(void **state)
{
    opening o = open_text(
        HEAD "(float[3, 4, 2] x) => (float[3, 4, 5] y)"
             "<float[1, 5, 2] q = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, int64[3] wide = {3, 5, "
             "2}, int64[3] joined = {5, 6, 1}, int64[3] heads = {4, 6, 1}, int64[4] apart"
             " = {3, 2, 4, 5}> {"
             " e = Expand(q, wide) t = Transpose<perm = [1, 0, 2]>(e)"
             " r = Reshape(t, joined) u = Transpose<perm = [1, 2, 0]>(r)"
             " v = Transpose<perm = [1, 0, 2]>(x) w = Reshape(v, heads)"
             " z = Transpose<perm = [1, 0, 2]>(w) m = MatMul(z, u)"
             " n = Reshape(m, apart) y = ReduceMean<axes = [1], keepdims = 0>(n) }");

    (void)state;
    assert_open(&o, 3);
    assert_string_equal(shape_of(&o, "m"), "[2*batch,4,5]");
    assert_string_equal(shape_of(&o, "y"), "[batch,4,5]");
    ot_model_destroy(o.model);
}

// No rule finds a row behind a Gemm: then what is repeated follows the batch from there on.
static void what_is_repeated_as_often_as_there_are_rows_follows_the_batch(void **state)
{
    static const char *const repeats[] = {"Expand(q, wide)", "Tile(q, times)"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(repeats); i++) {
        char text[640];
        opening o;

        snprintf(text, sizeof text,
                 HEAD "(float[3, 5, 2] x) => (float[3, 5, 2] y)"
                      "<float[1, 5, 2] q = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},"
                      " int64[3] wide = {3, 5, 2}, int64[3] times = {3, 1, 1},"
                      " int64[2] flat = {15, 2}, int64[3] rows = {3, 5, 2},"
                      " float[2, 2] w = {1, 2, 3, 4}> {"
                      " e = %s f = Reshape(e, flat) g = Gemm(f, w) h = Reshape(g, rows)"
                      " y = Add(x, h) }",
                 repeats[i]);
        o = open_text(text);
        assert_non_null(o.opened.obstacle);
        assert_true(ot__choices_next(&o.choices));
        ot_model_destroy(o.model);
        o.model = read_prepared(text);
        assert_ok(ot__pass_open_batch(o.model, &o.choices, &o.opened));
        assert_open(&o, 3);
        assert_string_equal(shape_of(&o, "g"), "[5*batch,2]");
        assert_string_equal(shape_of(&o, "y"), "[batch,5,2]");
        ot_model_destroy(o.model);
    }
}

// ---- recurrent layers ----

#define LSTM_WEIGHTS                                                                               \
    "float[1, 4, 1] w = {1, 2, 3, 4}, float[1, 4, 1] r = {1, 2, 3, 4},"                            \
    "float[1, 8] b = {1, 2, 3, 4, 5, 6, 7, 8}"

static void zero_states_become_one_row_expanded(void **state)
{
    opening o = open_text(HEAD "(float[3, 2, 1] x) => (float[2, 3, 1, 1] y)"
                               "<" LSTM_WEIGHTS ", float[1, 3, 1] h = {0, 0, 0}> {"
                               " t = Transpose<perm = [1, 0, 2]>(x)"
                               " s, h_n, c_n = LSTM<hidden_size = 1>(t, w, r, b, , h, h)"
                               " y = Transpose<perm = [0, 2, 1, 3]>(s) }");

    (void)state;
    assert_open(&o, 2);
    assert_string_equal(shape_of(&o, "s"), "[2,1,batch,1]");
    assert_string_equal(shape_of(&o, "h_n"), "[1,batch,1]");
    ot_model_destroy(o.model);
}

static void zeros_that_an_exporter_made_up_are_no_parameter(void **state)
{
    opening o = open_text(HEAD "(float[3, 2, 1] x) => (float[2, 3, 1, 1] y)"
                               "<" LSTM_WEIGHTS ", float[1, 3, 1] val_16 = {0, 0, 0}> {"
                               " t = Transpose<perm = [1, 0, 2]>(x)"
                               " s, h_n, c_n = LSTM<hidden_size = 1>(t, w, r, b, , val_16, val_16)"
                               " y = Transpose<perm = [0, 2, 1, 3]>(s) }");

    (void)state;
    assert_open(&o, 2);
    assert_string_equal(shape_of(&o, "h_n"), "[1,batch,1]");
    assert_int_equal(count_nodes(o.model, "ConstantOfShape"), 2);
    assert_int_equal(o.model->graph->n_initializers, 3);
    ot_model_destroy(o.model);
}

static void steps_are_no_batch(void **state)
{
    (void)state;
    assert_obstacle(HEAD "(float[3, 2, 1] x) => (float[3, 1, 2, 1] y)"
                         "<" LSTM_WEIGHTS "> { y = LSTM<hidden_size = 1>(x, w, r, b) }",
                    "LSTM of 'y' takes axis 0 of the input as its steps");
}

// ---- the whole ----

static void every_allocation_may_fail(void **state)
{
    static const char text[] = HEAD "(float[2, 3, 2] x) => (float[2, 8] y)"
                                    "<float[2, 1, 2] token = {5, 6, 5, 6}, int64[2] s = {2, 8}> {"
                                    " c = Concat<axis = 1>(token, x) y = Reshape(c, s) }";
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n++) {
        opening o = {.model = read_prepared(text)};

        ot__alloc_fail_after(n);
        st = ot__pass_open_batch(o.model, &o.choices, &o.opened);
        ot__alloc_fail_after(-1);
        if (st != OT_OK)
            assert_int_equal(st, OT_ERR_NO_MEMORY);
        else
            assert_open(&o, 2);
        ot_model_destroy(o.model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_inputs_that_have_the_first_ones_number_at_axis_0_get_one_symbol),
        cmocka_unit_test(a_batch_that_is_no_number_stays),
        cmocka_unit_test(a_name_that_another_axis_has_is_not_taken),
        cmocka_unit_test(the_entry_that_the_batch_comes_to_follows_it),
        cmocka_unit_test(other_readers_of_the_same_constant_keep_it),
        cmocka_unit_test(a_batch_behind_other_axes_is_found_by_what_stands_in_front_of_it),
        cmocka_unit_test(windows_in_one_axis_with_the_batch_come_apart_where_they_were_joined),
        cmocka_unit_test(what_the_entry_left_to_be_computed_becomes_a_number),
        cmocka_unit_test(an_entry_that_follows_already_stays),
        cmocka_unit_test(a_batch_of_1_has_several_places_and_the_next_one_can_be_tried),
        cmocka_unit_test(a_class_token_becomes_one_row_expanded_and_keeps_its_name),
        cmocka_unit_test(a_class_token_that_is_expanded_follows_the_batch),
        cmocka_unit_test(rows_that_differ_are_an_obstacle),
        cmocka_unit_test(equal_rows_beside_the_batch_become_one),
        cmocka_unit_test(rows_computed_of_numbers_alone_are_known_by_computing_them),
        cmocka_unit_test(rows_computed_of_a_parameter_never_become_constant),
        cmocka_unit_test(zeros_that_elements_are_put_into_have_as_many_rows),
        cmocka_unit_test(elements_that_are_taken_at_the_same_places_of_each_row),
        cmocka_unit_test(sizes_that_hold_the_batch_follow_it),
        cmocka_unit_test(numbers_of_rows_follow_the_batch),
        cmocka_unit_test(what_is_the_same_for_the_heads_of_each_row_follows_the_batch),
        cmocka_unit_test(heads_that_are_cut_from_equal_rows_follow_the_batch),
        cmocka_unit_test(what_is_repeated_as_often_as_there_are_rows_follows_the_batch),
        cmocka_unit_test(halves_of_what_was_joined_are_cut_where_the_batch_ends),
        cmocka_unit_test(zero_states_become_one_row_expanded),
        cmocka_unit_test(zeros_that_an_exporter_made_up_are_no_parameter),
        cmocka_unit_test(steps_are_no_batch),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
