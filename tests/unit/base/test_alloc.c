// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void memory_can_be_had_zeroed_grown_and_freed(void **state)
{
    unsigned char *block = ot__alloc_zero(100, 3);

    (void)state;
    assert_non_null(block);
    for (int i = 0; i < 300; i++)
        assert_int_equal(block[i], 0);
    memset(block, 7, 300);
    block = ot__realloc(block, 5000);
    assert_non_null(block);
    assert_int_equal(block[299], 7);
    ot__free(block);
    ot__free(NULL);
}

static void nothing_is_a_size_too(void **state)
{
    void *a = ot__alloc(0), *b = ot__alloc_zero(0, 8), *c = ot__alloc_aligned(0);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    ot__free(a);
    ot__free(b);
    ot__free_aligned(c);
    ot__free_aligned(NULL);
}

static void aligned_memory_is_zero_and_aligned_to_64(void **state)
{
    (void)state;
    for (size_t n = 1; n < 2000; n += 37) {
        unsigned char *block = ot__alloc_aligned(n);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(block[i], 0);
        memset(block, 1, n);
        ot__free_aligned(block);
    }
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    ot__error_clear();
    assert_null(ot__alloc_zero(SIZE_MAX / 2, 3));
    assert_non_null(strstr(ot_error_message(), "out of memory"));
    assert_null(ot__alloc_aligned(SIZE_MAX - 8));
    assert_null(ot__alloc_aligned(SIZE_MAX));
}

static void a_copied_string_is_its_own(void **state)
{
    char text[] = "name";
    char *copy = ot__strdup(text);

    (void)state;
    assert_non_null(copy);
    text[0] = 'x';
    assert_string_equal(copy, "name");
    ot__free(copy);
}

static void allocations_fail_from_the_wanted_one_on(void **state)
{
    void *blocks[4] = {NULL};
    int64_t count;

    (void)state;
    ot__error_clear();
    ot__alloc_fail_after(2);
    count = ot__alloc_count();
    blocks[0] = ot__alloc(8);
    blocks[1] = ot__alloc_zero(1, 8);
    blocks[2] = ot__alloc(24);
    assert_string_equal(ot_error_message(), "out of memory: 24 bytes could not be had");
    blocks[3] = ot__alloc_aligned(8);
    assert_null(ot__strdup("x"));
    assert_null(ot__realloc(blocks[0], 100)); // the old block stays
    assert_int_equal(ot__alloc_count() - count, 2);
    ot__alloc_fail_after(-1);
    assert_non_null(blocks[0]);
    assert_non_null(blocks[1]);
    assert_null(blocks[2]);
    assert_null(blocks[3]);
    memset(blocks[0], 1, 8);
    ot__free(blocks[0]);
    ot__free(blocks[1]);
    blocks[0] = ot__alloc(8);
    assert_non_null(blocks[0]);
    ot__free(blocks[0]);
}

static void *allocate_once(void *argument)
{
    void *block = ot__alloc(16);

    *(bool *)argument = block != NULL;
    ot__free(block);
    return NULL;
}

static void only_the_thread_that_asked_for_it_fails(void **state)
{
    pthread_t thread;
    bool other_had = false;
    void *block;

    (void)state;
    ot__alloc_fail_after(0);
    assert_int_equal(pthread_create(&thread, NULL, allocate_once, &other_had), 0);
    pthread_join(thread, NULL);
    block = ot__alloc(16);
    ot__alloc_fail_after(-1);
    assert_null(block);
    assert_true(other_had);
}

typedef struct counts {
    int n_allocated, n_released;
} counts;

static void *counting_reallocate(void *context, void *block, size_t n_bytes)
{
    ((counts *)context)->n_allocated += block == NULL;
    block = realloc(block, n_bytes);
    return block ? memset(block, 0xa5, n_bytes) : NULL; // so that "zeroed" is really done
}

static void counting_release(void *context, void *block)
{
    ((counts *)context)->n_released++;
    free(block);
}

static void the_allocator_of_the_program_is_used_for_everything(void **state)
{
    counts c = {0};
    const ot_allocator allocator = {counting_reallocate, counting_release, &c};
    unsigned char *zero, *aligned;
    char *text;

    (void)state;
    ot_set_allocator(&allocator);
    zero = ot__alloc_zero(4, 4);
    aligned = ot__alloc_aligned(16);
    text = ot__strdup("abc");
    assert_int_equal(c.n_allocated, 3);
    for (int i = 0; i < 16; i++)
        assert_int_equal(zero[i] + aligned[i], 0);
    ot__free(zero);
    ot__free_aligned(aligned);
    ot__free(text);
    ot__free(NULL);
    assert_int_equal(c.n_released, 3);
    ot_set_allocator(NULL);
    ot__free(ot__alloc(8));
    assert_int_equal(c.n_allocated, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_can_be_had_zeroed_grown_and_freed),
        cmocka_unit_test(nothing_is_a_size_too),
        cmocka_unit_test(aligned_memory_is_zero_and_aligned_to_64),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(a_copied_string_is_its_own),
        cmocka_unit_test(allocations_fail_from_the_wanted_one_on),
        cmocka_unit_test(only_the_thread_that_asked_for_it_fails),
        cmocka_unit_test(the_allocator_of_the_program_is_used_for_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
