// SPDX-License-Identifier: Apache-2.0
// Cuts written by hand, and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/sharding.h"
#include "tensor/tensor.h"

#define CUT(...) ((ot_cut){.size = sizeof(ot_cut), __VA_ARGS__})

static ot_sharding *make(const ot_shape *shape, const ot_cut *cuts, int n_cuts)
{
    ot_sharding *sharding;

    if (ot_sharding_create(OT_F32, shape, cuts, n_cuts, -1, &sharding) != OT_OK)
        fail_msg("%s", ot_error_message());
    return sharding;
}

// (axis size, parts), then offset and size of each part.
static void parts_of_a_rounded_up_size_end_early(void **state)
{
    static const struct {
        int64_t size;
        int n_parts;
        int64_t parts[8][2];
    } cases[] = {
        {10, 4, {{0, 3}, {3, 3}, {6, 3}, {9, 1}}},
        {5, 4, {{0, 2}, {2, 2}, {4, 1}, {0, 0}}},
        {8, 3, {{0, 3}, {3, 3}, {6, 2}}},
        {2, 8, {{0, 1}, {1, 1}}},
        {1, 2, {{0, 1}}},
        {0, 2, {{0, 0}}},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        const ot_cut cut = CUT(.rule = OT_CUT_CEIL, .n_parts = cases[i].n_parts, .blocks = 1);
        ot_sharding *s = make(&OT_SHAPE(cases[i].size, 3), &cut, 1);

        for (int p = 0; p < cases[i].n_parts; p++) {
            const int places[OT_MAX_CUT_GROUPS] = {p};
            ot_shard_box box;
            int64_t n;

            assert_int_equal(ot_sharding_boxes(s, places, 1, &box, &n), OT_OK);
            assert_int_equal(n, cases[i].parts[p][1] > 0);
            if (n > 0) {
                assert_int_equal(box.box.offset[0], cases[i].parts[p][0]);
                assert_int_equal(box.box.size[0], cases[i].parts[p][1]);
                assert_int_equal(box.box.size[1], 3);
            }
        }
        ot_sharding_destroy(s);
    }
}

// Ten rows, cut in two by the horizontal group, then in two by the data group.
static void a_cut_divides_what_the_one_before_has_left(void **state)
{
    static const int64_t expected[2][2][2] = {{{0, 3}, {3, 2}}, {{5, 3}, {8, 2}}};
    const ot_cut cuts[] = {
        CUT(.group = OT_CUT_HORIZONTAL, .rule = OT_CUT_EVEN, .n_parts = 2, .blocks = 1),
        CUT(.group = OT_CUT_DATA, .rule = OT_CUT_CEIL, .n_parts = 2, .blocks = 1),
    };
    ot_sharding *s = make(&OT_SHAPE(10), cuts, 2);

    (void)state;
    for (int h = 0; h < 2; h++)
        for (int k = 0; k < 2; k++) {
            const int places[OT_MAX_CUT_GROUPS] = {[OT_CUT_DATA] = k, [OT_CUT_HORIZONTAL] = h};
            ot_shard_box box;
            int64_t n;

            assert_int_equal(ot_sharding_boxes(s, places, 1, &box, &n), OT_OK);
            assert_int_equal(box.box.offset[0], expected[h][k][0]);
            assert_int_equal(box.box.size[0], expected[h][k][1]);
        }
    ot_sharding_destroy(s);
}

// The queries, keys and values of a fused product, of four heads each.
static void each_block_of_an_axis_is_cut(void **state)
{
    const ot_cut cut =
        CUT(.group = OT_CUT_HORIZONTAL, .axis = 1, .rule = OT_CUT_EVEN, .n_parts = 2, .blocks = 3);
    const int places[OT_MAX_CUT_GROUPS] = {[OT_CUT_HORIZONTAL] = 1};
    ot_sharding *s = make(&OT_SHAPE(5, 12), &cut, 1);
    ot_shard_box boxes[3];
    int64_t n;

    (void)state;
    assert_int_equal(ot_sharding_boxes(s, places, 0, NULL, &n), OT_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ot_sharding_boxes(s, places, 2, boxes, &n), OT_ERR_INVALID);
    assert_int_equal(ot_sharding_boxes(s, places, 3, boxes, &n), OT_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(boxes[i].box.offset[1], 4 * i + 2);
        assert_int_equal(boxes[i].box.size[1], 2);
        assert_int_equal(boxes[i].local[1], 2 * i);
        assert_int_equal(boxes[i].box.size[0], 5);
    }
    ot_sharding_destroy(s);
}

static void a_sharding_tells_what_it_is_of(void **state)
{
    const ot_cut cut = CUT(.group = 1, .rule = OT_CUT_EVEN, .n_parts = 2, .blocks = 1);
    ot_sharding *s;

    (void)state;
    assert_int_equal(ot_sharding_create(OT_BF16, &OT_SHAPE(4, 3), &cut, 1, 2, &s), OT_OK);
    assert_int_equal(ot_sharding_dtype(s), OT_BF16);
    assert_true(ot__shape_equal(ot_sharding_shape(s), &OT_SHAPE(4, 3)));
    assert_int_equal(ot_sharding_stage(s), 2);
    assert_int_equal(ot_sharding_parts(s, 1), 2);
    assert_int_equal(ot_sharding_parts(s, 0), 1); // its members have copies
    ot_sharding_destroy(s);
}

// ---- what is refused ----

static void cuts_that_do_not_fit_are_refused(void **state)
{
    static const int64_t down[] = {0, 3, 2, 4}, far[] = {0, 2, 5}, late[] = {1, 2, 4},
                         early[] = {0, 2, 3};
    static const struct {
        ot_cut cuts[2];
        const char *message;
    } cases[] = {
        {{{sizeof(ot_cut), 4, 0, OT_CUT_CEIL, 2, 1, NULL}}, "cut 0: group is 4, expected 0 to 3"},
        {{{sizeof(ot_cut), 0, 2, OT_CUT_CEIL, 2, 1, NULL}}, "axis is 2 of a tensor that has 2"},
        {{{sizeof(ot_cut), 0, -1, OT_CUT_CEIL, 2, 1, NULL}}, "axis is -1"},
        {{{sizeof(ot_cut), 0, 0, (ot_cut_rule)4, 2, 1, NULL}}, "unknown rule 4"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_CEIL, 0, 1, NULL}}, "n_parts is 0"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_CEIL, 2, 0, NULL}}, "blocks is 0"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_CEIL, 2, 3, NULL}},
         "4 elements of axis 0 are not 3 blocks"},
        {{{sizeof(ot_cut), 0, 1, OT_CUT_EVEN, 4, 1, NULL}},
         "6 elements of axis 1 are not 4 equal parts"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_POINTS, 2, 1, NULL}}, "points is NULL"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_POINTS, 3, 1, down}}, "point 2 is 2, expected 3 to 4"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_POINTS, 2, 1, far}}, "point 2 is 5, expected 2 to 4"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_POINTS, 2, 1, late}}, "the first point is 1, expected 0"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_POINTS, 2, 1, early}}, "the last point is 3, expected 4"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_CEIL, 2, 1, NULL},
          {sizeof(ot_cut), 0, 1, OT_CUT_CEIL, 2, 1, NULL}},
         "cut 1: group 0 takes part in cut 0"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_CEIL, 3, 1, NULL}, // leaves 2, 2 and 0
          {sizeof(ot_cut), 1, 0, OT_CUT_POINTS, 2, 1, early}},
         "cut 1: point 2 is 3"},
        {{{sizeof(ot_cut), 0, 1, OT_CUT_CEIL, 4, 1, NULL}, // leaves 2, 2, 2 and 0
          {sizeof(ot_cut), 1, 1, OT_CUT_EVEN, 4, 1, NULL}},
         "cut 1: 2 elements of axis 1 are not 4 equal parts"},
        {{{sizeof(ot_cut), 0, 0, OT_CUT_REPLICATE, 1 << 20, 1, NULL},
          {sizeof(ot_cut), 1, 0, OT_CUT_CEIL, 1 << 20, 1, NULL}},
         "cut 1: more than 16777216 processes"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_sharding *s = (ot_sharding *)(uintptr_t)1;

        assert_int_equal(ot_sharding_create(OT_F32, &OT_SHAPE(4, 6), cases[i].cuts,
                                            cases[i].cuts[1].size != 0 ? 2 : 1, -1, &s),
                         OT_ERR_INVALID);
        assert_null(s);
        if (strstr(ot_error_message(), cases[i].message) == NULL)
            fail_msg("%s, expected %s", ot_error_message(), cases[i].message);
    }
}

static void places_that_a_group_lacks_are_refused(void **state)
{
    const ot_cut cut = CUT(.group = 2, .rule = OT_CUT_CEIL, .n_parts = 3, .blocks = 1);
    ot_sharding *s = make(&OT_SHAPE(4), &cut, 1);
    ot_shape shape;
    int64_t n;

    (void)state;
    for (int place = -1; place <= 3; place += 4) {
        const int places[OT_MAX_CUT_GROUPS] = {9, 9, place, 9};

        assert_int_equal(ot_sharding_local_shape(s, places, &shape), OT_ERR_INVALID);
        assert_int_equal(ot_sharding_boxes(s, places, 0, NULL, &n), OT_ERR_INVALID);
    }
    ot_sharding_destroy(s);
}

static void every_allocation_of_a_sharding_may_fail(void **state)
{
    static const int64_t points[] = {0, 1, 4};
    const ot_cut cuts[] = {CUT(.rule = OT_CUT_EVEN, .n_parts = 2, .blocks = 4),
                           CUT(.group = 1, .axis = 1, .rule = OT_CUT_POINTS, .n_parts = 2,
                               .blocks = 1, .points = points)};
    const int places[OT_MAX_CUT_GROUPS] = {1, 1};
    ot_shard_box boxes[8];
    bool has_failed = true;

    (void)state;
    for (int64_t fail_at = 0; has_failed; fail_at++) {
        ot_sharding *s = NULL;
        int64_t n = 0;
        ot_status st;

        ot__alloc_fail_after(fail_at);
        st = ot_sharding_create(OT_F32, &OT_SHAPE(64, 4), cuts, 2, -1, &s);
        OT_THEN(st, ot_sharding_boxes(s, places, 8, boxes, &n));
        if (st == OT_OK) {
            ot_box only[4];

            for (int i = 0; i < 4; i++)
                only[i] = boxes[i].box;
            st = ot_box_check_partition(&OT_SHAPE(64, 4), only, 4);
        }
        ot__alloc_fail_after(-1);
        has_failed = st == OT_ERR_NO_MEMORY;
        assert_true(has_failed || st == OT_ERR_INVALID); // what the others have is missing
        ot_sharding_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_rounded_up_size_end_early),
        cmocka_unit_test(a_cut_divides_what_the_one_before_has_left),
        cmocka_unit_test(each_block_of_an_axis_is_cut),
        cmocka_unit_test(a_sharding_tells_what_it_is_of),
        cmocka_unit_test(cuts_that_do_not_fit_are_refused),
        cmocka_unit_test(places_that_a_group_lacks_are_refused),
        cmocka_unit_test(every_allocation_of_a_sharding_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
