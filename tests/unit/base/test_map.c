// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void what_is_put_can_be_got_replaced_and_removed(void **state)
{
    ot__map map = {0};
    int one, two;

    (void)state;
    assert_null(ot__map_get(&map, "a"));
    assert_null(ot__map_remove(&map, "a"));
    assert_true(ot__map_put(&map, "a", &one));
    assert_true(ot__map_put(&map, "", &two));
    assert_ptr_equal(ot__map_get(&map, "a"), &one);
    assert_ptr_equal(ot__map_get(&map, ""), &two);
    assert_null(ot__map_get(&map, "b"));
    assert_true(ot__map_put(&map, "a", &two));
    assert_int_equal(map.count, 2);
    assert_ptr_equal(ot__map_get(&map, "a"), &two);
    assert_ptr_equal(ot__map_remove(&map, "a"), &two);
    assert_null(ot__map_get(&map, "a"));
    assert_int_equal(map.count, 1);
    ot__map_deinit(&map);
    assert_int_equal(map.count, 0);
}

static void keys_are_compared_by_content(void **state)
{
    char first[] = "weight", second[] = "weight";
    ot__map map = {0};

    (void)state;
    assert_true(ot__map_put(&map, first, first));
    assert_ptr_equal(ot__map_get(&map, second), first);
    ot__map_deinit(&map);
}

enum { N_NAMES = 3000 };

static void make_names(char (*names)[24])
{
    // Lengths on both sides of a hash word, and names that differ in one place only.
    for (int i = 0; i < N_NAMES; i++)
        snprintf(names[i], sizeof(names[i]), i % 3 ? "%0*d" : "layer.%0*d.weight", i % 9 + 1, i);
}

static void assert_holds(const ot__map *map, char (*names)[24], const int *values)
{
    size_t count = 0, position = 0, visited = 0;
    const char *key;
    void *value;

    for (int i = 0; i < N_NAMES; i++) {
        void *expected = values[i] < 0 ? NULL : (void *)&names[values[i]];
        assert_ptr_equal(ot__map_get(map, names[i]), expected);
        count += values[i] >= 0;
    }
    assert_int_equal(map->count, count);
    while (ot__map_next(map, &position, &key, &value)) {
        assert_ptr_equal(ot__map_get(map, key), value);
        visited++;
    }
    assert_int_equal(visited, count);
}

// A long random sequence of puts and removes agrees with a plain array.
static void it_agrees_with_a_plain_array(void **state)
{
    char(*names)[24] = calloc(N_NAMES, sizeof(*names));
    int *values = malloc(N_NAMES * sizeof(*values));
    ot__map map = {0};
    uint32_t random = 1;

    (void)state;
    make_names(names);
    for (int i = 0; i < N_NAMES; i++)
        values[i] = -1;
    for (int step = 0; step < 40000; step++) {
        random = random * 1664525 + 1013904223;
        const int i = (int)(random >> 8) % N_NAMES;
        // Mostly puts at first, mostly removes at the end.
        if ((int)(random >> 20) % 40000 > step) {
            assert_true(ot__map_put(&map, names[i], &names[step % N_NAMES]));
            values[i] = step % N_NAMES;
        } else {
            ot__map_remove(&map, names[i]);
            values[i] = -1;
        }
        if (step % 4000 == 0)
            assert_holds(&map, names, values);
    }
    assert_holds(&map, names, values);
    ot__map_deinit(&map);
    free(names);
    free(values);
}

static void the_order_of_iteration_is_the_same_in_every_map(void **state)
{
    char(*names)[24] = calloc(N_NAMES, sizeof(*names));
    ot__map a = {0}, b = {0};
    size_t at_a = 0, at_b = 0;
    const char *key_a, *key_b;
    void *value;

    (void)state;
    make_names(names);
    for (int i = 0; i < N_NAMES; i++) {
        assert_true(ot__map_put(&a, names[i], names));
        assert_true(ot__map_put(&b, names[i], names));
    }
    while (ot__map_next(&a, &at_a, &key_a, &value)) {
        assert_true(ot__map_next(&b, &at_b, &key_b, &value));
        assert_string_equal(key_a, key_b);
    }
    ot__map_deinit(&a);
    ot__map_deinit(&b);
    free(names);
}

static void every_allocation_may_fail_and_loses_nothing(void **state)
{
    char(*names)[24] = calloc(N_NAMES, sizeof(*names));
    int n_put = 0;

    (void)state;
    make_names(names);
    for (int n = 0; n_put < 200; n++) {
        ot__map map = {0};

        ot__alloc_fail_after(n);
        for (n_put = 0; n_put < 200 && ot__map_put(&map, names[n_put], names[n_put]); n_put++)
            ;
        if (n_put > 0) // what is there is replaced without memory
            assert_true(ot__map_put(&map, names[0], names[0]));
        ot__alloc_fail_after(-1);
        assert_int_equal(map.count, n_put);
        for (int i = 0; i < 200; i++)
            assert_ptr_equal(ot__map_get(&map, names[i]), i < n_put ? names[i] : NULL);
        ot__map_deinit(&map);
    }
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_can_be_got_replaced_and_removed),
        cmocka_unit_test(keys_are_compared_by_content),
        cmocka_unit_test(it_agrees_with_a_plain_array),
        cmocka_unit_test(the_order_of_iteration_is_the_same_in_every_map),
        cmocka_unit_test(every_allocation_may_fail_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
