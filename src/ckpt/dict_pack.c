// SPDX-License-Identifier: Apache-2.0
// A dict as bytes for other ranks of a job, without the elements of its tensors: those become parts
// of which none are there. Tensors of one element are numbers, and keep theirs.
#include <string.h>

#include "ckpt/dict_entry.h"

enum { PACK_DEPTH_MAX = 64 };

// ---- writing ----

static void pack_text(ot__buf *out, const char *text)
{
    ot__buf_append(out, text, strlen(text) + 1);
}

static void pack_bytes(ot__buf *out, const void *bytes, size_t n_bytes)
{
    const uint64_t n = n_bytes;

    ot__buf_append(out, &n, sizeof n);
    ot__buf_append(out, bytes, n_bytes);
}

static void pack_shape(ot__buf *out, ot_dtype dtype, const ot_shape *shape)
{
    ot__buf_append(out, &dtype, sizeof dtype);
    ot__buf_append(out, shape, sizeof *shape);
}

static ot_status pack_dict(const ot_dict *dict, int depth, ot__buf *out);

static ot_status pack_entry(const dict_entry *e, int depth, ot__buf *out)
{
    const ot_tensor *t = e->value.tensor;

    switch (e->kind) {
    case OT_DICT_BOOL:
    case OT_DICT_INT:
        ot__buf_append(out, &e->value.i, sizeof e->value.i);
        return OT_OK;
    case OT_DICT_FLOAT:
        ot__buf_append(out, &e->value.f, sizeof e->value.f);
        return OT_OK;
    case OT_DICT_STRING:
        pack_text(out, e->value.s);
        return OT_OK;
    case OT_DICT_INTS:
        pack_bytes(out, e->value.ints.values, (size_t)e->value.ints.n * sizeof(int64_t));
        return OT_OK;
    case OT_DICT_NULL:
        return OT_OK;
    case OT_DICT_BYTES:
        pack_bytes(out, e->value.bytes.data, e->value.bytes.n_bytes);
        return OT_OK;
    case OT_DICT_TENSOR:
        pack_shape(out, t->dtype, &t->shape);
        if (ot_tensor_count(t) == 1)
            pack_bytes(out, t->data, t->n_bytes);
        return OT_OK;
    case OT_DICT_SHARDS:
        pack_shape(out, e->value.shards->dtype, &e->value.shards->shape);
        return OT_OK;
    default:
        return pack_dict(e->value.dict, depth + 1, out);
    }
}

static uint8_t packed_kind(const dict_entry *e)
{
    const bool is_number = e->kind == OT_DICT_TENSOR && ot_tensor_count(e->value.tensor) == 1;

    return (uint8_t)(e->kind == OT_DICT_TENSOR && !is_number ? OT_DICT_SHARDS : e->kind);
}

static ot_status pack_dict(const ot_dict *dict, int depth, ot__buf *out)
{
    if (depth > PACK_DEPTH_MAX)
        return ot__error(OT_ERR_INVALID, "a state has more than %d dicts in one another",
                         PACK_DEPTH_MAX);
    ot__buf_append(out, &dict->n_entries, sizeof dict->n_entries);
    for (int i = 0; i < dict->n_entries; i++) {
        const dict_entry *e = &dict->entries[i];
        const uint8_t kind = packed_kind(e);

        if (e->kind == OT_DICT_TENSOR && e->value.tensor->dtype == OT_STRING)
            return ot__error(OT_ERR_UNSUPPORTED, "'%s' is a tensor of strings", e->name);
        ot__buf_append(out, &kind, sizeof kind);
        pack_text(out, e->name);
        OT_TRY(pack_entry(e, depth, out));
    }
    return ot__buf_status(out);
}

ot_status ot__dict_pack(const ot_dict *dict, ot__buf *out)
{
    return pack_dict(dict, 0, out);
}

// ---- reading: what rank 0 of the same job has written ----

typedef struct packed {
    const char *at;
} packed;

static const char *unpack_text(packed *from)
{
    const char *text = from->at;

    from->at += strlen(text) + 1;
    return text;
}

static void unpack_value(packed *from, void *to, size_t n_bytes)
{
    memcpy(to, from->at, n_bytes);
    from->at += n_bytes;
}

static const void *unpack_bytes(packed *from, size_t *n_bytes)
{
    const char *bytes;
    uint64_t n;

    unpack_value(from, &n, sizeof n);
    bytes = from->at;
    from->at += n;
    *n_bytes = (size_t)n;
    return bytes;
}

static ot_status unpack_ints(packed *from, ot_dict *to, const char *name)
{
    size_t n_bytes;
    const void *bytes = unpack_bytes(from, &n_bytes);
    int64_t *values = ot__alloc(n_bytes + 1);
    ot_status st = ot__made(values != NULL);

    if (st == OT_OK && n_bytes > 0)
        memcpy(values, bytes, n_bytes);
    OT_THEN(st, ot_dict_set_ints(to, name, values, (int)(n_bytes / sizeof(int64_t))));
    ot__free(values);
    return st;
}

static ot_status unpack_tensor(packed *from, ot_dict *to, const char *name, bool is_number)
{
    ot_dtype dtype;
    ot_shape shape;
    ot_tensor *tensor;
    size_t n_bytes;
    const void *bytes;
    ot_status st;

    unpack_value(from, &dtype, sizeof dtype);
    unpack_value(from, &shape, sizeof shape);
    if (!is_number)
        return ot_dict_take_shards(to, name, dtype, &shape, NULL, NULL, 0);
    bytes = unpack_bytes(from, &n_bytes);
    OT_TRY(ot_tensor_create(dtype, &shape, &tensor));
    memcpy(tensor->data, bytes, n_bytes);
    st = ot_dict_take_tensor(to, name, tensor);
    if (st != OT_OK)
        ot_tensor_destroy(tensor);
    return st;
}

static ot_status unpack_dict(packed *from, ot_dict *to);

static ot_status unpack_entry(packed *from, ot_dict *to, ot_dict_kind kind, const char *name)
{
    ot_dict *inner;
    int64_t i;
    double f;
    size_t n_bytes;
    const void *bytes;

    switch (kind) {
    case OT_DICT_BOOL:
    case OT_DICT_INT:
        unpack_value(from, &i, sizeof i);
        return kind == OT_DICT_INT ? ot_dict_set_int(to, name, i)
                                   : ot_dict_set_bool(to, name, i != 0);
    case OT_DICT_FLOAT:
        unpack_value(from, &f, sizeof f);
        return ot_dict_set_float(to, name, f);
    case OT_DICT_STRING:
        return ot_dict_set_string(to, name, unpack_text(from));
    case OT_DICT_INTS:
        return unpack_ints(from, to, name);
    case OT_DICT_NULL:
        return ot_dict_set_null(to, name);
    case OT_DICT_BYTES:
        bytes = unpack_bytes(from, &n_bytes);
        return ot_dict_set_bytes(to, name, bytes, n_bytes);
    case OT_DICT_TENSOR:
    case OT_DICT_SHARDS:
        return unpack_tensor(from, to, name, kind == OT_DICT_TENSOR);
    default:
        OT_TRY(kind == OT_DICT_LIST ? ot_dict_set_list(to, name, &inner)
                                    : ot_dict_set_dict(to, name, &inner));
        return unpack_dict(from, inner);
    }
}

static ot_status unpack_dict(packed *from, ot_dict *to)
{
    int n;

    unpack_value(from, &n, sizeof n);
    for (int i = 0; i < n; i++) {
        uint8_t kind;
        const char *name;

        unpack_value(from, &kind, sizeof kind);
        name = unpack_text(from);
        OT_TRY(unpack_entry(from, to, (ot_dict_kind)kind, name));
    }
    return OT_OK;
}

ot_status ot__dict_unpack(const char *bytes, ot_dict **out)
{
    packed from = {bytes};
    ot_dict *dict;
    ot_status st;

    *out = NULL;
    OT_TRY(ot_dict_create(&dict));
    st = unpack_dict(&from, dict);
    return OT_HAND_OUT(st, out, dict, ot_dict_destroy);
}
