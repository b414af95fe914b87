// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/base.h"

// ---- reading ----

static void assert_refused(const char *text, const char *message)
{
    json_t *json;

    assert_int_equal(ot__json_read(text, strlen(text), &json), OT_ERR_FORMAT);
    assert_null(json);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("%s: '%s', expected '%s'", text, ot_error_message(), message);
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1, column 0: "},
        {"{\"a\": 1,\n \"b\": }", "line 2, column 7: "},
        {"{\"a\": 1} x", "line 1, column 10: end of file expected"},
        {"{\"a\": 1}{}", "line 1, column 9: "},
        {"{\"a\": 1, \"b\": 2,\n\"a\": 3}", "line 2, column 3: duplicate object key"},
        {"[NaN]", "line 1, column 4: invalid token"},
        {"[Infinity]", "invalid token"},
        {"[1e999]", "real number overflow"},
        {"[9223372036854775808]", "too big integer"},
        {"[\"\\u0000\"]", "\\u0000"},
        {"[\"\\ud800\"]", "invalid Unicode"},
        {"[\"\xff\"]", "unable to decode byte 0xff"},
        {"['a']", "invalid token"},
        {"// note\n[1]", "invalid token"},
        {"[1,]", "line 1, column 4: "},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].message);
}

static void nesting_is_limited_outside_of_strings(void **state)
{
    char text[256];
    json_t *json;

    (void)state;
    memset(text, '[', OT_JSON_DEPTH_MAX);
    memset(text + OT_JSON_DEPTH_MAX, ']', OT_JSON_DEPTH_MAX);
    text[2 * OT_JSON_DEPTH_MAX] = '\0';
    assert_int_equal(ot__json_read(text, strlen(text), &json), OT_OK);
    json_decref(json);
    assert_refused("[[[[[[[[\n[[[[[[[[ [1]]]]]]]]]]]]]]]]]", "line 2, column 10: more than 16");
    assert_refused("[{\"a\":[{\"a\":[{\"a\":[{\"a\":[{\"a\":[{\"a\":[{\"a\":[{\"a\":[",
                   "more than 16");
    snprintf(text, sizeof text, "[\"%s \\\" %s\"]", "[[[[[[[[[[[[[[[[[[[[", "{{{{{{{{{{{{{{{{{{{{");
    assert_int_equal(ot__json_read(text, strlen(text), &json), OT_OK);
    json_decref(json);
}

static void a_text_may_have_so_many_bytes(void **state)
{
    char *text = malloc(OT_JSON_BYTES_MAX + 1);
    json_t *json;

    (void)state;
    assert_non_null(text);
    memset(text, ' ', OT_JSON_BYTES_MAX + 1);
    text[0] = '1';
    assert_int_equal(ot__json_read(text, OT_JSON_BYTES_MAX, &json), OT_OK);
    json_decref(json);
    assert_int_equal(ot__json_read(text, OT_JSON_BYTES_MAX + 1, &json), OT_ERR_FORMAT);
    assert_string_equal(ot_error_message(), "has 1048577 bytes of JSON, expected at most 1048576");
    free(text);
}

static void an_integer_is_none_of_the_numbers_with_a_fraction(void **state)
{
    json_t *json;

    (void)state;
    assert_int_equal(ot__json_read("[1, 1.0, true]", 14, &json), OT_OK);
    assert_true(json_is_integer(json_array_get(json, 0)));
    assert_true(json_is_real(json_array_get(json, 1)));
    assert_true(json_is_true(json_array_get(json, 2)));
    json_decref(json);
}

// ---- writing ----

static void write_all(ot__buf *out)
{
    ot__json_open(out, NULL, '{');
    ot__json_string(out, "a\"\\b", "x\ny\tz\x7f \xc3\xa9 \xff");
    ot__json_string(out, "none", NULL);
    ot__json_open(out, "list", '[');
    ot__json_int(out, NULL, INT64_MIN);
    ot__json_float(out, NULL, 0.1);
    ot__json_float(out, NULL, 1);
    ot__json_float(out, NULL, 1e300);
    ot__json_float(out, NULL, NAN);
    ot__json_float(out, NULL, -INFINITY);
    ot__json_open(out, NULL, '{');
    ot__json_close(out, '}');
    ot__json_bool(out, NULL, true);
    ot__json_close(out, ']');
    ot__json_raw(out, "raw", "[1,2]");
    ot__json_close(out, '}');
}

static const char all[] = "{\"a\\\"\\\\b\":\"x\\ny\\tz\\u007f \xc3\xa9 \\udcff\",\"none\":null,"
                          "\"list\":[-9223372036854775808,0.1,1.0,1e+300,null,null,{},true],"
                          "\"raw\":[1,2]}";

static void values_are_written_in_one_line_with_commas_between(void **state)
{
    ot__buf out = {0};

    (void)state;
    write_all(&out);
    assert_string_equal(out.data, all);
    ot__buf_text(&out, "\n");
    ot__json_int(&out, NULL, 1); // the next line begins anew
    assert_string_equal(out.data + strlen(all), "\n1");
    ot__buf_deinit(&out);
}

static void numbers_read_back_the_same(void **state)
{
    static const double values[] = {
        0.1,        -0.0, 1.0 / 3,           5e-324, 1.7976931348623157e308, 1e15,
        123456789., 2e16, 9007199254740993., -1e-7};
    ot__buf out = {0};
    json_t *json;

    (void)state;
    ot__json_open(&out, NULL, '[');
    for (size_t i = 0; i < OT_COUNT(values); i++)
        ot__json_float(&out, NULL, values[i]);
    ot__json_close(&out, ']');
    assert_int_equal(ot__json_read(out.data, out.length, &json), OT_OK);
    for (size_t i = 0; i < OT_COUNT(values); i++) {
        const json_t *number = json_array_get(json, i);

        assert_true(json_is_real(number));
        assert_true(json_real_value(number) == values[i]);
    }
    json_decref(json);
    ot__buf_deinit(&out);
}

static void every_allocation_of_the_writer_may_fail(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n++) {
        ot__buf out = {0};

        ot__alloc_fail_after(n);
        write_all(&out);
        ot__alloc_fail_after(-1);
        st = ot__buf_status(&out);
        ot__buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(nesting_is_limited_outside_of_strings),
        cmocka_unit_test(a_text_may_have_so_many_bytes),
        cmocka_unit_test(an_integer_is_none_of_the_numbers_with_a_fraction),
        cmocka_unit_test(values_are_written_in_one_line_with_commas_between),
        cmocka_unit_test(numbers_read_back_the_same),
        cmocka_unit_test(every_allocation_of_the_writer_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
