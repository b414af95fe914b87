// SPDX-License-Identifier: Apache-2.0
// Shardings: cuts of a tensor, and the boxes that they leave to a process.
#include <string.h>

#include "onnxtrain/sharding.h"
#include "tensor/tensor.h"

enum { PROCESSES_MAX = 1 << 24 };

struct ot_sharding {
    ot_dtype dtype;
    int stage;
    ot_shape shape;
    int n_cuts;
    ot_cut cuts[OT_MAX_CUT_GROUPS]; // their points are owned
};

size_t ot__sharding_taken(int n_parts)
{
    return sizeof(ot_sharding) + ((size_t)n_parts + 1) * sizeof(int64_t);
}

// ---- one cut ----

// The part of a block of `size` elements that a member has.
static void part_of_block(const ot_cut *cut, int64_t size, int member, int64_t *begin, int64_t *end)
{
    const int64_t length = size / cut->n_parts + (size % cut->n_parts != 0);

    switch (cut->rule) {
    case OT_CUT_CEIL:
    case OT_CUT_EVEN:
        *begin = length > 0 && member > size / length ? size : OT_MIN(member * length, size);
        *end = OT_MIN(*begin + length, size);
        break;
    case OT_CUT_POINTS:
        *begin = cut->points[member];
        *end = cut->points[member + 1];
        break;
    default:
        *begin = 0;
        *end = size;
        break;
    }
}

static ot_status refuse_cut(int i, const char *format, ...) OT_PRINTF(2, 3);

static ot_status refuse_cut(int i, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)ot__error_v(OT_ERR_INVALID, format, args);
    va_end(args);
    return ot__error_prefix(OT_ERR_INVALID, "cut %d", i);
}

// What a cut says by itself, and of the cuts before it.
static ot_status check_cut(const ot_cut *cuts, int i, const ot_shape *shape)
{
    const ot_cut *cut = &cuts[i];

    if (cut->group < 0 || cut->group >= OT_MAX_CUT_GROUPS)
        return refuse_cut(i, "group is %d, expected 0 to %d", cut->group, OT_MAX_CUT_GROUPS - 1);
    for (int k = 0; k < i; k++)
        if (cuts[k].group == cut->group)
            return refuse_cut(i, "group %d takes part in cut %d already", cut->group, k);
    if ((int)cut->rule < OT_CUT_REPLICATE || cut->rule > OT_CUT_POINTS)
        return refuse_cut(i, "unknown rule %d", (int)cut->rule);
    if (cut->n_parts < 1)
        return refuse_cut(i, "n_parts is %d, expected 1 or more", cut->n_parts);
    if (cut->rule == OT_CUT_REPLICATE)
        return OT_OK;
    if (cut->axis < 0 || cut->axis >= shape->ndim)
        return refuse_cut(i, "axis is %d of a tensor that has %d", cut->axis, shape->ndim);
    if (cut->blocks < 1)
        return refuse_cut(i, "blocks is %" PRId64 ", expected 1 or more", cut->blocks);
    if (cut->rule == OT_CUT_POINTS && cut->points == NULL)
        return refuse_cut(i, "points is NULL");
    return OT_OK;
}

static ot_status check_points(const ot_cut *cut, int i, int64_t size)
{
    if (cut->points[0] != 0)
        return refuse_cut(i, "the first point is %" PRId64 ", expected 0", cut->points[0]);
    for (int k = 1; k <= cut->n_parts; k++)
        if (cut->points[k] < cut->points[k - 1] || cut->points[k] > size)
            return refuse_cut(i, "point %d is %" PRId64 ", expected %" PRId64 " to %" PRId64, k,
                              cut->points[k], cut->points[k - 1], size);
    if (cut->points[cut->n_parts] != size)
        return refuse_cut(i, "the last point is %" PRId64 ", expected %" PRId64,
                          cut->points[cut->n_parts], size);
    return OT_OK;
}

// ---- all cuts of an axis ----

// How many elements of an axis a process has left before cut `to`.
static int64_t size_before(const ot_sharding *s, const int *places, int to, int axis)
{
    int64_t size = s->shape.dim[axis];

    for (int i = 0; i < to; i++) {
        const ot_cut *cut = &s->cuts[i];
        int64_t begin, end;

        if (cut->rule == OT_CUT_REPLICATE || cut->axis != axis)
            continue;
        part_of_block(cut, size / cut->blocks, places[cut->group], &begin, &end);
        size = (end - begin) * cut->blocks;
    }
    return size;
}

static ot_status check_fit(const ot_sharding *s, const int *places, int i)
{
    const ot_cut *cut = &s->cuts[i];
    const int64_t size = size_before(s, places, i, cut->axis);

    if (size % cut->blocks != 0)
        return refuse_cut(i, "%" PRId64 " elements of axis %d are not %" PRId64 " blocks", size,
                          cut->axis, cut->blocks);
    if (cut->rule == OT_CUT_EVEN && size / cut->blocks % cut->n_parts != 0)
        return refuse_cut(i, "%" PRId64 " elements of axis %d are not %d equal parts",
                          size / cut->blocks, cut->axis, cut->n_parts);
    return cut->rule == OT_CUT_POINTS ? check_points(cut, i, size / cut->blocks) : OT_OK;
}

// Cuts of one axis follow one another: what is left by those before fits for every process.
static ot_status check_cut_fits(const ot_sharding *s, int i)
{
    int places[OT_MAX_CUT_GROUPS] = {0};

    if (s->cuts[i].rule == OT_CUT_REPLICATE)
        return OT_OK;
    for (;;) {
        int k = 0;

        OT_TRY(check_fit(s, places, i));
        for (; k < i; k++) { // the next process
            const ot_cut *cut = &s->cuts[k];

            if (cut->rule == OT_CUT_REPLICATE || cut->axis != s->cuts[i].axis)
                continue;
            if (++places[cut->group] < cut->n_parts)
                break;
            places[cut->group] = 0;
        }
        if (k == i)
            return OT_OK;
    }
}

// ---- making ----

static ot_status copy_points(ot_cut *cut)
{
    const size_t n_bytes = ((size_t)cut->n_parts + 1) * sizeof *cut->points;
    const int64_t *given = cut->points;
    int64_t *own;

    cut->points = NULL;
    if (cut->rule != OT_CUT_POINTS)
        return OT_OK;
    own = ot__alloc(n_bytes);
    OT_TRY(ot__made(own != NULL));
    memcpy(own, given, n_bytes);
    cut->points = own;
    return OT_OK;
}

static ot_status set_cuts(ot_sharding *s, const ot_cut *cuts, int n_cuts)
{
    int64_t n_processes = 1;

    for (int i = 0; i < n_cuts; i++) {
        OT_TRY(check_cut(cuts, i, &s->shape));
        n_processes *= cuts[i].n_parts;
        if (n_processes > PROCESSES_MAX)
            return refuse_cut(i, "more than %d processes", PROCESSES_MAX);
        s->cuts[i] = cuts[i];
        s->n_cuts = i + 1;
        OT_TRY(copy_points(&s->cuts[i]));
        OT_TRY(check_cut_fits(s, i));
    }
    return OT_OK;
}

ot_status ot_sharding_create(ot_dtype dtype, const ot_shape *shape, const ot_cut *cuts, int n_cuts,
                             int stage, ot_sharding **out)
{
    ot_cut own[OT_MAX_CUT_GROUPS];
    ot_sharding *sharding;
    size_t n_bytes;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(shape));
    OT_TRY(OT_GIVEN_MANY(cuts, n_cuts));
    OT_TRY(ot__tensor_sizes(dtype, shape, &n_bytes));
    if (n_cuts > OT_MAX_CUT_GROUPS)
        return ot__error(OT_ERR_INVALID, "%d cuts, expected %d at most", n_cuts, OT_MAX_CUT_GROUPS);
    if (stage < -1)
        return ot__error(OT_ERR_INVALID, "stage is %d, expected -1 or more", stage);
    OT_TRY(ot__options_read_all("ot_cut", cuts, n_cuts, &(const ot_cut)OT_CUT_INIT, own,
                                sizeof own[0]));
    sharding = ot__alloc_zero(1, sizeof *sharding);
    OT_TRY(ot__made(sharding));
    OT_ENTER(sharding);
    sharding->dtype = dtype;
    sharding->shape = *shape;
    sharding->stage = stage;
    st = set_cuts(sharding, own, n_cuts);
    return OT_HAND_OUT(st, out, sharding, ot_sharding_destroy);
}

void ot_sharding_destroy(ot_sharding *sharding)
{
    if (!OT_ENDS(sharding))
        return;
    for (int i = 0; i < sharding->n_cuts; i++)
        ot__free((int64_t *)(uintptr_t)sharding->cuts[i].points);
    ot__free(sharding);
}

// ---- looking ----

ot_dtype ot_sharding_dtype(const ot_sharding *sharding)
{
    return OT_IS_LIVE(sharding) ? sharding->dtype : OT_DTYPE_UNDEFINED;
}

const ot_shape *ot_sharding_shape(const ot_sharding *sharding)
{
    return OT_IS_LIVE(sharding) ? &sharding->shape : NULL;
}

int ot_sharding_stage(const ot_sharding *sharding)
{
    return OT_IS_LIVE(sharding) ? sharding->stage : 0;
}

int ot_sharding_parts(const ot_sharding *sharding, int group)
{
    for (int i = 0; OT_IS_LIVE(sharding) && i < sharding->n_cuts; i++)
        if (sharding->cuts[i].group == group && sharding->cuts[i].rule != OT_CUT_REPLICATE)
            return sharding->cuts[i].n_parts;
    return OT_IS_LIVE(sharding);
}

static ot_status check_places(const ot_sharding *s, const int *places)
{
    for (int i = 0; i < s->n_cuts; i++) {
        const ot_cut *cut = &s->cuts[i];

        if (cut->rule != OT_CUT_REPLICATE &&
            (places[cut->group] < 0 || places[cut->group] >= cut->n_parts))
            return ot__error(OT_ERR_INVALID, "place %d in group %d, which has %d",
                             places[cut->group], cut->group, cut->n_parts);
    }
    return OT_OK;
}

ot_status ot_sharding_local_shape(const ot_sharding *sharding, const int *places, ot_shape *out)
{
    OT_TRY(OT_GIVEN(sharding));
    OT_TRY(OT_GIVEN(places));
    OT_TRY(OT_GIVEN(out));
    OT_TRY(check_places(sharding, places));
    *out = sharding->shape;
    for (int k = 0; k < out->ndim; k++)
        out->dim[k] = size_before(sharding, places, sharding->n_cuts, k);
    return OT_OK;
}

// ---- boxes ----

// A piece of an axis: elements that lie side by side both in the whole and in the part.
typedef struct piece {
    int64_t whole, local, size;
} piece;

typedef struct pieces {
    piece *items;
    int n, capacity;
} pieces;

static ot_status add_piece(pieces *to, piece new)
{
    piece *last = to->n > 0 ? &to->items[to->n - 1] : NULL;

    if (last != NULL && last->whole + last->size == new.whole) {
        last->size += new.size;
        return OT_OK;
    }
    OT_TRY(ot__made(ot__grow(&to->items, &to->capacity, to->n, sizeof new)));
    to->items[to->n++] = new;
    return OT_OK;
}

// What of the pieces lies from `begin` to `end` of the part joins what is in `to`.
static ot_status take_pieces(const pieces *from, int64_t begin, int64_t end, int64_t *local,
                             pieces *to)
{
    for (int i = 0; i < from->n; i++) {
        const piece *p = &from->items[i];
        const int64_t first = OT_MAX(begin, p->local), last = OT_MIN(end, p->local + p->size);

        if (first >= last)
            continue;
        OT_TRY(add_piece(to, (piece){p->whole + first - p->local, *local, last - first}));
        *local += last - first;
    }
    return OT_OK;
}

static ot_status cut_pieces(const ot_cut *cut, int member, int64_t size, const pieces *from,
                            pieces *to)
{
    const int64_t block = size / cut->blocks;
    int64_t begin, end, local = 0;

    part_of_block(cut, block, member, &begin, &end);
    for (int64_t b = 0; b < cut->blocks && begin < end; b++)
        OT_TRY(take_pieces(from, b * block + begin, b * block + end, &local, to));
    return OT_OK;
}

static ot_status find_pieces(const ot_sharding *s, const int *places, int axis, pieces *out)
{
    pieces from = {0};
    ot_status st = OT_OK;

    if (s->shape.dim[axis] > 0)
        st = add_piece(out, (piece){0, 0, s->shape.dim[axis]});
    for (int i = 0; i < s->n_cuts && st == OT_OK; i++) {
        const ot_cut *cut = &s->cuts[i];

        if (cut->rule == OT_CUT_REPLICATE || cut->axis != axis)
            continue;
        ot__free(from.items);
        from = *out;
        *out = (pieces){0};
        st = cut_pieces(cut, places[cut->group], size_before(s, places, i, axis), &from, out);
    }
    ot__free(from.items);
    return st;
}

// One piece of every axis makes a box.
static void fill_boxes(const pieces *axes, int ndim, int64_t n_boxes, ot_shard_box *boxes)
{
    int index[OT_MAX_NDIM] = {0};

    for (int64_t i = 0; i < n_boxes; i++) {
        boxes[i] = (ot_shard_box){.box.ndim = ndim};
        for (int k = 0; k < ndim; k++) {
            const piece *p = &axes[k].items[index[k]];

            boxes[i].box.offset[k] = p->whole;
            boxes[i].box.size[k] = p->size;
            boxes[i].local[k] = p->local;
        }
        for (int k = ndim - 1; k >= 0 && ++index[k] == axes[k].n; k--)
            index[k] = 0;
    }
}

ot_status ot_sharding_boxes(const ot_sharding *sharding, const int *places, int64_t capacity,
                            ot_shard_box *boxes, int64_t *n_boxes)
{
    pieces axes[OT_MAX_NDIM] = {{0}};
    ot_status st = OT_OK;
    int64_t n = 1;

    OT_TRY(OT_GIVEN(n_boxes));
    *n_boxes = 0;
    OT_TRY(OT_GIVEN(sharding));
    OT_TRY(OT_GIVEN(places));
    OT_TRY(OT_GIVEN_MANY(boxes, capacity));
    OT_TRY(check_places(sharding, places));
    for (int k = 0; k < sharding->shape.ndim && st == OT_OK; k++) {
        st = find_pieces(sharding, places, k, &axes[k]);
        n *= axes[k].n; // no more than there are elements
    }
    if (st == OT_OK && capacity > 0 && capacity < n)
        st =
            ot__error(OT_ERR_INVALID, "room for %" PRId64 " boxes, expected %" PRId64, capacity, n);
    if (st == OT_OK && capacity > 0)
        fill_boxes(axes, sharding->shape.ndim, n, boxes);
    if (st == OT_OK)
        *n_boxes = n;
    for (int k = 0; k < sharding->shape.ndim; k++)
        ot__free(axes[k].items);
    return st;
}
