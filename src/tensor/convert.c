// SPDX-License-Identifier: Apache-2.0
// Conversion between element types, through f64 for floats and i64 or u64 for integers.
#include <math.h>
#include <string.h>

#include "tensor/tensor.h"

static uint32_t f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float bits_f32(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

// A float format of at most 16 bits: sign, n_exponent bits, n_mantissa bits. `has_inf` false: the
// all-ones exponent holds numbers, and `nan` is the one pattern (without sign) that is not a
// number.
typedef struct format {
    int n_exponent, n_mantissa, bias;
    bool has_inf;
    bool is_fnuz;        // no negative zero: that pattern is NaN
    uint32_t nan;        // pattern written for NaN
    uint32_t most, over; // largest finite pattern; what is written above it and for infinity
} format;

static const format formats[] = {
    [OT_F16] = {5, 10, 15, true, false, 0x7e00, 0x7bff, 0x7c00},
    [OT_BF16] = {8, 7, 127, true, false, 0x7fc0, 0x7f7f, 0x7f80},
    [OT_F8E4M3FN] = {4, 3, 7, false, false, 0x7f, 0x7e, 0x7e},
    [OT_F8E4M3FNUZ] = {4, 3, 8, false, true, 0x80, 0x7f, 0x7f},
    [OT_F8E5M2] = {5, 2, 15, true, false, 0x7f, 0x7b, 0x7b},
    [OT_F8E5M2FNUZ] = {5, 2, 16, false, true, 0x80, 0x7f, 0x7f},
};

static double small_to_f64(uint32_t bits, const format *f)
{
    int n_bits = f->n_exponent + f->n_mantissa;
    uint32_t sign = bits >> n_bits & 1, magnitude = bits & ((1u << n_bits) - 1);
    uint32_t exponent = magnitude >> f->n_mantissa,
             mantissa = magnitude & ((1u << f->n_mantissa) - 1);
    double value;

    if (f->is_fnuz ? bits == f->nan : !f->has_inf && magnitude == f->nan)
        return NAN;
    if (f->has_inf && exponent == (1u << f->n_exponent) - 1)
        value = mantissa ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - f->bias - f->n_mantissa);
    else
        value = ldexp(mantissa | 1u << f->n_mantissa, (int)exponent - f->bias - f->n_mantissa);
    return sign ? -value : value;
}

// Round to nearest even.
static uint32_t f64_to_small(double value, const format *f)
{
    int n_bits = f->n_exponent + f->n_mantissa, exponent;
    uint32_t sign = signbit(value) ? 1u << n_bits : 0, magnitude;
    double units;

    if (isnan(value))
        return f->is_fnuz ? f->nan : f->nan | sign;
    value = fabs(value);
    if (isinf(value))
        return sign | f->over;
    (void)frexp(value, &exponent); // value = m * 2^exponent, m in [0.5, 1)
    exponent = OT_MAX(exponent - 1, 1 - f->bias);
    units = nearbyint(ldexp(value, f->n_mantissa - exponent)); // exact scaling, so one rounding
    if (exponent > (1 << f->n_exponent))
        magnitude = f->over;
    else if (units < (double)(1u << f->n_mantissa))
        magnitude = (uint32_t)units; // subnormal: only at the smallest exponent
    else
        magnitude = (uint32_t)((exponent + f->bias - 1) << f->n_mantissa) + (uint32_t)units;
    if (magnitude > f->most)
        magnitude = f->over;
    return magnitude == 0 && f->is_fnuz ? 0 : sign | magnitude;
}

float ot__f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;

    if (rest >= 0x7c00) // infinity, NaN
        return bits_f32(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return bits_f32(sign | ((rest << 13) + ((127 - 15) << 23)));
    return bits_f32(sign | f32_bits((float)rest * 0x1p-24f));
}

uint16_t ot__f32_to_f16(float value)
{
    uint32_t bits = f32_bits(value), sign = bits & 0x80000000, rest = bits ^ sign;

    if (rest > 0x7f800000)
        rest = 0x7e00;
    else if (rest >= f32_bits(65536)) // also what rounds up to it becomes infinity below
        rest = 0x7c00;
    else if (rest < f32_bits(0x1p-14f)) // subnormal: the addition rounds at bit 2^-24
        rest = f32_bits(bits_f32(rest) + 0.5f) - f32_bits(0.5f);
    else
        rest = (rest - ((127u - 15u) << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    return (uint16_t)(sign >> 16 | rest);
}

float ot__bf16_to_f32(uint16_t bits)
{
    return bits_f32((uint32_t)bits << 16);
}

uint16_t ot__f32_to_bf16(float value)
{
    uint32_t bits = f32_bits(value);

    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static const format *format_of(ot_dtype dtype)
{
    const size_t row = (size_t)dtype;

    return row < OT_COUNT(formats) && formats[row].n_exponent > 0 ? &formats[row] : NULL;
}

static bool is_unsigned(ot_dtype dtype)
{
    return dtype == OT_U8 || dtype == OT_U16 || dtype == OT_U32 || dtype == OT_U64 ||
           dtype == OT_BOOL;
}

static bool is_convertible(ot_dtype dtype)
{
    return dtype == OT_F32 || dtype == OT_F64 || dtype == OT_BOOL || ot__dtype_is_int(dtype) ||
           format_of(dtype) != NULL;
}

// ---- a piece at a time; elements may lie at any address (files) ----

enum { PIECE = 256 };

static void load_floats(double *out, const uint8_t *from, ot_dtype dtype, int n)
{
    const format *f = format_of(dtype);
    const size_t size = ot_dtype_size(dtype);

    for (int i = 0; i < n; i++, from += size) {
        if (dtype == OT_F32) {
            float value;
            memcpy(&value, from, sizeof(value));
            out[i] = value;
        } else if (dtype == OT_F64) {
            memcpy(&out[i], from, sizeof(out[i]));
        } else if (size == 1) {
            out[i] = small_to_f64(*from, f);
        } else {
            uint16_t bits;
            memcpy(&bits, from, sizeof(bits));
            out[i] = dtype == OT_F16 ? ot__f16_to_f32(bits) : ot__bf16_to_f32(bits);
        }
    }
}

static void store_floats(uint8_t *to, ot_dtype dtype, const format *f, const double *values, int n)
{
    const size_t size = ot_dtype_size(dtype);

    for (int i = 0; i < n; i++, to += size) {
        if (dtype == OT_F32) {
            float value = (float)values[i];
            memcpy(to, &value, sizeof(value));
        } else if (dtype == OT_F64) {
            memcpy(to, &values[i], sizeof(values[i]));
        } else if (size == 1) {
            *to = (uint8_t)f64_to_small(values[i], f);
        } else {
            // What came from f32 takes the short way; the detour would round twice for others.
            float narrow = (float)values[i];
            uint16_t bits = dtype == OT_F16 && (double)narrow == values[i]
                                ? ot__f32_to_f16(narrow)
                                : (uint16_t)f64_to_small(values[i], f);
            memcpy(to, &bits, sizeof(bits));
        }
    }
}

// Integers as 64 bits, sign-extended where the type is signed.
static void load_ints(uint64_t *out, const uint8_t *from, ot_dtype dtype, int n)
{
    const size_t size = ot_dtype_size(dtype);
    const uint64_t sign = is_unsigned(dtype) ? 0 : UINT64_C(1) << (size * 8 - 1);

    for (int i = 0; i < n; i++, from += size) {
        uint16_t u16;
        uint32_t u32;

        if (size == 1) {
            out[i] = *from;
        } else if (size == 2) {
            memcpy(&u16, from, sizeof(u16));
            out[i] = u16;
        } else if (size == 4) {
            memcpy(&u32, from, sizeof(u32));
            out[i] = u32;
        } else {
            memcpy(&out[i], from, sizeof(out[i]));
        }
        out[i] = dtype == OT_BOOL ? out[i] != 0 : (out[i] ^ sign) - sign;
    }
}

// The low bits, as in C and NumPy.
static void store_ints(uint8_t *to, ot_dtype dtype, const uint64_t *values, int n)
{
    const size_t size = ot_dtype_size(dtype);

    for (int i = 0; i < n; i++, to += size) {
        const uint64_t value = dtype == OT_BOOL ? values[i] != 0 : values[i];
        const uint32_t u32 = (uint32_t)value;
        const uint16_t u16 = (uint16_t)value;

        if (size == 1)
            *to = (uint8_t)value;
        else if (size == 2)
            memcpy(to, &u16, sizeof(u16));
        else if (size == 4)
            memcpy(to, &u32, sizeof(u32));
        else
            memcpy(to, &value, sizeof(value));
    }
}

// Toward zero; outside the type's range its nearest end, NaN gives 0: nothing is undefined.
static uint64_t f64_to_int(double value, ot_dtype dtype)
{
    int n_bits = (int)ot_dtype_size(dtype) * 8;

    if (dtype == OT_BOOL)
        return value != 0;
    if (isnan(value))
        return 0;
    value = trunc(value);
    if (is_unsigned(dtype)) {
        if (value <= 0)
            return 0;
        return value >= ldexp(1, n_bits) ? UINT64_MAX >> (64 - n_bits) : (uint64_t)value;
    }
    if (value >= ldexp(1, n_bits - 1))
        return (UINT64_C(1) << (n_bits - 1)) - 1;
    if (value < -ldexp(1, n_bits - 1))
        return UINT64_MAX << (n_bits - 1);
    return (uint64_t)(int64_t)value;
}

// As f64, so that rounding that to a narrower float rounds the integer once: to f64 itself nearest
// even; else what does not fit in 53 bits leaves a trace in the last of them (rounding to odd).
static double int_to_f64(uint64_t value, bool is_signed, ot_dtype to_dtype)
{
    bool is_negative = is_signed && value >> 63;
    uint64_t magnitude = is_negative ? 0 - value : value;

    if (to_dtype != OT_F64 && magnitude >> 53)
        magnitude = (magnitude & ~UINT64_C(0x7ff)) | (magnitude & 0x7ff ? 0x800 : 0);
    return is_negative ? -(double)magnitude : (double)magnitude;
}

static void convert_piece(uint8_t *to, ot_dtype to_dtype, const format *to_format,
                          const uint8_t *from, ot_dtype from_dtype, int n)
{
    const bool from_int = ot__dtype_is_int(from_dtype) || from_dtype == OT_BOOL;
    const bool to_int = ot__dtype_is_int(to_dtype) || to_dtype == OT_BOOL;
    uint64_t ints[PIECE];
    double floats[PIECE];

    if (from_int)
        load_ints(ints, from, from_dtype, n);
    else
        load_floats(floats, from, from_dtype, n);
    for (int i = 0; i < n && from_int && !to_int; i++)
        floats[i] = int_to_f64(ints[i], !is_unsigned(from_dtype), to_dtype);
    for (int i = 0; i < n && !from_int && to_int; i++)
        ints[i] = f64_to_int(floats[i], to_dtype);
    if (to_int)
        store_ints(to, to_dtype, ints, n);
    else
        store_floats(to, to_dtype, to_format, floats, n);
}

static bool convert_elements(void *to, ot_dtype to_dtype, const format *to_format, const void *from,
                             ot_dtype from_dtype, int64_t count)
{
    const size_t to_size = ot_dtype_size(to_dtype), from_size = ot_dtype_size(from_dtype);

    if (!is_convertible(to_dtype) || !is_convertible(from_dtype))
        return false;
    if (to_dtype == from_dtype && to_dtype != OT_BOOL) {
        if (count > 0)
            memmove(to, from, (size_t)count * to_size);
        return true;
    }
    for (int64_t i = 0; i < count; i += PIECE)
        convert_piece((uint8_t *)to + (size_t)i * to_size, to_dtype, to_format,
                      (const uint8_t *)from + (size_t)i * from_size, from_dtype,
                      (int)OT_MIN(count - i, PIECE));
    return true;
}

bool ot__convert(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype, int64_t count)
{
    return convert_elements(to, to_dtype, format_of(to_dtype), from, from_dtype, count);
}

// ONNX's Cast to an 8-bit float saturates unless told otherwise; to f16 and bf16 it never does.
// Unsaturated, what is beyond an 8-bit float becomes infinity, or NaN where it has none.
bool ot__convert_unsaturated(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype,
                             int64_t count)
{
    const format *saturated = format_of(to_dtype);
    format open;

    if (saturated != NULL) {
        open = *saturated;
        open.over = open.has_inf ? open.most + 1 : open.nan;
    }
    return convert_elements(to, to_dtype, saturated != NULL ? &open : NULL, from, from_dtype,
                            count);
}
