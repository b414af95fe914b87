// SPDX-License-Identifier: Apache-2.0
// Writing slices at given offsets. Two slices may meet, so threads never share an element of y:
// they split the columns of the slices where these are wide, otherwise y itself, and each goes
// through all slices in order.
#include <string.h>

#include "kernels/kernels.h"

enum { WIDE = 32, PAR_COLUMNS = 16 };

typedef struct job {
    void *y;
    const void *u;
    const int64_t *offset;
    int64_t n, slice;
    ot__scatter_op op;
} job;

static int64_t add_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b); // wraps as the tensor types of ONNX do
}

static int64_t mul_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

// Part of every slice that thread's share [first, last) covers.
typedef struct part {
    int64_t from, to;
} part;

static part part_of_slice(const job *j, int64_t i, int64_t first, int64_t last)
{
    const int64_t from = OT_MAX(first - j->offset[i], 0);
    const int64_t to = OT_MIN(last - j->offset[i], j->slice);

    return j->slice >= WIDE ? (part){first, last} : (part){from, to};
}

#define TEMPLATE "kernels/move/ref_scatter_set.tmpl.h"
#include "kernels/by_size.tmpl.h"

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define IS_NAN(v) ((v) != (v))
#define TEMPLATE "kernels/move/ref_scatter.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef ADD
#undef MUL
#undef IS_NAN
#define ADD(a, b) ((T)add_i64(a, b))
#define MUL(a, b) ((T)mul_i64(a, b))
#define IS_NAN(v) false
#define TEMPLATE "kernels/move/ref_scatter.tmpl.h"
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"

ot__scatter_function ot__ref_scatter_find(ot_dtype dtype, ot__scatter_op op)
{
    const size_t size = ot__element_size(dtype);

    if (op == OT__SCATTER_NONE)
        return size == 0 ? NULL : OT__BY_SIZE(set, size);
    switch (dtype) {
    case OT_F32:
        return scatter_f32;
    case OT_F64:
        return scatter_f64;
    case OT_I32:
        return scatter_i32;
    case OT_I64:
        return scatter_i64;
    default:
        return NULL;
    }
}
