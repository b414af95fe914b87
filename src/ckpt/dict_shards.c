// SPDX-License-Identifier: Apache-2.0
// Values of a dict that state dicts have, and files of one process have not: parts of tensors,
// bytes, null.
#include <string.h>

#include "ckpt/dict_entry.h"

ot_status ot_dict_set_null(ot_dict *dict, const char *name)
{
    OT_TRY(ot__dict_check_name(dict, name));
    return ot__dict_put_made(dict, name, (dict_entry){.kind = OT_DICT_NULL}, true);
}

// ---- bytes ----

ot_status ot_dict_set_bytes(ot_dict *dict, const char *name, const void *bytes, size_t n_bytes)
{
    dict_entry entry = {.kind = OT_DICT_BYTES};

    OT_TRY(ot__dict_check_name(dict, name));
    if (n_bytes > 0)
        OT_TRY(OT_GIVEN(bytes));
    entry.value.bytes.n_bytes = n_bytes;
    entry.value.bytes.data = ot__alloc(n_bytes);
    if (entry.value.bytes.data != NULL && n_bytes > 0)
        memcpy(entry.value.bytes.data, bytes, n_bytes);
    return ot__dict_put_made(dict, name, entry, entry.value.bytes.data != NULL);
}

ot_status ot_dict_get_bytes(const ot_dict *dict, const char *name, const void **out,
                            size_t *n_bytes)
{
    const dict_entry *entry;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(n_bytes));
    *n_bytes = 0;
    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_BYTES, &entry));
    *out = entry->value.bytes.data;
    *n_bytes = entry->value.bytes.n_bytes;
    return OT_OK;
}

ot_status ot_dict_get_list(ot_dict *dict, const char *name, ot_dict **out)
{
    const dict_entry *entry;

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_LIST, &entry));
    *out = entry->value.dict;
    return OT_OK;
}

// ---- shards ----

static void forget_parts(ot_shards *shards)
{
    ot__free((void *)(uintptr_t)shards->boxes);
    ot__free((void *)(uintptr_t)shards->parts);
    ot__free(shards);
}

void ot__dict_shards_free(ot_shards *shards)
{
    for (int i = 0; i < shards->n_parts; i++)
        ot_tensor_destroy(shards->parts[i]);
    forget_parts(shards);
}

static ot_shape shape_of_box(const ot_box *box)
{
    ot_shape shape = {.ndim = box->ndim};

    memcpy(shape.dim, box->size, sizeof shape.dim);
    return shape;
}

static ot_status check_part_of_shards(ot_dtype dtype, const ot_box *box, const ot_tensor *part,
                                      int number)
{
    const ot_shape shape = shape_of_box(box);

    OT_TRY(OT_GIVEN(part));
    if (part->dtype != dtype || !ot__shape_equal(&part->shape, &shape))
        return ot__error(OT_ERR_INVALID, "part %d is %s%s, expected %s%s", number,
                         ot_dtype_name(part->dtype), OT_SHAPE_TEXT(&part->shape),
                         ot_dtype_name(dtype), OT_SHAPE_TEXT(&shape));
    return OT_OK;
}

static ot_status check_shards(ot_dtype dtype, const ot_shape *shape, const ot_box *boxes,
                              ot_tensor *const *parts, int n_parts)
{
    OT_TRY(OT_GIVEN(shape));
    OT_TRY(OT_GIVEN_MANY(boxes, n_parts));
    if (ot_dtype_size(dtype) == 0)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "parts of tensors of %s: expected elements of whole bytes",
                         ot_dtype_name(dtype));
    OT_TRY(ot__boxes_check(shape, boxes, n_parts));
    for (int i = 0; i < n_parts && parts != NULL; i++)
        OT_TRY(check_part_of_shards(dtype, &boxes[i], parts[i], i));
    return OT_OK;
}

// Of the given parts; of new ones where there are none.
static ot_status fill_shards(ot_shards *shards, const ot_box *boxes, ot_tensor *const *parts, int n)
{
    const size_t n_bytes = (size_t)n * sizeof *boxes;
    ot_box *own_boxes = ot__alloc(n_bytes);
    ot_tensor **own_parts = ot__alloc_zero((size_t)n, sizeof *own_parts);
    ot_status st = ot__made(own_boxes != NULL && own_parts != NULL);

    shards->boxes = own_boxes;
    shards->parts = own_parts;
    if (st == OT_OK && n > 0)
        memcpy(own_boxes, boxes, n_bytes);
    for (int i = 0; i < n && st == OT_OK; i++) {
        const ot_shape shape = shape_of_box(&boxes[i]);

        if (parts != NULL)
            own_parts[i] = parts[i];
        else
            st = ot_tensor_create(shards->dtype, &shape, &own_parts[i]);
        shards->n_parts += st == OT_OK;
    }
    return st;
}

ot_status ot_dict_take_shards(ot_dict *dict, const char *name, ot_dtype dtype,
                              const ot_shape *shape, const ot_box *boxes, ot_tensor *const *parts,
                              int n_parts)
{
    dict_entry entry = {.kind = OT_DICT_SHARDS};
    ot_status st;

    OT_TRY(ot__dict_check_name(dict, name));
    OT_TRY(check_shards(dtype, shape, boxes, parts, n_parts));
    entry.value.shards = ot__alloc_zero(1, sizeof *entry.value.shards);
    OT_TRY(ot__made(entry.value.shards != NULL));
    entry.value.shards->dtype = dtype;
    entry.value.shards->shape = *shape;
    st = fill_shards(entry.value.shards, boxes, parts, n_parts);
    OT_THEN(st, ot__dict_put(dict, name, entry));
    if (st != OT_OK && parts != NULL)
        forget_parts(entry.value.shards);
    else if (st != OT_OK)
        ot__dict_shards_free(entry.value.shards);
    return st;
}

ot_status ot_dict_get_shards(const ot_dict *dict, const char *name, const ot_shards **out)
{
    const dict_entry *entry;

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_SHARDS, &entry));
    *out = entry->value.shards;
    return OT_OK;
}
