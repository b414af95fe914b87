// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void blocks_are_zero_aligned_and_apart(void **state)
{
    enum { N = 500 };
    ot__arena *arena = ot__arena_create();
    unsigned char *blocks[N];

    (void)state;
    assert_non_null(arena);
    for (size_t i = 0; i < N; i++) {
        const size_t n = i * 13 % 1000;
        blocks[i] = ot__arena_alloc(arena, n);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)(i % 251) + 1, n);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < i * 13 % 1000; k++)
            assert_int_equal(blocks[i][k], i % 251 + 1);
    ot__arena_destroy(arena);
    ot__arena_destroy(NULL);
}

static void a_large_block_between_small_ones_keeps_them(void **state)
{
    ot__arena *arena = ot__arena_create();
    char *a = ot__arena_strdup(arena, "before");
    unsigned char *large = ot__arena_alloc(arena, 1 << 20);
    char *b = ot__arena_strdup(arena, "after");

    (void)state;
    assert_non_null(large);
    assert_int_equal(large[0] | large[(1 << 20) - 1], 0);
    memset(large, 0xff, 1 << 20);
    assert_string_equal(a, "before");
    assert_string_equal(b, "after");
    assert_true(ot__arena_bytes(arena) >= (1 << 20) + 13);
    assert_true(ot__arena_bytes(arena) <= (1 << 20) + 64);
    ot__arena_destroy(arena);
}

static void text_and_bytes_are_copied(void **state)
{
    ot__arena *arena = ot__arena_create();
    const unsigned char bytes[] = {1, 0, 2};

    (void)state;
    assert_string_equal(ot__arena_strdup(arena, ""), "");
    assert_string_equal(ot__arena_strndup(arena, "abcdef", 3), "abc");
    assert_string_equal(ot__arena_strndup(arena, "ab", 100), "ab");
    assert_string_equal(ot__arena_strndup(arena, "ab", SIZE_MAX), "ab");
    assert_string_equal(ot__arena_strndup(arena, "ab", 0), "");
    assert_string_equal(ot__arena_printf(arena, "%s_%d", "grad", 12), "grad_12");
    assert_memory_equal(ot__arena_memdup(arena, bytes, 3), bytes, 3);
    assert_non_null(ot__arena_memdup(arena, NULL, 0));
    ot__arena_destroy(arena);
}

static void an_array_grows_and_keeps_its_items(void **state)
{
    ot__arena *arena = ot__arena_create();
    int64_t *items = NULL;
    int capacity = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        assert_true(ot__arena_grow(arena, &items, &capacity, i, sizeof(*items)));
        assert_true(capacity > i);
        items[i] = i * 3;
    }
    for (int i = 0; i < 10000; i++)
        assert_int_equal(items[i], i * 3);
    assert_true(ot__arena_bytes(arena) < 4 * 10000 * sizeof(*items)); // doubling, not more
    ot__arena_destroy(arena);
}

static void an_item_is_put_behind_the_others_or_nothing_changes(void **state)
{
    ot__arena *arena = ot__arena_create();
    int64_t *items = NULL;
    int capacity = 0, count = 0;

    (void)state;
    for (int64_t i = 0; i < 9; i++)
        assert_true(ot__arena_push(arena, &items, &capacity, &count, &i, sizeof i));
    assert_int_equal(count, 9);
    for (int i = 0; i < count; i++)
        assert_int_equal(items[i], i);
    ot__arena_limit(arena, 0);
    count = capacity;
    assert_false(ot__arena_push(arena, &items, &capacity, &count, items, sizeof *items));
    assert_int_equal(count, capacity);
    ot__arena_destroy(arena);
}

static void an_array_of_too_many_items_is_refused(void **state)
{
    ot__arena *arena = ot__arena_create();
    char *items = NULL;
    int capacity = INT_MAX;

    (void)state;
    ot__error_clear();
    assert_false(ot__arena_grow(arena, &items, &capacity, INT_MAX, SIZE_MAX / 4));
    assert_null(items);
    assert_int_equal(capacity, INT_MAX);
    assert_true(strlen(ot_error_message()) > 0);
    capacity = 0;
    assert_false(ot__arena_grow(arena, &items, &capacity, 1000, SIZE_MAX / 4));
    for (size_t below = 0; below <= 40; below++)
        assert_null(ot__arena_alloc(arena, SIZE_MAX - below));
    ot__arena_destroy(arena);
}

static void the_limit_holds_for_small_and_large_blocks(void **state)
{
    ot__arena *arena = ot__arena_create();

    (void)state;
    ot__arena_limit(arena, 4096);
    ot__error_clear();
    assert_null(ot__arena_alloc(arena, 4097));
    assert_non_null(strstr(ot_error_message(), "4096"));
    for (int i = 0; i < 4; i++)
        assert_non_null(ot__arena_alloc(arena, 1024));
    assert_null(ot__arena_alloc(arena, 1));
    assert_int_equal(ot__arena_bytes(arena), 4096);
    ot__arena_limit(arena, 8192);
    assert_non_null(ot__arena_alloc(arena, 4096));
    ot__arena_limit(arena, 100); // below what is used already
    assert_null(ot__arena_alloc(arena, 1));
    ot__arena_destroy(arena);
}

// Some of everything; false at the first failure, which must have set the error.
static bool use_an_arena(ot__arena **arena)
{
    int *items = NULL;
    int capacity = 0;

    *arena = ot__arena_create();
    if (!*arena || !ot__arena_strdup(*arena, "a") || !ot__arena_alloc(*arena, 1 << 20) ||
        !ot__arena_printf(*arena, "%070000d", 1) || !ot__arena_strndup(*arena, "abc", 2))
        return false;
    for (int i = 0; i < 50000; i++)
        if (!ot__arena_grow(*arena, &items, &capacity, i, sizeof(*items)))
            return false;
    return true;
}

static void every_allocation_may_fail(void **state)
{
    bool done = false;
    int n = 0;

    (void)state;
    for (; !done; n++) {
        ot__arena *arena;

        ot__error_clear();
        ot__alloc_fail_after(n);
        done = use_an_arena(&arena);
        ot__alloc_fail_after(-1);
        assert_true(done || strstr(ot_error_message(), "out of memory"));
        ot__arena_destroy(arena);
    }
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zero_aligned_and_apart),
        cmocka_unit_test(a_large_block_between_small_ones_keeps_them),
        cmocka_unit_test(text_and_bytes_are_copied),
        cmocka_unit_test(an_array_grows_and_keeps_its_items),
        cmocka_unit_test(an_item_is_put_behind_the_others_or_nothing_changes),
        cmocka_unit_test(an_array_of_too_many_items_is_refused),
        cmocka_unit_test(the_limit_holds_for_small_and_large_blocks),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
