// SPDX-License-Identifier: Apache-2.0
// Running sums along one axis.
#include "kernels/kernels.h"

typedef struct job {
    void *y;
    const void *x;
    int64_t n, inner;
    bool is_exclusive, is_reverse;
} job;

#define LOAD(v) (v)
#define ACC double
#define T float
#define FN(name) name##_f32
#include "ref_cumsum.tmpl.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "ref_cumsum.tmpl.h"
#undef T
#undef FN
#undef ACC
#undef LOAD

#define LOAD(v) ((uint64_t)(v)) // integers wrap around
#define ACC uint64_t
#define T int32_t
#define FN(name) name##_i32
#include "ref_cumsum.tmpl.h"
#undef T
#undef FN
#define T int64_t
#define FN(name) name##_i64
#include "ref_cumsum.tmpl.h"
#undef T
#undef FN

ot__cumsum_function ot__ref_cumsum_find(ot_dtype dtype)
{
    switch (dtype) {
    case OT_F32:
        return cumsum_f32;
    case OT_F64:
        return cumsum_f64;
    case OT_I32:
    case OT_U32: // the same bits
        return cumsum_i32;
    case OT_I64:
    case OT_U64:
        return cumsum_i64;
    default:
        return NULL;
    }
}
