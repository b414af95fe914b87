// SPDX-License-Identifier: Apache-2.0
// Conversion between element types: those that C has by loops of their own (convert_plain.c),
// narrow floats by way of f64, packed integers by way of i64.
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

// The type that C has by way of which elements of `dtype` go.
static ot_dtype plain_type(ot_dtype dtype)
{
    if (ot__plain_loop_of(dtype, dtype) != NULL)
        return dtype;
    return is_integer(dtype) ? OT_I64 : OT_F64;
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

static void load_narrow_floats(double *out, ot__elements piece, int n)
{
    uint8_t bytes[PIECE];
    const uint8_t *from = piece_bytes(bytes, piece, n);
    const ot_dtype dtype = piece.dtype;
    const format *f = format_of(dtype);
    const size_t size = OT_MAX(ot_dtype_size(dtype), (size_t)1);

    for (int i = 0; i < n; i++, from += size) {
        uint16_t bits;

        if (size == 1) {
            out[i] = dtype == OT_F8E8M0 ? e8m0_to_f64(*from) : small_to_f64(*from, f);
            continue;
        }
        memcpy(&bits, from, sizeof(bits));
        out[i] = dtype == OT_F16 ? ot__f16_to_f32(bits) : ot__bf16_to_f32(bits);
    }
}

// Sign-extended where the type is signed.
static void load_packed_ints(int64_t *out, ot__elements piece, int n)
{
    uint8_t bytes[PIECE];
    const uint8_t *from = piece_bytes(bytes, piece, n);
    const int64_t sign =
        is_unsigned(piece.dtype) ? 0 : INT64_C(1) << (ot__dtype_bits(piece.dtype) - 1);

    for (int i = 0; i < n; i++)
        out[i] = (from[i] ^ sign) - sign;
}

// Where elements go, and how.
typedef struct target {
    uint8_t *data;
    ot_dtype dtype;
    const format *format;
    const ot__cast_rule *rule;
} target;

static void store_narrow_floats(const target *t, int64_t first, const double *values, int n)
{
    const size_t size = OT_MAX(ot_dtype_size(t->dtype), (size_t)1);
    const bool is_packed = ot__dtype_is_packed(t->dtype);
    uint8_t bytes[PIECE], *to = is_packed ? bytes : t->data + (size_t)first * size;

    for (int i = 0; i < n; i++, to += size) {
        if (size == 1) {
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

// The low bits, as in ONNX's node tests.
static void store_packed_ints(const target *t, int64_t first, const int64_t *values, int n)
{
    uint8_t bytes[PIECE];

    for (int i = 0; i < n; i++)
        bytes[i] = (uint8_t)values[i];
    ot__pack_bits(t->data, t->dtype, first, bytes, n);
}

// Integers as f64, so that rounding that to a narrow float rounds them once: what does not fit in
// 53 bits leaves a trace in the last of them (rounding to odd).
static void ints_to_odd_floats(double *out, const void *from, ot_dtype dtype, int n)
{
    const bool is_signed = !is_unsigned(dtype);
    uint64_t ints[PIECE];

    ot__plain_loop_of(is_signed ? OT_I64 : OT_U64, dtype)(ints, from, n);
    for (int i = 0; i < n; i++) {
        const bool is_negative = is_signed && ints[i] >> 63;
        uint64_t magnitude = is_negative ? 0 - ints[i] : ints[i];

        if (magnitude >> 53)
            magnitude = (magnitude & ~UINT64_C(0x7ff)) | (magnitude & 0x7ff ? 0x800 : 0);
        out[i] = is_negative ? -(double)magnitude : (double)magnitude;
    }
}

// At most PIECE elements, or any number of them between types that C has.
typedef union numbers {
    double floats[PIECE];
    int64_t ints[PIECE];
} numbers;

static void convert_piece(const target *t, int64_t first, ot__elements from, int64_t count)
{
    const ot_dtype x_type = plain_type(from.dtype), y_type = plain_type(t->dtype);
    const void *x = (const uint8_t *)from.data + (size_t)from.first * ot_dtype_size(from.dtype);
    void *y = t->data + (size_t)first * ot_dtype_size(t->dtype);
    const int n = (int)OT_MIN(count, PIECE);
    numbers loaded, made;

    if (x_type != from.dtype) {
        x = &loaded;
        if (x_type == OT_F64)
            load_narrow_floats(loaded.floats, from, n);
        else
            load_packed_ints(loaded.ints, from, n);
    }
    if (y_type != t->dtype)
        y = &made;
    if (y_type != t->dtype && y_type == OT_F64 && is_integer(x_type))
        ints_to_odd_floats(made.floats, x, x_type, n);
    else
        ot__plain_loop_of(y_type, x_type)(y, x, count);
    if (y_type == t->dtype)
        return;
    if (y_type == OT_F64)
        store_narrow_floats(t, first, made.floats, n);
    else
        store_packed_ints(t, first, made.ints, n);
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
    const bool is_plain = ot__plain_loop_of(to_dtype, from.dtype) != NULL;
    const int64_t step = is_plain ? count : PIECE; // nothing is put down on the way
    const size_t size = ot_dtype_size(to_dtype);
    target t = {to, to_dtype, NULL, rule};
    format open;

    if (!is_convertible(to_dtype) || !is_convertible(from.dtype))
        return false;
    if (to_dtype == from.dtype && to_dtype != OT_BOOL && size > 0) { // NaN keeps its bits
        if (count > 0)
            memmove(t.data + (size_t)to_first * size,
                    (const uint8_t *)from.data + (size_t)from.first * size, (size_t)count * size);
        return true;
    }
    t.format = as_told(format_of(to_dtype), rule, &open);
    for (int64_t i = 0; i < count; i += step, from.first += step)
        convert_piece(&t, to_first + i, from, OT_MIN(count - i, step));
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
