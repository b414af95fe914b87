// SPDX-License-Identifier: Apache-2.0
// Whether the elements of a tensor are finite, told by their exponents: the loops are of integers.
#include <math.h>
#include <string.h>

#include "tensor/tensor.h"

enum { PART_ELEMENTS = 512 };

#define T uint16_t
#define EXPONENT ((T)0x7c00)
#define FN(name) name##_f16
#include "finite.tmpl.h"
#undef EXPONENT
#undef FN

#define EXPONENT ((T)0x7f80)
#define FN(name) name##_bf16
#include "finite.tmpl.h"
#undef T
#undef EXPONENT
#undef FN

#define T uint32_t
#define EXPONENT UINT32_C(0x7f800000)
#define FN(name) name##_f32
#include "finite.tmpl.h"
#undef T
#undef EXPONENT
#undef FN

#define T uint64_t
#define EXPONENT UINT64_C(0x7ff0000000000000)
#define FN(name) name##_f64
#include "finite.tmpl.h"
#undef T
#undef EXPONENT
#undef FN

bool ot__tensor_is_finite(const ot_tensor *tensor)
{
    const int64_t n = ot_tensor_count(tensor);

    switch (tensor->dtype) {
    case OT_F16:
        return is_finite_f16(tensor->data, n);
    case OT_BF16:
        return is_finite_bf16(tensor->data, n);
    case OT_F32:
        return is_finite_f32(tensor->data, n);
    case OT_F64:
        return is_finite_f64(tensor->data, n);
    default:
        return true;
    }
}

int64_t ot__tensor_find_not_finite(const ot_tensor *tensor)
{
    if (!ot__tensor_is_finite(tensor))
        for (int64_t i = 0; i < ot_tensor_count(tensor); i++)
            if (!isfinite(ot__tensor_get_f64(tensor, i)))
                return i;
    return -1;
}
