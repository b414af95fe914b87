// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

// RFC 3720, B.4, and the check value of the catalogues of CRCs.
static void the_vectors_of_rfc_3720(void **state)
{
    unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
    static const unsigned char command[48] = {
        0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };

    (void)state;
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++) {
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
    }
    for (int way = 0; way < ot__crc32c_ways(); way++) {
        assert_int_equal(ot__crc32c_by(way, 0, zeros, 32), 0x8a9136aa);
        assert_int_equal(ot__crc32c_by(way, 0, ones, 32), 0x62a8ab43);
        assert_int_equal(ot__crc32c_by(way, 0, up, 32), 0x46dd794e);
        assert_int_equal(ot__crc32c_by(way, 0, down, 32), 0x113fdb5c);
        assert_int_equal(ot__crc32c_by(way, 0, command, 48), 0xd9963a56);
        assert_int_equal(ot__crc32c_by(way, 0, "123456789", 9), 0xe3069283);
        assert_int_equal(ot__crc32c_by(way, 0, "", 0), 0);
    }
}

// Bit by bit, as the polynomial says.
static uint32_t slow(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < 8 * n; i++) {
        const uint32_t bit = (crc ^ ((uint32_t)p[i / 8] >> (i % 8))) & 1;

        crc = (crc >> 1) ^ (bit ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void every_length_and_alignment_and_in_parts(void **state)
{
    unsigned char bytes[80];

    (void)state;
    for (int i = 0; i < 80; i++)
        bytes[i] = (unsigned char)(i * 37 + i * i);
    for (int way = 0; way < ot__crc32c_ways(); way++)
        for (size_t start = 0; start < 9; start++)
            for (size_t n = 0; start + n <= sizeof bytes; n++) {
                const uint32_t first = ot__crc32c_by(way, 0, bytes + start, n / 3);

                assert_int_equal(ot__crc32c_by(way, 0, bytes + start, n), slow(bytes + start, n));
                assert_int_equal(ot__crc32c_by(way, first, bytes + start + n / 3, n - n / 3),
                                 slow(bytes + start, n));
                assert_int_equal(ot__crc32c(0, bytes + start, n), slow(bytes + start, n));
            }
}

static void of_two_parts_without_their_bytes(void **state)
{
    unsigned char bytes[300];
    const uint32_t zeros = 0x8a9136aa; // of 32, RFC 3720

    (void)state;
    for (int i = 0; i < 300; i++)
        bytes[i] = (unsigned char)(i * 37 + i * i);
    for (size_t n = 0; n <= sizeof bytes; n++)
        assert_int_equal(
            ot__crc32c_join(slow(bytes, n), slow(bytes + n, sizeof bytes - n), sizeof bytes - n),
            slow(bytes, sizeof bytes));
    assert_int_equal(ot__crc32c_join(0, zeros, 32), zeros);
    // 2^40 zeros, by halves.
    for (uint64_t n = 32, crc = zeros; n <= (uint64_t)1 << 40; n *= 2) {
        const uint32_t twice = ot__crc32c_join((uint32_t)crc, (uint32_t)crc, n);

        assert_int_equal(ot__crc32c_join(twice, (uint32_t)crc, n),
                         ot__crc32c_join((uint32_t)crc, twice, 2 * n));
        crc = twice;
    }
}

// Long enough for stretches that go side by side.
static void long_ones(void **state)
{
    enum { MOST = 3 * 4096 * 2 + 21, STEP = 4093 };
    static unsigned char bytes[MOST + 1];

    (void)state;
    for (int i = 0; i <= MOST; i++)
        bytes[i] = (unsigned char)(i * 37 + i / 251 + i * i);
    for (int way = 0; way < ot__crc32c_ways(); way++)
        for (size_t n = MOST; n > STEP; n -= STEP)
            for (size_t start = 0; start < 2; start++)
                assert_int_equal(ot__crc32c_by(way, 0, bytes + start, n), slow(bytes + start, n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_rfc_3720),
        cmocka_unit_test(every_length_and_alignment_and_in_parts),
        cmocka_unit_test(of_two_parts_without_their_bytes),
        cmocka_unit_test(long_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
