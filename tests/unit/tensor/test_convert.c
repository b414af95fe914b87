// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

// What a pattern stands for, by the definition of the format: an independent way to the same value.
typedef struct definition {
    ot_dtype dtype;
    int n_exponent, n_mantissa, bias;
    uint32_t most; // the largest finite pattern; smaller ones are all finite
    double largest, smallest;
    uint32_t above; // what larger numbers become
    uint32_t nan;
} definition;

// Largest, smallest positive and special values as ONNX's documentation of the formats states them.
static const definition definitions[] = {
    {OT_F16, 5, 10, 15, 0x7bff, 65504, 0x1p-24, 0x7c00, 0x7e00},
    {OT_BF16, 8, 7, 127, 0x7f7f, 0x1.fep127, 0x1p-133, 0x7f80, 0x7fc0},
    {OT_F8E4M3FN, 4, 3, 7, 0x7e, 448, 0x1p-9, 0x7e, 0x7f},
    {OT_F8E4M3FNUZ, 4, 3, 8, 0x7f, 240, 0x1p-10, 0x7f, 0x80},
    {OT_F8E5M2, 5, 2, 15, 0x7b, 57344, 0x1p-16, 0x7b, 0x7f},
    {OT_F8E5M2FNUZ, 5, 2, 16, 0x7f, 57344, 0x1p-17, 0x7f, 0x80},
};

static double value_of(const definition *d, uint32_t pattern)
{
    const int exponent = (int)(pattern >> d->n_mantissa);
    const double fraction = (double)(pattern % (1u << d->n_mantissa)) / (1 << d->n_mantissa);

    if (exponent == 0)
        return fraction * pow(2, 1 - d->bias);
    return (1 + fraction) * pow(2, exponent - d->bias);
}

static uint32_t pattern_from(const definition *d, ot_dtype from, const void *value)
{
    uint16_t wide = 0;
    uint8_t narrow = 0;
    const bool is_wide = ot_dtype_size(d->dtype) == 2;

    assert_true(ot__convert(is_wide ? (void *)&wide : &narrow, d->dtype, value, from, 1));
    return is_wide ? wide : narrow;
}

static uint32_t pattern_of(const definition *d, double value)
{
    return pattern_from(d, OT_F64, &value);
}

static double read_pattern(const definition *d, uint32_t pattern)
{
    const uint16_t wide = (uint16_t)pattern;
    const uint8_t narrow = (uint8_t)pattern;
    double value = -1;

    assert_true(ot__convert(
        &value, OT_F64, ot_dtype_size(d->dtype) == 2 ? (const void *)&wide : &narrow, d->dtype, 1));
    return value;
}

static uint32_t sign_of(const definition *d)
{
    return 1u << (d->n_exponent + d->n_mantissa);
}

static void every_pattern_reads_as_the_value_it_stands_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(definitions); i++) {
        const definition *d = &definitions[i];

        assert_true(value_of(d, d->most) == d->largest);
        assert_true(value_of(d, 1) == d->smallest);
        for (uint32_t p = 0; p <= d->most; p++) {
            assert_true(read_pattern(d, p) == value_of(d, p));
            if (p > 0) // without one, minus zero is NaN
                assert_true(read_pattern(d, p | sign_of(d)) == -value_of(d, p));
        }
        assert_true(isnan(read_pattern(d, d->nan)));
    }
    assert_true(read_pattern(&definitions[0], 0xfc00) == -INFINITY);
    assert_true(read_pattern(&definitions[1], 0x7f80) == INFINITY);
    assert_true(read_pattern(&definitions[4], 0x7c) == INFINITY);
    assert_true(isnan(read_pattern(&definitions[2], 0xff)));
    assert_true(isnan(read_pattern(&definitions[4], 0x7d)));
}

// On a value, just below, on and just above the middle between two.
static void writing_rounds_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(definitions); i++) {
        const definition *d = &definitions[i];

        for (uint32_t p = 0; p < d->most; p++) {
            const double middle = (value_of(d, p) + value_of(d, p + 1)) / 2;
            const uint32_t sign = p > 0 ? sign_of(d) : 0;

            assert_int_equal(pattern_of(d, value_of(d, p)), p);
            assert_int_equal(pattern_of(d, middle), p + (p & 1));
            assert_int_equal(pattern_of(d, nextafter(middle, 0)), p);
            assert_int_equal(pattern_of(d, nextafter(middle, INFINITY)), p + 1);
            if (p > 0)
                assert_int_equal(pattern_of(d, -middle), sign | (p + (p & 1)));
        }
        assert_int_equal(pattern_of(d, d->largest), d->most);
    }
}

static void numbers_beyond_the_largest_become_infinity_or_saturate(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(definitions); i++) {
        const definition *d = &definitions[i];
        // Half a step above the largest is where rounding up would begin.
        const double middle = d->largest + (d->largest - value_of(d, d->most - 1)) / 2;

        assert_int_equal(pattern_of(d, nextafter(middle, 0)), d->most);
        assert_int_equal(pattern_of(d, middle), d->above);
        assert_int_equal(pattern_of(d, DBL_MAX), d->above);
        assert_int_equal(pattern_of(d, INFINITY), d->above);
        assert_int_equal(pattern_of(d, -INFINITY), d->above | sign_of(d));
        assert_int_equal(pattern_of(d, -DBL_MAX), d->above | sign_of(d));
    }
}

// The tables of ONNX's "Float stored in 8 bits".
static void unsaturated_8_bit_floats_become_infinity_or_nan_beyond_their_range(void **state)
{
    static const struct {
        ot_dtype dtype;
        uint8_t most, above, below; // of the largest number, 1e6 and -1e6
        double largest;
    } formats[] = {{OT_F8E4M3FN, 0x7e, 0x7f, 0xff, 448},
                   {OT_F8E4M3FNUZ, 0x7f, 0x80, 0x80, 240},
                   {OT_F8E5M2, 0x7b, 0x7c, 0xfc, 57344},
                   {OT_F8E5M2FNUZ, 0x7f, 0x80, 0x80, 57344}};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(formats); i++) {
        const double x[] = {formats[i].largest, 1e6, -1e6, INFINITY};
        uint8_t y[4];

        assert_true(ot__convert_range(y, formats[i].dtype, 0, (ot__elements){x, OT_F64, 0}, 4,
                                      &(ot__cast_rule){.unsaturated = true}));
        assert_int_equal(y[0], formats[i].most);
        assert_int_equal(y[1], formats[i].above);
        assert_int_equal(y[2], formats[i].below);
        assert_int_equal(y[3], formats[i].above);
    }
}

static void nan_and_zero_are_written_as_the_format_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(definitions); i++) {
        const definition *d = &definitions[i];
        const bool has_minus_zero = d->nan != 0x80;

        assert_true(isnan(read_pattern(d, pattern_of(d, NAN))));
        assert_true(isnan(read_pattern(d, pattern_of(d, -NAN))));
        assert_int_equal(pattern_of(d, 0.0), 0);
        assert_int_equal(pattern_of(d, -0.0), has_minus_zero ? sign_of(d) : 0);
        assert_int_equal(pattern_of(d, -d->smallest / 4), has_minus_zero ? sign_of(d) : 0);
    }
}

// The functions on single numbers agree with the definition for every f16 and bf16 and between.
static void single_numbers_convert_as_arrays_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const definition *d = &definitions[i];
        float (*const read)(uint16_t) = i == 0 ? ot__f16_to_f32 : ot__bf16_to_f32;
        uint16_t (*const write)(float) = i == 0 ? ot__f32_to_f16 : ot__f32_to_bf16;

        for (uint32_t p = 0; p < d->most; p++) {
            const float low = (float)value_of(d, p), high = (float)value_of(d, p + 1);
            const float middle = low + (high - low) / 2;

            assert_true(read((uint16_t)p) == low);
            assert_int_equal(write(low), p);
            assert_int_equal(write(-low), p | 0x8000);
            assert_int_equal(write(middle), p + (p & 1));
            assert_int_equal(write(nextafterf(middle, 0)), p);
            assert_int_equal(write(nextafterf(middle, INFINITY)), p + 1);
        }
        assert_true(read((uint16_t)d->above) == INFINITY);
        assert_true(isnan(read((uint16_t)d->nan)));
        assert_int_equal(write(INFINITY), d->above);
        assert_int_equal(write(-INFINITY), d->above | 0x8000);
        assert_int_equal(write(FLT_MAX), d->above);
        assert_true(isnan(read(write(NAN))) && isnan(read(write(-NAN))));
        assert_int_equal(write(0x1p-149f), 0);
        assert_int_equal(write(-0x1p-149f), 0x8000);
    }
    // A NaN whose payload lies in the bits that are dropped stays one.
    const uint32_t bits = 0x7f800001;
    float quiet_low;
    memcpy(&quiet_low, &bits, sizeof(quiet_low));
    assert_true(isnan(ot__bf16_to_f32(ot__f32_to_bf16(quiet_low))));
    assert_true(isnan(ot__f16_to_f32(ot__f32_to_f16(quiet_low))));
}

static void rounding_from_f64_happens_once(void **state)
{
    // Just above the middle of two f16 numbers, so close that f32 cannot tell: by way of f32 this
    // would be a tie.
    const double above = 1 + 0x1p-11 + 0x1p-40, below = 1 + 3 * 0x1p-11 - 0x1p-40;

    (void)state;
    assert_int_equal(pattern_of(&definitions[0], above), 0x3c01);
    assert_int_equal(pattern_of(&definitions[0], below), 0x3c01);
    assert_int_equal(pattern_of(&definitions[1], 1 + 0x1p-8 + 0x1p-40), 0x3f81);
}

static void rounding_from_a_64_bit_integer_happens_once(void **state)
{
    // A tie but for the last bit, which f64 (53 bits) cannot hold.
    const int64_t tie = (INT64_C(1) << 62) + (INT64_C(1) << 54), more = tie + 1, less = -tie - 1;
    const int64_t f32_more = (INT64_C(1) << 62) + (INT64_C(1) << 38) + 1;
    const uint64_t u_more = (UINT64_C(1) << 63) + (UINT64_C(1) << 55) + 1;
    float f32;
    double f64;

    (void)state;
    assert_int_equal(pattern_from(&definitions[1], OT_I64, &tie), 0x5e80);
    assert_int_equal(pattern_from(&definitions[1], OT_I64, &more), 0x5e81);
    assert_int_equal(pattern_from(&definitions[1], OT_I64, &less), 0xde81);
    assert_int_equal(pattern_from(&definitions[1], OT_U64, &u_more), 0x5f01);
    assert_true(ot__convert(&f32, OT_F32, &f32_more, OT_I64, 1));
    assert_true(f32 == 0x1.000002p62f);
    assert_true(ot__convert(&f64, OT_F64, &(int64_t){INT64_MAX}, OT_I64, 1) && f64 == 0x1p63);
    assert_true(ot__convert(&f64, OT_F64, &(int64_t){INT64_MIN}, OT_I64, 1) && f64 == -0x1p63);
    assert_true(ot__convert(&f64, OT_F64, &(uint64_t){UINT64_MAX}, OT_U64, 1) && f64 == 0x1p64);
}

// Least and greatest value of every integer type, as f64 rounds them.
static const struct {
    ot_dtype dtype;
    int64_t least;
    uint64_t most;
} ranges[] = {
    {OT_I8, -128, 127},
    {OT_U8, 0, 255},
    {OT_I16, -32768, 32767},
    {OT_U16, 0, 65535},
    {OT_I32, INT32_MIN, INT32_MAX},
    {OT_U32, 0, UINT32_MAX},
    {OT_I64, INT64_MIN, INT64_MAX},
    {OT_U64, 0, UINT64_MAX},
};

static int64_t int_from(ot_dtype dtype, ot_dtype from, const void *value)
{
    unsigned char stored[8] = {0};
    int64_t number = 0;

    assert_true(ot__convert(stored, dtype, value, from, 1));
    assert_true(ot__convert(&number, OT_I64, stored, dtype, 1));
    return number;
}

static void floats_become_integers_toward_zero_and_saturate(void **state)
{
    static const double beyond[] = {1e30, DBL_MAX, INFINITY};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(ranges); i++) {
        const ot_dtype t = ranges[i].dtype;
        const bool is_signed = ranges[i].least < 0;

        assert_int_equal(int_from(t, OT_F64, &(double){2.9}), 2);
        assert_int_equal(int_from(t, OT_F64, &(double){-2.9}), is_signed ? -2 : 0);
        assert_int_equal(int_from(t, OT_F64, &(double){-0.9}), 0);
        assert_int_equal(int_from(t, OT_F64, &(double){NAN}), 0);
        assert_int_equal(int_from(t, OT_F64, &(double){(double)ranges[i].least}), ranges[i].least);
        for (size_t k = 0; k < OT_COUNT(beyond); k++) {
            const double below = -beyond[k];
            assert_int_equal(int_from(t, OT_F64, &beyond[k]), (int64_t)ranges[i].most);
            assert_int_equal(int_from(t, OT_F64, &below), ranges[i].least);
        }
        if (ot_dtype_size(t) < 8) {
            const double most = (double)ranges[i].most;
            assert_int_equal(int_from(t, OT_F64, &(double){most + 0.9}), ranges[i].most);
            assert_int_equal(int_from(t, OT_F64, &(double){most + 1}), ranges[i].most);
            assert_int_equal(int_from(t, OT_F64, &(double){most - 1}), ranges[i].most - 1);
        }
    }
    // The neighbours of the ends of the 64-bit types.
    assert_int_equal(int_from(OT_I64, OT_F64, &(double){0x1p63}), INT64_MAX);
    assert_int_equal(int_from(OT_I64, OT_F64, &(double){0x1p63 - 1024}), INT64_MAX - 1023);
    assert_int_equal(int_from(OT_U64, OT_F64, &(double){0x1p63}), INT64_MIN); // its 64 bits
    assert_int_equal(int_from(OT_I32, OT_F32, &(float){3e9f}), INT32_MAX);
    assert_int_equal(int_from(OT_I8, OT_F16, &(uint16_t){0x7c00}), 127);
}

static void integers_keep_their_low_bits(void **state)
{
    (void)state;
    assert_int_equal(int_from(OT_U8, OT_I32, &(int32_t){-1}), 255);
    assert_int_equal(int_from(OT_I8, OT_I32, &(int32_t){200}), -56);
    assert_int_equal(int_from(OT_I64, OT_U32, &(uint32_t){UINT32_MAX}), INT64_C(4294967295));
    assert_int_equal(int_from(OT_I64, OT_I8, &(int8_t){-5}), -5);
    assert_int_equal(int_from(OT_U16, OT_I64, &(int64_t){INT64_C(0x123456789)}), 0x6789);
    assert_int_equal(int_from(OT_I32, OT_I16, &(int16_t){-32768}), -32768);
}

static void bool_is_whether_it_differs_from_zero(void **state)
{
    const double numbers[] = {0, -0.0, 0.25, -3, NAN, 0x1p-1074};
    const uint8_t expected[] = {0, 0, 1, 1, 1, 1}, stored[] = {0, 1, 7, 255};
    const int64_t ints[] = {0, 256, INT64_MIN};
    uint8_t found[6];
    float floats[4];

    (void)state;
    assert_true(ot__convert(found, OT_BOOL, numbers, OT_F64, 6));
    assert_memory_equal(found, expected, 6);
    assert_true(ot__convert(found, OT_BOOL, ints, OT_I64, 3));
    assert_memory_equal(found, "\0\1\1", 3);
    assert_true(ot__convert(found, OT_BOOL, stored, OT_BOOL, 4)); // files may hold any byte
    assert_memory_equal(found, "\0\1\1\1", 4);
    assert_true(ot__convert(floats, OT_F32, stored, OT_BOOL, 4));
    for (int i = 0; i < 4; i++)
        assert_true(floats[i] == (i > 0));
}

// Small integers pass unchanged through any pair of types, from any address, in any number.
static void small_numbers_pass_through_every_pair_of_types(void **state)
{
    static const ot_dtype types[] = {
        OT_F32, OT_F64, OT_F16, OT_BF16, OT_I8,       OT_U8,     OT_I16,        OT_U16,
        OT_I32, OT_U32, OT_I64, OT_U64,  OT_F8E4M3FN, OT_F8E5M2, OT_F8E4M3FNUZ, OT_F8E5M2FNUZ};
    enum { N = 600 };
    static double numbers[N], found[N];
    static unsigned char first[8 * N + 1], second[8 * N + 1];

    (void)state;
    for (int i = 0; i < N; i++)
        numbers[i] = i % 5;
    for (size_t a = 0; a < OT_COUNT(types); a++)
        for (size_t b = 0; b < OT_COUNT(types); b++) {
            memset(found, 0xff, sizeof(found));
            assert_true(ot__convert(first + 1, types[a], numbers, OT_F64, N));
            assert_true(ot__convert(second + 1, types[b], first + 1, types[a], N));
            assert_true(ot__convert(found, OT_F64, second + 1, types[b], N));
            assert_memory_equal(found, numbers, sizeof(numbers));
        }
}

// Also NaN, whatever stands in its other bits.
static void elements_of_the_same_type_keep_their_bits(void **state)
{
    static const ot_dtype types[] = {OT_F16, OT_BF16, OT_F8E4M3FN, OT_F8E5M2, OT_F32, OT_I64};
    uint8_t patterns[8 * 32], found[sizeof patterns];

    (void)state;
    for (size_t k = 0; k < sizeof patterns; k++)
        patterns[k] = (uint8_t)(k % 3 == 0 ? 0xff - k : 0x7d + k % 2);
    for (size_t i = 0; i < OT_COUNT(types); i++) {
        const size_t size = ot_dtype_size(types[i]);

        memset(found, 0, sizeof found);
        assert_true(
            ot__convert(found, types[i], patterns, types[i], (int64_t)(sizeof patterns / size)));
        assert_memory_equal(found, patterns, sizeof patterns);
    }
}

static void no_elements_are_converted_too(void **state)
{
    (void)state;
    assert_true(ot__convert(NULL, OT_F32, NULL, OT_I64, 0));
    assert_true(ot__convert(NULL, OT_F32, NULL, OT_F32, 0));
}

static void types_without_a_conversion_are_refused(void **state)
{
    static const ot_dtype others[] = {OT_STRING, OT_C64, OT_C128, OT_DTYPE_UNDEFINED};
    double from = 1, to = 2;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(others); i++) {
        assert_false(ot__convert(&to, OT_F64, &from, others[i], 1));
        assert_false(ot__convert(&to, others[i], &from, OT_F64, 1));
        assert_false(ot__convert(&to, others[i], &from, others[i], 1));
    }
    assert_false(ot__convert(&to, (ot_dtype)99, &from, OT_F64, 1));
    assert_true(to == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_reads_as_the_value_it_stands_for),
        cmocka_unit_test(writing_rounds_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(numbers_beyond_the_largest_become_infinity_or_saturate),
        cmocka_unit_test(unsaturated_8_bit_floats_become_infinity_or_nan_beyond_their_range),
        cmocka_unit_test(nan_and_zero_are_written_as_the_format_says),
        cmocka_unit_test(single_numbers_convert_as_arrays_do),
        cmocka_unit_test(rounding_from_f64_happens_once),
        cmocka_unit_test(rounding_from_a_64_bit_integer_happens_once),
        cmocka_unit_test(floats_become_integers_toward_zero_and_saturate),
        cmocka_unit_test(integers_keep_their_low_bits),
        cmocka_unit_test(bool_is_whether_it_differs_from_zero),
        cmocka_unit_test(small_numbers_pass_through_every_pair_of_types),
        cmocka_unit_test(elements_of_the_same_type_keep_their_bits),
        cmocka_unit_test(no_elements_are_converted_too),
        cmocka_unit_test(types_without_a_conversion_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
