// SPDX-License-Identifier: Apache-2.0
// Functions of the bits of every integer type.
#include "kernels/kernels.h"

#include "kernels/elementwise/pairs.h"

#define NUMBER T
#define LOAD(v) (v)
#define WIDTH (8 * sizeof(T))
#define TEMPLATE "kernels/elementwise/ref_bits.tmpl.h"
#include "kernels/by_integer.tmpl.h"

ot__pair_function ot__ref_bits_find(ot__bits bits, ot_dtype dtype)
{
    static const struct {
        ot_dtype dtype;
        const ot__pair_function *functions;
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
