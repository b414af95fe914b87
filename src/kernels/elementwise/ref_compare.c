// SPDX-License-Identifier: Apache-2.0
// Comparisons of every numeric element type, and of strings.
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

#include "kernels/elementwise/pairs.h"

#define LOAD(v) (v)
#define NUMBER T
#define IF_FLOAT(...)
#define TEMPLATE "kernels/elementwise/ref_compare.tmpl.h"
#include "kernels/by_integer.tmpl.h"
#undef IF_FLOAT

#define IF_FLOAT(...) __VA_ARGS__
#define TEMPLATE "kernels/elementwise/ref_compare.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef NUMBER
#undef LOAD
#define NUMBER float
#define T uint16_t
#define FN(name) name##_f16
#define LOAD(v) ot__f16_to_f32(v)
#include "ref_compare.tmpl.h"
#undef FN
#undef LOAD
#define FN(name) name##_bf16
#define LOAD(v) ot__bf16_to_f32(v)
#include "ref_compare.tmpl.h"

// Texts have an equality, and no order in ONNX.
static void equal_strings(void *to, const void *x0, const void *x1, int64_t n)
{
    const ot__bytes *a = x0, *b = x1;
    uint8_t *y = to;

    for (int64_t k = 0; k < n; k++)
        y[k] = a[k].size == b[k].size &&
               (a[k].size == 0 || memcmp(a[k].data, b[k].data, a[k].size) == 0);
}

static const ot__pair_function compare_functions_strings[OT__N_COMPARISONS] = {[OT__COMPARE_equal] =
                                                                                   equal_strings};

ot__pair_function ot__ref_compare_find(ot__comparison comparison, ot_dtype dtype)
{
    static const struct {
        ot_dtype dtype;
        const ot__pair_function *functions;
    } table[] = {
        {OT_F32, compare_functions_f32}, {OT_F64, compare_functions_f64},
        {OT_I8, compare_functions_i8},   {OT_I16, compare_functions_i16},
        {OT_I32, compare_functions_i32}, {OT_I64, compare_functions_i64},
        {OT_U8, compare_functions_u8},   {OT_U16, compare_functions_u16},
        {OT_U32, compare_functions_u32}, {OT_U64, compare_functions_u64},
        {OT_F16, compare_functions_f16}, {OT_BF16, compare_functions_bf16},
        {OT_BOOL, compare_functions_u8}, {OT_STRING, compare_functions_strings},
    };

    for (size_t i = 0; i < OT_COUNT(table); i++)
        if (table[i].dtype == dtype)
            return table[i].functions[comparison];
    return NULL;
}
