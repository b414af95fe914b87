// SPDX-License-Identifier: Apache-2.0
// The tensors of trees, by key.
#include <stdlib.h>
#include <string.h>

#include "shards/safetensors.h"

void ot__key_append(ot__buf *key, const char *name)
{
    if (key->length > 0)
        ot__buf_text(key, ".");
    ot__buf_text(key, name);
}

// ---- items ----

static bool is_item_name(const char *name)
{
    static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(name);

    return n > 0 && n <= OT_INDEX_NAME_MAX && strspn(name, taken) == n;
}

ot_status ot__items_read(const ot_shards_item *items, int n_items, ot_shards_item *own)
{
    OT_TRY(ot__options_read_all("ot_shards_item", items, n_items,
                                &(const ot_shards_item)OT_SHARDS_ITEM_INIT, own, sizeof *own));
    for (int i = 0; i < n_items; i++) {
        if (own[i].name == NULL || !is_item_name(own[i].name))
            return ot__error(OT_ERR_INVALID,
                             "the name of item %d is '%s', expected letters, digits, '_', '-', '.'",
                             i, own[i].name != NULL ? own[i].name : "");
        if (!OT_IS_LIVE(own[i].dict))
            return ot__error(OT_ERR_INVALID, "item '%s' has no dict", own[i].name);
        for (int k = 0; k < i; k++)
            if (strcmp(own[k].name, own[i].name) == 0)
                return ot__error(OT_ERR_INVALID, "item '%s' is there twice", own[i].name);
    }
    return OT_OK;
}

// ---- leaves ----

typedef struct walk {
    ot__leaves *leaves;
    int capacity;
    ot__buf key;
} walk;

static ot_status check_leaf(const ot__leaf *leaf)
{
    const size_t n = strlen(leaf->key);

    if (n > OT_INDEX_KEY_MAX)
        return ot__error(OT_ERR_INVALID, "'%.80s...': a name of %zu bytes, expected at most %d",
                         leaf->key, n, OT_INDEX_KEY_MAX);
    if (ot__utf8_bad_byte(leaf->key, n) < n)
        return ot__error(OT_ERR_INVALID, "'%s' is not UTF-8", leaf->key);
    if (ot__safetensors_type(leaf->dtype) == NULL || ot_dtype_size(leaf->dtype) == 0)
        return ot__error(OT_ERR_UNSUPPORTED, "'%s': checkpoint directories have no tensors of %s",
                         leaf->key, ot_dtype_name(leaf->dtype));
    return OT_OK;
}

static ot_status add_leaf(walk *w, ot__leaf leaf)
{
    OT_TRY(ot__buf_status(&w->key));
    leaf.key = ot__arena_strdup(w->leaves->arena, w->key.data);
    OT_TRY(ot__made(leaf.key != NULL));
    OT_TRY(check_leaf(&leaf));
    return ot__made(ot__arena_push(w->leaves->arena, &w->leaves->items, &w->capacity, &w->leaves->n,
                                   &leaf, sizeof leaf));
}

// A whole tensor is one part.
static ot_status add_tensor_leaf(walk *w, const ot_tensor *tensor)
{
    ot__leaf leaf = {.dtype = tensor->dtype, .shape = tensor->shape};
    ot_tensor **part = ot__arena_alloc(w->leaves->arena, sizeof(ot_tensor *));
    ot_box *box = ot__arena_alloc(w->leaves->arena, sizeof *box);

    OT_TRY(ot__made(part != NULL && box != NULL));
    *part = (ot_tensor *)(uintptr_t)tensor;
    box->ndim = tensor->shape.ndim;
    memcpy(box->size, tensor->shape.dim, (size_t)box->ndim * sizeof *box->size);
    leaf.n_parts = tensor->n_bytes > 0;
    leaf.boxes = box;
    leaf.parts = part;
    return add_leaf(w, leaf);
}

static ot_status walk_dict(walk *w, ot_dict *dict);

static ot_status walk_value(walk *w, ot_dict *dict, const char *name)
{
    const ot_tensor *tensor;
    const ot_shards *shards;
    ot_dict *inner;
    ot_dict_kind kind;

    OT_TRY(ot_dict_kind_of(dict, name, &kind));
    switch (kind) {
    case OT_DICT_TENSOR:
        OT_TRY(ot_dict_get_tensor(dict, name, &tensor));
        return add_tensor_leaf(w, tensor);
    case OT_DICT_SHARDS:
        OT_TRY(ot_dict_get_shards(dict, name, &shards));
        return add_leaf(w, (ot__leaf){.dtype = shards->dtype,
                                      .shape = shards->shape,
                                      .n_parts = shards->n_parts,
                                      .boxes = shards->boxes,
                                      .parts = shards->parts});
    case OT_DICT_DICT:
        OT_TRY(ot_dict_get_dict(dict, name, &inner));
        return walk_dict(w, inner);
    case OT_DICT_LIST:
        OT_TRY(ot_dict_get_list(dict, name, &inner));
        return walk_dict(w, inner);
    default:
        return OT_OK;
    }
}

// Trees are as deep as JSON may be, which ot__values_write() sees to first.
static ot_status walk_dict(walk *w, ot_dict *dict)
{
    const size_t length = w->key.length;

    for (int i = 0; i < ot_dict_count(dict); i++) {
        ot__key_append(&w->key, ot_dict_name(dict, i));
        OT_TRY(ot__buf_status(&w->key));
        OT_TRY(walk_value(w, dict, ot_dict_name(dict, i)));
        w->key.length = length;
        w->key.data[length] = '\0';
    }
    return OT_OK;
}

static int compare_leaves(const void *a, const void *b)
{
    const ot__leaf *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static ot_status sort_leaves(ot__leaves *leaves)
{
    if (leaves->n > 0)
        qsort(leaves->items, (size_t)leaves->n, sizeof *leaves->items, compare_leaves);
    for (int i = 1; i < leaves->n; i++)
        if (strcmp(leaves->items[i - 1].key, leaves->items[i].key) == 0)
            return ot__error(OT_ERR_INVALID,
                             "two tensors have the name '%s' with '.' between names",
                             leaves->items[i].key);
    return OT_OK;
}

ot_status ot__leaves_of(const ot_shards_item *items, int n_items, ot__leaves *out)
{
    walk w = {.leaves = out};
    ot_status st;

    *out = (ot__leaves){.arena = ot__arena_create()};
    st = ot__made(out->arena != NULL);
    for (int i = 0; i < n_items && st == OT_OK; i++) {
        w.key.length = 0;
        ot__buf_text(&w.key, items[i].name);
        st = ot__buf_status(&w.key);
        OT_THEN(st, walk_dict(&w, items[i].dict));
    }
    ot__buf_deinit(&w.key);
    OT_THEN(st, sort_leaves(out));
    if (st != OT_OK)
        ot__leaves_deinit(out);
    return st;
}

void ot__leaves_deinit(ot__leaves *leaves)
{
    ot__arena_destroy(leaves->arena);
    *leaves = (ot__leaves){0};
}

const ot__leaf *ot__leaves_find(const ot__leaves *leaves, const char *key)
{
    const ot__leaf wanted = {.key = key};

    return leaves->n > 0 ? bsearch(&wanted, leaves->items, (size_t)leaves->n, sizeof *leaves->items,
                                   compare_leaves)
                         : NULL;
}
