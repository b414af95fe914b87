// SPDX-License-Identifier: Apache-2.0
// Which models with a fixed batch are opened, and that they compute what they did.
#include "artifacts/open_batch.h"
#include "evaluate.h"
#include "onnxtrain/runner.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> g "

// NULL: it stays. `part` is in the line about it ("": there is none).
static ot_model *open_text(const char *text, const char *part)
{
    ot_model *model = read_text(text), *opened = NULL;
    ot__buf line = {0};

    assert_ok(ot__open_batch(model, &opened, &line));
    if (part[0] == '\0' ? line.data != NULL : !line.data || !strstr(line.data, part))
        fail_msg("the line '%s' lacks '%s'", line.data ? line.data : "", part);
    ot__buf_deinit(&line);
    ot_model_destroy(model);
    return opened;
}

static void assert_stays(const char *text, const char *part)
{
    ot_model *opened = open_text(text, part);

    assert_null(opened);
}

static void assert_opens(const char *text, const char *part)
{
    ot_model *opened = open_text(text, part);

    assert_non_null(opened);
    ot_model_destroy(opened);
}

static void an_opened_model_computes_every_row_as_before(void **state)
{
    // y[b, h, d] = x[b, h * 2 + d] + token[d], of two rows and of three.
    static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    ot_model *opened = open_text(HEAD "(float[2, 4] x) => (float[2, 2, 2] y)"
                                      "<int64[3] s = {2, 2, 2}, float[2, 1, 2] token ="
                                      " {10, 20, 10, 20}> {"
                                      " r = Reshape(x, s) y = Add(r, token) }",
                                 "the batch size 2, which the exporter fixed, is open: 2 inputs");
    ot_tensor *in = new_tensor(OT_F32, OT_SHAPE(3, 4), x), *out;

    (void)state;
    assert_ok(ot_model_run(opened, NULL, (const ot_tensor *const[]){in}, 1, &out, 1));
    assert_int_equal(out->shape.dim[0], 3);
    for (int i = 0; i < 12; i++)
        assert_true(ot__tensor_get_f64(out, i) == x[i] + (i % 2 ? 20 : 10));
    ot_tensor_destroy(in);
    ot_tensor_destroy(out);
    ot_model_destroy(opened);
}

static void a_batch_that_is_open_needs_no_word(void **state)
{
    (void)state;
    assert_stays(HEAD "(float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }", "");
}

static void inputs_alone_need_no_trial(void **state)
{
    (void)state;
    assert_opens(HEAD "(float[2, 4] x) => (float[2, 4] y) { y = Relu(x) }",
                 "the batch size 2, which the exporter fixed, is open");
}

static void sizes_of_constants_that_are_put_together_are_known(void **state)
{
    (void)state;
    assert_opens(HEAD "(float[2, 1, 2, 2] x) => (float[2, 1, 4, 4] y) {"
                      " a = Constant<value = float[2] {1, 1}>()"
                      " b = Constant<value_floats = [2.0, 2.0]>()"
                      " s = Concat<axis = 0>(a, b) y = Resize(x, , s) }",
                 "the batch size 2, which the exporter fixed, is open");
    assert_opens(HEAD "(float[2, 1, 2, 2] x) => (float[2, 1, 4, 4] y) {"
                      " s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() y = Resize(x, , s) }",
                 "the batch size 2, which the exporter fixed, is open");
}

static void rows_that_differ_little_beside_their_size_are_told_apart(void **state)
{
    (void)state;
    // As scores of a detector, whose biases are those of rare classes.
    assert_opens(HEAD "(float[2, 4] x) => (float[2, 2, 2] y)"
                      "<int64[3] s = {2, 2, 2}, float[2] w = {1e-5, 2e-5},"
                      " float[2] b = {4, 5}> {"
                      " r = Reshape(x, s) m = Mul(r, w) y = Add(m, b) }",
                 "the batch size 2, which the exporter fixed, is open: 1 input");
}

static void rows_that_depend_on_each_other_stay(void **state)
{
    (void)state;
    assert_stays(HEAD "(float[2, 4] x) => (float[2, 2, 2] y)<int64[3] s = {2, 2, 2}> {"
                      " r = Reshape(x, s) y = Softmax<axis = 0>(r) }",
                 "the batch size stays 2, which the exporter fixed: 'y' of twice as many rows is "
                 "not what the model gives of each half; export with dynamic_axes");
    // A last layer of zeros hides nothing.
    assert_stays(HEAD "(float[2, 4] x) => (float[2, 3] y)"
                      "<int64[2] s = {2, 4}, float[4, 3] w = {0,0,0,0,0,0,0,0,0,0,0,0}> {"
                      " r = Reshape(x, s) p = Softmax<axis = 0>(r) y = MatMul(p, w) }",
                 "not what the model gives of each half");
}

static void a_row_that_is_picked_is_no_batch(void **state)
{
    (void)state;
    assert_stays(HEAD "(float[2, 4] x) => (float[4] y)<int64 last = {1}> {"
                      " y = Gather<axis = 0>(x, last) }",
                 "output 'y' has no axis of the batch");
}

static void a_loss_in_the_model_is_the_mean_or_the_sum_of_the_halves(void **state)
{
    (void)state;
    assert_opens(HEAD "(float[2, 4] x) => (float y)<int64[3] s = {2, 2, 2}> {"
                      " r = Reshape(x, s) y = ReduceMean<keepdims = 0>(r) }",
                 "is open: 1 input of a node held it");
    assert_opens(HEAD "(float[2, 4] x) => (float y)<int64[3] s = {2, 2, 2}> {"
                      " r = Reshape(x, s) y = ReduceSum<keepdims = 0>(r) }",
                 "is open: 1 input of a node held it");
    assert_stays(HEAD "(float[2, 4] x) => (float y)<int64[3] s = {2, 2, 2}> {"
                      " r = Reshape(x, s) y = ReduceMax<keepdims = 0>(r) }",
                 "not what the model gives of each half");
}

static void statistics_of_the_batch_and_dropout_do_not_count(void **state)
{
    (void)state;
    assert_opens(HEAD "(float[2, 4] x) => (float[2, 2, 2] y)"
                      "<int64[3] s = {2, 2, 2}, float[2] one = {1, 2}, float[2] zero = {0, 1},"
                      " float half = {0.5}, bool yes = {1}> {"
                      " r = Reshape(x, s)"
                      " n, m, v = BatchNormalization<training_mode = 1>(r, one, zero, zero, one)"
                      " y = Dropout(n, half, yes) }",
                 "is open");
}

static void a_constant_that_nothing_follows_is_named(void **state)
{
    (void)state;
    assert_stays(HEAD "(float[2, 3] x) => (float[2, 3] y)<float[2, 1] w = {5, 6}> {"
                      " y = Mul(x, w) }",
                 "Mul of 'y' reads 'w', which holds the batch size 2");
}

static void of_several_places_of_a_batch_of_1_the_one_that_fits_is_taken(void **state)
{
    // What MultiheadAttention leaves: steps first, heads out of and into the features.
    assert_opens(HEAD "(float[1, 3, 4] x) => (float[1, 3, 4] y)"
                      "<int64[3] heads = {3, 2, 2}, int64[2] rows = {3, 4}, int64[3] s = {3, 1, 4},"
                      " float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}> {"
                      " t = Transpose<perm = [1, 0, 2]>(x) h = Reshape(t, heads)"
                      " u = Transpose<perm = [1, 0, 2]>(h) p = Softmax<axis = -1>(u)"
                      " q = Transpose<perm = [1, 0, 2]>(p) a = Reshape(q, rows)"
                      " m = Gemm(a, w) z = Reshape(m, s) y = Transpose<perm = [1, 0, 2]>(z) }",
                 "is open: 3 inputs of nodes held it");
    // The first choice, 3 * batch rows, does not fit the product with [5, 3].
    assert_opens(HEAD "(float[1, 3, 4] x) => (float[1, 4, 5] y)"
                      "<int64[2] rows = {3, 4}, int64[3] s = {5, 1, 4},"
                      " float[5, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}> {"
                      " t = Transpose<perm = [1, 0, 2]>(x) a = Reshape(t, rows)"
                      " m = MatMul(w, a) z = Reshape(m, s) y = Transpose<perm = [1, 2, 0]>(z) }",
                 "is open: 2 inputs of nodes held it");
    (void)state;
}

static void an_operator_that_is_not_known_is_said_elsewhere(void **state)
{
    (void)state;
    assert_stays("<ir_version: 8, opset_import: [\"\" : 17, \"com.acme\" : 1]> "
                 "g (float[2, 4] x) => (float[2, 4] y) { y = com.acme.Foo(x) }",
                 "");
}

static void every_allocation_may_fail(void **state)
{
    ot_model *model = read_text(HEAD "(float[2, 4] x) => (float[2, 2, 2] y)"
                                     "<int64[3] s = {2, 2, 2}> { y = Reshape(x, s) }");
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n += 1 + n / 64) {
        ot_model *opened = NULL;
        ot__buf line = {0};

        ot__alloc_fail_after(n);
        st = ot__open_batch(model, &opened, &line);
        ot__alloc_fail_after(-1);
        if (st != OT_OK)
            assert_int_equal(st, OT_ERR_NO_MEMORY);
        else
            assert_non_null(opened);
        ot__buf_deinit(&line);
        ot_model_destroy(opened);
    }
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_opened_model_computes_every_row_as_before),
        cmocka_unit_test(a_batch_that_is_open_needs_no_word),
        cmocka_unit_test(inputs_alone_need_no_trial),
        cmocka_unit_test(sizes_of_constants_that_are_put_together_are_known),
        cmocka_unit_test(rows_that_differ_little_beside_their_size_are_told_apart),
        cmocka_unit_test(rows_that_depend_on_each_other_stay),
        cmocka_unit_test(a_row_that_is_picked_is_no_batch),
        cmocka_unit_test(a_loss_in_the_model_is_the_mean_or_the_sum_of_the_halves),
        cmocka_unit_test(statistics_of_the_batch_and_dropout_do_not_count),
        cmocka_unit_test(a_constant_that_nothing_follows_is_named),
        cmocka_unit_test(of_several_places_of_a_batch_of_1_the_one_that_fits_is_taken),
        cmocka_unit_test(an_operator_that_is_not_known_is_said_elsewhere),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
