// SPDX-License-Identifier: Apache-2.0
// The state of a session as a checkpoint directory: its state dict, an item for each section, and
// the properties of its checkpoint as one more.
#include "onnxtrain/shards.h"
#include "session/ranks.h"
#include "session/state_dict.h"

#define ITEM_PROPERTIES "properties"
enum { SECTIONS_MAX = 3, ITEMS_MAX = SECTIONS_MAX + 1 };

typedef struct directory_items {
    ot_dict *state, *properties;
    ot_shards_item items[ITEMS_MAX];
    int n;
} directory_items;

// ---- properties ----

static ot_status property_to_dict(const ot_checkpoint *checkpoint, const char *name, ot_dict *out)
{
    ot_property_kind kind;
    const char *text;
    int64_t i;
    float f;

    OT_TRY(ot_checkpoint_property_kind_of(checkpoint, name, &kind));
    switch (kind) {
    case OT_PROPERTY_INT:
        OT_TRY(ot_checkpoint_get_int(checkpoint, name, &i));
        return ot_dict_set_int(out, name, i);
    case OT_PROPERTY_FLOAT:
        OT_TRY(ot_checkpoint_get_float(checkpoint, name, &f));
        return ot_dict_set_float(out, name, (double)f);
    default:
        OT_TRY(ot_checkpoint_get_string(checkpoint, name, &text));
        return ot_dict_set_string(out, name, text);
    }
}

static ot_status property_from_dict(ot_checkpoint *checkpoint, const ot_dict *from,
                                    const char *name)
{
    ot_dict_kind kind;
    const char *text;
    int64_t i;
    double f;

    OT_TRY(ot_dict_kind_of(from, name, &kind));
    switch (kind) {
    case OT_DICT_INT:
        OT_TRY(ot_dict_get_int(from, name, &i));
        return ot_checkpoint_set_int(checkpoint, name, i);
    case OT_DICT_FLOAT:
        OT_TRY(ot_dict_get_float(from, name, &f));
        return ot_checkpoint_set_float(checkpoint, name, (float)f);
    case OT_DICT_STRING:
        OT_TRY(ot_dict_get_string(from, name, &text));
        return ot_checkpoint_set_string(checkpoint, name, text);
    default:
        return ot__error(OT_ERR_FORMAT, "property '%s' is neither a number nor text", name);
    }
}

static ot_status properties_to_dict(const ot_checkpoint *checkpoint, ot_dict *out)
{
    for (int i = 0; i < ot_checkpoint_property_count(checkpoint); i++)
        OT_TRY(property_to_dict(checkpoint, ot_checkpoint_property_name(checkpoint, i), out));
    return OT_OK;
}

static ot_status properties_from_dict(ot_checkpoint *checkpoint, const ot_dict *from)
{
    for (int i = 0; i < ot_dict_count(from); i++)
        OT_TRY(property_from_dict(checkpoint, from, ot_dict_name(from, i)));
    return OT_OK;
}

// ---- items ----

static unsigned sections_of(const ot_session *session)
{
    const unsigned optimizer = ot__session_has_optimizer(session) ? OT_STATE_OPTIMIZER : 0;

    return OT_STATE_MODEL | OT_STATE_OWN | optimizer;
}

static ot_state_dict_options options_of(const ot_session *session)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;

    options.comm = ot__session_comm(session);
    return options;
}

static void add_item(directory_items *all, const char *name, ot_dict *dict)
{
    ot_shards_item item = OT_SHARDS_ITEM_INIT;

    item.name = name;
    item.dict = dict;
    all->items[all->n++] = item;
}

// The state as it is, perhaps as copies, and room for properties.
static ot_status make_items(ot_session *session, bool copies, directory_items *all)
{
    ot_state_dict_options options = options_of(session);
    ot_status st = ot_dict_create(&all->properties);

    options.copy = copies;
    if (options.comm == NULL)
        OT_TRY(st);
    OT_TRY(ot_session_get_shards(session, sections_of(session), &options, &all->state));
    OT_TRY(st);
    for (int i = 0; i < ot_dict_count(all->state); i++) {
        ot_dict *section;

        OT_TRY(ot_dict_get_dict(all->state, ot_dict_name(all->state, i), &section));
        add_item(all, ot_dict_name(all->state, i), section);
    }
    add_item(all, ITEM_PROPERTIES, all->properties);
    return OT_OK;
}

static void items_deinit(directory_items *all)
{
    ot_dict_destroy(all->state);
    ot_dict_destroy(all->properties);
}

// ---- public ----

ot_status ot_session_save_shards(ot_session *session, const char *path,
                                 const ot_shards_save_options *options)
{
    directory_items all = {0};
    ot_status st;

    OT_TRY(OT_GIVEN(session));
    st = make_items(session, false, &all);
    OT_THEN(st, properties_to_dict(session->checkpoint, all.properties));
    if (ot__session_comm(session) != NULL)
        st = ot__ranks_agree(ot__session_comm(session), st, "save_shards", NULL, 0);
    OT_THEN(st, ot_shards_save(ot__session_comm(session), path, all.items, all.n, options));
    items_deinit(&all);
    return st;
}

// Slots must be there to be filled; those that are cut later are whole until then.
static ot_status make_slots_to_fill(ot_session *session)
{
    ot_status st;

    OT_TRY(ot__session_enter(session));
    st = ot__session_has_optimizer(session) ? ot__optimizer_ready(session, false) : OT_OK;
    st = ot__session_leave(session, st);
    if (ot__session_comm(session) != NULL)
        st = ot__ranks_agree(ot__session_comm(session), st, "load_shards", NULL, 0);
    return st;
}

static ot_status load_directory_items(ot_session *session, const char *path, directory_items *all)
{
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    const ot_state_dict_options set = options_of(session);

    options.allows_unexpected = 1; // what other programs keep there
    OT_TRY(ot_shards_load(set.comm, path, all->items, all->n, &options));
    OT_TRY(ot_session_set_shards(session, sections_of(session), all->state, &set, NULL));
    return properties_from_dict(session->checkpoint, all->properties);
}

ot_status ot_session_load_shards(ot_session *session, const char *path)
{
    directory_items all = {0};
    ot_status st;

    OT_TRY(OT_GIVEN(session));
    OT_TRY(make_slots_to_fill(session));
    st = make_items(session, true, &all);
    if (ot__session_comm(session) != NULL)
        st = ot__ranks_agree(ot__session_comm(session), st, "load_shards", NULL, 0);
    OT_THEN(st, load_directory_items(session, path, &all));
    items_deinit(&all);
    return st;
}
