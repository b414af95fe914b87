// SPDX-License-Identifier: Apache-2.0
// Attention as exporters write it, with its gradient, gives what its nodes gave.
#include "region_fixture.h"

#define I64(name, shape, values) name " = Constant<value = int64[" shape "] {" values "}>() "
#define INT(name, value) name " = Constant<value = int64 {" value "}>() "
#define SCALE "c = Constant<value = double {0.5}>() "

static ot_model *expect_attention(const char *graph, const char *const *from)
{
    ot_model *model = fuse_regions(graph, NULL);

    assert_int_equal(count_nodes(model, "FusedAttention"), 1);
    ot_model_destroy(model);
    model = fuse_regions(graph, from);
    assert_int_equal(count_nodes(model, "FusedAttention"), 1);
    assert_int_equal(count_nodes(model, "FusedAttentionGrad"), 1);
    assert_int_equal(count_nodes(model, "Softmax") + count_nodes(model, "MatMul") +
                         count_nodes(model, "FusedMatMul"),
                     0);
    return model;
}

// Nothing puts elements in another order any more.
static void expect_in_place(const char *graph, const char *const *from)
{
    ot_model *model = expect_attention(graph, from);

    assert_int_equal(count_nodes(model, "Transpose") + count_nodes(model, "Split") +
                         count_nodes(model, "Concat") + count_nodes(model, "Gather") +
                         count_nodes(model, "GatherGrad") + count_nodes(model, "Reshape"),
                     0);
    ot_model_destroy(model);
}

static void expect_left(const char *graph, const char *const *from)
{
    ot_model *model = fuse_regions(graph, from);

    assert_int_equal(count_nodes(model, "Softmax"), 1);
    assert_int_equal(count_nodes(model, "FusedAttention"), 0);
    ot_model_destroy(model);
}

static const char *const from_x[] = {"x", NULL};
static const char *const from_qkv[] = {"q", "k", "v", NULL};

#define SPLIT                                                                                      \
    "g (double[2,5,24] x, double[2,5,8] dy) => (double[2,5,8] y) {" I64("h", "4", "0, 0, 2, 4")    \
        I64("m", "3", "0, 0, 8") SCALE "q0, k0, v0 = Split<axis = 2>(x) "                          \
                                       "q1 = Reshape(q0, h) q = Transpose<perm = [0,2,1,3]>(q1) "  \
                                       "k1 = Reshape(k0, h) k = Transpose<perm = [0,2,3,1]>(k1) "  \
                                       "v1 = Reshape(v0, h) v = Transpose<perm = [0,2,1,3]>(v1) "  \
                                       "s = MatMul(q, k) "
#define MERGE "o = MatMul(p, v) o1 = Transpose<perm = [0,2,1,3]>(o) y = Reshape(o1, m) "

static void heads_in_one_source_stay_where_they_are(void **state)
{
    (void)state;
    expect_in_place(SPLIT "t = Mul(s, c) p = Softmax(t) " MERGE "}", from_x);
}

// As PyTorch's MultiheadAttention is exported: positions first, batches and heads in one axis, the
// scale on both operands.
static void positions_first(void **state)
{
    (void)state;
    expect_in_place(
        "g (double[5,2,24] x, double[10,8] dy) => (double[10,8] y) {" //
        I64("a", "4", "5, 2, 3, 8") I64("b", "3", "5, 4, 4") I64("d", "4", "2, 2, 5, 4")
            I64("e", "2", "10, 8") I64("u", "1", "0") I64("w", "1", "-2") INT("i0", "0")
                INT("i1", "1") INT("i2", "2") SCALE
        "x1 = Reshape(x, a) x2 = Unsqueeze(x1, u) x3 = Transpose<perm = [3,1,2,0,4]>(x2) "
        "x4 = Squeeze(x3, w) q0 = Gather(x4, i0) k0 = Gather(x4, i1) v0 = Gather(x4, i2) "
        "q1 = Reshape(q0, b) q2 = Transpose<perm = [1,0,2]>(q1) q3 = Reshape(q2, d) "
        "k1 = Reshape(k0, b) k2 = Transpose<perm = [1,0,2]>(k1) k3 = Reshape(k2, d) "
        "v1 = Reshape(v0, b) v2 = Transpose<perm = [1,0,2]>(v1) v = Reshape(v2, d) "
        "q = Mul(q3, c) k4 = Transpose<perm = [0,1,3,2]>(k3) k = Mul(k4, c) s = MatMul(q, k) "
        "p = Softmax<axis = -1>(s) o = MatMul(p, v) o1 = Transpose<perm = [2,0,1,3]>(o) "
        "y = Reshape(o1, e) }",
        from_x);
}

static void sources_of_their_own(void **state)
{
    ot_model *model;

    (void)state;
    // Lengths and sizes differ.
    model = expect_attention("g (double[3,5,4] q, double[3,7,4] k, double[3,7,6] v,"
                             " double[3,5,6] dy) => (double[3,5,6] y) {" SCALE
                             "k1 = Transpose<perm = [0,2,1]>(k) s = MatMul(q, k1) t = Div(s, c) "
                             "p = Softmax(t) y = MatMul(p, v) }",
                             from_qkv);
    assert_float_equal(ot_attr_float(find_node(model, "FusedAttention"), "scale"), 2.0, 0);
    ot_model_destroy(model);
    // Of which some are not trained.
    model = expect_attention("g (double[3,5,4] q, double[3,7,4] k, double[3,7,6] v,"
                             " double[3,5,6] dy) => (double[3,5,6] y) {"
                             "k1 = Transpose<perm = [0,2,1]>(k) s = MatMul(q, k1) p = Softmax(s) "
                             "y = MatMul(p, v) }",
                             (const char *const[]){"k", NULL});
    assert_int_equal(find_node(model, "FusedAttentionGrad")->n_outputs, 1);
    ot_model_destroy(model);
}

static void masks(void **state)
{
    ot_model *model;

    (void)state;
    model = expect_attention(
        "g (double[2,5,24] x, double[2,1,1,5] f, double[2,5,8] dy) => (double[2,5,8] y) {" //
        I64("h", "4", "0, 0, 2, 4") I64("m", "3", "0, 0, 8") SCALE
        "q0, k0, v0 = Split<axis = 2>(x) "
        "q1 = Reshape(q0, h) q = Transpose<perm = [0,2,1,3]>(q1) "
        "k1 = Reshape(k0, h) k = Transpose<perm = [0,2,3,1]>(k1) "
        "v1 = Reshape(v0, h) v = Transpose<perm = [0,2,1,3]>(v1) "
        "s = MatMul(q, k) t = Mul(s, c) a = Add(t, f) p = Softmax(a) " MERGE "}",
        from_x);
    assert_int_equal(count_nodes(model, "Transpose"), 0);
    assert_int_equal(ot_attr_int(find_node(model, "FusedAttention"), "causal"), 0);
    ot_model_destroy(model);
    // A constant below the diagonal is no mask in memory.
    model = expect_attention(
        SPLIT "t = Mul(s, c) one = Constant<value = bool[1,1,5,5] {0,1,1,1,1, 0,0,1,1,1, 0,0,0,1,1,"
              " 0,0,0,0,1, 0,0,0,0,0}>() low = Constant<value = double {-inf}>() "
              "a = Where(one, low, t) p = Softmax(a) " MERGE "}",
        from_x);
    assert_int_equal(ot_attr_int(find_node(model, "FusedAttention"), "causal"), 1);
    assert_int_equal(find_node(model, "FusedAttention")->n_inputs, 3);
    ot_model_destroy(model);
    // Another one stays one, turned round where it says what goes.
    model = expect_attention(
        SPLIT "t = Mul(s, c) one = Constant<value = bool[1,1,5,5] {0,1,1,0,1, 0,0,1,1,1, 0,0,0,1,1,"
              " 0,0,0,0,1, 0,1,0,0,0}>() low = Constant<value = double {-100.0}>() "
              "a = Where(one, low, t) p = Softmax(a) " MERGE "}",
        from_x);
    assert_int_equal(ot_attr_int(find_node(model, "FusedAttention"), "causal"), 0);
    assert_int_equal(find_node(model, "FusedAttention")->n_inputs, 4);
    ot_model_destroy(model);
    model = expect_attention(
        SPLIT "t = Mul(s, c) one = Constant<value = bool[1,1,1,5] {1,1,0,1,0}>() "
              "low = Constant<value = double {-inf}>() a = Where(one, t, low) p = Softmax(a) "
              "n = IsNaN(p) z = Constant<value = double {0.0}>() w = Where(n, z, p) "
              "o = MatMul(w, v) o1 = Transpose<perm = [0,2,1,3]>(o) y = Reshape(o1, m) }",
        from_x);
    assert_int_equal(ot_attr_int(find_node(model, "FusedAttention"), "zero_rows"), 1);
    ot_model_destroy(model);
}

#define TRAINING "r = Constant<value = double {0.375}>() on = Constant<value = bool {1}>() "

// The same probabilities are dropped, forward and backward.
static void dropout(void **state)
{
    ot_model *model;

    (void)state;
    model = expect_attention(
        SPLIT TRAINING "t = Mul(s, c) u = Softmax(t) p, m0 = Dropout(u, r, on) " MERGE "}", from_x);
    assert_int_equal(count_nodes(model, "Dropout") + count_nodes(model, "DropoutGrad"), 0);
    assert_string_equal(ot_attr_string(find_node(model, "FusedAttention"), "dropout_name"), "p");
    assert_false(ot_attr_given(find_node(model, "FusedAttention"), "dropout_seed"));
    ot_model_destroy(model);
    // With a seed and a mask, and after rows without a score.
    model = expect_attention(SPLIT TRAINING
                             "t = Mul(s, c) one = Constant<value = bool[1,1,1,5] {1,1,0,1,0}>() "
                             "low = Constant<value = double {-inf}>() a = Where(one, t, low) "
                             "u = Softmax(a) n = IsNaN(u) z = Constant<value = double {0.0}>() "
                             "w = Where(n, z, u) p = Dropout<seed = 7>(w, r, on) " MERGE "}",
                             from_x);
    assert_int_equal(ot_attr_int(find_node(model, "FusedAttention"), "dropout_seed"), 7);
    ot_model_destroy(model);
    // Batches and heads in one axis.
    model = expect_attention("g (double[6,5,4] q, double[6,7,4] k, double[6,7,3] v,"
                             " double[6,5,3] dy) => (double[6,5,3] y) {" TRAINING
                             "k1 = Transpose<perm = [0,2,1]>(k) s = MatMul(q, k1) u = Softmax(s) "
                             "p = Dropout(u, r, on) y = MatMul(p, v) }",
                             from_qkv);
    ot_model_destroy(model);
    // A mask that something else reads, a ratio that is not known, one dropout after another.
    expect_left(SPLIT TRAINING "t = Mul(s, c) u = Softmax(t) p, m0 = Dropout(u, r, on) "
                               "o = MatMul(p, v) o1 = Transpose<perm = [0,2,1,3]>(o) "
                               "y1 = Reshape(o1, m) f = Cast<to = 11>(m0) "
                               "f1 = ReduceSum<keepdims = 0>(f) y = Add(y1, f1) }",
                from_x);
    expect_left("g (double[2,5,4] q, double[2,5,4] k, double[2,5,4] v, double r,"
                " double[2,5,4] dy) => (double[2,5,4] y) {"
                "on = Constant<value = bool {1}>() k1 = Transpose<perm = [0,2,1]>(k) "
                "s = MatMul(q, k1) u = Softmax(s) r1 = Abs(r) r2 = Mod<fmod = 1>(r1, r1) "
                "p = Dropout(u, r2, on) y = MatMul(p, v) }",
                from_qkv);
    expect_left(SPLIT TRAINING "t = Mul(s, c) u = Softmax(t) u1 = Dropout(u, r, on) "
                               "p = Dropout(u1, r, on) " MERGE "}",
                from_x);
}

// As BART's and OPT's attention: heads are an axis of their own for the mask alone.
static void a_mask_of_heads_that_are_joined(void **state)
{
    ot_model *model = expect_attention(
        "g (double[4,5,4] q, double[4,5,4] k, double[4,5,4] v, double[2,1,5,5] f,"
        " double[4,5,4] dy) => (double[4,5,4] y) {" //
        I64("a", "4", "2, 2, 5, 5")
            I64("b", "3", "4, 5, 5") "k1 = Transpose<perm = [0,2,1]>(k) s = MatMul(q, k1) s1 = "
                                     "Reshape(s, a) t = Add(s1, f) "
                                     "t1 = Reshape(t, b) p = Softmax(t1) y = MatMul(p, v) }",
        from_qkv);

    (void)state;
    assert_int_equal(find_node(model, "FusedAttention")->n_inputs, 4);
    ot_model_destroy(model);
}

#define ONNX "<ir_version: 8, opset_import: [\"\" : 24, \"com.microsoft\" : 1]> "
#define SIDE_BY_SIDE                                                                               \
    "g (double[2,5,8] q, double[2,5,8] k, double[2,5,8] v, bool[5,5] m, double[2,5,8] dy)"         \
    " => (double[2,5,8] y) { y = Attention<q_num_heads = 2, kv_num_heads = 2"

// However ONNX's own operator is asked for it.
static void the_operator_attention(void **state)
{
    (void)state;
    expect_in_place(ONNX SIDE_BY_SIDE ">(q, k, v) }", from_qkv);
    expect_in_place(ONNX SIDE_BY_SIDE ", is_causal = 1, scale = 0.3>(q, k, v) }", from_qkv);
    expect_in_place(ONNX SIDE_BY_SIDE ">(q, k, v, m) }", from_qkv);
    expect_in_place(ONNX SIDE_BY_SIDE ", is_causal = 1>(q, k, v, m) }", from_qkv);
    expect_in_place(ONNX "g (double[2,4,5,4] q, double[2,4,3,4] k, double[2,4,3,7] v,"
                         " double[5,3] m, double[2,4,5,7] dy) => (double[2,4,5,7] y)"
                         " { y = Attention(q, k, v, m) }",
                    from_qkv);
    ot_model_destroy(expect_attention(
        ONNX "g (double[2,4,5,4] q, double[2,2,3,4] k, double[2,2,3,6] v, double[2,4,5,6] dy)"
             " => (double[2,4,5,6] y) { y = Attention(q, k, v) }",
        from_qkv));
}

static void what_is_no_attention_stays(void **state)
{
    (void)state;
    // Values that are queries too, and probabilities that are read elsewhere; another axis; a mask
    // that trains; scores that are scaled after the mask.
    expect_left(SPLIT "t = Mul(s, c) p = Softmax(t) r = ReduceSum<keepdims = 0>(p) " MERGE
                      "y1 = Add(y, r) }",
                from_x);
    expect_left("g (double[2,5,4] x, double[2,5,4] dy) => (double[2,5,4] y) {"
                "k = Transpose<perm = [0,2,1]>(x) s = MatMul(x, k) p = Softmax(s) "
                "y = MatMul(p, x) }",
                from_x);
    expect_left(SPLIT "p = Softmax<axis = 2>(s) " MERGE "}", from_x);
    expect_left("g (double[3,5,4] q, double[3,7,4] k, double[3,7,6] v, double[5,7] f,"
                " double[3,5,6] dy) => (double[3,5,6] y) {"
                "k1 = Transpose<perm = [0,2,1]>(k) s = MatMul(q, k1) t = Add(s, f) p = Softmax(t) "
                "y = MatMul(p, v) }",
                (const char *const[]){"q", "k", "v", "f", NULL});
    expect_left("g (double[3,5,4] q, double[3,7,4] k, double[3,7,6] v, double[5,7] f,"
                " double[3,5,6] dy) => (double[3,5,6] y) {" SCALE
                "k1 = Transpose<perm = [0,2,1]>(k) s = MatMul(q, k1) t = Add(s, f) u = Mul(t, c) "
                "p = Softmax(u) y = MatMul(p, v) }",
                from_qkv);
}

// What orders the heads stays where something else reads it, and attention is fused all the same.
static void heads_that_are_read_elsewhere(void **state)
{
    ot_model *model = expect_attention(SPLIT "t = Mul(s, c) p = Softmax(t) " MERGE "}", from_x);

    (void)state;
    ot_model_destroy(model);
    model = fuse_regions(
        "g (double[2,5,8] x, double[2,5,8] z, double[2,2,5,4] dy)"
        " => (double[2,2,5,4] y, double[2,2,5,4] k) {" //
        I64("h", "4",
            "0, 0, 2, 4") "k0 = Reshape(x, h) k = Transpose<perm = [0,2,1,3]>(k0) "
                          "q0 = Reshape(z, h) q = Transpose<perm = [0,2,1,3]>(q0) "
                          "k1 = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, k1) p = Softmax(s) "
                          "y = MatMul(p, k) }",
        (const char *const[]){"z", NULL});
    assert_int_equal(count_nodes(model, "FusedAttention"), 1);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_in_one_source_stay_where_they_are),
        cmocka_unit_test(positions_first),
        cmocka_unit_test(sources_of_their_own),
        cmocka_unit_test(masks),
        cmocka_unit_test(dropout),
        cmocka_unit_test(a_mask_of_heads_that_are_joined),
        cmocka_unit_test(the_operator_attention),
        cmocka_unit_test(what_is_no_attention_stays),
        cmocka_unit_test(heads_that_are_read_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
