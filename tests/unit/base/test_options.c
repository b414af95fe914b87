// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

// The struct of this version, of an earlier and of a later one.
typedef struct ours {
    size_t size;
    int64_t first;
    double second;
    const char *third;
} ours;
typedef struct earlier {
    size_t size;
    int64_t first;
} earlier;
typedef struct later {
    ours known;
    int64_t fourth;
} later;

static const ours defaults = {sizeof(ours), 1, 2.5, "three"};

static ot_status take(const void *given, ours *own)
{
    return ot__options_read("ot_some_options", given, &defaults, own, sizeof *own);
}

static void without_options_there_are_the_defaults(void **state)
{
    ours own;

    (void)state;
    assert_int_equal(take(NULL, &own), OT_OK);
    assert_memory_equal(&own, &defaults, sizeof own);
}

static void what_an_earlier_caller_lacks_has_its_default(void **state)
{
    const earlier given = {sizeof given, 7};
    ours own;

    (void)state;
    assert_int_equal(take(&given, &own), OT_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first, 7);
    assert_true(own.second == 2.5);
    assert_string_equal(own.third, "three");
}

static void a_later_caller_may_leave_later_fields_alone(void **state)
{
    later given = {{sizeof given, 7, 8, "nine"}, 0};
    ours own;

    (void)state;
    assert_int_equal(take(&given, &own), OT_OK);
    assert_int_equal(own.size, sizeof own);
    assert_string_equal(own.third, "nine");
    given.fourth = 256; // its second byte
    assert_int_equal(take(&given, &own), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(),
                        "ot_some_options: size is 40 and byte 33 is set, but this version of the "
                        "library knows 32 bytes: leave fields of later versions 0; begin with "
                        "OT_SOME_OPTIONS_INIT");
}

static void a_size_that_is_none_is_refused_with_the_remedy(void **state)
{
    ours given = defaults, own;

    (void)state;
    given.size = 0;
    assert_int_equal(take(&given, &own), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(),
                        "ot_some_options: size is 0, expected 32; begin with OT_SOME_OPTIONS_INIT");
}

static void an_array_is_walked_by_the_size_of_its_first_element(void **state)
{
    earlier given[3] = {{sizeof given[0], 7}, {sizeof given[0], 8}, {sizeof given[0], 9}};
    ours own[3];

    (void)state;
    assert_int_equal(
        ot__options_read_all("ot_some_options", given, 3, &defaults, own, sizeof own[0]), OT_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(own[i].first, 7 + i);
        assert_string_equal(own[i].third, "three");
    }
    given[2].size = sizeof(ours);
    assert_int_equal(
        ot__options_read_all("ot_some_options", given, 3, &defaults, own, sizeof own[0]),
        OT_ERR_INVALID);
    assert_string_equal(ot_error_message(),
                        "ot_some_options: size of element 2 is 32, of the first 16; begin with "
                        "OT_SOME_OPTIONS_INIT");
}

static void only_what_the_caller_knows_is_written_back(void **state)
{
    const ours own = {sizeof own, 10, 11, "twelve"};
    earlier to[2] = {{sizeof to[0], 7}, {sizeof to[0], 8}};
    later big = {{sizeof big, 1, 2, "three"}, 4};

    (void)state;
    ot__options_write(&to[0], &own, sizeof own);
    assert_int_equal(to[0].size, sizeof to[0]);
    assert_int_equal(to[0].first, 10);
    assert_int_equal(to[1].first, 8);
    ot__options_write(&big, &own, sizeof own);
    assert_int_equal(big.known.size, sizeof big);
    assert_string_equal(big.known.third, "twelve");
    assert_int_equal(big.fourth, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_there_are_the_defaults),
        cmocka_unit_test(what_an_earlier_caller_lacks_has_its_default),
        cmocka_unit_test(a_later_caller_may_leave_later_fields_alone),
        cmocka_unit_test(a_size_that_is_none_is_refused_with_the_remedy),
        cmocka_unit_test(an_array_is_walked_by_the_size_of_its_first_element),
        cmocka_unit_test(only_what_the_caller_knows_is_written_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
