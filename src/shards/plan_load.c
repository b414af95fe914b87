// SPDX-License-Identifier: Apache-2.0
// Which chunks have what is wanted.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/sharding.h"
#include "shards/shards.h"

// ---- types ----

bool ot__may_cast(ot_dtype to, ot_dtype from)
{
    static const struct {
        ot_dtype to, from;
    } pairs[] = {{OT_F32, OT_F16}, {OT_F32, OT_BF16}, {OT_F64, OT_F16},  {OT_F64, OT_BF16},
                 {OT_F64, OT_F32}, {OT_F16, OT_F32},  {OT_BF16, OT_F32}, {OT_I16, OT_I8},
                 {OT_I32, OT_I8},  {OT_I32, OT_I16},  {OT_I64, OT_I8},   {OT_I64, OT_I16},
                 {OT_I64, OT_I32}, {OT_U16, OT_U8},   {OT_U32, OT_U8},   {OT_U32, OT_U16},
                 {OT_U64, OT_U8},  {OT_U64, OT_U16},  {OT_U64, OT_U32}};

    for (size_t i = 0; i < OT_COUNT(pairs); i++)
        if (pairs[i].to == to && pairs[i].from == from)
            return true;
    return false;
}

static ot_status check_wanted(const ot__index_tensor *t, const ot__leaf *leaf, bool casts)
{
    if (!ot__shape_equal(&t->shape, &leaf->shape))
        return ot__error(OT_ERR_INVALID, "'%s' has shape %s in the checkpoint, expected %s", t->key,
                         OT_SHAPE_TEXT(&t->shape), OT_SHAPE_TEXT(&leaf->shape));
    if (t->dtype == leaf->dtype || (casts && ot__may_cast(leaf->dtype, t->dtype)))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "'%s' is of %s in the checkpoint, expected %s%s", t->key,
                     ot_dtype_name(t->dtype), ot_dtype_name(leaf->dtype),
                     !casts && ot__may_cast(leaf->dtype, t->dtype)
                         ? "; the option `casts` lets it be converted"
                         : "");
}

// ---- chunks along an axis ----

// In the order of their beginnings, with the farthest end of all up to here: those before the first
// that ends behind a place end before it too.
typedef struct chunk_place {
    int64_t begin, end_of_all;
    int number;
} chunk_place;

static int compare_chunk_places(const void *a, const void *b)
{
    const chunk_place *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void place_chunks(chunk_place *places, const ot__index_tensor *t, int axis)
{
    for (int i = 0; i < t->n_chunks; i++)
        places[i] = (chunk_place){.begin = t->chunks[i].box[axis], .number = i};
    qsort(places, (size_t)t->n_chunks, sizeof *places, compare_chunk_places);
    for (int i = 0; i < t->n_chunks; i++) {
        const int64_t *box = t->chunks[places[i].number].box;
        const int64_t end = box[axis] + box[t->shape.ndim + axis];

        places[i].end_of_all = i > 0 ? OT_MAX(places[i - 1].end_of_all, end) : end;
    }
}

// The axis along which chunks begin at the most places.
static int axis_of_chunks(chunk_place *places, const ot__index_tensor *t)
{
    int best = 0, most = 0;

    for (int k = 0; k < t->shape.ndim; k++) {
        int n = 1;

        place_chunks(places, t, k);
        for (int i = 1; i < t->n_chunks; i++)
            n += places[i].begin != places[i - 1].begin;
        if (n > most) {
            most = n;
            best = k;
        }
    }
    return best;
}

static int first_behind(const chunk_place *places, int n, int64_t begin)
{
    int low = 0, high = n;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (places[middle].end_of_all <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// ---- one part ----

typedef struct search {
    const ot__index_tensor *tensor;
    const ot__leaf *leaf;
    chunk_place *places; // NULL: there are few chunks
    int axis;
    ot__portions *pieces;
} search;

static ot_status add_portion(const search *s, int i_chunk, int part, int64_t *n_found)
{
    const ot__index_chunk *chunk = &s->tensor->chunks[i_chunk];
    const ot_box box = ot__index_chunk_box(s->tensor, chunk);
    const ot__portion piece = {s->tensor, chunk, s->leaf, part};
    ot_box both;

    if (!ot_box_intersect(&box, &s->leaf->boxes[part], &both))
        return OT_OK;
    *n_found += ot__box_count(&both);
    OT_TRY(ot__made(ot__grow(&s->pieces->items, &s->pieces->capacity, s->pieces->n, sizeof piece)));
    s->pieces->items[s->pieces->n++] = piece;
    return OT_OK;
}

static ot_status search_part(const search *s, int part)
{
    const ot__index_tensor *t = s->tensor;
    const ot_box *wanted = &s->leaf->boxes[part];
    const int64_t count = ot__box_count(wanted);
    int64_t n_found = 0;

    if (s->places == NULL) {
        for (int i = 0; i < t->n_chunks; i++)
            OT_TRY(add_portion(s, i, part, &n_found));
    } else {
        const int64_t begin = wanted->offset[s->axis], end = begin + wanted->size[s->axis];

        for (int i = first_behind(s->places, t->n_chunks, begin);
             i < t->n_chunks && s->places[i].begin < end; i++)
            OT_TRY(add_portion(s, s->places[i].number, part, &n_found));
    }
    return n_found == count
               ? OT_OK
               : ot__error(OT_ERR_FORMAT, "'%s': %" PRId64 " of %" PRId64 " elements are nowhere",
                           t->key, count - n_found, count);
}

ot_status ot__plan_load(const ot__index_tensor *tensor, const ot__leaf *leaf, bool casts,
                        ot__portions *pieces)
{
    enum { FEW = 64 };
    search s = {.tensor = tensor, .leaf = leaf, .pieces = pieces};
    ot_status st = check_wanted(tensor, leaf, casts);

    if (st == OT_OK && tensor->n_chunks > FEW) {
        s.places = ot__alloc_zero((size_t)tensor->n_chunks, sizeof *s.places);
        st = ot__made(s.places != NULL);
    }
    if (st == OT_OK && s.places != NULL) {
        s.axis = axis_of_chunks(s.places, tensor);
        place_chunks(s.places, tensor, s.axis);
    }
    for (int i = 0; i < leaf->n_parts && st == OT_OK; i++)
        st = search_part(&s, i);
    ot__free(s.places);
    return st;
}

static int compare_pieces(const void *a, const void *b)
{
    const ot__portion *x = a, *y = b;

    if (x->chunk->file != y->chunk->file)
        return x->chunk->file < y->chunk->file ? -1 : 1;
    if (x->chunk->begin != y->chunk->begin)
        return x->chunk->begin < y->chunk->begin ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

void ot__portions_sort(ot__portions *pieces)
{
    if (pieces->n > 0)
        qsort(pieces->items, (size_t)pieces->n, sizeof *pieces->items, compare_pieces);
}
