// SPDX-License-Identifier: Apache-2.0
// The k greatest or least elements of each line, by unsigned keys in whose order the elements are
// wanted. A few of many are kept in a heap, many are sorted.
#include <string.h>

#include "kernels/kernels.h"

enum { BLOCK = 64, RADIX = 256, CACHE_LINE = 64 };
// A heap takes about k * log(n / k) * log(k) steps beyond a look at each element, sorting a fixed
// number for each element.
enum { SORTED_MIN = 32, SORTED_SHARE = 32 };

typedef struct parts_job {
    const ot__top_k *p;
    void *scratch;
    int64_t n_parts;
} parts_job;

// NaN is greater than all, and zeros of both signs are equal.
static inline uint32_t order_f32(float v)
{
    uint32_t bits;

    v += 0.0F;
    memcpy(&bits, &v, sizeof(bits));
    bits ^= (0U - (bits >> 31)) | UINT32_C(0x80000000);
    return v != v ? UINT32_MAX : bits;
}

static inline uint64_t order_f64(double v)
{
    uint64_t bits;

    v += 0.0;
    memcpy(&bits, &v, sizeof(bits));
    bits ^= (UINT64_C(0) - (bits >> 63)) | UINT64_C(0x8000000000000000);
    return v != v ? UINT64_MAX : bits;
}

#define TEMPLATE "kernels/reduce/top_k.tmpl.h"
#define KEY uint32_t
#define ORDER(v) order_f32(v)
#define T float
#define SUFFIX f32
#include "kernels/by_one.tmpl.h"
#undef ORDER
#define ORDER(v) ((uint32_t)(v) ^ UINT32_C(0x80000000))
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#undef KEY
#undef ORDER
#define KEY uint64_t
#define ORDER(v) order_f64(v)
#define T double
#define SUFFIX f64
#include "kernels/by_one.tmpl.h"
#undef ORDER
#define ORDER(v) ((uint64_t)(v) ^ UINT64_C(0x8000000000000000))
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"
