// SPDX-License-Identifier: Apache-2.0
// Who takes the structs of checkpoint directories.
#ifndef TESTS_OPTIONS_SHARDS_USERS_H
#define TESTS_OPTIONS_SHARDS_USERS_H

#include "options/users.h"

// Every call of these saves anew, into a place that is free.
static inline ot_status save_item(const world *w, ot_shards_item *item,
                                  const ot_shards_save_options *options)
{
    char path[PATH_LENGTH_MAX];
    ot_dict *dict;
    ot_status st;

    snprintf(path, sizeof path, "%.200s/shards", (const char *)w->folder);
    remove_below(path);
    must(ot_dict_create(&dict));
    must(ot_dict_set_tensor(dict, "x", w->x));
    if (item->size >= sizeof *item)
        item->dict = dict;
    st = ot_shards_save(NULL, path, item, 1, options);
    ot_dict_destroy(dict);
    return st;
}

static inline ot_status use_shards_save(world *w, void *options)
{
    ot_shards_item item = OT_SHARDS_ITEM_INIT;

    item.name = "m";
    return save_item(w, &item, options);
}

static inline ot_status use_shards_item(world *w, void *item)
{
    return save_item(w, item, NULL);
}

static inline void save_shards(const world *w, char path[PATH_LENGTH_MAX])
{
    ot_shards_item item = OT_SHARDS_ITEM_INIT;

    snprintf(path, PATH_LENGTH_MAX, "%.200s/shards", (const char *)w->folder);
    item.name = "m";
    must(save_item(w, &item, NULL));
}

static inline ot_status load_shards(const world *w, const ot_shards_load_options *options)
{
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    char path[PATH_LENGTH_MAX];
    ot_status st;

    save_shards(w, path);
    item.name = "m";
    must(ot_dict_create(&item.dict));
    must(ot_dict_set_tensor(item.dict, "x", w->x));
    st = ot_shards_load(NULL, path, &item, 1, options);
    ot_dict_destroy(item.dict);
    return st;
}

static inline ot_status use_shards_load(world *w, void *options)
{
    return load_shards(w, options);
}

static inline ot_status fill_shards_counters(world *w, void *counters)
{
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;

    options.counters = counters;
    return load_shards(w, &options);
}

static inline ot_status fill_shards_info(world *w, void *info)
{
    char path[PATH_LENGTH_MAX];
    ot_shards_reader *reader;
    ot_status st;

    save_shards(w, path);
    must(ot_shards_open(path, &reader));
    st = ot_shards_reader_info(reader, info);
    ot_shards_reader_destroy(reader);
    return st;
}

static inline ot_status fill_shards_tensor(world *w, void *tensor)
{
    char path[PATH_LENGTH_MAX];
    ot_shards_reader *reader;
    ot_status st;

    save_shards(w, path);
    must(ot_shards_open(path, &reader));
    st = ot_shards_reader_tensor(reader, 0, tensor);
    ot_shards_reader_destroy(reader);
    return st;
}

#endif
