// SPDX-License-Identifier: Apache-2.0
#include "onnxtrain/dict.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "ckpt/dict_entry.h"

static const char *const kind_names[] = {"bool", "int",  "float", "string", "ints",  "tensor",
                                         "dict", "null", "bytes", "list",   "shards"};

// ---- life ----

static ot_status dict_make(ot_dict *parent, ot_dict **out)
{
    *out = ot__alloc_zero(1, sizeof **out);
    if (!*out)
        return OT_ERR_NO_MEMORY;
    (*out)->parent = parent;
    OT_ENTER(*out);
    return OT_OK;
}

ot_status ot_dict_create(ot_dict **out)
{
    OT_TRY(OT_OUT(out));
    return dict_make(NULL, out);
}

static void dict_free(ot_dict *dict);

static bool has_inner(const dict_entry *entry)
{
    return entry->kind == OT_DICT_DICT || entry->kind == OT_DICT_LIST;
}

static void free_value(dict_entry *entry)
{
    ot__stamp_release(entry->stamp);
    entry->stamp = NULL;
    if (entry->kind == OT_DICT_STRING)
        ot__free(entry->value.s);
    else if (entry->kind == OT_DICT_INTS)
        ot__free(entry->value.ints.values);
    else if (entry->kind == OT_DICT_BYTES)
        ot__free(entry->value.bytes.data);
    else if (entry->kind == OT_DICT_TENSOR)
        ot_tensor_destroy(entry->value.tensor);
    else if (entry->kind == OT_DICT_SHARDS)
        ot__dict_shards_free(entry->value.shards);
    else if (has_inner(entry))
        dict_free(entry->value.dict);
}

// A tree may be deep: the innermost goes first, without a call for each level.
static void dict_free(ot_dict *dict)
{
    ot_dict *const end = dict->parent;

    while (dict != end) {
        ot_dict *parent = dict->parent;
        dict_entry *last = dict->n_entries > 0 ? &dict->entries[dict->n_entries - 1] : NULL;

        if (last && has_inner(last) && last->value.dict) {
            ot_dict *inner = last->value.dict;

            last->value.dict = NULL;
            dict = inner;
        } else if (last) {
            if (!has_inner(last))
                free_value(last);
            ot__free(last->name);
            dict->n_entries--;
        } else {
            ot__handle_leave(dict);
            ot__map_deinit(&dict->places);
            ot__free(dict->entries);
            ot__free(dict);
            dict = parent;
        }
    }
}

void ot_dict_destroy(ot_dict *dict)
{
    if (!dict || !OT_IS_LIVE(dict)) {
        (void)OT_ENDS(dict); // says so
        return;
    }
    if (!dict->parent)
        dict_free(dict);
}

// ---- looking ----

int ot_dict_count(const ot_dict *dict)
{
    return OT_IS_LIVE(dict) ? dict->n_entries : 0;
}

const char *ot_dict_name(const ot_dict *dict, int index)
{
    return index >= 0 && index < ot_dict_count(dict) ? dict->entries[index].name : NULL;
}

// NULL: there is none.
static dict_entry *find_entry(const ot_dict *dict, const char *name)
{
    const uintptr_t place = (uintptr_t)ot__map_get(&dict->places, name);

    return place > 0 ? &dict->entries[place - 1] : NULL;
}

static ot_status no_entry(const ot_dict *dict, const char *name)
{
    ot__names names = {.wanted = name};

    for (int i = 0; i < dict->n_entries; i++)
        ot__names_add(&names, dict->entries[i].name);
    return ot__error(OT_ERR_NOT_FOUND, "the dict has no '%s', it has: %s%s", name,
                     ot__names_list(&names, "names"), ot__names_hint(&names));
}

ot_status ot_dict_kind_of(const ot_dict *dict, const char *name, ot_dict_kind *out)
{
    const dict_entry *entry;

    OT_TRY(OT_GIVEN(dict));
    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(out));
    entry = find_entry(dict, name);
    if (!entry)
        return no_entry(dict, name);
    *out = entry->kind;
    return OT_OK;
}

ot_status ot__dict_get(const ot_dict *dict, const char *name, const void *out, ot_dict_kind kind,
                       const dict_entry **found)
{
    OT_TRY(OT_GIVEN(dict));
    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(out));
    *found = find_entry(dict, name);
    if (!*found)
        return no_entry(dict, name);
    if ((*found)->kind != kind)
        return ot__error(OT_ERR_INVALID, "'%s' of the dict is of kind %s, expected %s", name,
                         kind_names[(*found)->kind], kind_names[kind]);
    return ot__dict_check_entry(*found);
}

ot_status ot_dict_get_bool(const ot_dict *dict, const char *name, int *out)
{
    const dict_entry *entry;

    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_BOOL, &entry));
    *out = (int)entry->value.i;
    return OT_OK;
}

ot_status ot_dict_get_int(const ot_dict *dict, const char *name, int64_t *out)
{
    const dict_entry *entry;

    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_INT, &entry));
    *out = entry->value.i;
    return OT_OK;
}

ot_status ot_dict_get_float(const ot_dict *dict, const char *name, double *out)
{
    const dict_entry *entry;

    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_FLOAT, &entry));
    *out = entry->value.f;
    return OT_OK;
}

ot_status ot_dict_get_string(const ot_dict *dict, const char *name, const char **out)
{
    const dict_entry *entry;

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_STRING, &entry));
    *out = entry->value.s;
    return OT_OK;
}

static bool is_list_of_ints(const dict_entry *entry)
{
    return entry->kind == OT_DICT_TENSOR && entry->value.tensor->dtype == OT_I64 &&
           entry->value.tensor->shape.ndim == 1 && entry->value.tensor->shape.dim[0] <= INT_MAX;
}

ot_status ot_dict_get_ints(const ot_dict *dict, const char *name, const int64_t **out, int *n)
{
    const dict_entry *entry;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(n));
    *n = 0;
    if (OT_IS_LIVE(dict) && name != NULL && (entry = find_entry(dict, name)) != NULL &&
        is_list_of_ints(entry)) {
        *out = entry->value.tensor->data;
        *n = (int)entry->value.tensor->shape.dim[0];
        return OT_OK;
    }
    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_INTS, &entry));
    *out = entry->value.ints.values;
    *n = entry->value.ints.n;
    return OT_OK;
}

ot_status ot_dict_get_tensor(const ot_dict *dict, const char *name, const ot_tensor **out)
{
    const dict_entry *entry;

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_TENSOR, &entry));
    *out = entry->value.tensor;
    return OT_OK;
}

ot_status ot_dict_get_dict(ot_dict *dict, const char *name, ot_dict **out)
{
    const dict_entry *entry;

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__dict_get(dict, name, out, OT_DICT_DICT, &entry));
    *out = entry->value.dict;
    return OT_OK;
}

// ---- setting ----

ot_status ot__dict_check_name(const ot_dict *dict, const char *name)
{
    char next[16];

    OT_TRY(OT_GIVEN(dict));
    OT_TRY(OT_GIVEN(name));
    if (*name == '\0')
        return ot__error(OT_ERR_INVALID, "the name of a dict's value is empty");
    if (!dict->is_list || find_entry(dict, name) != NULL)
        return OT_OK;
    snprintf(next, sizeof next, "%d", dict->n_entries);
    return strcmp(name, next) == 0
               ? OT_OK
               : ot__error(OT_ERR_INVALID,
                           "a list of %d values has no place '%s', its next is '%s'",
                           dict->n_entries, name, next);
}

static ot_status append_entry(ot_dict *dict, const char *name, const dict_entry *value)
{
    dict_entry added = *value;

    if (!ot__grow(&dict->entries, &dict->capacity, dict->n_entries, sizeof added))
        return OT_ERR_NO_MEMORY;
    added.name = ot__strdup(name);
    if (!added.name)
        return OT_ERR_NO_MEMORY;
    if (!ot__map_put(&dict->places, added.name, (void *)(uintptr_t)(dict->n_entries + 1))) {
        ot__free(added.name);
        return OT_ERR_NO_MEMORY;
    }
    dict->entries[dict->n_entries++] = added;
    return OT_OK;
}

// Takes the value over unless it fails.
ot_status ot__dict_put(ot_dict *dict, const char *name, dict_entry value)
{
    dict_entry *entry = find_entry(dict, name);

    if (!entry)
        return append_entry(dict, name, &value);
    free_value(entry);
    entry->kind = value.kind;
    entry->value = value.value;
    entry->stamp = value.stamp;
    entry->stamped = value.stamped;
    return OT_OK;
}

ot_status ot_dict_set_bool(ot_dict *dict, const char *name, int value)
{
    OT_TRY(ot__dict_check_name(dict, name));
    return ot__dict_put(dict, name, (dict_entry){.kind = OT_DICT_BOOL, .value.i = value != 0});
}

ot_status ot_dict_set_int(ot_dict *dict, const char *name, int64_t value)
{
    OT_TRY(ot__dict_check_name(dict, name));
    return ot__dict_put(dict, name, (dict_entry){.kind = OT_DICT_INT, .value.i = value});
}

ot_status ot_dict_set_float(ot_dict *dict, const char *name, double value)
{
    OT_TRY(ot__dict_check_name(dict, name));
    return ot__dict_put(dict, name, (dict_entry){.kind = OT_DICT_FLOAT, .value.f = value});
}

// What ot__dict_put() does not take is freed.
ot_status ot__dict_put_made(ot_dict *dict, const char *name, dict_entry value, bool made)
{
    ot_status st = ot__made(made);

    if (!made)
        return st;
    st = ot__dict_put(dict, name, value);
    if (st != OT_OK)
        free_value(&value);
    return st;
}

ot_status ot_dict_set_string(ot_dict *dict, const char *name, const char *value)
{
    dict_entry entry = {.kind = OT_DICT_STRING};

    OT_TRY(ot__dict_check_name(dict, name));
    OT_TRY(OT_GIVEN(value));
    entry.value.s = ot__strdup(value);
    return ot__dict_put_made(dict, name, entry, entry.value.s != NULL);
}

ot_status ot_dict_set_ints(ot_dict *dict, const char *name, const int64_t *values, int n)
{
    dict_entry entry = {.kind = OT_DICT_INTS};

    OT_TRY(ot__dict_check_name(dict, name));
    OT_TRY(OT_GIVEN_MANY(values, n));
    entry.value.ints.n = n;
    entry.value.ints.values = ot__alloc((size_t)n * sizeof *values);
    if (entry.value.ints.values && n > 0)
        memcpy(entry.value.ints.values, values, (size_t)n * sizeof *values);
    return ot__dict_put_made(dict, name, entry, entry.value.ints.values != NULL);
}

ot_status ot_dict_take_tensor(ot_dict *dict, const char *name, ot_tensor *value)
{
    const dict_entry entry = {.kind = OT_DICT_TENSOR, .value.tensor = value};

    OT_TRY(ot__dict_check_name(dict, name));
    OT_TRY(OT_GIVEN(value));
    return ot__dict_put(dict, name, entry);
}

ot_status ot_dict_set_tensor(ot_dict *dict, const char *name, const ot_tensor *value)
{
    dict_entry entry = {.kind = OT_DICT_TENSOR};

    OT_TRY(ot__dict_check_name(dict, name));
    OT_TRY(OT_GIVEN(value));
    OT_TRY(ot_tensor_clone(value, &entry.value.tensor));
    return ot__dict_put_made(dict, name, entry, true);
}

static ot_status set_inner(ot_dict *dict, const char *name, ot_dict_kind kind, ot_dict **out)
{
    dict_entry entry = {.kind = kind};
    ot_status st;

    OT_TRY(ot__dict_check_name(dict, name));
    OT_TRY(dict_make(dict, &entry.value.dict));
    entry.value.dict->is_list = kind == OT_DICT_LIST;
    st = ot__dict_put_made(dict, name, entry, true);
    if (st == OT_OK)
        *out = entry.value.dict;
    return st;
}

ot_status ot_dict_set_dict(ot_dict *dict, const char *name, ot_dict **out)
{
    OT_TRY(OT_OUT(out));
    return set_inner(dict, name, OT_DICT_DICT, out);
}

ot_status ot_dict_set_list(ot_dict *dict, const char *name, ot_dict **out)
{
    OT_TRY(OT_OUT(out));
    return set_inner(dict, name, OT_DICT_LIST, out);
}

ot_status ot__dict_move(ot_dict *from, const char *name, ot_dict *to, const char *new_name)
{
    dict_entry *entry = find_entry(from, name);

    assert(from != to);
    if (!entry)
        return no_entry(from, name);
    OT_TRY(ot__dict_put(to, new_name, *entry));
    if (has_inner(entry))
        entry->value.dict->parent = to;
    entry->stamp = NULL;
    entry->kind = OT_DICT_INT;
    entry->value.i = 0;
    return OT_OK;
}

ot_status ot__dict_release_tensor(ot_dict *dict, const char *name, ot_tensor **out)
{
    const ot_tensor *tensor;
    dict_entry *entry;

    *out = NULL;
    OT_TRY(ot_dict_get_tensor(dict, name, &tensor));
    entry = find_entry(dict, name);
    *out = entry->value.tensor;
    entry->kind = OT_DICT_INT;
    entry->value.i = 0;
    return OT_OK;
}

ot_status ot_dict_remove(ot_dict *dict, const char *name)
{
    dict_entry *entry;

    OT_TRY(OT_GIVEN(dict));
    OT_TRY(OT_GIVEN(name));
    entry = find_entry(dict, name);
    if (!entry)
        return no_entry(dict, name);
    if (dict->is_list && entry != &dict->entries[dict->n_entries - 1])
        return ot__error(OT_ERR_INVALID, "value '%s' of a list is not the last of %d", name,
                         dict->n_entries);
    ot__map_remove(&dict->places, name);
    free_value(entry);
    ot__free(entry->name);
    dict->n_entries--;
    memmove(entry, entry + 1, (size_t)(dict->entries + dict->n_entries - entry) * sizeof *entry);
    for (; entry < dict->entries + dict->n_entries; entry++) // replaces: needs no memory
        (void)ot__map_put(&dict->places, entry->name,
                          (void *)(uintptr_t)(entry - dict->entries + 1));
    return OT_OK;
}
