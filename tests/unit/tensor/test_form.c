// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static const int64_t index_of[] = {1, 17, 2, 3}; // in shape (2, 32, 4, 5)

static void no_layout_is_row_major(void **state)
{
    (void)state;
    assert_int_equal(ot__layout_offset(NULL, &OT_SHAPE(2, 32, 4, 5), index_of),
                     ((1 * 32 + 17) * 4 + 2) * 5 + 3);
    assert_true(ot__layout_fits(NULL, &OT_SHAPE(2, 3)));
}

static void channels_last_puts_the_channels_innermost(void **state)
{
    (void)state;
    assert_int_equal(
        ot__layout_offset(ot__layout_channels_last(4), &OT_SHAPE(2, 32, 4, 5), index_of),
        ((1 * 4 + 2) * 5 + 3) * 32 + 17);
    assert_true(ot__layout_is_channels_last(ot__layout_channels_last(5)));
    assert_null(ot__layout_channels_last(2));
    assert_null(ot__layout_channels_last(6));
}

static void blocked_puts_a_block_of_channels_innermost(void **state)
{
    (void)state;
    assert_int_equal(ot__layout_offset(ot__layout_blocked(4, 16), &OT_SHAPE(2, 32, 4, 5), index_of),
                     (((1 * 2 + 1) * 4 + 2) * 5 + 3) * 16 + 1);
    assert_int_equal(ot__layout_offset(ot__layout_blocked(4, 8), &OT_SHAPE(2, 32, 4, 5), index_of),
                     (((1 * 4 + 2) * 4 + 2) * 5 + 3) * 8 + 1);
    assert_int_equal(ot__layout_channel_block(ot__layout_blocked(3, 16)), 16);
    assert_int_equal(ot__layout_channel_block(ot__layout_channels_last(3)), 1);
    assert_null(ot__layout_blocked(4, 4));
}

static void two_blocks_of_one_axis_nest(void **state)
{
    const ot_layout layout = {.ndim = 2,
                              .order = {1, 0},
                              .n_blocks = 2,
                              .block = {{.axis = 0, .size = 2}, {.axis = 0, .size = 3}}};
    const int64_t index[] = {10, 1}; // row 10 = block 1, then 1 * 3 + 1

    (void)state;
    assert_int_equal(ot__layout_offset(&layout, &OT_SHAPE(12, 4), index),
                     ((1 * 2 + 1) * 2 + 1) * 3 + 1);
    assert_true(ot__layout_fits(&layout, &OT_SHAPE(12, 4)));
    assert_false(ot__layout_fits(&layout, &OT_SHAPE(9, 4)));
}

static void every_offset_is_taken_once(void **state)
{
    const ot_layout *layouts[] = {NULL, ot__layout_channels_last(3), ot__layout_blocked(3, 8)};

    (void)state;
    for (size_t f = 0; f < OT_COUNT(layouts); f++) {
        bool taken[3 * 16 * 5] = {false};

        for (int64_t n = 0; n < 3; n++)
            for (int64_t c = 0; c < 16; c++)
                for (int64_t w = 0; w < 5; w++) {
                    const int64_t index[] = {n, c, w};
                    const int64_t at = ot__layout_offset(layouts[f], &OT_SHAPE(3, 16, 5), index);

                    assert_in_range(at, 0, 3 * 16 * 5 - 1);
                    assert_false(taken[at]);
                    taken[at] = true;
                }
    }
}

static void a_block_must_divide_its_axis(void **state)
{
    (void)state;
    assert_true(ot__layout_fits(ot__layout_blocked(4, 8), &OT_SHAPE(1, 24, 2, 2)));
    assert_false(ot__layout_fits(ot__layout_blocked(4, 16), &OT_SHAPE(1, 24, 2, 2)));
    assert_false(ot__layout_fits(ot__layout_blocked(4, 8), &OT_SHAPE(1, 24, 2)));
}

static void layouts_are_equal_by_content(void **state)
{
    const ot_layout copy = *ot__layout_blocked(4, 16);

    (void)state;
    assert_true(ot__layout_equal(&copy, ot__layout_blocked(4, 16)));
    assert_true(ot__layout_equal(NULL, NULL));
    assert_false(ot__layout_equal(NULL, &copy));
    assert_false(ot__layout_equal(ot__layout_blocked(4, 8), &copy));
    assert_false(ot__layout_equal(ot__layout_channels_last(4), &copy));
}

static void the_text_shows_order_and_blocks(void **state)
{
    char text[16], small[4];

    (void)state;
    assert_string_equal(ot__layout_text(NULL, text, sizeof text), "");
    assert_string_equal(ot__layout_text(ot__layout_channels_last(4), text, sizeof text), "0231");
    assert_string_equal(ot__layout_text(ot__layout_blocked(4, 16), text, sizeof text), "0123:1x16");
    assert_string_equal(ot__layout_text(ot__layout_blocked(4, 16), small, sizeof small), "012");
}

// ---- from one layout to another ----

// Weights (m, c, kernel) in blocks of channels, blocks of output channels innermost.
static const ot_layout small_blocks = {
    .ndim = 3, .order = {0, 1, 2}, .n_blocks = 2, .block = {{1, 2}, {0, 2}}};

static void weights_stand_in_blocks_as_the_formula_says(void **state)
{
    // shape (2, 4, 1): elements (m, c) = 4 m + c; in memory c / 2, then c % 2, then m
    const float plain[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const float expected[] = {0, 4, 1, 5, 2, 6, 3, 7};
    float blocked[8], back[8];

    (void)state;
    ot__layout_convert(blocked, &small_blocks, plain, NULL, &OT_SHAPE(2, 4, 1), sizeof(float));
    assert_memory_equal(blocked, expected, sizeof expected);
    ot__layout_convert(back, NULL, blocked, &small_blocks, &OT_SHAPE(2, 4, 1), sizeof(float));
    assert_memory_equal(back, plain, sizeof plain);
}

enum { M = 8, C = 6, K = 5, N = M * C * K };

static const ot_layout layouts_of_weights[] = {
    {.ndim = 3, .order = {0, 1, 2}, .n_blocks = 2, .block = {{1, 2}, {0, 4}}},
    {.ndim = 3, .order = {0, 1, 2}, .n_blocks = 2, .block = {{0, 2}, {0, 2}}},
    {.ndim = 3, .order = {1, 0, 2}, .n_blocks = 1, .block = {{0, 8}}}, // axis 0 is not outermost
    {.ndim = 3, .order = {0, 2, 1}, .n_blocks = 1, .block = {{0, 4}}},
    {.ndim = 3, .order = {2, 1, 0}},
};
enum { N_FORMS = sizeof layouts_of_weights / sizeof *layouts_of_weights };

static void every_element_is_found_at_its_offset(void **state)
{
    const ot_shape shape = OT_SHAPE(M, C, K);
    uint16_t plain[N], there[N];

    (void)state;
    for (int i = 0; i < N; i++)
        plain[i] = (uint16_t)i;
    for (int f = 0; f < N_FORMS; f++) {
        ot__layout_convert(there, &layouts_of_weights[f], plain, NULL, &shape, sizeof *plain);
        for (int i = 0; i < N; i++) {
            const int64_t index[] = {i / (C * K), i / K % C, i % K};

            assert_int_equal(there[ot__layout_offset(&layouts_of_weights[f], &shape, index)], i);
        }
    }
}

static void layouts_convert_into_each_other_and_back(void **state)
{
    const ot_shape shape = OT_SHAPE(M, C, K);
    float plain[N], there[N], further[N], back[N];

    (void)state;
    for (int i = 0; i < N; i++)
        plain[i] = (float)i;
    for (int f = 0; f < N_FORMS; f++)
        for (int g = 0; g < N_FORMS; g++) {
            const ot_layout *a = &layouts_of_weights[f], *b = &layouts_of_weights[g];

            ot__layout_convert(there, a, plain, NULL, &shape, sizeof *plain);
            ot__layout_convert(further, b, there, a, &shape, sizeof *plain);
            ot__layout_convert(back, NULL, further, b, &shape, sizeof *plain);
            assert_memory_equal(back, plain, sizeof plain);
        }
}

static void converting_in_place_needs_a_buffer_for_a_part_only(void **state)
{
    const ot_shape shape = OT_SHAPE(M, C, K);
    float plain[N], there[N], place[N];

    (void)state;
    for (int i = 0; i < N; i++)
        plain[i] = (float)i;
    for (int f = 0; f < N_FORMS; f++) {
        const ot_layout *layout = &layouts_of_weights[f];
        void *buffer = ot__alloc(ot__layout_part_bytes(layout, &shape, sizeof *plain));

        ot__layout_convert(there, layout, plain, NULL, &shape, sizeof *plain);
        memcpy(place, plain, sizeof plain);
        ot__layout_convert_in_place(place, layout, NULL, &shape, sizeof *plain, buffer);
        assert_memory_equal(place, there, sizeof plain);
        ot__layout_convert_in_place(place, NULL, layout, &shape, sizeof *plain, buffer);
        assert_memory_equal(place, plain, sizeof plain);
        ot__free(buffer);
    }
    assert_int_equal(ot__layout_part_bytes(&layouts_of_weights[0], &shape, sizeof *plain),
                     4 * C * K * sizeof *plain);
}

static void nothing_is_converted_in_an_empty_tensor(void **state)
{
    float element = 7;

    (void)state;
    ot__layout_convert(&element, &small_blocks, NULL, NULL, &OT_SHAPE(2, 4, 0), sizeof element);
    ot__layout_convert_in_place(NULL, &small_blocks, NULL, &OT_SHAPE(0, 4, 1), sizeof element,
                                NULL);
    assert_float_equal(element, 7, 0);
}

// ---- rows that are one piece ----

// By the places of all elements: the fewest rows of which any multiple is a beginning of memory.
static int64_t find_row_unit(const ot_layout *layout, const ot_shape *shape)
{
    int64_t count, last_of_row[64] = {0}, index[OT_MAX_NDIM] = {0};
    int axis = 0;

    while (axis < shape->ndim && shape->dim[axis] == 1)
        axis++;
    if (axis == shape->ndim || !ot__shape_count(shape, &count))
        return 0;
    assert_in_range(shape->dim[axis], 0, 63);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = ot__layout_offset(layout, shape, index);

        last_of_row[index[axis]] = OT_MAX(last_of_row[index[axis]], at);
        for (int k = shape->ndim - 1; k >= 0 && ++index[k] == shape->dim[k]; k--)
            index[k] = 0;
    }
    for (int64_t unit = 1; unit < shape->dim[axis]; unit++) {
        int64_t last = 0, n_whole = 0, n = 0;

        for (int64_t row = 0; row < shape->dim[axis]; row++) {
            last = OT_MAX(last, last_of_row[row]);
            if ((row + 1) % unit != 0)
                continue;
            n++;
            n_whole += last + 1 == (row + 1) * (count / shape->dim[axis]);
        }
        if (n_whole == n)
            return unit;
    }
    return 0;
}

static void a_row_unit_is_what_the_places_of_elements_say(void **state)
{
    const ot__rng_key key = ot__rng_key_make(7, 0, 0, "");
    uint64_t n = 0;
    int seen[3] = {0}; // 0, 1, more

#define BELOW(limit) ((int)(ot__rng_uniform(key, n++) * (limit)))
    (void)state;
    for (int i = 0; i < 20000; i++) {
        ot_layout layout = {.ndim = 1 + BELOW(4)};
        ot_shape shape = {.ndim = layout.ndim};
        int64_t unit;

        for (int k = 0; k < layout.ndim; k++) {
            layout.order[k] = k;
            shape.dim[k] = BELOW(3) == 0 ? 1 : 1 + BELOW(3);
        }
        for (int k = layout.ndim - 1; k > 0; k--) {
            const int other = BELOW(k + 1), axis = layout.order[k];

            layout.order[k] = layout.order[other];
            layout.order[other] = axis;
        }
        layout.n_blocks = BELOW(3);
        for (int k = 0; k < layout.n_blocks; k++) {
            layout.block[k].axis = BELOW(layout.ndim);
            layout.block[k].size = 1 + BELOW(4);
            shape.dim[layout.block[k].axis] *= layout.block[k].size;
        }
        assert_true(ot__layout_fits(&layout, &shape));
        unit = ot__layout_row_unit(&layout, &shape);
        if (unit != find_row_unit(&layout, &shape))
            fail_msg("%s %s: %d, expected %d", OT_SHAPE_TEXT(&shape),
                     ot__layout_text(&layout, (char[64]){""}, 64), (int)unit,
                     (int)find_row_unit(&layout, &shape));
        assert_int_equal(ot__layout_row_unit(NULL, &shape), find_row_unit(NULL, &shape));
        seen[OT_MIN(unit, 2)]++;
    }
    for (int k = 0; k < 3; k++)
        assert_true(seen[k] > 500);
#undef BELOW
}

static void weights_are_cut_at_blocks_of_their_rows(void **state)
{
    const ot_layout blocks_of_rows = {
        .ndim = 2, .order = {0, 1}, .n_blocks = 1, .block = {{0, 16}}};
    const ot_layout columns_first = {.ndim = 2, .order = {1, 0}, .n_blocks = 1, .block = {{1, 16}}};

    (void)state;
    assert_int_equal(ot__layout_row_unit(&blocks_of_rows, &OT_SHAPE(64, 5)), 16);
    assert_int_equal(ot__layout_row_unit(&blocks_of_rows, &OT_SHAPE(16, 5)), 0);
    assert_int_equal(ot__layout_row_unit(&columns_first, &OT_SHAPE(64, 32)), 0);
    assert_int_equal(ot__layout_row_unit(&columns_first, &OT_SHAPE(64, 16)), 1);
    assert_int_equal(ot__layout_row_unit(NULL, &OT_SHAPE(1, 8, 4)), 1);
    assert_int_equal(ot__layout_row_unit(NULL, &OT_SHAPE(1, 1)), 0);
    assert_int_equal(ot__layout_row_unit(NULL, &OT_SHAPE_SCALAR), 0);
    assert_int_equal(ot__layout_row_unit(NULL, &OT_SHAPE(4, 0)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_layout_is_row_major),
        cmocka_unit_test(channels_last_puts_the_channels_innermost),
        cmocka_unit_test(blocked_puts_a_block_of_channels_innermost),
        cmocka_unit_test(two_blocks_of_one_axis_nest),
        cmocka_unit_test(every_offset_is_taken_once),
        cmocka_unit_test(a_block_must_divide_its_axis),
        cmocka_unit_test(layouts_are_equal_by_content),
        cmocka_unit_test(the_text_shows_order_and_blocks),
        cmocka_unit_test(weights_stand_in_blocks_as_the_formula_says),
        cmocka_unit_test(every_element_is_found_at_its_offset),
        cmocka_unit_test(layouts_convert_into_each_other_and_back),
        cmocka_unit_test(converting_in_place_needs_a_buffer_for_a_part_only),
        cmocka_unit_test(a_row_unit_is_what_the_places_of_elements_say),
        cmocka_unit_test(weights_are_cut_at_blocks_of_their_rows),
        cmocka_unit_test(nothing_is_converted_in_an_empty_tensor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
