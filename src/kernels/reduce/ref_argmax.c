// SPDX-License-Identifier: Apache-2.0
// Position of the greatest or least element along one axis.
#include "kernels/kernels.h"

typedef struct job {
    int64_t *y;
    const void *x;
    int64_t n, inner;
    bool is_max, is_last;
} job;

#define IS_NAN(v) ((v) != (v))
#define LOAD(v) (v)
#define ACC float
#define T float
#define FN(name) name##_f32
#include "ref_argmax.tmpl.h"
#undef T
#undef FN
#undef ACC
#define ACC double
#define T double
#define FN(name) name##_f64
#include "ref_argmax.tmpl.h"
#undef T
#undef FN
#undef ACC
#undef LOAD
#define ACC float
#define T uint16_t
#define LOAD(v) ot__f16_to_f32(v)
#define FN(name) name##_f16
#include "ref_argmax.tmpl.h"
#undef FN
#undef LOAD
#define LOAD(v) ot__bf16_to_f32(v)
#define FN(name) name##_bf16
#include "ref_argmax.tmpl.h"
#undef FN
#undef LOAD
#undef T
#undef ACC
#undef IS_NAN

#define IS_NAN(v) false
#define LOAD(v) (v)
#define ACC int64_t
#define T int64_t
#define FN(name) name##_i64
#include "ref_argmax.tmpl.h"
#undef T
#undef FN
#define T int32_t
#define FN(name) name##_i32
#include "ref_argmax.tmpl.h"
#undef T
#undef FN
#define T int8_t
#define FN(name) name##_i8
#include "ref_argmax.tmpl.h"
#undef T
#undef FN
#define T uint8_t
#define FN(name) name##_u8
#include "ref_argmax.tmpl.h"
#undef T
#undef FN

typedef struct type_entry {
    ot_dtype dtype;
    ot__arg_function function;
} type_entry;
static const type_entry type_table[] = {
    {OT_F32, arg_f32}, {OT_F64, arg_f64}, {OT_F16, arg_f16}, {OT_BF16, arg_bf16},
    {OT_I64, arg_i64}, {OT_I32, arg_i32}, {OT_I8, arg_i8},   {OT_U8, arg_u8},
};

ot__arg_function ot__ref_arg_find(ot_dtype dtype)
{
    for (size_t i = 0; i < OT_COUNT(type_table); i++) {
        if (type_table[i].dtype == dtype)
            return type_table[i].function;
    }
    return NULL;
}
