// SPDX-License-Identifier: Apache-2.0
// The state of a session as a checkpoint directory: its state dict, an item for each section, and
// the library's own properties of its checkpoint as one more.
#include <string.h>

#include "onnxtrain/shards.h"
#include "session/ranks.h"
#include "session/state_dict.h"
#include "shards/shards.h"

#define ITEM_PROPERTIES "onnxtrain"
enum { SECTIONS_MAX = 3, ITEMS_MAX = SECTIONS_MAX + 1 };

typedef struct directory_items {
    unsigned sections;
    ot_dict *state, *properties;
    ot_shards_item items[ITEMS_MAX];
    int n;
} directory_items;

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

// Copies of the state; fails on all ranks or on none.
static ot_status copy_state(ot_session *session, const ot__state_owner *owner, directory_items *all)
{
    ot_state_dict_options options = options_of(session);

    options.copy = 1;
    return ot__session_get_shards(session, all->sections, &options, owner, &all->state);
}

// The state as it is, for a job as it lies.
static ot_status view_state(ot_session *session, const ot__state_owner *owner, bool is_packed,
                            directory_items *all)
{
    const ot_state_dict_options options = options_of(session);

    return (is_packed ? ot__session_get_packed : ot__session_get_shards)(
        session, sections_of(session), &options, owner, &all->state);
}

// Its sections, and room for properties.
static ot_status list_items(directory_items *all)
{
    OT_TRY(ot_dict_create(&all->properties));
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

// ---- saving ----

// What is saved, or on all ranks why it cannot be; `given`: how checks went on this one.
static ot_status items_to_save(ot_session *session, ot_status given, const ot__state_owner *owner,
                               bool is_packed, directory_items *all)
{
    ot_status st = given;

    OT_TRY(view_state(session, owner, is_packed, all));
    OT_THEN(st, list_items(all));
    OT_THEN(st, ot__properties_write_own(session->checkpoint, all->properties));
    return ot__session_agree(session, st, "save_shards");
}

ot_status ot__session_save_shards(ot_session *session, ot_status given,
                                  const ot__state_owner *owner, ot_shards_job *job,
                                  const char *path, const ot_shards_save_options *options)
{
    ot_comm *comm = ot__session_comm(session);
    directory_items all = {0};
    ot_status st = items_to_save(session, given, owner, job != NULL, &all);

    OT_THEN(st, job == NULL ? ot_shards_save(comm, path, all.items, all.n, options)
                            : ot_shards_job_start(job, comm, path, all.items, all.n, options));
    items_deinit(&all);
    return st;
}

ot_status ot__session_prepare_job(ot_session *session, ot_shards_job *job)
{
    directory_items all = {0};
    ot_status st;

    OT_TRY(ot__session_enter(session));
    st = items_to_save(session, OT_OK, NULL, true, &all);
    OT_THEN(st, ot_shards_job_prepare(job, ot__session_comm(session), all.items, all.n));
    items_deinit(&all);
    return ot__session_leave(session, st);
}

ot_status ot_session_save_shards(ot_session *session, const char *path,
                                 const ot_shards_save_options *options)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session,
                             ot__session_save_shards(session, OT_OK, NULL, NULL, path, options));
}

ot_status ot_session_save_shards_async(ot_session *session, ot_shards_job *job, const char *path,
                                       const ot_shards_save_options *options)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(
        session, ot__session_save_shards(session, OT_GIVEN(job), NULL, job, path, options));
}

// ---- loading ----

// Slots must be there to be filled; those that are cut later are whole until then.
static ot_status make_slots_to_fill(ot_session *session, ot_status given)
{
    ot_status st = given;

    if (ot__session_has_optimizer(session))
        OT_THEN(st, ot__optimizer_ready(session));
    return ot__session_agree(session, st, "load_shards");
}

// What is not tensors is taken whatever it is: a tree without names wants all values.
static ot_status empty_own_section(directory_items *all)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->items[i].name, OT_KEY_SECTION_OWN) == 0)
            return ot_dict_set_dict(all->state, OT_KEY_SECTION_OWN, &all->items[i].dict);
    return OT_OK;
}

// The properties come first: they are there for the owner's check, and go back where it fails.
static ot_status set_directory_items(ot_session *session, const ot__state_owner *owner,
                                     const directory_items *all)
{
    const ot_state_dict_options set = options_of(session);
    ot_checkpoint *properties = NULL;
    ot_status st;

    st = ot__properties_stage_own(session->checkpoint, all->properties, &properties);
    st = ot__session_agree(session, st, "load_shards");
    if (st == OT_OK) {
        ot__properties_take(session->checkpoint, properties);
        st = ot__session_set_shards(session, sections_of(session), all->state, &set, false, owner,
                                    NULL);
        if (st != OT_OK)
            ot__properties_take(session->checkpoint, properties);
    }
    ot_checkpoint_destroy(properties);
    return st;
}

// Of another tool: values of parameters, in whatever type floats are kept; the rest stays.
static ot_status load_foreign(ot_session *session, const ot__state_owner *owner, const char *path,
                              directory_items *all)
{
    const ot_state_dict_options set = options_of(session);
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;

    options.allows_unexpected = options.casts = 1;
    OT_TRY(ot_shards_load(ot__session_comm(session), path, all->items, 1, &options));
    return ot__session_set_shards(session, all->sections, all->state, &set, false, owner, NULL);
}

static ot_status load_directory_items(ot_session *session, const ot__state_owner *owner,
                                      const char *path, directory_items *all)
{
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;

    options.allows_unexpected = 1; // what other programs keep there
    OT_TRY(ot_shards_load(ot__session_comm(session), path, all->items, all->n, &options));
    return set_directory_items(session, owner, all);
}

ot_status ot__session_load_shards(ot_session *session, ot_status given,
                                  const ot__state_owner *owner, const char *path)
{
    directory_items all = {0};
    bool is_foreign;
    ot_status st = given;

    OT_THEN(st, OT_GIVEN(path));
    OT_TRY(make_slots_to_fill(session, st));
    OT_TRY(ot__shards_is_foreign(ot__session_comm(session), path, &is_foreign));
    all.sections = is_foreign ? OT_STATE_MODEL : sections_of(session);
    OT_TRY(copy_state(session, owner, &all));
    st = list_items(&all);
    OT_THEN(st, empty_own_section(&all));
    st = ot__session_agree(session, st, "load_shards");
    OT_THEN(st, (is_foreign ? load_foreign : load_directory_items)(session, owner, path, &all));
    items_deinit(&all);
    return st;
}

ot_status ot_session_load_shards(ot_session *session, const char *path)
{
    ot_status given = OT_OK;

    OT_TRY(ot__session_enter(session));
    if (session->has_trainer)
        given = ot__error(OT_ERR_STATE, "the session belongs to a trainer, whose state "
                                        "ot_trainer_load_shards() takes over");
    return ot__session_leave(session, ot__session_load_shards(session, given, NULL, path));
}
