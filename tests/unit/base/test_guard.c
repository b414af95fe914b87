// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

typedef struct handle {
    ot__guard guard;
    int number;
} handle;

static void a_handle_is_known_by_its_kind(void **state)
{
    handle h = {.number = 7};

    (void)state;
    ot__guard_init(&h.guard, "session");
    assert_int_equal(ot__guard_check(&h, "session"), OT_OK);
    assert_int_equal(ot__guard_check(&h, "checkpoint"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "invalid or destroyed checkpoint handle");
    assert_int_equal(ot__guard_check(NULL, "session"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "the session is NULL");
    ot__guard_deinit(&h.guard);
    assert_int_equal(ot__guard_enter(&h, "session"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "invalid or destroyed session handle");
}

static void who_is_inside_may_enter_again(void **state)
{
    handle h;

    (void)state;
    ot__guard_init(&h.guard, "session");
    for (int i = 0; i < 3; i++)
        assert_int_equal(ot__guard_enter(&h, "session"), OT_OK);
    for (int i = 0; i < 3; i++)
        ot__guard_leave(&h);
    assert_int_equal(h.guard.depth, 0);
}

static void *enter(void *h)
{
    static ot_status status;

    status = ot__guard_enter(h, "session");
    if (status == OT_OK)
        ot__guard_leave(h);
    else if (strcmp(ot_error_message(), "another thread uses the session: one at a time may") != 0)
        status = OT_ERR_INTERNAL;
    return &status;
}

static ot_status enter_elsewhere(handle *h)
{
    pthread_t thread;
    void *status;

    assert_int_equal(pthread_create(&thread, NULL, enter, h), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    return *(ot_status *)status;
}

static void another_thread_is_told_until_the_first_has_left(void **state)
{
    handle h;

    (void)state;
    ot__guard_init(&h.guard, "session");
    assert_int_equal(enter_elsewhere(&h), OT_OK);
    assert_int_equal(ot__guard_enter(&h, "session"), OT_OK);
    assert_int_equal(ot__guard_enter(&h, "session"), OT_OK);
    assert_int_equal(enter_elsewhere(&h), OT_ERR_STATE);
    ot__guard_leave(&h);
    assert_int_equal(enter_elsewhere(&h), OT_ERR_STATE);
    ot__guard_leave(&h);
    assert_int_equal(enter_elsewhere(&h), OT_OK);
}

static ot_status with_argument(const char *name, const int *items, int n_items)
{
    OT_TRY(OT_GIVEN(name));
    return OT_GIVEN_MANY(items, n_items);
}

static void arguments_left_out_are_named(void **state)
{
    const int one[] = {1};

    (void)state;
    assert_int_equal(with_argument("a", one, 1), OT_OK);
    assert_int_equal(with_argument("a", NULL, 0), OT_OK);
    assert_int_equal(with_argument(NULL, one, 1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "with_argument: name is NULL");
    assert_int_equal(with_argument("a", NULL, 1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "with_argument: items is NULL");
    assert_int_equal(with_argument("a", one, -1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "with_argument: n_items is -1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_is_known_by_its_kind),
        cmocka_unit_test(who_is_inside_may_enter_again),
        cmocka_unit_test(another_thread_is_told_until_the_first_has_left),
        cmocka_unit_test(arguments_left_out_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
