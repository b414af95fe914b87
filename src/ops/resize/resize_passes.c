// SPDX-License-Identifier: Apache-2.0
// Resizing as passes along one axis each, and the memory that their sums take.
#include <math.h>

#include "ops/resize/resize.h"

// ---- how many sums ----

void ot__resize_count(const ot__resize_line *lines, int n, int64_t *n_pairs)
{
    for (int k = 0; k < n; k++)
        n_pairs[k] = ot__resize_map(&lines[k], NULL);
}

// Of a line that grows every element is made of few; of one that shrinks to o elements of n each of
// about 4 n / o, as the scale is at least o / n. Only a crop says nothing of its scale.
void ot__resize_bound(const ot__resize *r, const ot_shape *x, const ot_shape *y, int64_t *n_pairs)
{
    enum { NEIGHBOURS = 8, OF_EACH = 4 };

    for (int k = 0; k < x->ndim; k++) {
        const int64_t in = x->dim[k], out = y->dim[k];

        if (!r->line.antialias)
            n_pairs[k] = out * OT_MIN(in, OF_EACH);
        else if (r->line.place == OT__PLACE_CROP || r->aspect != OT__ASPECT_STRETCH)
            n_pairs[k] = ot__mul_overflows(out, in, &n_pairs[k]) ? INT64_MAX : n_pairs[k];
        else
            n_pairs[k] = NEIGHBOURS * out + OF_EACH * in;
    }
}

// ---- memory ----

// Of a list of n + 1 starts, and of pairs.
static bool add_map_bytes(int64_t n, int64_t n_pairs, size_t *n_bytes)
{
    const int64_t most = INT64_MAX / 64;

    if (n > most || n_pairs > most ||
        *n_bytes > (size_t)INT64_MAX / 2 - (size_t)(n + 1 + 2 * n_pairs) * sizeof(int64_t))
        return false;
    *n_bytes += (size_t)(n + 1 + 2 * n_pairs) * sizeof(int64_t);
    return true;
}

bool ot__resize_bytes(const ot_shape *x, const ot_shape *y, const int64_t *n_pairs,
                      bool is_gradient, size_t *n_bytes)
{
    *n_bytes = 0;
    for (int k = 0; k < x->ndim; k++)
        if (!add_map_bytes(y->dim[k], n_pairs[k], n_bytes) ||
            (is_gradient && !add_map_bytes(x->dim[k], n_pairs[k], n_bytes)))
            return false;
    return true;
}

static void place_map(ot__line_map *map, int64_t to, int64_t n_pairs, char **at)
{
    map->start = (int64_t *)(void *)*at;
    map->index = map->start + to + 1;
    map->weight = (double *)(void *)(map->index + n_pairs);
    *at = (char *)(map->weight + n_pairs);
}

// ---- passes ----

// The axes, those that shrink most first.
static void list_axes_by_ratio(const ot_shape *from, const ot_shape *to, int *axes)
{
    for (int k = 0; k < from->ndim; k++) {
        int at = k;

        while (at > 0 && (double)to->dim[k] * (double)from->dim[axes[at - 1]] <
                             (double)to->dim[axes[at - 1]] * (double)from->dim[k]) {
            axes[at] = axes[at - 1];
            at--;
        }
        axes[at] = k;
    }
}

static int64_t product_of_others(const ot_shape *shape, int first, int last)
{
    int64_t product = 1;

    for (int k = first; k < last; k++)
        product *= shape->dim[k];
    return product;
}

int64_t ot__resize_most(const ot_shape *x, const ot_shape *y, bool is_gradient)
{
    const ot_shape *from = is_gradient ? y : x, *to = is_gradient ? x : y;
    ot_shape now = *from;
    int axes[OT_MAX_NDIM];
    int64_t most = 0;

    list_axes_by_ratio(from, to, axes);
    for (int i = 0; i < x->ndim; i++) {
        now.dim[axes[i]] = to->dim[axes[i]];
        most = OT_MAX(most, product_of_others(&now, 0, now.ndim));
    }
    return most;
}

static void add_pass(ot__resize_passes *passes, const ot__line_map *map, ot_shape *now, int axis)
{
    passes->pass[passes->n++] =
        (ot__resize_pass){.map = *map,
                          .outer = product_of_others(now, 0, axis),
                          .inner = product_of_others(now, axis + 1, now->ndim)};
    now->dim[axis] = map->to;
}

void ot__resize_make(ot__resize_passes *passes, const ot__resize_line *lines, const ot_shape *x,
                     const ot_shape *y, const int64_t *n_pairs, double fill, bool is_gradient,
                     char *memory)
{
    const ot_shape *from = is_gradient ? y : x, *to = is_gradient ? x : y;
    ot_shape now = *from;
    int axes[OT_MAX_NDIM];

    *passes = (ot__resize_passes){.most = 0};
    list_axes_by_ratio(from, to, axes);
    for (int i = 0; i < x->ndim; i++) {
        const int k = axes[i];
        ot__line_map map = {.fill = fill}, back;

        place_map(&map, y->dim[k], n_pairs[k], &memory);
        (void)ot__resize_map(&lines[k], &map);
        if (ot__line_map_is_identity(&map))
            continue;
        if (is_gradient) {
            place_map(&back, x->dim[k], n_pairs[k], &memory);
            ot__line_map_transpose(&map, &back);
            map = back;
        }
        add_pass(passes, &map, &now, k);
    }
    if (passes->n > 1)
        passes->most = ot__resize_most(x, y, is_gradient);
}

// Of a line: 1 / scale is what the neighbours of an element reach to either side. A crop of far
// more than the image could ask for any number.
static const double MOST_NEIGHBOURS = 0x1p22;

ot_status ot__resize_check(const ot__resize_line *lines, int n)
{
    for (int k = 0; k < n; k++) {
        const ot__resize_line *l = &lines[k];

        if (!(l->scale >= 0) || !isfinite(l->scale) || !isfinite(l->start) || !isfinite(l->end) ||
            (l->out > 0 && l->scale == 0))
            return ot__error(OT_ERR_INVALID,
                             "Resize: scale %g and roi %g to %g of axis %d, expected finite "
                             "numbers and a scale above 0",
                             l->scale, l->start, l->end, k);
        if (l->antialias && l->out > 0 && l->scale * (double)l->in < 0.5)
            return ot__error(OT_ERR_INVALID,
                             "Resize: a scale of %g is too small for axis %d of size %" PRId64,
                             l->scale, k, l->in);
        if (l->antialias && l->scale < 1 && (double)l->out / l->scale > MOST_NEIGHBOURS)
            return ot__error(OT_ERR_INVALID,
                             "Resize: a scale of %g makes %" PRId64 " elements of axis %d of too "
                             "many neighbours each",
                             l->scale, l->out, k);
        if (l->out > 0 && l->in == 0)
            return ot__error(OT_ERR_INVALID, "Resize: axis %d has no elements", k);
    }
    return OT_OK;
}
