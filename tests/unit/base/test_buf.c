// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void appended_pieces_stand_one_after_the_other(void **state)
{
    ot__buf buf = {0};

    (void)state;
    ot__buf_text(&buf, "ab");
    ot__buf_append(&buf, "\0c", 2);
    ot__buf_printf(&buf, "%d-%s", 12, "x");
    ot__buf_append(&buf, NULL, 0);
    assert_int_equal(ot__buf_status(&buf), OT_OK);
    assert_int_equal(buf.length, 8);
    assert_memory_equal(buf.data, "ab\0c12-x", 9); // with the NUL behind
    ot__buf_deinit(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.length, 0);
}

static void text_longer_than_the_buffer_makes_it_grow(void **state)
{
    ot__buf buf = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        ot__buf_printf(&buf, "%04d", i);
    assert_int_equal(buf.length, 4000);
    assert_memory_equal(buf.data + 4 * 777, "0777", 4);
    assert_int_equal(strlen(buf.data), 4000);
    assert_in_range(buf.capacity, 4001, 8192);
    ot__buf_deinit(&buf);
}

static void an_empty_append_makes_an_empty_string(void **state)
{
    ot__buf buf = {0};

    (void)state;
    ot__buf_text(&buf, "");
    assert_string_equal(buf.data, "");
    ot__buf_deinit(&buf);
}

static void a_size_that_overflows_fails_and_writes_nothing(void **state)
{
    ot__buf buf = {0};

    (void)state;
    ot__buf_text(&buf, "abc");
    ot__buf_append(&buf, "x", SIZE_MAX - 2); // length + this + 1 is 1 again
    assert_true(buf.failed);
    assert_int_equal(ot__buf_status(&buf), OT_ERR_NO_MEMORY);
    assert_string_equal(buf.data, "abc");
    ot__buf_deinit(&buf);
}

static void every_allocation_may_fail_and_the_failure_stays(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;
    int n = 0;

    (void)state;
    for (; st != OT_OK; n++) {
        ot__buf buf = {0};

        ot__alloc_fail_after(n);
        for (int i = 0; i < 100; i++)
            ot__buf_text(&buf, "0123456789");
        ot__alloc_fail_after(-1);
        ot__buf_text(&buf, "end");
        st = ot__buf_status(&buf);
        if (st == OT_OK)
            assert_int_equal(buf.length, 1003);
        else
            assert_int_equal(st, OT_ERR_NO_MEMORY);
        assert_true(st == OT_OK || buf.length % 10 == 0); // nothing after the failure
        ot__buf_deinit(&buf);
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_pieces_stand_one_after_the_other),
        cmocka_unit_test(text_longer_than_the_buffer_makes_it_grow),
        cmocka_unit_test(an_empty_append_makes_an_empty_string),
        cmocka_unit_test(a_size_that_overflows_fails_and_writes_nothing),
        cmocka_unit_test(every_allocation_may_fail_and_the_failure_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
