// SPDX-License-Identifier: Apache-2.0
// Copies between strided arrays: transposing, slicing, concatenating, repeating and stretching are
// all this.
#include <string.h>

#include "kernels/kernels.h"

enum { BLOCK = 16, ROWS = 64, PAR_BYTES = 65536 };

void ot__strided_add_axis(ot__strided *s, int64_t dim, int64_t x_stride, int64_t y_stride)
{
    s->dim[s->ndim] = dim;
    s->x_stride[s->ndim] = x_stride;
    s->y_stride[s->ndim] = y_stride;
    s->ndim++;
}

void ot__strided_simplify(ot__strided *s)
{
    ot__strided out = {.x_offset = s->x_offset, .y_offset = s->y_offset, .size = s->size};

    for (int k = 0; k < s->ndim; k++) {
        const int last = out.ndim - 1;

        if (s->dim[k] == 1)
            continue;
        if (s->dim[k] == 0) { // nothing to copy
            out.ndim = 0;
            ot__strided_add_axis(&out, 0, 1, 1);
            break;
        }
        if (last >= 0 && out.x_stride[last] == s->x_stride[k] * s->dim[k] &&
            out.y_stride[last] == s->y_stride[k] * s->dim[k]) {
            out.dim[last] *= s->dim[k];
            out.x_stride[last] = s->x_stride[k];
            out.y_stride[last] = s->y_stride[k];
        } else {
            ot__strided_add_axis(&out, s->dim[k], s->x_stride[k], s->y_stride[k]);
        }
    }
    if (out.ndim == 0)
        ot__strided_add_axis(&out, 1, 1, 1);
    *s = out;
}

// One copy split over threads: `n_outer` combinations of the outer axes, times `n_split` parts of
// the inner ones.
typedef struct job {
    const ot__strided *s; // inner axes last
    void *y;
    const void *x;
    int n_outer_axes;
    int64_t n_split, split; // parts of the axis behind the outer ones, of `split` elements
} job;

// Offsets of the outer combination number `i`.
static void outer_offsets(const job *j, int64_t i, int64_t *y_at, int64_t *x_at)
{
    *y_at = j->s->y_offset;
    *x_at = j->s->x_offset;
    for (int k = j->n_outer_axes - 1; k >= 0; k--) {
        const int64_t at = i % j->s->dim[k];

        i /= j->s->dim[k];
        *y_at += at * j->s->y_stride[k];
        *x_at += at * j->s->x_stride[k];
    }
}

#define TEMPLATE "kernels/move/ref_strided.tmpl.h"
#include "kernels/by_size.tmpl.h"

// The axis along which x is contiguous when that is not the last one: -1 when rows do.
static int find_transposed_axis(const ot__strided *s)
{
    const int last = s->ndim - 1;

    if (s->x_stride[last] == 1 || s->x_stride[last] == 0 || s->dim[last] < 4)
        return -1;
    for (int k = 0; k < last; k++) {
        if (s->x_stride[k] == 1 && s->dim[k] >= 4)
            return k;
    }
    return -1;
}

static void move_axis_before_last(ot__strided *s, int axis)
{
    const int to = s->ndim - 2;
    const int64_t dim = s->dim[axis], x_stride = s->x_stride[axis], y_stride = s->y_stride[axis];

    for (int k = axis; k < to; k++) {
        s->dim[k] = s->dim[k + 1];
        s->x_stride[k] = s->x_stride[k + 1];
        s->y_stride[k] = s->y_stride[k + 1];
    }
    s->dim[to] = dim;
    s->x_stride[to] = x_stride;
    s->y_stride[to] = y_stride;
}

static int64_t product_of_dims(const int64_t *dim, int n)
{
    int64_t count = 1;

    for (int k = 0; k < n; k++)
        count *= dim[k];
    return count;
}

void ot__ref_strided_copy(void *y, const void *x, const ot__strided *s)
{
    ot__strided moved;
    job j = {.s = s, .y = y, .x = x};
    int64_t per_item;
    const int axis = find_transposed_axis(s);

    if (s->dim[s->ndim - 1] == 0)
        return;
    if (axis >= 0) {
        moved = *s;
        move_axis_before_last(&moved, axis);
        j.s = &moved;
        j.n_outer_axes = s->ndim - 2;
        j.split = ROWS;
        per_item = ROWS * moved.dim[s->ndim - 1];
    } else {
        j.n_outer_axes = s->ndim - 1;
        j.split = s->ndim == 1 ? PAR_BYTES : s->dim[s->ndim - 1]; // a lone row is cut into parts
        per_item = OT_MIN(j.split, s->dim[s->ndim - 1]);
    }
    j.n_split = (j.s->dim[j.n_outer_axes] + j.split - 1) / j.split;
    ot__parallel_for(product_of_dims(j.s->dim, j.n_outer_axes) * j.n_split,
                     PAR_BYTES / (per_item * (int64_t)s->size) + 1,
                     axis >= 0 ? OT__BY_SIZE(tiles, s->size) : OT__BY_SIZE(rows, s->size), &j);
}
