// SPDX-License-Identifier: Apache-2.0
// Comparisons of every numeric element type, and of texts.
#include <string.h>

#include "kernels/kernels.h"

#define LOAD(v) (v)
#define T float
#define FN(name) name##_f32
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T int8_t
#define FN(name) name##_i8
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T int16_t
#define FN(name) name##_i16
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T int32_t
#define FN(name) name##_i32
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T int64_t
#define FN(name) name##_i64
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T uint8_t
#define FN(name) name##_u8
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T uint16_t
#define FN(name) name##_u16
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T uint32_t
#define FN(name) name##_u32
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#define T uint64_t
#define FN(name) name##_u64
#include "ref_compare.tmpl.h"
#undef T
#undef FN
#undef LOAD

#define T uint16_t
#define LOAD(v) ot__f16_to_f32(v)
#define FN(name) name##_f16
#include "ref_compare.tmpl.h"
#undef LOAD
#undef FN
#define LOAD(v) ot__bf16_to_f32(v)
#define FN(name) name##_bf16
#include "ref_compare.tmpl.h"
#undef LOAD
#undef FN
#undef T

// Texts have an equality, and no order in ONNX.
static void equal_texts(uint8_t *y, const void *x0, const void *x1, int64_t n)
{
    const ot__bytes *a = x0, *b = x1;

    for (int64_t k = 0; k < n; k++)
        y[k] = a[k].size == b[k].size &&
               (a[k].size == 0 || memcmp(a[k].data, b[k].data, a[k].size) == 0);
}

static const ot__compare_function functions_texts[OT__N_COMPARISONS] = {[OT__EQUAL] = equal_texts};

ot__compare_function ot__ref_compare_find(ot__comparison comparison, ot_dtype dtype)
{
    static const struct {
        ot_dtype dtype;
        const ot__compare_function *functions;
    } table[] = {
        {OT_F32, functions_f32}, {OT_F64, functions_f64},      {OT_I8, functions_i8},
        {OT_I16, functions_i16}, {OT_I32, functions_i32},      {OT_I64, functions_i64},
        {OT_U8, functions_u8},   {OT_U16, functions_u16},      {OT_U32, functions_u32},
        {OT_U64, functions_u64}, {OT_F16, functions_f16},      {OT_BF16, functions_bf16},
        {OT_BOOL, functions_u8}, {OT_STRING, functions_texts},
    };

    for (size_t i = 0; i < OT_COUNT(table); i++)
        if (table[i].dtype == dtype)
            return table[i].functions[comparison];
    return NULL;
}
