// SPDX-License-Identifier: Apache-2.0
// Which rank writes which part of a tensor.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/sharding.h"
#include "shards/shards.h"

// Boxes of one tensor, which alone are compared, have the same axes.
static int compare_boxes(const int64_t *a, const int64_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

// What the comparison must know of tensors lies before each box: the number of its entries.
static int box_entries(const ot__save_record *r)
{
    return (int)r->box[-1];
}

static int compare_records(const void *a, const void *b)
{
    const ot__save_record *x = a, *y = b;
    int order = (x->tensor > y->tensor) - (x->tensor < y->tensor);

    if (order == 0)
        order = compare_boxes(x->box, y->box, box_entries(x));
    if (order == 0)
        order = (x->rank > y->rank) - (x->rank < y->rank);
    return order;
}

static bool is_same_box(const ot__save_record *a, const ot__save_record *b)
{
    return compare_boxes(a->box, b->box, box_entries(a)) == 0;
}

static ot_box box_of_record(const ot__save_record *r)
{
    const int ndim = box_entries(r) / 2;
    ot_box box = {.ndim = ndim};

    memcpy(box.offset, r->box, (size_t)ndim * sizeof *r->box);
    memcpy(box.size, r->box + ndim, (size_t)ndim * sizeof *r->box);
    return box;
}

// The records of one tensor; each box that is there once or more often has one owner.
static ot_status choose_owners(const ot__leaf *leaf, ot__save_record *records, int64_t n,
                               uint64_t *bytes_of_rank)
{
    ot_box *boxes = ot__alloc((size_t)n * sizeof *boxes);
    int64_t n_boxes = 0;
    ot_status st = ot__made(boxes != NULL);

    for (int64_t i = 0, end; st == OT_OK && i < n; i = end) {
        ot__save_record *owner = &records[i];

        for (end = i + 1; end < n && is_same_box(&records[i], &records[end]); end++)
            if (bytes_of_rank[records[end].rank] < bytes_of_rank[owner->rank])
                owner = &records[end];
        boxes[n_boxes] = box_of_record(owner);
        owner->is_owned = true;
        bytes_of_rank[owner->rank] +=
            (uint64_t)ot__box_count(&boxes[n_boxes++]) * ot_dtype_size(leaf->dtype);
    }
    OT_THEN(st, ot_box_check_partition(&leaf->shape, boxes, n_boxes));
    ot__free(boxes);
    return st == OT_OK || st == OT_ERR_NO_MEMORY
               ? st
               : ot__error_prefix(st, "the parts of '%s' on all ranks", leaf->key);
}

ot_status ot__plan_save(const ot__leaves *tensors, ot__save_record *records, int64_t n_records,
                        int n_ranks)
{
    uint64_t *bytes_of_rank = ot__alloc_zero((size_t)n_ranks, sizeof *bytes_of_rank);
    ot_status st = ot__made(bytes_of_rank != NULL);
    int64_t at = 0;

    if (st == OT_OK && n_records > 0)
        qsort(records, (size_t)n_records, sizeof *records, compare_records);
    for (int i = 0; i < tensors->n && st == OT_OK; i++) {
        int64_t end = at;

        while (end < n_records && records[end].tensor == i)
            end++;
        st = choose_owners(&tensors->items[i], records + at, end - at, bytes_of_rank);
        at = end;
    }
    ot__free(bytes_of_rank);
    return st;
}
