// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

// Messages and digests of FIPS 180-4's examples; those of 55 to 64 letters are sha1sum's.
static void digests_are_those_of_the_standard(void **state)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "cef734ba81a024479e09eb5a75b6ddae62e6abf1"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "901305367c259952f4e7af8323f480d59f81335b"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "0ddc4e0cccd9a12850deb5abb0853a4425559fec"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163"},

    };
    char digest[OT_SHA1_LENGTH + 1];
    char *million = malloc(1000000);

    (void)state;
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        ot__sha1_text(known[i].text, strlen(known[i].text), digest);
        assert_string_equal(digest, known[i].digest);
    }
    assert_non_null(million);
    memset(million, 'a', 1000000);
    ot__sha1_text(million, 1000000, digest);
    assert_string_equal(digest, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    free(million);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
