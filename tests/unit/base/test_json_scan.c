// SPDX-License-Identifier: Apache-2.0
// The scanner takes what jansson takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/base.h"

static ot_status skip_all(const char *text, size_t n_bytes)
{
    char *own = malloc(n_bytes + (n_bytes == 0)); // a read past the end shows
    ot__json_scan scan;
    ot_status st;

    memcpy(own, text, n_bytes);
    st = ot__json_scan_init(&scan, own, n_bytes);
    OT_THEN(st, ot__json_scan_skip(&scan));
    OT_THEN(st, ot__json_scan_end(&scan));
    ot__json_scan_deinit(&scan);
    free(own);
    return st;
}

static const char *const documents[] = {
    "{\"a\": [1, -2.5e+3, 0, 0.125E-7, true, false, null], \"b\": {\"c\": \"text\"}, \"d\": {}}",
    "[\"\\u00e9\\ud83d\\ude00\", \"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"gr\xc3\xb6\xc3\x9f\x65\", [[]]]",
    " \n\t\r{ } ",
    "\"one\"",
    "12",
};

// One to three bytes of a document become others.
static void what_is_taken_is_what_jansson_takes(void **state)
{
    static const char others[] = "{}[]\",:\\ue0d8a-+.1 \n\x01\xc3\xa9\xff/tfn";
    const ot__rng_key key = ot__rng_key_make(31, 0, 0, "");
    uint64_t n_drawn = 0;
    int n_taken = 0, n_refused = 0;

#define BELOW(limit) ((size_t)(ot__rng_uniform(key, n_drawn++) * (float)(limit)))
    (void)state;
    for (int i = 0; i < 30000; i++) {
        const char *document = documents[BELOW(OT_COUNT(documents))];
        const size_t length = strlen(document), n_changes = BELOW(4);
        char text[128];
        json_error_t error;
        json_t *json;

        memcpy(text, document, length + 1);
        for (size_t k = 0; k < n_changes; k++) {
            const size_t at = BELOW(length);

            text[at] = others[BELOW(sizeof others - 1)];
        }
        json = json_loadb(text, length, JSON_DECODE_ANY, &error);
        if (json == NULL && json_error_code(&error) == json_error_numeric_overflow)
            continue;
        if ((skip_all(text, length) == OT_OK) != (json != NULL))
            fail_msg("%s: jansson says '%s', the scanner '%s'", text,
                     json != NULL ? "" : error.text, json != NULL ? ot_error_message() : "");
        n_taken += json != NULL;
        n_refused += json == NULL;
        json_decref(json);
    }
    assert_true(n_taken > 1000 && n_refused > 1000);
#undef BELOW
}

static void strings_are_those_of_jansson(void **state)
{
    json_t *json = json_loads(documents[1], 0, NULL);
    ot__json_scan scan;
    const char *text;
    bool has_more;

    (void)state;
    assert_int_equal(ot__json_scan_init(&scan, documents[1], strlen(documents[1])), OT_OK);
    assert_int_equal(ot__json_scan_open(&scan, '['), OT_OK);
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(ot__json_scan_next(&scan, &text, &has_more), OT_OK);
        assert_true(has_more);
        assert_int_equal(ot__json_scan_string(&scan, &text), OT_OK);
        assert_string_equal(text, json_string_value(json_array_get(json, k)));
    }
    ot__json_scan_deinit(&scan);
    json_decref(json);
}

static void members_come_one_after_the_other(void **state)
{
    static const char document[] = "{\"a\": 7, \"b\": [1, 2], \"c\": \"x\"}";
    ot__json_scan scan;
    const char *text;
    uint64_t value;
    bool has_more;

    (void)state;
    assert_int_equal(ot__json_scan_init(&scan, document, strlen(document)), OT_OK);
    assert_int_equal(ot__json_scan_kind(&scan), '{');
    assert_int_equal(ot__json_scan_open(&scan, '{'), OT_OK);
    assert_int_equal(ot__json_scan_next(&scan, &text, &has_more), OT_OK);
    assert_string_equal(text, "a");
    assert_int_equal(ot__json_scan_count(&scan, 7, &value), OT_OK);
    assert_int_equal(value, 7);
    assert_int_equal(ot__json_scan_next(&scan, &text, &has_more), OT_OK);
    assert_string_equal(text, "b");
    assert_int_equal(ot__json_scan_kind(&scan), '[');
    assert_int_equal(ot__json_scan_skip(&scan), OT_OK);
    assert_int_equal(ot__json_scan_next(&scan, &text, &has_more), OT_OK);
    assert_string_equal(text, "c");
    assert_int_equal(ot__json_scan_kind(&scan), '"');
    assert_int_equal(ot__json_scan_string(&scan, &text), OT_OK);
    assert_string_equal(text, "x");
    assert_int_equal(ot__json_scan_next(&scan, &text, &has_more), OT_OK);
    assert_false(has_more);
    assert_int_equal(ot__json_scan_kind(&scan), '\0');
    assert_int_equal(ot__json_scan_end(&scan), OT_OK);
    ot__json_scan_deinit(&scan);
}

static void counts_are_whole_and_within_their_limit(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        const char *message; // NULL: taken
    } cases[] = {
        {"0", 0, NULL},
        {"18446744073709551615", UINT64_MAX, NULL},
        {"18446744073709551616", UINT64_MAX, "a number above 18446744073709551615"},
        {"10", 9, "a number above 9"},
        {"100", 10, "a number above 10"},
        {"-1", 9, "byte 0: expected a whole number from 0 on"},
        {"1.5", 9, "byte 1: expected a whole number"},
        {"1e1", 99, "expected a whole number"},
        {"01", 9, "expected a whole number"},
        {"", 9, "expected a whole number"},
        {"\"1\"", 9, "expected a whole number"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot__json_scan scan;
        uint64_t value;
        ot_status st;

        assert_int_equal(ot__json_scan_init(&scan, cases[i].text, strlen(cases[i].text)), OT_OK);
        st = ot__json_scan_count(&scan, cases[i].max, &value);
        assert_int_equal(st, cases[i].message == NULL ? OT_OK : OT_ERR_FORMAT);
        if (st != OT_OK && strstr(ot_error_message(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].text, ot_error_message());
        if (st == OT_OK)
            assert_true(value == strtoull(cases[i].text, NULL, 10));
    }
}

static void too_many_brackets_are_refused(void **state)
{
    char text[2 * OT_JSON_DEPTH_MAX + 2];

    (void)state;
    for (int n = OT_JSON_DEPTH_MAX; n <= OT_JSON_DEPTH_MAX + 1; n++) {
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        assert_int_equal(skip_all(text, 2 * (size_t)n),
                         n == OT_JSON_DEPTH_MAX ? OT_OK : OT_ERR_FORMAT);
    }
    assert_non_null(strstr(ot_error_message(), "more than 16 objects and arrays"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_what_jansson_takes),
        cmocka_unit_test(strings_are_those_of_jansson),
        cmocka_unit_test(members_come_one_after_the_other),
        cmocka_unit_test(counts_are_whole_and_within_their_limit),
        cmocka_unit_test(too_many_brackets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
