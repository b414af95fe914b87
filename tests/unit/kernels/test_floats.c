// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 to f32 and back by every instruction set, against the conversion of single elements.
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = 1 << 16, ODD = 37 };

static const ot_dtype types[] = {OT_F16, OT_BF16};

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void every_number_widens_to_itself(void **state)
{
    static uint16_t x[ALL];
    static float y[ALL];

    (void)state;
    for (int k = 0; k < ALL; k++)
        x[k] = (uint16_t)k;
    for (ot__isa isa = OT__ISA_BASE; isa <= OT__ISA_LAST; isa++)
        for (size_t t = 0; t < OT_COUNT(types); t++) {
            ot__isa_limit(isa);
            ot__floats_best()->widen[types[t]](y, x, ALL);
            for (int k = 0; k < ALL; k++) {
                float want;

                ot__convert(&want, OT_F32, &x[k], types[t], 1);
                if (isnan(want))
                    assert_true(isnan(y[k]));
                else
                    assert_int_equal(bits_of(y[k]), bits_of(want));
            }
        }
    ot__isa_limit(OT__ISA_LAST);
}

// Numbers of every size, with each of the patterns behind what is kept that rounding looks at.
static float sample(int k)
{
    static const uint32_t low[] = {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x7fff, 0x8000,
                                   0x8001, 0xffff, 0x3000, 0x3001, 0x2fff, 0x5000, 0x4fff, 0x6001};
    const uint32_t bits = (uint32_t)k << 16 | low[(k >> 3) % (int)OT_COUNT(low)];
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static void numbers_are_rounded_to_the_nearest(void **state)
{
    static float x[ALL];
    static uint16_t y[ALL];

    (void)state;
    for (int k = 0; k < ALL; k++)
        x[k] = sample(k);
    for (ot__isa isa = OT__ISA_BASE; isa <= OT__ISA_LAST; isa++)
        for (size_t t = 0; t < OT_COUNT(types); t++) {
            ot__isa_limit(isa);
            ot__floats_best()->narrow[types[t]](y, x, ALL);
            for (int k = 0; k < ALL; k++) {
                const uint16_t want =
                    types[t] == OT_F16 ? ot__f32_to_f16(x[k]) : ot__f32_to_bf16(x[k]);

                assert_int_equal(y[k], want);
            }
        }
    ot__isa_limit(OT__ISA_LAST);
}

static void nothing_behind_the_last_element_is_written(void **state)
{
    const uint16_t x[ODD + 1] = {0x3c00};

    (void)state;
    for (ot__isa isa = OT__ISA_BASE; isa <= OT__ISA_LAST; isa++)
        for (size_t t = 0; t < OT_COUNT(types); t++)
            for (int n = 0; n <= ODD; n++) {
                float wide[ODD + 1];
                uint16_t narrow[ODD + 1];

                wide[n] = -1.0F;
                narrow[n] = 0x1234;
                ot__isa_limit(isa);
                ot__floats_best()->widen[types[t]](wide, x, n);
                ot__floats_best()->narrow[types[t]](narrow, wide, n);
                assert_true(wide[n] == -1.0F);
                assert_int_equal(narrow[n], 0x1234);
            }
    ot__isa_limit(OT__ISA_LAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_widens_to_itself),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest),
        cmocka_unit_test(nothing_behind_the_last_element_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
