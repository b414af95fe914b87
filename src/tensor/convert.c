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
    uint32_t nan;  // pattern written for NaN
    bool is_fnuz;  // no negative zero: that pattern is NaN
    uint32_t most; // largest finite pattern
} format;

static const format f16_format = {5, 10, 15, true, 0x7e00, false, 0x7bff};
static const format bf16_format = {8, 7, 127, true, 0x7fc0, false, 0x7f7f};
static const format e4m3fn = {4, 3, 7, false, 0x7f, false, 0x7e};
static const format e4m3fnuz = {4, 3, 8, false, 0x80, true, 0x7f};
static const format e5m2 = {5, 2, 15, true, 0x7f, false, 0x7b};
static const format e5m2fnuz = {5, 2, 16, false, 0x80, true, 0x7f};

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

// Round to nearest even. Above the largest: infinity where there is one, else (as ONNX's Cast
// saturates) the largest.
static uint32_t f64_to_small(double value, const format *f)
{
    int n_bits = f->n_exponent + f->n_mantissa, exponent;
    uint32_t sign = signbit(value) ? 1u << n_bits : 0, infinity = f->most + 1, magnitude;
    double units;

    if (isnan(value))
        return f->is_fnuz ? f->nan : f->nan | sign;
    value = fabs(value);
    if (isinf(value))
        return sign | (f->has_inf ? infinity : f->most);
    (void)frexp(value, &exponent); // value = m * 2^exponent, m in [0.5, 1)
    exponent = OT_MAX(exponent - 1, 1 - f->bias);
    units = nearbyint(ldexp(value, f->n_mantissa - exponent)); // exact scaling, so one rounding
    if (exponent > (1 << f->n_exponent))
        magnitude = infinity;
    else if (units < (double)(1u << f->n_mantissa))
        magnitude = (uint32_t)units; // subnormal: only at the smallest exponent
    else
        magnitude = (uint32_t)((exponent + f->bias - 1) << f->n_mantissa) + (uint32_t)units;
    if (magnitude > f->most)
        magnitude = f->has_inf ? infinity : f->most;
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
    return (uint16_t)f64_to_small(value, &f16_format);
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
    switch (dtype) {
    case OT_F16:
        return &f16_format;
    case OT_BF16:
        return &bf16_format;
    case OT_F8E4M3FN:
        return &e4m3fn;
    case OT_F8E4M3FNUZ:
        return &e4m3fnuz;
    case OT_F8E5M2:
        return &e5m2;
    case OT_F8E5M2FNUZ:
        return &e5m2fnuz;
    default:
        return NULL;
    }
}

static bool is_unsigned(ot_dtype dtype)
{
    return dtype == OT_U8 || dtype == OT_U16 || dtype == OT_U32 || dtype == OT_U64 ||
           dtype == OT_BOOL;
}

static bool is_small_float(ot_dtype dtype)
{
    return format_of(dtype) != NULL;
}

static bool is_convertible(ot_dtype dtype)
{
    return dtype == OT_F32 || dtype == OT_F64 || dtype == OT_BOOL || ot__dtype_is_int(dtype) ||
           is_small_float(dtype);
}

static double load_float(const void *from, ot_dtype dtype, int64_t i)
{
    const format *f = format_of(dtype);

    if (dtype == OT_F32)
        return ((const float *)from)[i];
    if (dtype == OT_F64)
        return ((const double *)from)[i];
    if (ot_dtype_size(dtype) == 1)
        return small_to_f64(((const uint8_t *)from)[i], f);
    return small_to_f64(((const uint16_t *)from)[i], f);
}

static void store_float(void *to, ot_dtype dtype, int64_t i, double value)
{
    const format *f = format_of(dtype);

    if (dtype == OT_F32)
        ((float *)to)[i] = (float)value;
    else if (dtype == OT_F64)
        ((double *)to)[i] = value;
    else if (ot_dtype_size(dtype) == 1)
        ((uint8_t *)to)[i] = (uint8_t)f64_to_small(value, f);
    else
        ((uint16_t *)to)[i] = (uint16_t)f64_to_small(value, f);
}

// Integers as 64 bits, sign-extended where the type is signed.
static uint64_t load_int(const void *from, ot_dtype dtype, int64_t i)
{
    switch (dtype) {
    case OT_BOOL:
        return ((const uint8_t *)from)[i] != 0;
    case OT_U8:
        return ((const uint8_t *)from)[i];
    case OT_I8:
        return (uint64_t)(int64_t)((const int8_t *)from)[i];
    case OT_U16:
        return ((const uint16_t *)from)[i];
    case OT_I16:
        return (uint64_t)(int64_t)((const int16_t *)from)[i];
    case OT_U32:
        return ((const uint32_t *)from)[i];
    case OT_I32:
        return (uint64_t)(int64_t)((const int32_t *)from)[i];
    default:
        return ((const uint64_t *)from)[i];
    }
}

static void store_int(void *to, ot_dtype dtype, int64_t i, uint64_t value)
{
    switch (ot_dtype_size(dtype)) {
    case 1:
        ((uint8_t *)to)[i] = dtype == OT_BOOL ? value != 0 : (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)to)[i] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)to)[i] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)to)[i] = value;
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

bool ot__convert(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype, int64_t count)
{
    bool from_int = ot__dtype_is_int(from_dtype) || from_dtype == OT_BOOL;
    bool to_int = ot__dtype_is_int(to_dtype) || to_dtype == OT_BOOL;

    if (!is_convertible(to_dtype) || !is_convertible(from_dtype))
        return false;
    if (to_dtype == from_dtype && to_dtype != OT_BOOL) {
        if (count > 0)
            memmove(to, from, (size_t)count * ot_dtype_size(to_dtype));
        return true;
    }
    for (int64_t i = 0; i < count; i++) {
        if (from_int) {
            uint64_t value = load_int(from, from_dtype, i);
            if (to_int)
                store_int(to, to_dtype, i, value);
            else if (to_dtype ==
                     OT_F32) // directly: through f64 a 64-bit integer would be rounded twice
                ((float *)to)[i] = is_unsigned(from_dtype) ? (float)value : (float)(int64_t)value;
            else
                store_float(to, to_dtype, i,
                            is_unsigned(from_dtype) ? (double)value : (double)(int64_t)value);
        } else {
            double value = load_float(from, from_dtype, i);
            if (to_int)
                store_int(to, to_dtype, i, f64_to_int(value, to_dtype));
            else
                store_float(to, to_dtype, i, value);
        }
    }
    return true;
}
