// SPDX-License-Identifier: Apache-2.0
// Functions of the bits of every integer type.
#include "kernels/kernels.h"

#define T int8_t
#define U uint8_t
#define FN(name) name##_i8
#include "ref_bits.tmpl.h"
#define T uint8_t
#define U uint8_t
#define FN(name) name##_u8
#include "ref_bits.tmpl.h"
#define T int16_t
#define U uint16_t
#define FN(name) name##_i16
#include "ref_bits.tmpl.h"
#define T uint16_t
#define U uint16_t
#define FN(name) name##_u16
#include "ref_bits.tmpl.h"
#define T int32_t
#define U uint32_t
#define FN(name) name##_i32
#include "ref_bits.tmpl.h"
#define T uint32_t
#define U uint32_t
#define FN(name) name##_u32
#include "ref_bits.tmpl.h"
#define T int64_t
#define U uint64_t
#define FN(name) name##_i64
#include "ref_bits.tmpl.h"
#define T uint64_t
#define U uint64_t
#define FN(name) name##_u64
#include "ref_bits.tmpl.h"

ot__bits_function ot__ref_bits_find(ot__bits bits, ot_dtype dtype)
{
    static const struct {
        ot_dtype dtype;
        const ot__bits_function *functions;
    } table[] = {
        {OT_I8, bits_functions_i8},   {OT_U8, bits_functions_u8},   {OT_I16, bits_functions_i16},
        {OT_U16, bits_functions_u16}, {OT_I32, bits_functions_i32}, {OT_U32, bits_functions_u32},
        {OT_I64, bits_functions_i64}, {OT_U64, bits_functions_u64},
    };

    for (size_t i = 0; i < OT_COUNT(table); i++)
        if (table[i].dtype == dtype)
            return table[i].functions[bits];
    return NULL;
}
