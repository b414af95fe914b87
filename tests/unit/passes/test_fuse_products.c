// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/fuse.h"

enum { N = 5, K = 4, MOST = 24 };

// a, b: operands of products of 2, 1 and 3 rows for weights (5, 4).
#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,5] a0, float[1,5] a1, float[3,5] a2,"   \
    " float[2,4] b0, float[1,4] b1, float[3,4] b2, float[5,4] w) => (float[5,4] dw"
#define PRODUCT(y, a, b) #y " = Gemm<transA = 1, beta = 0.0>(" #a ", " #b ") "

static void feed_products(evaluation *e)
{
    static const struct {
        const char *a, *b;
        int64_t rows;
    } operands[] = {{"a0", "b0", 2}, {"a1", "b1", 1}, {"a2", "b2", 3}};
    double numbers[MOST];

    for (int k = 0; k < MOST; k++)
        numbers[k] = k % 7 - 3;
    for (int i = 0; i < 3; i++) {
        feed(e, operands[i].a, new_tensor(OT_F32, OT_SHAPE(operands[i].rows, N), numbers + i));
        feed(e, operands[i].b, new_tensor(OT_F32, OT_SHAPE(operands[i].rows, K), numbers + 2 * i));
    }
    feed(e, "w", new_tensor(OT_F32, OT_SHAPE(N, K), numbers));
}

// Fuses a copy and checks that dw, of small integers, stays the same; whether there are so many
// nodes then.
static bool becomes(const char *text, int n_gemm, int n_concat, int n_sum)
{
    ot_model *model = read_prepared(text), *fused = read_prepared(text);
    evaluation before = {0}, after = {0};
    bool is_so;

    assert_ok(ot__fuse_products(fused));
    assert_ok(ot__graph_verify(fused->graph));
    feed_products(&before);
    feed_products(&after);
    compute(&before, model);
    compute(&after, fused);
    for (int64_t k = 0; k < (int64_t)N * K; k++)
        assert_true(element(&after, "dw", k) == element(&before, "dw", k));
    is_so = count_nodes(fused, "Gemm") == n_gemm && count_nodes(fused, "Concat") == n_concat &&
            count_nodes(fused, "Sum") == n_sum;
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    ot_model_destroy(fused);
    return is_so;
}

static void rows_of_all_products_give_the_gradient_at_once(void **state)
{
    (void)state;
    assert_true(
        becomes(HEAD ") {" PRODUCT(u, a0, b0) PRODUCT(v, a1, b1) "dw = Sum(u, v) }", 1, 2, 0));
    assert_true(becomes(HEAD ") {" PRODUCT(u, a0, b0)
                            PRODUCT(v, a1, b1) "x = Neg(w) dw = Sum(x, u, v) }",
                        1, 2, 1));
}

static void products_of_many_rows_are_added(void **state)
{
    (void)state;
    // 2 + 3 rows of 5 + 4 elements are more than 2 results of 5 x 4.
    assert_true(
        becomes(HEAD ") {" PRODUCT(u, a0, b0) PRODUCT(v, a2, b2) "dw = Sum(u, v) }", 2, 0, 1));
}

static void other_products_and_what_is_read_elsewhere_stay(void **state)
{
    (void)state;
    assert_true(becomes(HEAD ") {" PRODUCT(u, a0, b0) "t = Transpose(a1)"
                                                      "v = Gemm(t, b1) dw = Sum(u, v) }",
                        2, 0, 1));
    assert_true(becomes(HEAD ") {" PRODUCT(u, a0, b0) "v = Gemm<transA = 1, alpha = 2.0>(a1, b1)"
                                                      "dw = Sum(u, v) }",
                        2, 0, 1));
    assert_true(becomes(HEAD ", float[5,4] v) {" PRODUCT(u, a0, b0)
                            PRODUCT(v, a1, b1) "dw = Sum(u, v) }",
                        2, 0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_products_give_the_gradient_at_once),
        cmocka_unit_test(products_of_many_rows_are_added),
        cmocka_unit_test(other_products_and_what_is_read_elsewhere_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
