// SPDX-License-Identifier: Apache-2.0
// Single elements that indices along one axis name: read, or written into a copy. Indices become
// offsets a few at a time, which stay in the first cache, as does a row of the copy that is written
// to. Threads never share an element of what is written to.
#include <stdatomic.h>
#include <string.h>

#include "kernels/kernels.h"

enum { CHUNK = 256, MANY_ROWS = 16, PAR_COLUMNS = 16 };

static uint32_t add_i32(int32_t a, int32_t b)
{
    return (uint32_t)a + (uint32_t)b; // wraps as the tensor types of ONNX do
}

static uint32_t mul_i32(int32_t a, int32_t b)
{
    return (uint32_t)a * (uint32_t)b;
}

static uint64_t add_words(int64_t a, int64_t b)
{
    return (uint64_t)a + (uint64_t)b;
}

static uint64_t mul_words(int64_t a, int64_t b)
{
    return (uint64_t)a * (uint64_t)b;
}

#define TEMPLATE "kernels/move/index_lines_moves.tmpl.h"
#include "kernels/by_size.tmpl.h"

#define TEMPLATE "kernels/move/index_lines_offsets.tmpl.h"
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"
#undef TEMPLATE

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define IS_NAN(v) ((v) != (v))
#define TEMPLATE "kernels/move/index_lines.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef ADD
#undef MUL
#undef IS_NAN
#define IS_NAN(v) false
#define TEMPLATE "kernels/move/index_lines.tmpl.h"
#define ADD(a, b) ((T)add_i32(a, b))
#define MUL(a, b) ((T)mul_i32(a, b))
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#undef ADD
#undef MUL
#define ADD(a, b) ((T)add_words(a, b))
#define MUL(a, b) ((T)mul_words(a, b))
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"

ot__put_function ot__index_lines_find_put(ot_dtype dtype, ot__scatter_op op)
{
    const size_t size = ot__element_size(dtype);

    if (op == OT__SCATTER_NONE)
        return size == 0 ? NULL : OT__BY_SIZE(put, size);
    switch (dtype) {
    case OT_F32:
        return combine_f32;
    case OT_F64:
        return combine_f64;
    case OT_I32:
        return combine_i32;
    case OT_I64:
        return combine_i64;
    default:
        return NULL;
    }
}

void ot__index_lines_init(ot__index_lines *e, const ot_shape *data, const ot_shape *index, int axis)
{
    bool is_open = false; // whether the last axis may be one with the next

    e->ndim = 0;
    for (int k = 0; k < data->ndim; k++) {
        if (k != axis && data->dim[k] == 1 && index->dim[k] == 1)
            continue;
        if (is_open && k != axis && data->dim[k] == index->dim[k]) {
            e->data[e->ndim - 1] *= data->dim[k];
            e->index[e->ndim - 1] *= index->dim[k];
            continue;
        }
        is_open = k != axis;
        if (k == axis)
            e->axis = e->ndim;
        e->data[e->ndim] = data->dim[k];
        e->index[e->ndim++] = index->dim[k];
    }
}

// ---- runs: indices that differ in their last coordinate alone ----

typedef struct lines_job {
    const ot__index_lines *e;
    void *y;
    const void *x, *indices, *u;
    bool is_gather;
    ot__put_function move;
    ot__scatter_op op;
    int64_t stride[OT_MAX_NDIM]; // of the indexed array
    int64_t n_runs, length;      // of indices
    _Atomic int64_t bad;         // the first index out of range so far; INT64_MAX
} lines_job;

typedef struct lines_run {
    int64_t number, at[OT_MAX_NDIM];
    int64_t base; // offset that all coordinates but the last and that of the axis give
} lines_run;

static lines_job lines_job_make(const ot__index_lines *e)
{
    lines_job j = {.e = e, .n_runs = 1, .length = e->index[e->ndim - 1], .bad = INT64_MAX};
    int64_t stride = 1;

    for (int k = e->ndim - 1; k >= 0; k--) {
        j.stride[k] = stride;
        stride *= e->data[k];
        j.n_runs *= k < e->ndim - 1 ? e->index[k] : 1;
    }
    return j;
}

static lines_run run_at(const lines_job *j, int64_t number)
{
    lines_run run = {.number = number};

    for (int k = j->e->ndim - 2; k >= 0; k--) {
        run.at[k] = number % j->e->index[k];
        number /= j->e->index[k];
        run.base += k == j->e->axis ? 0 : run.at[k] * j->stride[k];
    }
    return run;
}

static void run_next(const lines_job *j, lines_run *run)
{
    run->number++;
    for (int k = j->e->ndim - 2; k >= 0; k--) {
        const int64_t step = k == j->e->axis ? 0 : j->stride[k];

        run->base += step;
        if (++run->at[k] < j->e->index[k])
            return;
        run->base -= run->at[k] * step;
        run->at[k] = 0;
    }
}

// Keeps the least position: threads meet errors in any order.
static void note_bad_index(lines_job *j, int64_t position)
{
    int64_t extent = j->e->data[j->e->axis], index, least;

    do {
        index = ot__ref_index_get(j->indices, j->e->index_size, position++);
    } while (index >= -extent && index < extent);
    least = atomic_load(&j->bad);
    while (position - 1 < least && !atomic_compare_exchange_weak(&j->bad, &least, position - 1))
        ;
}

// Moves elements [first, last) of a run, or as many as there are before an index out of range.
static bool move_run(lines_job *j, const lines_run *run, int64_t first, int64_t last)
{
    const ot__index_lines *e = j->e;
    const bool names_columns = e->axis == e->ndim - 1;
    int64_t buffer[CHUNK];

    for (int64_t i = first; i < last; i += CHUNK) {
        const int64_t n = OT_MIN(CHUNK, last - i), position = run->number * j->length + i;
        const void *indices = (const char *)j->indices + (size_t)position * e->index_size;
        const size_t near = (size_t)(run->base + (names_columns ? 0 : i)) * e->size;
        const size_t far = (size_t)position * e->size;
        const int64_t *offset =
            (e->index_size == sizeof(int32_t) ? find_offsets_i32 : find_offsets_i64)(
                buffer, indices, n, e->data[e->axis], j->stride[e->axis], names_columns);

        if (offset == NULL) {
            note_bad_index(j, position);
            return false;
        }
        if (j->is_gather)
            j->move((char *)j->y + far, (const char *)j->x + near, offset, n, j->op);
        else
            j->move((char *)j->y + near, (const char *)j->u + far, offset, n, j->op);
    }
    return true;
}

static int64_t first_bad_index(const lines_job *j)
{
    return j->bad == INT64_MAX ? -1 : j->bad;
}

// ---- gathering: threads split y ----

static void gather_elements(void *context, int64_t first, int64_t last)
{
    lines_job *j = context;
    lines_run run = run_at(j, first / j->length);

    for (int64_t begin; (begin = run.number * j->length) < last; run_next(j, &run))
        if (!move_run(j, &run, OT_MAX(first - begin, 0), OT_MIN(last - begin, j->length)))
            return;
}

int64_t ot__index_lines_gather(void *y, const void *x, const void *indices,
                               const ot__index_lines *e)
{
    lines_job j = lines_job_make(e);

    j.y = y;
    j.x = x;
    j.indices = indices;
    j.is_gather = true;
    j.move = OT__BY_SIZE(take, e->size);
    if (j.n_runs > 0 && j.length > 0)
        ot__parallel_for(j.n_runs * j.length, OT_PAR_MIN, gather_elements, &j);
    return first_bad_index(&j);
}

// ---- scattering: threads split rows along the first axis, or columns along the last ----

static void begin_row(const lines_job *j, int64_t row)
{
    const size_t n_bytes = (size_t)j->stride[0] * j->e->size;
    const size_t at = (size_t)row * n_bytes;

    if (n_bytes == 0 || j->x == j->y)
        return;
    if (j->x == NULL)
        memset((char *)j->y + at, 0, n_bytes);
    else
        memcpy((char *)j->y + at, (const char *)j->x + at, n_bytes);
}

static void scatter_rows(void *context, int64_t first, int64_t last)
{
    lines_job *j = context;
    const int64_t runs = j->e->index[0] == 0 ? 0 : j->n_runs / j->e->index[0]; // of a row
    lines_run run = {0};
    bool is_good = runs > 0 && j->length > 0;

    if (is_good)
        run = run_at(j, first * runs);
    for (int64_t row = first; row < last; row++) {
        begin_row(j, row);
        for (int64_t i = 0; i < runs && is_good && row < j->e->index[0]; i++) {
            is_good = move_run(j, &run, 0, j->length);
            run_next(j, &run);
        }
    }
}

static void scatter_columns(void *context, int64_t first, int64_t last)
{
    lines_job *j = context;
    lines_run run = {0};

    while (run.number < j->n_runs && move_run(j, &run, first, last))
        run_next(j, &run);
}

static void begin_all(const lines_job *j)
{
    const int64_t count = j->stride[0] * j->e->data[0];
    const uint64_t zero[2] = {0};

    if (j->x == NULL)
        ot__ref_fill(j->y, zero, count, j->e->size);
    else
        ot__ref_copy_bytes(j->y, j->x, (size_t)count * j->e->size);
}

int64_t ot__index_lines_scatter(void *y, const void *x, const void *indices, const void *u,
                                const ot__index_lines *e, ot__put_function put, ot__scatter_op op)
{
    lines_job j = lines_job_make(e);
    const bool is_last = e->axis == e->ndim - 1;

    j.y = y;
    j.x = x;
    j.indices = indices;
    j.u = u;
    j.move = put;
    j.op = op;
    if (e->axis > 0 && (is_last || e->data[0] >= MANY_ROWS)) {
        ot__parallel_for(e->data[0], OT_PAR_MIN / (j.stride[0] + 1) + 1, scatter_rows, &j);
        return first_bad_index(&j);
    }
    begin_all(&j);
    if (j.n_runs > 0 && j.length > 0)
        ot__parallel_for(j.length, is_last ? j.length : OT_PAR_MIN / j.n_runs + PAR_COLUMNS,
                         scatter_columns, &j);
    return first_bad_index(&j);
}
