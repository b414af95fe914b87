// SPDX-License-Identifier: Apache-2.0
// Loads a checkpoint directory: rank 0 reads the index for all, every rank finds out which bytes it
// wants and reads them. Nothing is read, or changed, before all ranks know that all is there.
#include <string.h>

#include "ckpt/ckpt.h"
#include "shards/shards.h"

typedef struct loading {
    ot__team team;
    ot_shards_load_options options;
    ot_shards_counters counters;
    ot_shards_item *items; // of the caller
    ot_dict **stored;      // per item what the checkpoint has; tensors without their elements
    int n_items;
    ot__leaves leaves;
    ot__located from;
    ot__index index;
    ot__portions pieces;
} loading;

// ---- values: what the checkpoint has, and what a tree wants ----

typedef struct merge {
    const ot_shards_load_options *options;
    bool applies; // else it is only found out whether all fits
    ot__buf key;
} merge;

static bool is_tensor_kind(ot_dict_kind kind)
{
    return kind == OT_DICT_TENSOR || kind == OT_DICT_SHARDS;
}

static bool is_inner_kind(ot_dict_kind kind)
{
    return kind == OT_DICT_DICT || kind == OT_DICT_LIST;
}

static ot_dict *inner_of(ot_dict *dict, const char *name, ot_dict_kind kind)
{
    ot_dict *inner = NULL;

    if (kind == OT_DICT_DICT)
        (void)ot_dict_get_dict(dict, name, &inner);
    else if (kind == OT_DICT_LIST)
        (void)ot_dict_get_list(dict, name, &inner);
    return inner;
}

// Of a value that is there.
static ot_dict_kind kind_at(const ot_dict *dict, const char *name)
{
    ot_dict_kind kind = OT_DICT_NULL;

    (void)ot_dict_kind_of(dict, name, &kind);
    return kind;
}

static bool has_tensors(ot_dict *dict, const char *name)
{
    const ot_dict_kind kind = kind_at(dict, name);
    ot_dict *inner = inner_of(dict, name, kind);

    for (int i = 0; i < ot_dict_count(inner); i++)
        if (has_tensors(inner, ot_dict_name(inner, i)))
            return true;
    return is_tensor_kind(kind);
}

static void drop_tensors(ot_dict *dict)
{
    for (int i = ot_dict_count(dict) - 1; i >= 0; i--) {
        const char *name = ot_dict_name(dict, i);
        const ot_dict_kind kind = kind_at(dict, name);

        if (is_inner_kind(kind))
            drop_tensors(inner_of(dict, name, kind));
        else if (is_tensor_kind(kind))
            (void)ot_dict_remove(dict, name);
    }
}

static ot_status merge_dicts(merge *m, ot_dict *to, ot_dict *from);

static ot_status take_stored(merge *m, ot_dict *to, ot_dict *from, const char *name)
{
    return m->applies ? ot__dict_move(from, name, to, name) : OT_OK;
}

static ot_status merge_value(merge *m, ot_dict *to, ot_dict *from, const char *name)
{
    const ot_dict_kind stored = kind_at(from, name);
    ot_dict_kind wanted;

    if (!ot__dict_has(to, name)) {
        if (m->options->allows_unexpected)
            return OT_OK;
        return ot__error(OT_ERR_NOT_FOUND, "the tree has no '%s', which the checkpoint has",
                         m->key.data);
    }
    wanted = kind_at(to, name);
    if (is_tensor_kind(stored) != is_tensor_kind(wanted))
        return ot__error(OT_ERR_INVALID, "'%s' is a %s in the checkpoint, expected a %s",
                         m->key.data, is_tensor_kind(stored) ? "tensor" : "value",
                         is_tensor_kind(wanted) ? "tensor" : "value");
    if (is_tensor_kind(stored))
        return OT_OK; // its elements are read
    if (is_inner_kind(stored) && wanted == stored &&
        (stored == OT_DICT_DICT || has_tensors(from, name) || has_tensors(to, name)))
        return merge_dicts(m, inner_of(to, name, wanted), inner_of(from, name, stored));
    if (has_tensors(from, name) || has_tensors(to, name))
        return ot__error(OT_ERR_INVALID, "'%s' has tensors in the checkpoint or in the tree alone",
                         m->key.data);
    return take_stored(m, to, from, name);
}

static ot_status check_missing(merge *m, const ot_dict *to, const ot_dict *from)
{
    for (int i = 0; i < ot_dict_count(to) && !m->options->allows_missing; i++)
        if (!ot__dict_has(from, ot_dict_name(to, i)))
            return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no '%s.%s'", m->key.data,
                             ot_dict_name(to, i));
    return OT_OK;
}

static ot_status merge_dicts(merge *m, ot_dict *to, ot_dict *from)
{
    const size_t length = m->key.length;

    OT_TRY(check_missing(m, to, from));
    for (int i = 0; i < ot_dict_count(from); i++) {
        const char *name = ot_dict_name(from, i);

        ot__key_append(&m->key, name);
        OT_TRY(ot__buf_status(&m->key));
        OT_TRY(merge_value(m, to, from, name));
        m->key.length = length;
        m->key.data[length] = '\0';
    }
    return OT_OK;
}

// A tree without names takes all values; what is moved leaves a number in its place.
static ot_status take_all_values(const merge *m, ot_dict *to, ot_dict *from)
{
    if (!m->applies)
        return OT_OK;
    drop_tensors(from);
    for (int i = 0; i < ot_dict_count(from); i++)
        OT_TRY(ot__dict_move(from, ot_dict_name(from, i), to, ot_dict_name(from, i)));
    return OT_OK;
}

static ot_status merge_items(const loading *l, bool applies)
{
    merge m = {.options = &l->options, .applies = applies};
    ot_status st = OT_OK;

    for (int i = 0; i < l->n_items && st == OT_OK; i++) {
        m.key.length = 0;
        ot__buf_text(&m.key, l->items[i].name);
        st = ot__buf_status(&m.key);
        if (ot_dict_count(l->items[i].dict) == 0)
            OT_THEN(st, take_all_values(&m, l->items[i].dict, l->stored[i]));
        else
            OT_THEN(st, merge_dicts(&m, l->items[i].dict, l->stored[i]));
    }
    ot__buf_deinit(&m.key);
    return st;
}

// ---- the steps ----

static void tell_counts(loading *l, const ot__read_counts *counts)
{
    if (l->options.counters == NULL)
        return;
    l->counters.bytes_wanted = (int64_t)counts->wanted;
    l->counters.bytes_read = (int64_t)counts->read;
    l->counters.bytes_unchecked = (int64_t)counts->unchecked;
    ot__options_write(l->options.counters, &l->counters, sizeof l->counters);
}

static ot_status read_load_call(loading *l, const char *path, const ot_shards_item *items,
                                int n_items, const ot_shards_load_options *options)
{
    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_GIVEN_MANY(items, n_items));
    OT_TRY(
        OT_OPTIONS_READ(ot_shards_load_options, OT_SHARDS_LOAD_OPTIONS_INIT, options, &l->options));
    if ((int)l->options.verify < 0 || l->options.verify > OT_SHARDS_VERIFY_NONE)
        return ot__error(OT_ERR_INVALID, "unknown verify mode %d", (int)l->options.verify);
    if (l->options.counters != NULL) {
        OT_TRY(OT_OPTIONS_READ(ot_shards_counters, OT_SHARDS_COUNTERS_INIT, l->options.counters,
                               &l->counters));
        tell_counts(l, &(const ot__read_counts){0});
    }
    l->items = ot__alloc_zero((size_t)n_items, sizeof *l->items);
    l->stored = ot__alloc_zero((size_t)n_items, sizeof(ot_dict *));
    OT_TRY(ot__made(l->items != NULL && l->stored != NULL));
    l->n_items = n_items;
    OT_TRY(ot__items_read(items, n_items, l->items));
    return ot__leaves_of(l->items, n_items, &l->leaves);
}

static const char marks[] = {'o', 'f'}; // before the path: ours, or that of another tool

static ot_status mark_found(const char *path, ot__buf *out)
{
    ot__located at = {0};
    ot_status st = ot__shards_locate(path, &at);

    if (st == OT_OK)
        ot__buf_printf(out, "%c%s", marks[at.is_foreign], at.path);
    OT_THEN(st, ot__buf_status(out));
    ot__located_deinit(&at);
    return st;
}

static ot_status find_for_all(loading *l, const char *path)
{
    ot__buf found = {0};
    ot_status st = l->team.rank == 0 ? mark_found(path, &found) : OT_OK;

    st = ot__team_spread(&l->team, st, &found);
    if (st == OT_OK)
        st = ot__team_agree(&l->team,
                            ot__located_set(&l->from, found.data + 1, found.data[0] == marks[1]),
                            "load", NULL, 0);
    ot__buf_deinit(&found);
    return st;
}

static ot_status read_stored_item(loading *l, int i)
{
    ot__names names = {.wanted = l->items[i].name};

    for (int k = 0; k < l->index.n_items; k++) {
        if (strcmp(l->index.items[k].name, l->items[i].name) == 0) {
            OT_TRY(ot_dict_create(&l->stored[i]));
            return ot__values_read(&l->index, &l->index.items[k], false, l->stored[i]);
        }
        ot__names_add(&names, l->index.items[k].name);
    }
    return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no item '%s', it has: %s%s",
                     l->items[i].name, ot__names_list(&names, "items"), ot__names_hint(&names));
}

// All that may be wrong, but for files that are damaged.
static ot_status plan_reads(loading *l)
{
    for (int i = 0; i < l->n_items; i++)
        OT_TRY(read_stored_item(l, i));
    OT_TRY(merge_items(l, false));
    for (int i = 0; i < l->leaves.n; i++) {
        const ot__index_tensor *t = ot__index_find(&l->index, l->leaves.items[i].key);

        if (t != NULL) // else it may be missing
            OT_TRY(ot__plan_load(t, &l->leaves.items[i], l->options.casts != 0, &l->pieces));
    }
    ot__portions_sort(&l->pieces);
    return OT_OK;
}

static ot_status read_pieces(loading *l)
{
    ot__read_counts counts = {0};
    const ot_status st =
        ot__portions_read(&l->index, l->from.folder, &l->pieces, l->options.verify, &counts);

    tell_counts(l, &counts);
    return st;
}

static ot_status load_items(loading *l, const char *path, ot_status st)
{
    const ot_agree_field fields[] = {
        {"the path", st == OT_OK ? ot__id_mix(0, path, strlen(path)) : 0}};

    OT_TRY(ot__team_agree(&l->team, st, "load", fields, (int)OT_COUNT(fields)));
    OT_TRY(find_for_all(l, path));
    OT_TRY(ot__index_load(&l->team, &l->from, &l->index));
    OT_TRY(ot__team_agree(&l->team, plan_reads(l), "load", NULL, 0));
    OT_TRY(ot__team_agree(&l->team, read_pieces(l), "load", NULL, 0));
    return ot__team_agree(&l->team, merge_items(l, true), "load", NULL, 0);
}

ot_status ot_shards_load(ot_comm *comm, const char *path, const ot_shards_item *items, int n_items,
                         const ot_shards_load_options *options)
{
    loading l = {0};
    ot_status st;

    OT_TRY(ot__team_of(comm, &l.team));
    st = load_items(&l, path, read_load_call(&l, path, items, n_items, options));
    for (int i = 0; i < l.n_items; i++)
        ot_dict_destroy(l.stored[i]);
    ot__free(l.items);
    ot__free(l.stored);
    ot__free(l.pieces.items);
    ot__leaves_deinit(&l.leaves);
    ot__index_deinit(&l.index);
    ot__located_deinit(&l.from);
    return st;
}
