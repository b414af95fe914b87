// SPDX-License-Identifier: Apache-2.0
// Boxes: parts of tensors.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/sharding.h"
#include "tensor/tensor.h"

int ot_box_intersect(const ot_box *a, const ot_box *b, ot_box *out)
{
    ot_box both = {0};
    bool is_empty =
        a == NULL || b == NULL || a->ndim != b->ndim || a->ndim < 0 || a->ndim > OT_MAX_NDIM;

    if (!is_empty)
        both.ndim = a->ndim;
    for (int k = 0; k < both.ndim; k++) {
        const int64_t end = OT_MIN(a->offset[k] + a->size[k], b->offset[k] + b->size[k]);

        both.offset[k] = OT_MAX(a->offset[k], b->offset[k]);
        both.size[k] = end - both.offset[k];
        is_empty = is_empty || both.size[k] <= 0;
    }
    if (out != NULL)
        *out = is_empty ? (ot_box){0} : both;
    return !is_empty;
}

// ---- partitions ----

static ot_status check_box(const ot_shape *shape, const ot_box *box, int64_t number)
{
    if (box->ndim != shape->ndim)
        return ot__error(OT_ERR_INVALID, "box %" PRId64 " has %d axes, expected %d", number,
                         box->ndim, shape->ndim);
    for (int k = 0; k < shape->ndim; k++) {
        if (box->size[k] <= 0)
            return ot__error(OT_ERR_INVALID,
                             "box %" PRId64 " has %" PRId64 " elements of axis %d, expected some",
                             number, box->size[k], k);
        if (box->offset[k] < 0 || box->offset[k] > shape->dim[k] ||
            box->size[k] > shape->dim[k] - box->offset[k])
            return ot__error(OT_ERR_INVALID,
                             "box %" PRId64 " has %" PRId64 " elements of axis %d from %" PRId64
                             " on, of %" PRId64,
                             number, box->size[k], k, box->offset[k], shape->dim[k]);
    }
    return OT_OK;
}

int64_t ot__box_count(const ot_box *box)
{
    int64_t volume = 1;

    for (int k = 0; k < box->ndim; k++)
        volume *= box->size[k];
    return volume;
}

typedef struct place {
    int64_t offset, number;
} place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void sort_along(place *places, const ot_box *boxes, int64_t n_boxes, int axis)
{
    for (int64_t i = 0; i < n_boxes; i++)
        places[i] = (place){boxes[i].offset[axis], i};
    qsort(places, (size_t)n_boxes, sizeof *places, compare_places);
}

// The axis along which boxes begin at the most places: there the fewest stand side by side.
static int best_axis(place *places, const ot_box *boxes, int64_t n_boxes)
{
    int64_t most = 0;
    int best = 0;

    for (int k = 0; k < boxes[0].ndim; k++) {
        int64_t n = 1;

        sort_along(places, boxes, n_boxes, k);
        for (int64_t i = 1; i < n_boxes; i++)
            n += places[i].offset != places[i - 1].offset;
        if (n > most) {
            most = n;
            best = k;
        }
    }
    return best;
}

// In the order of their beginnings along an axis, a box can only meet those before it that have not
// ended yet; they are kept in `open`.
static ot_status check_disjoint(place *places, int64_t *open, const ot_box *boxes, int64_t n_boxes)
{
    const int axis = best_axis(places, boxes, n_boxes);
    int64_t n_open = 0;

    sort_along(places, boxes, n_boxes, axis);
    for (int64_t i = 0; i < n_boxes; i++) {
        const ot_box *box = &boxes[places[i].number];
        int64_t n_kept = 0;

        for (int64_t j = 0; j < n_open; j++) {
            const ot_box *other = &boxes[open[j]];

            if (other->offset[axis] + other->size[axis] <= box->offset[axis])
                continue;
            if (ot_box_intersect(box, other, NULL))
                return ot__error(
                    OT_ERR_INVALID, "boxes %" PRId64 " and %" PRId64 " have elements in common",
                    OT_MIN(open[j], places[i].number), OT_MAX(open[j], places[i].number));
            open[n_kept++] = open[j];
        }
        open[n_kept++] = places[i].number;
        n_open = n_kept;
    }
    return OT_OK;
}

static ot_status check_all_disjoint(const ot_box *boxes, int64_t n_boxes)
{
    place *places = ot__alloc_zero((size_t)n_boxes, sizeof *places);
    int64_t *open = ot__alloc_zero((size_t)n_boxes, sizeof *open);
    ot_status st = ot__made(places != NULL && open != NULL);

    if (boxes[0].ndim > 0)
        OT_THEN(st, check_disjoint(places, open, boxes, n_boxes));
    else if (n_boxes > 1) // elements of a scalar
        OT_THEN(st, ot__error(OT_ERR_INVALID, "boxes 0 and 1 have elements in common"));
    ot__free(places);
    ot__free(open);
    return st;
}

ot_status ot__boxes_check(const ot_shape *shape, const ot_box *boxes, int64_t n_boxes)
{
    int64_t count;

    OT_TRY(ot__shape_check(shape, &count));
    for (int64_t i = 0; i < n_boxes; i++)
        OT_TRY(check_box(shape, &boxes[i], i));
    return n_boxes > 0 ? check_all_disjoint(boxes, n_boxes) : OT_OK;
}

ot_status ot_box_check_partition(const ot_shape *shape, const ot_box *boxes, int64_t n_boxes)
{
    int64_t count, covered = 0;

    OT_TRY(OT_GIVEN(shape));
    OT_TRY(OT_GIVEN_MANY(boxes, n_boxes));
    OT_TRY(ot__boxes_check(shape, boxes, n_boxes));
    (void)ot__shape_count(shape, &count);
    for (int64_t i = 0; i < n_boxes; i++)
        covered += ot__box_count(&boxes[i]);
    if (covered != count)
        return ot__error(OT_ERR_INVALID, "%" PRId64 " of %" PRId64 " elements are in no box",
                         count - covered, count);
    return OT_OK;
}

// ---- ranges ----

typedef struct range_boxes {
    const ot_shape *shape;
    ot_box now; // one element of the axes before the one at hand
    ot_box *boxes;
    int n;
} range_boxes;

// Rows `from` to `to` of an axis; of the axes after it, everything.
static void add_box_of_rows(range_boxes *r, int axis, int64_t from, int64_t to)
{
    ot_box *box = &r->boxes[r->n];

    if (from >= to)
        return;
    *box = r->now;
    box->ndim = r->shape->ndim;
    for (int k = axis; k < r->shape->ndim; k++) {
        box->offset[k] = k == axis ? from : 0;
        box->size[k] = k == axis ? to - from : r->shape->dim[k];
    }
    r->n++;
}

// Elements `begin` to `end` of what the axes from `axis` on span: the end of a row, whole rows, the
// beginning of a row.
static void add_range_boxes(range_boxes *r, int axis, int64_t begin, int64_t end)
{
    int64_t row = 1, first, last;

    if (begin >= end)
        return;
    for (int k = axis + 1; k < r->shape->ndim; k++)
        row *= r->shape->dim[k];
    first = begin / row;
    last = end / row;
    if (begin % row == 0 && end % row == 0) { // always so for the last axis
        add_box_of_rows(r, axis, first, last);
        return;
    }
    r->now.size[axis] = 1;
    r->now.offset[axis] = first;
    if (first == last) {
        add_range_boxes(r, axis + 1, begin % row, end % row);
        return;
    }
    if (begin % row != 0) {
        add_range_boxes(r, axis + 1, begin % row, row);
        first++;
    }
    add_box_of_rows(r, axis, first, last);
    r->now.size[axis] = 1;
    r->now.offset[axis] = last;
    add_range_boxes(r, axis + 1, 0, end % row);
}

ot_status ot_box_of_range(const ot_shape *shape, int64_t begin, int64_t end, ot_box *boxes,
                          int *n_boxes)
{
    range_boxes r = {.shape = shape, .boxes = boxes};
    int64_t count;

    OT_TRY(OT_GIVEN(n_boxes));
    *n_boxes = 0;
    OT_TRY(OT_GIVEN(shape));
    OT_TRY(OT_GIVEN(boxes));
    OT_TRY(ot__shape_check(shape, &count));
    if (begin < 0 || begin > end || end > count)
        return ot__error(OT_ERR_INVALID,
                         "elements %" PRId64 " to %" PRId64 " of a tensor that has %" PRId64, begin,
                         end, count);
    if (shape->ndim > 0)
        add_range_boxes(&r, 0, begin, end);
    else if (begin < end)
        boxes[r.n++] = (ot_box){0};
    *n_boxes = r.n;
    return OT_OK;
}

// ---- elements ----

// Axes that both tensors and the box have whole are one with the axis before them.
static int join_whole_axes(const ot_shape *to_shape, const ot_shape *from_shape,
                           const int64_t *size, int64_t *row)
{
    int n = to_shape->ndim;

    *row = 1;
    while (n > 0 && size[n - 1] == to_shape->dim[n - 1] && size[n - 1] == from_shape->dim[n - 1])
        *row *= size[--n];
    if (n > 0)
        *row *= size[--n];
    return n;
}

void ot__box_copy(void *to, const ot_shape *to_shape, const int64_t *to_offset, const void *from,
                  const ot_shape *from_shape, const int64_t *from_offset, const int64_t *size,
                  size_t element_size)
{
    int64_t to_strides[OT_MAX_NDIM], from_strides[OT_MAX_NDIM], index[OT_MAX_NDIM] = {0};
    int64_t to_at = 0, from_at = 0, row;
    const int n = join_whole_axes(to_shape, from_shape, size, &row);
    int k;

    for (k = 0; k < to_shape->ndim; k++)
        if (size[k] == 0)
            return;
    ot__shape_strides(to_shape, to_strides);
    ot__shape_strides(from_shape, from_strides);
    for (k = 0; k < to_shape->ndim; k++) {
        to_at += to_offset[k] * to_strides[k];
        from_at += from_offset[k] * from_strides[k];
    }
    do {
        memcpy((char *)to + (size_t)to_at * element_size,
               (const char *)from + (size_t)from_at * element_size, (size_t)row * element_size);
        for (k = n - 1; k >= 0; k--) { // the next row
            to_at += to_strides[k];
            from_at += from_strides[k];
            if (++index[k] < size[k])
                break;
            to_at -= size[k] * to_strides[k];
            from_at -= size[k] * from_strides[k];
            index[k] = 0;
        }
    } while (k >= 0);
}
