// SPDX-License-Identifier: Apache-2.0
// Values of a dict: copies, comparisons, and numbers that stand for them.
#include <math.h>
#include <string.h>

#include "ckpt/dict_entry.h"

enum { DEPTH_MAX = 64 }; // of dicts within dicts

bool ot__dict_has(const ot_dict *dict, const char *name)
{
    return dict != NULL && ot__map_get(&dict->places, name) != NULL;
}

static ot_status too_deep(const char *name)
{
    return ot__error(OT_ERR_INVALID, "'%s' lies in more than %d dicts", name, DEPTH_MAX);
}

// ---- copies ----

static ot_status copy_entry(const dict_entry *entry, ot_dict *to, const char *name, int depth)
{
    ot_dict *inner;

    if (depth > DEPTH_MAX)
        return too_deep(name);
    switch (entry->kind) {
    case OT_DICT_BOOL:
        return ot_dict_set_bool(to, name, (int)entry->value.i);
    case OT_DICT_INT:
        return ot_dict_set_int(to, name, entry->value.i);
    case OT_DICT_FLOAT:
        return ot_dict_set_float(to, name, entry->value.f);
    case OT_DICT_STRING:
        return ot_dict_set_string(to, name, entry->value.s);
    case OT_DICT_INTS:
        return ot_dict_set_ints(to, name, entry->value.ints.values, entry->value.ints.n);
    case OT_DICT_TENSOR:
        return ot_dict_set_tensor(to, name, entry->value.tensor);
    case OT_DICT_NULL:
        return ot_dict_set_null(to, name);
    case OT_DICT_BYTES:
        return ot_dict_set_bytes(to, name, entry->value.bytes.data, entry->value.bytes.n_bytes);
    case OT_DICT_SHARDS:
        return ot__error(OT_ERR_UNSUPPORTED, "'%s': parts of tensors are not copied", name);
    default:
        break;
    }
    OT_TRY(entry->kind == OT_DICT_LIST ? ot_dict_set_list(to, name, &inner)
                                       : ot_dict_set_dict(to, name, &inner));
    for (int i = 0; i < entry->value.dict->n_entries; i++) {
        const dict_entry *e = &entry->value.dict->entries[i];

        OT_TRY(copy_entry(e, inner, e->name, depth + 1));
    }
    return OT_OK;
}

static const dict_entry *entry_of(const ot_dict *dict, const char *name)
{
    const uintptr_t place = (uintptr_t)ot__map_get(&dict->places, name);

    return place > 0 ? &dict->entries[place - 1] : NULL;
}

ot_status ot__dict_copy(const ot_dict *from, const char *name, ot_dict *to, const char *new_name)
{
    return copy_entry(entry_of(from, name), to, new_name, 0);
}

// ---- comparisons ----

static bool is_number_entry(const dict_entry *e)
{
    return e->kind == OT_DICT_BOOL || e->kind == OT_DICT_INT || e->kind == OT_DICT_FLOAT;
}

static double number_of_entry(const dict_entry *e)
{
    return e->kind == OT_DICT_FLOAT ? e->value.f : (double)e->value.i;
}

static bool are_same(const dict_entry *a, const dict_entry *b, int depth)
{
    if (is_number_entry(a) && is_number_entry(b))
        return fabs(number_of_entry(a) - number_of_entry(b)) <= 0 ||
               (number_of_entry(a) != number_of_entry(a) &&
                number_of_entry(b) != number_of_entry(b));
    if (a->kind != b->kind || depth > DEPTH_MAX)
        return false;
    switch (a->kind) {
    case OT_DICT_STRING:
        return strcmp(a->value.s, b->value.s) == 0;
    case OT_DICT_INTS:
        return a->value.ints.n == b->value.ints.n &&
               memcmp(a->value.ints.values, b->value.ints.values,
                      (size_t)a->value.ints.n * sizeof(int64_t)) == 0;
    case OT_DICT_BYTES:
        return a->value.bytes.n_bytes == b->value.bytes.n_bytes &&
               memcmp(a->value.bytes.data, b->value.bytes.data, a->value.bytes.n_bytes) == 0;
    case OT_DICT_TENSOR:
        return a->value.tensor->dtype == b->value.tensor->dtype &&
               ot__shape_equal(&a->value.tensor->shape, &b->value.tensor->shape) &&
               memcmp(a->value.tensor->data, b->value.tensor->data, a->value.tensor->n_bytes) == 0;
    case OT_DICT_NULL:
        return true;
    case OT_DICT_SHARDS:
        return false;
    default:
        break;
    }
    if (a->value.dict->n_entries != b->value.dict->n_entries)
        return false;
    for (int i = 0; i < a->value.dict->n_entries; i++) {
        const dict_entry *e = &a->value.dict->entries[i], *f = entry_of(b->value.dict, e->name);

        if (f == NULL || !are_same(e, f, depth + 1))
            return false;
    }
    return true;
}

bool ot__dict_same(const ot_dict *a, const char *a_name, const ot_dict *b, const char *b_name)
{
    return are_same(entry_of(a, a_name), entry_of(b, b_name), 0);
}

static uint64_t hash_number(double number)
{
    const double positive = fabs(number) <= 0 ? 0 : number; // -0 is 0
    uint64_t word = 1;

    if (number == number)
        memcpy(&word, &positive, sizeof word);
    return ot__id_mix_word(OT_DICT_FLOAT, word);
}

static uint64_t hash_dtype_and_shape(uint64_t hash, ot_dtype dtype, const ot_shape *shape)
{
    hash = ot__id_mix_word(hash, (uint64_t)dtype);
    for (int k = 0; k < shape->ndim; k++)
        hash = ot__id_mix_word(hash, (uint64_t)shape->dim[k]);
    return hash;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n_bytes)
{
    return n_bytes > 0 ? ot__id_mix(hash, bytes, n_bytes) : hash;
}

// In whatever order the values of a dict stand.
static uint64_t hash_entry(const dict_entry *e, int depth)
{
    uint64_t sum = 0;

    if (is_number_entry(e))
        return hash_number(number_of_entry(e));
    switch (e->kind) {
    case OT_DICT_STRING:
        return hash_bytes(OT_DICT_STRING, e->value.s, strlen(e->value.s));
    case OT_DICT_INTS:
        return hash_bytes(OT_DICT_INTS, e->value.ints.values,
                          (size_t)e->value.ints.n * sizeof(int64_t));
    case OT_DICT_BYTES:
        return hash_bytes(OT_DICT_BYTES, e->value.bytes.data, e->value.bytes.n_bytes);
    case OT_DICT_TENSOR:
        return hash_bytes(
            hash_dtype_and_shape(OT_DICT_TENSOR, e->value.tensor->dtype, &e->value.tensor->shape),
            e->value.tensor->data, e->value.tensor->n_bytes);
    case OT_DICT_NULL:
        return OT_DICT_NULL;
    case OT_DICT_SHARDS:
        return hash_dtype_and_shape(OT_DICT_SHARDS, e->value.shards->dtype,
                                    &e->value.shards->shape);
    default:
        break;
    }
    for (int i = 0; i < e->value.dict->n_entries && depth <= DEPTH_MAX; i++) {
        const dict_entry *inner = &e->value.dict->entries[i];

        sum += ot__id_mix(hash_entry(inner, depth + 1), inner->name, strlen(inner->name));
    }
    return ot__id_mix_word((uint64_t)e->kind, sum);
}

uint64_t ot__dict_hash(const ot_dict *dict, const char *name)
{
    return hash_entry(entry_of(dict, name), 0);
}
