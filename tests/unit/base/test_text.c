// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void only_what_may_be_shown_is_left(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"fc1.weight", "fc1.weight"},
        {"\t\r\n\x01\x1f\x7f", "??????"},
        {"\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80", "\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80"},
        {"\xc2\x80\xc2\x9f", "????"},                             // control characters above ASCII
        {"\xc2\xa0", "\xc2\xa0"},                                 // the first character behind them
        {"\xc0\xaf\xc1\xbf", "????"},                             // '/' and more in two bytes
        {"\xe0\x80\xaf", "???"},                                  // '/' in three
        {"\xed\xa0\x80", "???"},                                  // a surrogate
        {"\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"}, // next to the surrogates
        {"\xf4\x90\x80\x80", "????"},                             // above U+10FFFF
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},                 // U+10FFFF
        {"\xf0\x8f\xbf\xbf", "????"},                             // U+FFFF in four
        {"\xe4\xb8", "??"},                                       // cut short
        {"\xe4\xb8x", "??x"},
        {"\x80\xbf\xfe\xff", "????"},
        {"a\xe2\x80\xae"
         "b",
         "a???b"}, // turns the direction of writing
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", cases[i][0]);
        ot__text_printable(text);
        assert_string_equal(text, cases[i][1]);
    }
}

static void patterns_match_whole_names(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "abc", true},
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"abcd", "abc", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"?", "", false},
        {"*.weight", "fc.weight", true},
        {"*.weight", "fc.bias", false},
        {"fc*", "fc", true},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b*", "xxbxxaxx", false},
        {"a**b", "ab", true},
        {"*ab", "aab", true},
        {"*ab", "abab", true},
        {"a*b?d", "abbbcd", true},
        {"**", "x", true},
        {"a*", "ba", false},
        {"[a]", "a", false},
        {"[a]", "[a]", true},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        assert_int_equal(ot__name_matches(cases[i].pattern, cases[i].name), cases[i].matches);
}

static void a_pattern_of_many_stars_is_answered_at_once(void **state)
{
    char name[2001] = {0}, pattern[201] = {0};

    (void)state;
    memset(name, 'a', sizeof(name) - 1);
    for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[sizeof(pattern) - 2] = 'b'; // takes time exponential in the stars when done naively
    assert_false(ot__name_matches(pattern, name));
}

static void starts_and_ends_are_found(void **state)
{
    (void)state;
    assert_true(ot__starts_with("model.onnx", "model"));
    assert_true(ot__starts_with("model", ""));
    assert_false(ot__starts_with("mod", "model"));
    assert_true(ot__ends_with("model.onnx", ".onnx"));
    assert_true(ot__ends_with("x", ""));
    assert_false(ot__ends_with("onnx", ".onnx"));
}

static void integers_are_read_whole_or_not_at_all(void **state)
{
    static const char *const bad[] = {"",
                                      " 1",
                                      "\t1",
                                      "\n1",
                                      "1 ",
                                      "1x",
                                      "0x10",
                                      "1.0",
                                      "--1",
                                      "+-1",
                                      "+",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "nan"};
    int64_t value;

    (void)state;
    assert_true(ot__parse_int("0", &value) && value == 0);
    assert_true(ot__parse_int("-12", &value) && value == -12);
    assert_true(ot__parse_int("+12", &value) && value == 12);
    assert_true(ot__parse_int("010", &value) && value == 10);
    assert_true(ot__parse_int("9223372036854775807", &value) && value == INT64_MAX);
    assert_true(ot__parse_int("-9223372036854775808", &value) && value == INT64_MIN);
    for (size_t i = 0; i < OT_COUNT(bad); i++) {
        value = 99;
        assert_false(ot__parse_int(bad[i], &value));
        assert_int_equal(value, 0);
    }
}

static void floats_are_read_whole_or_not_at_all(void **state)
{
    static const char *const bad[] = {"",    " 1", "\t1", "1 ",    "1x",     "1,5",
                                      "--1", ".",  "e5",  "1e999", "-1e999", "one"};
    double value;

    (void)state;
    assert_true(ot__parse_float("1.5", &value) && value == 1.5);
    assert_true(ot__parse_float("-.5e-3", &value) && value == -0.0005);
    assert_true(ot__parse_float("7", &value) && value == 7);
    assert_true(ot__parse_float("1e-400", &value) && value == 0);
    assert_true(ot__parse_float("4.9406564584124654e-324", &value) && value == 0x1p-1074);
    assert_true(ot__parse_float("inf", &value) && value == INFINITY);
    assert_true(ot__parse_float("-inf", &value) && value == -INFINITY);
    assert_true(ot__parse_float("nan", &value) && isnan(value));
    for (size_t i = 0; i < OT_COUNT(bad); i++) {
        value = 99;
        assert_false(ot__parse_float(bad[i], &value));
        assert_true(value == 0);
    }
}

static void assert_prints(double value, bool is_f32, const char *expected)
{
    ot__buf buf = {0};

    ot__buf_float(&buf, value, is_f32);
    assert_string_equal(buf.data, expected);
    ot__buf_deinit(&buf);
}

static void floats_are_printed_in_the_shortest_form(void **state)
{
    (void)state;
    assert_prints(0, false, "0");
    assert_prints(-0.0, false, "-0");
    assert_prints(1, true, "1");
    assert_prints(0.1, false, "0.1");
    assert_prints((double)0.1f, true, "0.1");
    assert_prints((double)0.1f, false, "0.10000000149011612");
    assert_prints(0.1 + 0.2, false, "0.30000000000000004");
    assert_prints((double)(1.0f / 3), true, "0.33333334");
    assert_prints((double)FLT_MAX, true, "3.4028235e+38");
    assert_prints(DBL_MAX, false, "1.7976931348623157e+308");
    assert_prints(0x1p-149, true, "1e-45");
    assert_prints(0x1p-1074, false, "5e-324");
    assert_prints(INFINITY, false, "inf");
    assert_prints(-INFINITY, true, "-inf");
    assert_prints(NAN, false, "nan");
}

// The least number of digits that reads back as the same number is the one that is printed.
static void assert_shortest(double value, bool is_f32)
{
    ot__buf buf = {0};
    char expected[40];
    int digits = 0;

    do {
        snprintf(expected, sizeof(expected), "%.*g", ++digits, value);
    } while (is_f32 ? (double)strtof(expected, NULL) != value : strtod(expected, NULL) != value);
    ot__buf_float(&buf, value, is_f32);
    assert_string_equal(buf.data, expected);
    ot__buf_deinit(&buf);
}

static void printed_floats_read_back_the_same(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        const ot__rng_key key = ot__rng_key_make(1, 2, 3, "text");
        uint32_t words[4];
        double f64;
        float f32;

        ot__rng_block(key, (uint64_t)i, words);
        random = (uint64_t)words[0] << 32 | words[1];
        memcpy(&f64, &random, sizeof(f64));
        memcpy(&f32, &words[2], sizeof(f32));
        if (i % 4 == 0) { // subnormal numbers too
            random &= UINT64_C(0x800fffffffffffff);
            memcpy(&f64, &random, sizeof(f64));
            words[2] &= 0x807fffff;
            memcpy(&f32, &words[2], sizeof(f32));
        }
        if (isfinite(f64))
            assert_shortest(f64, false);
        if (isfinite(f32))
            assert_shortest((double)f32, true);
    }
}

static void the_locale_of_the_program_does_not_matter(void **state)
{
    static const char *const with_comma[] = {"de_DE.UTF-8", "de_DE.utf8",  "fr_FR.UTF-8",
                                             "fr_FR.utf8",  "es_ES.UTF-8", "de_DE"};
    bool found = false;
    double value;
    ot__buf buf = {0};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(with_comma) && !found; i++)
        found = setlocale(LC_ALL, with_comma[i]) != NULL;
    if (!found || strcmp(localeconv()->decimal_point, ",") != 0)
        skip(); // no such locale is installed
    ot__buf_float(&buf, 0.5, false);
    const bool reads = ot__parse_float("1.5", &value);
    const bool reads_comma = ot__parse_float("1,5", &(double){0});
    setlocale(LC_ALL, "C");
    assert_string_equal(buf.data, "0.5");
    assert_true(reads && value == 1.5);
    assert_false(reads_comma);
    ot__buf_deinit(&buf);
}

static void characters_are_written_and_found(void **state)
{
    static const struct {
        uint32_t code;
        const char *text;
    } cases[] = {{0x7f, "\x7f"},
                 {0x80, "\xc2\x80"},
                 {0x7ff, "\xdf\xbf"},
                 {0x800, "\xe0\xa0\x80"},
                 {0xffff, "\xef\xbf\xbf"},
                 {0x10000, "\xf0\x90\x80\x80"},
                 {0x10ffff, "\xf4\x8f\xbf\xbf"}};
    uint32_t code;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        const size_t n = strlen(cases[i].text);
        ot__buf buf = {0};

        ot__utf8_append(&buf, cases[i].code);
        assert_string_equal(buf.data, cases[i].text);
        assert_int_equal(ot__utf8_bad_byte(buf.data, n), n);
        if (n > 1)
            assert_int_equal(ot__utf8_bad_byte(buf.data, n - 1), 0); // ends within
        ot__buf_deinit(&buf);
    }
    assert_int_equal(ot__hex4_read("00aF1", 5, &code), 4);
    assert_int_equal(code, 0xaf);
    assert_int_equal(ot__hex4_read("12g4", 4, &code), 2);
    assert_int_equal(ot__hex4_read("1234", 3, &code), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_may_be_shown_is_left),
        cmocka_unit_test(patterns_match_whole_names),
        cmocka_unit_test(a_pattern_of_many_stars_is_answered_at_once),
        cmocka_unit_test(starts_and_ends_are_found),
        cmocka_unit_test(integers_are_read_whole_or_not_at_all),
        cmocka_unit_test(floats_are_read_whole_or_not_at_all),
        cmocka_unit_test(floats_are_printed_in_the_shortest_form),
        cmocka_unit_test(printed_floats_read_back_the_same),
        cmocka_unit_test(characters_are_written_and_found),
        cmocka_unit_test(the_locale_of_the_program_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
