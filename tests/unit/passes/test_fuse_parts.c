// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/fuse.h"

// Gradients a, b of one index, p of two and q of three of the five along axis 1 of (2, 5, 3).
#define HEAD(lists)                                                                                \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (float[2,3] a,"           \
    " float[2,3] b, float[2,2,3] p, float[2,3,3] q, float[2,5,3] all) => (float[2,5,3] dx"         \
    ") <int64[3] s = {2,5,3}, int64[1] axis = {1}, int64[1] one = {1}, int64[1] two = {2},"        \
    " int64[1] far = {9223372036854775807}, int64[1] none = {0}" lists "> "
#define GATHER(y, dy, i) #y " = com.microsoft.GatherGrad<axis = 1>(s, " #i ", " #dy ") "
#define SLICE(y, dy, from, to)                                                                     \
#y " = com.microsoft.SliceGrad(" #dy ", s, " #from ", " #to ", axis, one) "

static void feed_numbers(evaluation *e, const char *name, const ot_shape *shape, double first)
{
    double numbers[30];
    int64_t count;

    assert_true(ot__shape_count(shape, &count) && count <= 30);
    for (int64_t k = 0; k < count; k++)
        numbers[k] = first + (double)k;
    feed(e, name, new_tensor(OT_F32, *shape, numbers));
}

static void feed_all(evaluation *e)
{
    feed_numbers(e, "a", &OT_SHAPE(2, 3), 100);
    feed_numbers(e, "b", &OT_SHAPE(2, 3), 200);
    feed_numbers(e, "p", &OT_SHAPE(2, 2, 3), 300);
    feed_numbers(e, "q", &OT_SHAPE(2, 3, 3), 400);
    feed_numbers(e, "all", &OT_SHAPE(2, 5, 3), 500);
}

// Fuses a copy and checks that dx stays the same; whether there are so many of these nodes then.
static bool becomes(const char *text, int n_concat, int n_sum, int n_gather, int n_slice)
{
    ot_model *model = read_prepared(text), *fused = read_prepared(text);
    evaluation before = {0}, after = {0};
    bool is_so;

    assert_ok(ot__fuse_parts(fused));
    assert_ok(ot__graph_verify(fused->graph));
    feed_all(&before);
    feed_all(&after);
    compute(&before, model);
    compute(&after, fused);
    for (int64_t k = 0; k < 30; k++)
        assert_true(element(&after, "dx", k) == element(&before, "dx", k));
    is_so = count_nodes(fused, "Concat") == n_concat && count_nodes(fused, "Sum") == n_sum &&
            count_nodes(fused, "GatherGrad") == n_gather &&
            count_nodes(fused, "SliceGrad") == n_slice;
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    ot_model_destroy(fused);
    return is_so;
}

#define INDICES ", int64 i0 = {0}, int64 i1 = {-4}, int64 i4 = {4}, int64[1] i2 = {2}"

static void parts_side_by_side_are_joined(void **state)
{
    (void)state;
    // 0, 1 and the three behind, in another order than they lie.
    assert_true(becomes(HEAD(INDICES) "{" SLICE(u, q, two, far) GATHER(v, b, i1)
                            GATHER(w, a, i0) "dx = Sum(u, v, w) }",
                        1, 0, 0, 0));
    assert_true(becomes(
        HEAD("") "{" SLICE(u, p, none, two) SLICE(v, q, two, far) "dx = Sum(u, v) }", 1, 0, 0, 0));
}

static void zeros_between_them_and_at_the_end_stay_zeros(void **state)
{
    (void)state;
    assert_true(becomes(HEAD(INDICES) "{" GATHER(u, a, i1) GATHER(v, b, i4) "dx = Sum(u, v) }", 1,
                        0, 0, 2));
    assert_true(becomes(HEAD(INDICES) "{" GATHER(u, a, i0) GATHER(v, b, i1) "dx = Sum(u, v) }", 1,
                        0, 0, 1));
}

static void what_overlaps_and_what_is_whole_is_added(void **state)
{
    (void)state;
    // `all`, and the second gradient of index 0.
    assert_true(becomes(HEAD(INDICES) "{" GATHER(u, a, i0) GATHER(v, b, i0) SLICE(w, q, two, far)
                            GATHER(x, b, i1) "dx = Sum(all, u, v, w, x) }",
                        1, 1, 1, 0));
}

static void what_is_read_elsewhere_or_unknown_stays(void **state)
{
    (void)state;
    assert_true(becomes(HEAD(INDICES) "{" GATHER(u, a, i0) GATHER(v, b, i0) "dx = Sum(u, v) }", 0,
                        1, 2, 0)); // one place
    assert_true(becomes(HEAD(INDICES) "{" GATHER(u, a, i0)
                            GATHER(v, b, i1) "w = Sum(u, v) dx = Sum(w, u) }",
                        0, 2, 2, 0));
    assert_true(
        becomes(HEAD(INDICES ", int64[1] second = {2}") "{ u = com.microsoft.SliceGrad(q, s, none, "
                                                        "far, axis, second)" // in steps
                GATHER(v, b, i1) "dx = Sum(u, v) }",
                0, 1, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_side_by_side_are_joined),
        cmocka_unit_test(zeros_between_them_and_at_the_end_stay_zeros),
        cmocka_unit_test(what_overlaps_and_what_is_whole_is_added),
        cmocka_unit_test(what_is_read_elsewhere_or_unknown_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
