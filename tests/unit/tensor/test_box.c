// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/sharding.h"
#include "tensor/tensor.h"

static bool next_index(const int64_t *size, int ndim, int64_t *index)
{
    for (int k = ndim - 1; k >= 0; k--) {
        if (++index[k] < size[k])
            return true;
        index[k] = 0;
    }
    return false;
}

// ---- intersections ----

static bool is_in(const ot_box *box, const int64_t *index)
{
    for (int k = 0; k < box->ndim; k++)
        if (index[k] < box->offset[k] || index[k] >= box->offset[k] + box->size[k])
            return false;
    return true;
}

static void elements_of_an_intersection_are_those_of_both(void **state)
{
    static const int64_t shape[] = {3, 4};
    const ot__rng_key key = ot__rng_key_make(21, 0, 0, "");
    uint64_t n = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        ot_box boxes[2] = {{.ndim = 2}, {.ndim = 2}}, both;
        int64_t index[2] = {0}, n_common = 0;
        int found;

        for (int b = 0; b < 2; b++)
            for (int k = 0; k < 2; k++) {
                boxes[b].offset[k] =
                    (int64_t)(ot__rng_uniform(key, n++) * (float)shape[k]) % shape[k];
                boxes[b].size[k] = (int64_t)(ot__rng_uniform(key, n++) *
                                             (float)(shape[k] - boxes[b].offset[k] + 1));
            }
        found = ot_box_intersect(&boxes[0], &boxes[1], &both);
        do {
            const bool is_common = is_in(&boxes[0], index) && is_in(&boxes[1], index);

            n_common += is_common;
            if (found)
                assert_int_equal(is_in(&both, index), is_common);
        } while (next_index(shape, 2, index));
        assert_int_equal(found, n_common > 0);
    }
}

static void boxes_of_other_tensors_have_nothing_in_common(void **state)
{
    const ot_box one = {.ndim = 1, .size = {2}}, two = {.ndim = 2, .size = {2, 2}};
    const ot_box scalar = {.ndim = 0}, odd = {.ndim = OT_MAX_NDIM + 1};

    (void)state;
    assert_false(ot_box_intersect(&one, &two, NULL));
    assert_false(ot_box_intersect(&odd, &odd, NULL));
    assert_false(ot_box_intersect(NULL, &one, NULL));
    assert_true(ot_box_intersect(&scalar, &scalar, NULL));
}

// ---- partitions ----

#define BOX(o0, o1, s0, s1)                                                                        \
    {                                                                                              \
        .ndim = 2, .offset = {o0, o1}, .size = { s0, s1 }                                          \
    }

static void boxes_that_are_no_partition_are_refused(void **state)
{
    static const struct {
        ot_box boxes[3];
        int n;
        const char *message;
    } cases[] = {
        {{BOX(0, 0, 2, 6), BOX(2, 0, 2, 6)}, 2, NULL},
        {{BOX(0, 0, 4, 1), BOX(0, 1, 2, 5), BOX(2, 1, 2, 5)}, 3, NULL},
        {{BOX(0, 0, 2, 6), BOX(2, 0, 2, 5)}, 2, "2 of 24 elements are in no box"},
        {{BOX(0, 0, 2, 6)}, 1, "12 of 24 elements are in no box"},
        {{BOX(0, 0, 3, 6), BOX(2, 0, 2, 6)}, 2, "boxes 0 and 1 have elements in common"},
        // as many elements as there are
        {{BOX(0, 0, 2, 6), BOX(0, 3, 2, 3), BOX(2, 0, 1, 6)}, 3, "boxes 0 and 1 have elements"},
        {{BOX(0, 0, 2, 6), BOX(3, 0, 2, 6)}, 2, "box 1 has 2 elements of axis 0 from 3 on, of 4"},
        {{BOX(-1, 0, 2, 6)}, 1, "box 0 has 2 elements of axis 0 from -1 on"},
        {{BOX(0, 1, 4, INT64_MAX)}, 1, "of axis 1 from 1 on, of 6"},
        {{BOX(INT64_MAX, 0, 1, 6)}, 1, "from 9223372036854775807 on"},
        {{BOX(0, 0, 4, 6), BOX(1, 1, 0, 1)}, 2, "box 1 has 0 elements of axis 0, expected some"},
        {{{.ndim = 1, .size = {4}}}, 1, "box 0 has 1 axes, expected 2"},
        {{BOX(0, 0, 4, 6)}, 0, "24 of 24 elements are in no box"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        const ot_status st = ot_box_check_partition(&OT_SHAPE(4, 6), cases[i].boxes, cases[i].n);

        assert_int_equal(st, cases[i].message == NULL ? OT_OK : OT_ERR_INVALID);
        if (st != OT_OK && strstr(ot_error_message(), cases[i].message) == NULL)
            fail_msg("%s, expected %s", ot_error_message(), cases[i].message);
    }
}

static void a_scalar_has_one_box_and_an_empty_tensor_none(void **state)
{
    const ot_box two[2] = {{.ndim = 0}, {.ndim = 0}};

    (void)state;
    assert_int_equal(ot_box_check_partition(&OT_SHAPE_SCALAR, two, 1), OT_OK);
    assert_int_equal(ot_box_check_partition(&OT_SHAPE_SCALAR, two, 2), OT_ERR_INVALID);
    assert_int_equal(ot_box_check_partition(&OT_SHAPE_SCALAR, NULL, 0), OT_ERR_INVALID);
    assert_int_equal(ot_box_check_partition(&OT_SHAPE(3, 0), NULL, 0), OT_OK);
}

// Pairs would be 10^10 comparisons; the test has a time limit.
static void many_boxes_are_checked_without_comparing_all_pairs(void **state)
{
    enum { SIDE = 316, N = SIDE * SIDE };
    ot_box *boxes = ot__alloc(N * sizeof *boxes);

    (void)state;
    assert_non_null(boxes);
    for (int i = 0; i < N; i++) // in an order that is no order
        boxes[i * 7919L % N] = (ot_box)BOX(i / SIDE * 2, i % SIDE * 3, 2, 3);
    assert_int_equal(ot_box_check_partition(&OT_SHAPE(SIDE * 2, SIDE * 3), boxes, N), OT_OK);
    boxes[N / 2].size[1]++;
    assert_int_equal(ot_box_check_partition(&OT_SHAPE(SIDE * 2, SIDE * 3 + 1), boxes, N),
                     OT_ERR_INVALID);
    ot__free(boxes);
}

// ---- ranges ----

static void check_range(const ot_shape *shape, int64_t begin, int64_t end, int *most)
{
    ot_box boxes[OT_MAX_RANGE_BOXES];
    int64_t expected = begin;
    int n;

    assert_int_equal(ot_box_of_range(shape, begin, end, boxes, &n), OT_OK);
    *most = OT_MAX(*most, n);
    for (int b = 0; b < n; b++) {
        int64_t at[OT_MAX_NDIM] = {0}, cell;

        assert_int_equal(boxes[b].ndim, shape->ndim);
        do {
            cell = 0;
            for (int k = 0; k < shape->ndim; k++)
                cell = cell * shape->dim[k] + boxes[b].offset[k] + at[k];
            if (cell != expected++) // fast: there are millions
                fail_msg("element %d comes instead of %d", (int)cell, (int)expected - 1);
        } while (next_index(boxes[b].size, shape->ndim, at));
    }
    assert_int_equal(expected, end);
}

// All ranges; returns the largest number of boxes.
static int check_ranges(const ot_shape *shape)
{
    int64_t count;
    int most = 0;

    assert_true(ot__shape_count(shape, &count));
    for (int64_t begin = 0; begin <= count; begin++)
        for (int64_t end = begin; end <= count; end++)
            check_range(shape, begin, end, &most);
    assert_true(most <= OT_MAX(1, 2 * shape->ndim - 1));
    return most;
}

static void a_range_is_the_elements_of_its_boxes_in_order(void **state)
{
    static const ot_shape shapes[] = {{4, {2, 3, 2, 3}}, {5, {2, 1, 3, 2, 2}}, {3, {3, 4, 5}}};

    (void)state;
    for (size_t s = 0; s < OT_COUNT(shapes); s++)
        (void)check_ranges(&shapes[s]);
    assert_int_equal(check_ranges(&shapes[2]), 5);
}

static void all_small_shapes_have_such_boxes(void **state)
{
    enum { EXTENTS = 5, AXES = 3 }; // from 0 on

    (void)state;
    for (int n_axes = 0, n_shapes = 1; n_axes <= AXES; n_axes++, n_shapes *= EXTENTS)
        for (int i = 0; i < n_shapes; i++) {
            ot_shape shape = {.ndim = n_axes};

            for (int k = 0, rest = i; k < n_axes; k++, rest /= EXTENTS)
                shape.dim[k] = rest % EXTENTS;
            (void)check_ranges(&shape);
        }
}

static void a_range_is_cut_at_its_first_and_last_rows(void **state)
{
    static const int64_t expected[5][6] = {{0, 1, 2, 1, 1, 3},
                                           {0, 2, 0, 1, 2, 5},
                                           {1, 0, 0, 1, 4, 5},
                                           {2, 0, 0, 1, 2, 5},
                                           {2, 2, 0, 1, 1, 3}};
    ot_box boxes[OT_MAX_RANGE_BOXES];
    int n;

    (void)state;
    assert_int_equal(ot_box_of_range(&OT_SHAPE(3, 4, 5), 7, 53, boxes, &n), OT_OK);
    assert_int_equal(n, 5);
    for (int i = 0; i < n; i++) {
        assert_memory_equal(boxes[i].offset, expected[i], 3 * sizeof(int64_t));
        assert_memory_equal(boxes[i].size, expected[i] + 3, 3 * sizeof(int64_t));
    }
}

static void a_range_that_a_tensor_lacks_is_refused(void **state)
{
    static const int64_t ranges[][2] = {{-1, 2}, {3, 2}, {0, 13}, {13, 13}};
    ot_box boxes[OT_MAX_RANGE_BOXES];
    int n;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(ranges); i++)
        assert_int_equal(ot_box_of_range(&OT_SHAPE(3, 4), ranges[i][0], ranges[i][1], boxes, &n),
                         OT_ERR_INVALID);
    assert_int_equal(ot_box_of_range(&OT_SHAPE(INT64_MAX, 2), 0, 1, boxes, &n), OT_ERR_INVALID);
    assert_int_equal(ot_box_of_range(&OT_SHAPE(3, -1), 0, 0, boxes, &n), OT_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_of_an_intersection_are_those_of_both),
        cmocka_unit_test(boxes_of_other_tensors_have_nothing_in_common),
        cmocka_unit_test(boxes_that_are_no_partition_are_refused),
        cmocka_unit_test(a_scalar_has_one_box_and_an_empty_tensor_none),
        cmocka_unit_test(many_boxes_are_checked_without_comparing_all_pairs),
        cmocka_unit_test(a_range_is_the_elements_of_its_boxes_in_order),
        cmocka_unit_test(all_small_shapes_have_such_boxes),
        cmocka_unit_test(a_range_is_cut_at_its_first_and_last_rows),
        cmocka_unit_test(a_range_that_a_tensor_lacks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
