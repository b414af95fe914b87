// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void an_id_tells_contents_apart(void **state)
{
    char bytes[40] = {0};
    const uint64_t zeros = ot__id_mix(0, bytes, sizeof bytes);

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) { // every byte counts, in words and behind them
        bytes[i] = 1;
        assert_true(ot__id_mix(0, bytes, sizeof bytes) != zeros);
        bytes[i] = 0;
        assert_true(ot__id_mix(0, bytes, i) != zeros); // and so does the length
    }
    assert_true(ot__id_mix(0, bytes, sizeof bytes) == zeros);
    assert_true(ot__id_mix(1, bytes, sizeof bytes) != zeros);
    assert_true(ot__id_mix_word(0, 1) != ot__id_mix_word(0, 2));
}

static void its_text_has_all_digits_and_is_recognised(void **state)
{
    char text[OT_HEX_ID_LENGTH + 1];

    (void)state;
    ot__id_text(0x1f, text);
    assert_string_equal(text, "000000000000001f");
    assert_true(ot__is_hex_id(text));
    assert_true(ot__is_hex_id("0123456789abcdef.data"));
    assert_false(ot__is_hex_id("0123456789abcde.data"));
    assert_false(ot__is_hex_id("0123456789ABCDEF"));
    assert_false(ot__is_hex_id(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_tells_contents_apart),
        cmocka_unit_test(its_text_has_all_digits_and_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
