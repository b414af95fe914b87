// SPDX-License-Identifier: Apache-2.0
// Padding: each axis has a table from y's index to x's, so every mode is the same copy.
#include <string.h>

#include "kernels/kernels.h"

enum { PAR_BYTES = 65536 };

static int64_t floor_mod(int64_t a, int64_t n)
{
    const int64_t m = a % n;

    return m < 0 ? m + n : m;
}

// Index in 0..n-1 of the element that stands at position `at`, which may lie outside; -1: the
// constant.
static int64_t pad_source(int64_t at, int64_t n, ot__pad_mode mode)
{
    if (at >= 0 && at < n)
        return at;
    if (mode == OT__PAD_CONSTANT || n == 0)
        return -1;
    if (mode == OT__PAD_EDGE)
        return at < 0 ? 0 : n - 1;
    if (mode == OT__PAD_WRAP)
        return floor_mod(at, n);
    if (n == 1)
        return 0;
    at = floor_mod(at, 2 * (n - 1)); // there and back again, the border once
    return at < n ? at : 2 * (n - 1) - at;
}

void ot__ref_pad_map(int64_t *map, int64_t extent, int64_t begin, int64_t end, ot__pad_mode mode)
{
    const int64_t first = begin < 0 ? -begin : 0, last = extent - (end < 0 ? -end : 0);
    const int64_t kept = OT_MAX(last - first, 0), n = extent + begin + end;

    for (int64_t i = 0; i < n; i++) {
        const int64_t source = pad_source(i - OT_MAX(begin, 0), kept, mode);

        map[i] = source < 0 ? -1 : first + source;
    }
}

typedef struct job {
    char *y;
    const char *x, *value;
    const ot__pad *pad;
    int64_t run_from, run_to; // where the last axis copies neighbours
} job;

#define TEMPLATE "kernels/move/ref_pad.tmpl.h"
#include "kernels/by_size.tmpl.h"

// A row of y, and where x's lies that it is made of.
typedef struct row_place {
    int64_t index[OT_MAX_NDIM]; // of the axes before the last
    int64_t x_at;
    int n_outside; // axes that have the constant there
} row_place;

static void enter_axis(row_place *p, const ot__pad *pad, int axis, int64_t index)
{
    const int64_t source = pad->map[axis][index];

    p->index[axis] = index;
    p->x_at += OT_MAX(source, (int64_t)0) * pad->x_stride[axis];
    p->n_outside += source < 0;
}

static void leave_axis(row_place *p, const ot__pad *pad, int axis)
{
    const int64_t source = pad->map[axis][p->index[axis]];

    p->x_at -= OT_MAX(source, (int64_t)0) * pad->x_stride[axis];
    p->n_outside -= source < 0;
}

static row_place row_place_of(const ot__pad *pad, int64_t row)
{
    row_place p = {.n_outside = 0};

    for (int k = pad->ndim - 2; k >= 0; k--) {
        enter_axis(&p, pad, k, row % pad->dim[k]);
        row /= pad->dim[k];
    }
    return p;
}

static void next_row(row_place *p, const ot__pad *pad)
{
    for (int k = pad->ndim - 2; k >= 0; k--) {
        const int64_t next = p->index[k] + 1;

        leave_axis(p, pad, k);
        enter_axis(p, pad, k, next < pad->dim[k] ? next : 0);
        if (next < pad->dim[k])
            return;
    }
}

static void pad_rows(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__pad *p = j->pad;
    const size_t row_bytes = (size_t)p->dim[p->ndim - 1] * p->size;
    row_place at = row_place_of(p, first);

    for (int64_t row = first; row < last; row++, next_row(&at, p)) {
        char *y = j->y + (size_t)row * row_bytes;

        if (at.n_outside == 0)
            OT__BY_SIZE(pad_row, p->size)(j, y, j->x + (size_t)at.x_at * p->size);
        else
            OT__BY_SIZE(pad_all, p->size)(j, y);
    }
}

void ot__ref_pad(void *y, const void *x, const void *value, const ot__pad *pad)
{
    const int last = pad->ndim - 1;
    const int64_t *map = pad->map[last], n = pad->dim[last];
    job j = {.y = y, .x = x, .value = value, .pad = pad};
    int64_t rows = 1;

    for (int k = 0; k < last; k++)
        rows *= pad->dim[k];
    if (rows == 0 || n == 0)
        return;
    for (int64_t i = 0; i<n; i += j.run_to> i ? j.run_to - i : 1) { // the longest run of neighbours
        int64_t to = i + 1;

        while (map[i] >= 0 && to < n && map[to] == map[to - 1] + 1)
            to++;
        if (map[i] >= 0 && to - i > j.run_to - j.run_from) {
            j.run_from = i;
            j.run_to = to;
        }
    }
    ot__parallel_for(rows, PAR_BYTES / (n * (int64_t)pad->size) + 1, pad_rows, &j);
}
