// SPDX-License-Identifier: Apache-2.0
// Conversion between the element types that C has: a loop each, short enough to become vector code.
// Elements may lie at any address (files).
#include <stdint.h>

#include "tensor/tensor.h"

// M(dtype, name, type, kind, least, most, above): of integers the least and the largest number, and
// the first one above.
#define PLAIN_TYPES(M)                                                                             \
    M(OT_F32, f32, float, FLOAT, 0, 0, 0)                                                          \
    M(OT_F64, f64, double, FLOAT, 0, 0, 0)                                                         \
    M(OT_I8, i8, int8_t, INT, INT8_MIN, INT8_MAX, 0x1p7)                                           \
    M(OT_I16, i16, int16_t, INT, INT16_MIN, INT16_MAX, 0x1p15)                                     \
    M(OT_I32, i32, int32_t, INT, INT32_MIN, INT32_MAX, 0x1p31)                                     \
    M(OT_I64, i64, int64_t, INT, INT64_MIN, INT64_MAX, 0x1p63)                                     \
    M(OT_U8, u8, uint8_t, INT, 0, UINT8_MAX, 0x1p8)                                                \
    M(OT_U16, u16, uint16_t, INT, 0, UINT16_MAX, 0x1p16)                                           \
    M(OT_U32, u32, uint32_t, INT, 0, UINT32_MAX, 0x1p32)                                           \
    M(OT_U64, u64, uint64_t, INT, 0, UINT64_MAX, 0x1p64)                                           \
    M(OT_BOOL, b8, uint8_t, BOOL, 0, 0, 0)

#define DECLARE_TYPE(dtype, name, type, kind, least, most, above)                                  \
    typedef type any_##name __attribute__((aligned(1), may_alias));
PLAIN_TYPES(DECLARE_TYPE)

enum { PLAIN_END = OT_U64 + 1 };

// x in the other type: integers keep their low bits, floats round once.
#define FROM_FLOAT_TO_FLOAT(x, type, least, most, above) (type)(x)
#define FROM_FLOAT_TO_BOOL(x, type, least, most, above) (type)((x) != 0)
// Toward zero; outside the type's range its nearest end, NaN gives 0: nothing is undefined.
#define FROM_FLOAT_TO_INT(x, type, least, most, above)                                             \
    ((x) != (x)                      ? (type)0                                                     \
     : (double)(x) >= (above)        ? (type)(most)                                                \
     : (double)(x) < (double)(least) ? (type)(least)                                               \
                                     : (type)(x))
#define FROM_INT_TO_FLOAT(x, type, least, most, above) (type)(x)
#define FROM_INT_TO_INT(x, type, least, most, above) (type)(x)
#define FROM_INT_TO_BOOL(x, type, least, most, above) (type)((x) != 0)
// Any byte but 0 is true.
#define FROM_BOOL_TO_FLOAT(x, type, least, most, above) (type)((x) != 0)
#define FROM_BOOL_TO_INT(x, type, least, most, above) (type)((x) != 0)
#define FROM_BOOL_TO_BOOL(x, type, least, most, above) (type)((x) != 0)

#define FROM f32
#define KIND FLOAT
#include "tensor/convert_plain.tmpl.h"
#define FROM f64
#define KIND FLOAT
#include "tensor/convert_plain.tmpl.h"
#define FROM i8
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM i16
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM i32
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM i64
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM u8
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM u16
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM u32
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM u64
#define KIND INT
#include "tensor/convert_plain.tmpl.h"
#define FROM b8
#define KIND BOOL
#include "tensor/convert_plain.tmpl.h"

ot__plain_loop ot__plain_loop_of(ot_dtype to, ot_dtype from)
{
    static const ot__plain_loop *const loops[PLAIN_END] = {
#define PLAIN_ROW(dtype, name, type, kind, least, most, above) [dtype] = convert_##name##_to_each,
        PLAIN_TYPES(PLAIN_ROW)};
    const bool are_known = (size_t)to < PLAIN_END && (size_t)from < PLAIN_END;

    return are_known && loops[from] != NULL ? loops[from][to] : NULL;
}
