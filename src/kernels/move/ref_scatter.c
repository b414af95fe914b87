// SPDX-License-Identifier: Apache-2.0
// Writing slices at given offsets. Two slices may meet, so threads never share an element of y:
// they split y itself, or the columns of the slices, and each goes through all slices in order.
#include <string.h>

#include "kernels/kernels.h"

enum { WIDE = 32, PAR_COLUMNS = 16 };

typedef struct job {
    void *y;
    const void *x; // what y begins as
    const void *u;
    const int64_t *offset;
    int64_t n, slice, count;
    size_t size;
    ot__scatter_op op;
    bool by_columns;
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

    return j->by_columns ? (part){first, last} : (part){from, to};
}

// A thread that copies a share of y has it in its cache.
static void copy_share(const job *j, int64_t first, int64_t last)
{
    if (!j->by_columns && j->y != j->x)
        memcpy((char *)j->y + (size_t)first * j->size, (const char *)j->x + (size_t)first * j->size,
               (size_t)(last - first) * j->size);
}

// Many slices may be the same few of y over and over, which shares of columns have alike.
static void scatter_job(job *j, void (*run)(void *context, int64_t first, int64_t last))
{
    j->by_columns = j->slice >= WIDE && (j->y == j->x || j->n * j->slice > j->count);
    if (j->by_columns || j->n == 0 || j->slice == 0)
        ot__ref_copy_bytes(j->y, j->x, (size_t)j->count * j->size);
    if (j->n > 0 && j->slice > 0)
        ot__parallel_for(j->by_columns ? j->slice : j->count,
                         j->by_columns ? PAR_COLUMNS : OT_PAR_MIN, run, j);
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
