// SPDX-License-Identifier: Apache-2.0
// Conversion between element types, through f64 for floats and i64 or u64 for integers.
#include <limits.h>
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
    bool no_nan;         // all patterns are numbers
    uint32_t nan;        // pattern written for NaN
    uint32_t most, over; // largest finite pattern; what is written above it and for infinity
} format;

static const format formats[] = {
    [OT_F16] = {5, 10, 15, true, false, false, 0x7e00, 0x7bff, 0x7c00},
    [OT_BF16] = {8, 7, 127, true, false, false, 0x7fc0, 0x7f7f, 0x7f80},
    [OT_F8E4M3FN] = {4, 3, 7, false, false, false, 0x7f, 0x7e, 0x7e},
    [OT_F8E4M3FNUZ] = {4, 3, 8, false, true, false, 0x80, 0x7f, 0x7f},
    [OT_F8E5M2] = {5, 2, 15, true, false, false, 0x7f, 0x7b, 0x7b},
    [OT_F8E5M2FNUZ] = {5, 2, 16, false, true, false, 0x80, 0x7f, 0x7f},
    // NaN becomes -0, as in ml_dtypes.
    [OT_F4E2M1] = {2, 1, 1, false, false, true, 0x8, 0x7, 0x7},
    [OT_F6E2M3] = {2, 3, 1, false, false, true, 0x20, 0x1f, 0x1f},
    [OT_F6E3M2] = {3, 2, 3, false, false, true, 0x20, 0x1f, 0x1f},
};

static double small_to_f64(uint32_t bits, const format *f)
{
    int n_bits = f->n_exponent + f->n_mantissa;
    uint32_t sign = bits >> n_bits & 1, magnitude = bits & ((1u << n_bits) - 1);
    uint32_t exponent = magnitude >> f->n_mantissa,
             mantissa = magnitude & ((1u << f->n_mantissa) - 1);
    double value;

    if (!f->no_nan && (f->is_fnuz ? bits == f->nan : !f->has_inf && magnitude == f->nan))
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

// ---- f8e8m0: an exponent alone, of 2 ----

enum { E8M0_BIAS = 127, E8M0_MOST = 254, E8M0_NAN = 255 };

static double e8m0_to_f64(uint32_t bits)
{
    return bits == E8M0_NAN ? (double)NAN : ldexp(1, (int)bits - E8M0_BIAS);
}

// ONNX leaves open what becomes of negative numbers: their magnitude does.
static uint8_t f64_to_e8m0(double value, const ot__cast_rule *rule)
{
    int exponent;
    double m;

    value = fabs(value);
    if (isnan(value))
        return E8M0_NAN;
    if (isinf(value) || value == 0)
        exponent = value == 0 ? INT_MIN : INT_MAX;
    else {
        m = 2 * frexp(value, &exponent); // value = m * 2^(exponent - 1), m in [1, 2)
        exponent -= 1;
        if (rule->rounding == OT__ROUND_UP ? m > 1
                                           : rule->rounding == OT__ROUND_NEAREST && m >= 1.5)
            exponent++;
    }
    if (exponent < -E8M0_BIAS)
        return rule->unsaturated ? E8M0_NAN : 0;
    if (exponent > E8M0_MOST - E8M0_BIAS)
        return rule->unsaturated ? E8M0_NAN : E8M0_MOST;
    return (uint8_t)(exponent + E8M0_BIAS);
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
           dtype == OT_BOOL || dtype == OT_U4 || dtype == OT_U2;
}

static bool is_integer(ot_dtype dtype)
{
    return ot__dtype_is_int(dtype) || dtype == OT_BOOL || dtype == OT_U4 || dtype == OT_I4 ||
           dtype == OT_U2 || dtype == OT_I2;
}

static bool is_convertible(ot_dtype dtype)
{
    return dtype == OT_F32 || dtype == OT_F64 || is_integer(dtype) || dtype == OT_F8E8M0 ||
           format_of(dtype) != NULL;
}

// ---- a piece at a time; elements may lie at any address (files) ----

enum { PIECE = 256 }; // a multiple of OT__WHOLE_BYTES

// Elements of a byte or less as their bits, in `bytes` where they are packed.
static const uint8_t *piece_bytes(uint8_t *bytes, ot__elements from, int n)
{
    if (!ot__dtype_is_packed(from.dtype))
        return (const uint8_t *)from.data + (size_t)from.first * ot_dtype_size(from.dtype);
    ot__unpack_bits(bytes, from.data, from.dtype, from.first, n);
    return bytes;
}

static void load_floats(double *out, ot__elements piece, int n)
{
    uint8_t bytes[PIECE];
    const uint8_t *from = piece_bytes(bytes, piece, n);
    const ot_dtype dtype = piece.dtype;
    const format *f = format_of(dtype);
    const size_t size = OT_MAX(ot_dtype_size(dtype), (size_t)1);

    for (int i = 0; i < n; i++, from += size) {
        if (dtype == OT_F32) {
            float value;
            memcpy(&value, from, sizeof(value));
            out[i] = value;
        } else if (dtype == OT_F64) {
            memcpy(&out[i], from, sizeof(out[i]));
        } else if (size == 1) {
            out[i] = dtype == OT_F8E8M0 ? e8m0_to_f64(*from) : small_to_f64(*from, f);
        } else {
            uint16_t bits;
            memcpy(&bits, from, sizeof(bits));
            out[i] = dtype == OT_F16 ? ot__f16_to_f32(bits) : ot__bf16_to_f32(bits);
        }
    }
}

// Where elements go, and how.
typedef struct target {
    uint8_t *data;
    ot_dtype dtype;
    const format *format;
    const ot__cast_rule *rule;
} target;

static void store_floats(const target *t, int64_t first, const double *values, int n)
{
    const size_t size = OT_MAX(ot_dtype_size(t->dtype), (size_t)1);
    const bool is_packed = ot__dtype_is_packed(t->dtype);
    uint8_t bytes[PIECE], *to = is_packed ? bytes : t->data + (size_t)first * size;

    for (int i = 0; i < n; i++, to += size) {
        if (t->dtype == OT_F32) {
            float value = (float)values[i];
            memcpy(to, &value, sizeof(value));
        } else if (t->dtype == OT_F64) {
            memcpy(to, &values[i], sizeof(values[i]));
        } else if (size == 1) {
            *to = t->dtype == OT_F8E8M0 ? f64_to_e8m0(values[i], t->rule)
                                        : (uint8_t)f64_to_small(values[i], t->format);
        } else {
            // What came from f32 takes the short way; the detour would round twice for others.
            float narrow = (float)values[i];
            uint16_t bits = t->dtype == OT_F16 && (double)narrow == values[i]
                                ? ot__f32_to_f16(narrow)
                                : (uint16_t)f64_to_small(values[i], t->format);
            memcpy(to, &bits, sizeof(bits));
        }
    }
    if (is_packed)
        ot__pack_bits(t->data, t->dtype, first, bytes, n);
}

// Integers as 64 bits, sign-extended where the type is signed.
static void load_ints(uint64_t *out, ot__elements piece, int n)
{
    uint8_t bytes[PIECE];
    const uint8_t *from = piece_bytes(bytes, piece, n);
    const ot_dtype dtype = piece.dtype;
    const size_t size = OT_MAX(ot_dtype_size(dtype), (size_t)1);
    const uint64_t sign = is_unsigned(dtype) ? 0 : UINT64_C(1) << (ot__dtype_bits(dtype) - 1);

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
static void store_ints(const target *t, int64_t first, const uint64_t *values, int n)
{
    const size_t size = OT_MAX(ot_dtype_size(t->dtype), (size_t)1);
    const bool is_packed = ot__dtype_is_packed(t->dtype);
    uint8_t bytes[PIECE], *to = is_packed ? bytes : t->data + (size_t)first * size;

    for (int i = 0; i < n; i++, to += size) {
        const uint64_t value = t->dtype == OT_BOOL ? values[i] != 0 : values[i];
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
    if (is_packed)
        ot__pack_bits(t->data, t->dtype, first, bytes, n);
}

// Toward zero; outside the type's range its nearest end, NaN gives 0: nothing is undefined. Of
// packed types the low bits of the integer stay, as in ONNX's node tests.
static uint64_t f64_to_int(double value, ot_dtype dtype)
{
    if (ot__dtype_is_packed(dtype))
        dtype = OT_I64;
    const int n_bits = ot__dtype_bits(dtype);

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

static void convert_piece(const target *t, int64_t first, ot__elements from, int n)
{
    const bool from_int = is_integer(from.dtype), to_int = is_integer(t->dtype);
    uint64_t ints[PIECE];
    double floats[PIECE];

    if (from_int)
        load_ints(ints, from, n);
    else
        load_floats(floats, from, n);
    for (int i = 0; i < n && from_int && !to_int; i++)
        floats[i] = int_to_f64(ints[i], !is_unsigned(from.dtype), t->dtype);
    for (int i = 0; i < n && !from_int && to_int; i++)
        ints[i] = f64_to_int(floats[i], t->dtype);
    if (to_int)
        store_ints(t, first, ints, n);
    else
        store_floats(t, first, floats, n);
}

// ONNX's Cast to an 8-bit float saturates unless told otherwise; to f16 and bf16 it never does.
// Unsaturated, what is beyond an 8-bit float becomes infinity, or NaN where it has none.
static const format *as_told(const format *f, const ot__cast_rule *rule, format *open)
{
    if (f == NULL || !rule->unsaturated || f->no_nan)
        return f;
    *open = *f;
    open->over = f->has_inf ? f->most + 1 : f->nan;
    return open;
}

bool ot__convert_range(void *to, ot_dtype to_dtype, int64_t to_first, ot__elements from,
                       int64_t count, const ot__cast_rule *rule)
{
    const size_t size = ot_dtype_size(to_dtype);
    target t = {to, to_dtype, NULL, rule};
    format open;

    if (!is_convertible(to_dtype) || !is_convertible(from.dtype))
        return false;
    if (to_dtype == from.dtype && to_dtype != OT_BOOL && size > 0) {
        if (count > 0)
            memmove(t.data + (size_t)to_first * size,
                    (const uint8_t *)from.data + (size_t)from.first * size, (size_t)count * size);
        return true;
    }
    t.format = as_told(format_of(to_dtype), rule, &open);
    for (int64_t i = 0; i < count; i += PIECE, from.first += PIECE)
        convert_piece(&t, to_first + i, from, (int)OT_MIN(count - i, PIECE));
    return true;
}

bool ot__convert(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype, int64_t count)
{
    static const ot__cast_rule as_usual = {0};

    return ot__convert_range(to, to_dtype, 0, (ot__elements){from, from_dtype, 0}, count,
                             &as_usual);
}

double ot__element_f64(const void *data, ot_dtype dtype, int64_t index)
{
    static const ot__cast_rule as_usual = {0};
    double value = 0;

    (void)ot__convert_range(&value, OT_F64, 0, (ot__elements){data, dtype, index}, 1, &as_usual);
    return value;
}
