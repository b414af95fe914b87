// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tensor/tensor.h"

static const struct {
    const char *name, *onnx_name;
    int bits;
} rows[] = {
#define DTYPE_ROW(constant, number, text, n_bits) [number] = {.name = text, .bits = n_bits},
    OT_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

// ONNX's textual syntax spells these differently.
static const struct {
    ot_dtype dtype;
    const char *name;
} onnx_names[] = {
    {OT_F32, "float"},
    {OT_U8, "uint8"},
    {OT_I8, "int8"},
    {OT_U16, "uint16"},
    {OT_I16, "int16"},
    {OT_I32, "int32"},
    {OT_I64, "int64"},
    {OT_STRING, "string"},
    {OT_BOOL, "bool"},
    {OT_F16, "float16"},
    {OT_F64, "double"},
    {OT_U32, "uint32"},
    {OT_U64, "uint64"},
    {OT_C64, "complex64"},
    {OT_C128, "complex128"},
    {OT_BF16, "bfloat16"},
    {OT_F8E4M3FN, "float8e4m3fn"},
    {OT_F8E4M3FNUZ, "float8e4m3fnuz"},
    {OT_F8E5M2, "float8e5m2"},
    {OT_F8E5M2FNUZ, "float8e5m2fnuz"},
    {OT_U4, "uint4"},
    {OT_I4, "int4"},
    {OT_F4E2M1, "float4e2m1"},
    {OT_F8E8M0, "float8e8m0"},
    {OT_U2, "uint2"},
    {OT_F6E2M3, "float6e2m3"},
    {OT_F6E3M2, "float6e3m2"},
    {OT_I2, "int2"},
};

static bool is_dtype(ot_dtype dtype)
{
    return (size_t)dtype < OT_COUNT(rows) && rows[dtype].name;
}

const char *ot_dtype_name(ot_dtype dtype)
{
    return is_dtype(dtype) ? rows[dtype].name : "unknown";
}

int ot__dtype_bits(ot_dtype dtype)
{
    return is_dtype(dtype) ? rows[dtype].bits : 0;
}

size_t ot_dtype_size(ot_dtype dtype)
{
    return (size_t)ot__dtype_bits(dtype) / 8;
}

bool ot__dtype_is_packed(ot_dtype dtype)
{
    const int bits = ot__dtype_bits(dtype);

    return bits > 0 && bits < 8;
}

ot_dtype ot__dtype_unpacked(ot_dtype dtype)
{
    if (!ot__dtype_is_packed(dtype))
        return dtype;
    if (dtype == OT_I4 || dtype == OT_I2)
        return OT_I8;
    return dtype == OT_U4 || dtype == OT_U2 ? OT_U8 : OT_F8E4M3FN;
}

bool ot__dtype_is_float(ot_dtype dtype)
{
    return dtype == OT_F32 || dtype == OT_F64 || dtype == OT_F16 || dtype == OT_BF16;
}

bool ot__dtype_is_narrow(ot_dtype dtype)
{
    return dtype == OT_F16 || dtype == OT_BF16;
}

bool ot__dtype_is_int(ot_dtype dtype)
{
    return dtype == OT_U8 || dtype == OT_I8 || dtype == OT_U16 || dtype == OT_I16 ||
           dtype == OT_I32 || dtype == OT_I64 || dtype == OT_U32 || dtype == OT_U64;
}

bool ot__dtype_from_name(const char *name, ot_dtype *dtype)
{
    for (size_t i = 1; i < OT_COUNT(rows); i++)
        if (rows[i].name && strcmp(rows[i].name, name) == 0) {
            *dtype = (ot_dtype)i;
            return true;
        }
    return false;
}

const char *ot__dtype_onnx_name(ot_dtype dtype)
{
    for (size_t i = 0; i < OT_COUNT(onnx_names); i++)
        if (onnx_names[i].dtype == dtype)
            return onnx_names[i].name;
    return "undefined";
}

bool ot__dtype_from_onnx_name(const char *name, ot_dtype *dtype)
{
    for (size_t i = 0; i < OT_COUNT(onnx_names); i++)
        if (strcmp(onnx_names[i].name, name) == 0) {
            *dtype = onnx_names[i].dtype;
            return true;
        }
    return false;
}

bool ot__dtype_bytes(ot_dtype dtype, int64_t count, size_t *n_bytes)
{
    int64_t bits;

    *n_bytes = 0;
    if (!is_dtype(dtype) || rows[dtype].bits == 0 || count < 0 ||
        ot__mul_overflows(count, rows[dtype].bits, &bits)) // more than any machine holds
        return false;
    *n_bytes = (size_t)(bits / 8 + (bits % 8 != 0));
    return true;
}

size_t ot__element_size(ot_dtype dtype)
{
    return dtype == OT_STRING ? sizeof(ot__bytes) : ot_dtype_size(dtype);
}

bool ot__element_bytes(ot_dtype dtype, int64_t count, size_t *n_bytes)
{
    if (dtype != OT_STRING)
        return ot__dtype_bytes(dtype, count, n_bytes);
    return count >= 0 && (uint64_t)count <= SIZE_MAX &&
           !ot__size_mul_overflows((size_t)count, sizeof(ot__bytes), n_bytes);
}
