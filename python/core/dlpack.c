// SPDX-License-Identifier: Apache-2.0
// Element types in DLPack's numbers.
#include "dlpack.h"

enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

static const struct {
    ot_dtype dtype;
    uint8_t code, bits;
} types[] = {
    {OT_F32, DL_FLOAT, 32},   {OT_F64, DL_FLOAT, 64},   {OT_F16, DL_FLOAT, 16},
    {OT_BF16, DL_BFLOAT, 16}, {OT_I64, DL_INT, 64},     {OT_I32, DL_INT, 32},
    {OT_I16, DL_INT, 16},     {OT_I8, DL_INT, 8},       {OT_U64, DL_UINT, 64},
    {OT_U32, DL_UINT, 32},    {OT_U16, DL_UINT, 16},    {OT_U8, DL_UINT, 8},
    {OT_BOOL, DL_BOOL, 8},    {OT_C64, DL_COMPLEX, 64}, {OT_C128, DL_COMPLEX, 128},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

ot_dtype core_dtype_of_dlpack(dl_dtype dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].code == dtype.code && types[i].bits == dtype.bits && dtype.lanes == 1)
            return types[i].dtype;
    return OT_DTYPE_UNDEFINED;
}

dl_dtype core_dlpack_of_dtype(ot_dtype dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype)
            return (dl_dtype){types[i].code, types[i].bits, 1};
    return (dl_dtype){0, 0, 1};
}
