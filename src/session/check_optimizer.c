// SPDX-License-Identifier: Apache-2.0
// What is given for an optimizer, nested ("state", "param_groups") or flat ("state.<name>.<slot>").
#include <string.h>

#include "session/set_shards.h"

enum { NOT_GIVEN = -1 }; // of a number of updates

// Where a value is, and what it is called in reports: "state.<name>.<slot>".
typedef struct place_given {
    const ot_dict *from; // NULL: it is not given
    const char *key;
    ot__buf label;
} place_given;

typedef struct optimizer_check {
    ot__pending_state *pending;
    const ot__optimizer *optimizer;
    ot_dict *optim, *state; // `state` NULL: it is flat
} optimizer_check;

static ot_status find_given(optimizer_check *c, const char *name, const char *slot,
                            place_given *out)
{
    ot_dict *of = NULL;

    out->from = NULL;
    out->label.length = 0;
    ot__buf_printf(&out->label, OT_KEY_STATE ".%s.%s", name, slot);
    OT_TRY(ot__buf_status(&out->label));
    if (c->state == NULL) {
        out->from = ot__dict_has(c->optim, out->label.data) ? c->optim : NULL;
        out->key = out->label.data;
        return OT_OK;
    }
    if (ot__dict_has(c->state, name))
        OT_TRY(ot_dict_get_dict(c->state, name, &of));
    out->from = of != NULL && ot__dict_has(of, slot) ? of : NULL;
    out->key = slot;
    return OT_OK;
}

static ot_report_category category_of_slot(const optimizer_check *c)
{
    return c->pending->call->options.strictness == OT_STRICTNESS_ALL ? OT_REPORT_MISSING
                                                                     : OT_REPORT_ZEROED;
}

// ---- slots ----

static ot_status check_given_slot(optimizer_check *c, const ot__state_name *name, int k,
                                  place_given *at)
{
    ot__parameter *p = name->parameter;
    ot__pending_tensor t = {.name = name, .to = p->slots[k], .sharding = p->state_sharding};

    OT_TRY(find_given(c, name->name, ot__slot_key(c->optimizer, k), at));
    if (at->from != NULL)
        return ot__pending_add(c->pending, OT_STATE_OPTIMIZER, at->label.data, at->from, at->key,
                               &t);
    OT_TRY(ot__report_add(c->pending->report, category_of_slot(c), OT_STATE_OPTIMIZER,
                          at->label.data, ""));
    return ot__pending_add_fresh(c->pending, &t, k == OT_SLOT_AVERAGE);
}

static ot_status check_given_step(optimizer_check *c, int i_parameter, const ot__state_name *name,
                                  place_given *at)
{
    int64_t *to = &c->pending->updates[i_parameter];
    double number;

    OT_TRY(find_given(c, name->name, OT_KEY_SLOT_STEP, at));
    *to = at->from == NULL ? NOT_GIVEN : 0;
    if (at->from == NULL)
        return ot__report_add(c->pending->report, category_of_slot(c), OT_STATE_OPTIMIZER,
                              at->label.data, "");
    if (!ot__given_number(at->from, at->key, &number) || !(number >= 0) || number > 9e15)
        return ot__report_add(c->pending->report, OT_REPORT_DTYPE, OT_STATE_OPTIMIZER,
                              at->label.data, "is not a number of updates");
    *to = (int64_t)number;
    return OT_OK;
}

// A model with one counter has all parameters updated equally often, also those whose counter is
// not given; others begin anew.
static ot_status check_one_counter(optimizer_check *c)
{
    const ot__pending_state *pending = c->pending;
    const ot__optimizer *o = c->optimizer;
    int first = -1;

    for (int i = 0; i < o->n_parameters && o->n_steps == 1; i++) {
        if (pending->updates[i] == NOT_GIVEN ||
            ot__state_name_of(pending->call, o->parameters[i]) == NULL)
            continue;
        if (first >= 0 && pending->updates[i] != pending->updates[first]) {
            c->pending->is_refused = true;
            return ot__report_add(pending->report, OT_REPORT_GROUP, OT_STATE_OPTIMIZER,
                                  o->parameters[i]->name,
                                  "has another number of updates than other parameters, which the "
                                  "optimizer model counts together");
        }
        first = first < 0 ? i : first;
    }
    for (int i = 0; i < o->n_parameters; i++)
        if (pending->updates[i] == NOT_GIVEN)
            pending->updates[i] = first >= 0 ? pending->updates[first] : 0;
    if (first >= 0)
        c->pending->step = pending->updates[first];
    return OT_OK;
}

static ot_status check_slots(optimizer_check *c)
{
    const ot__optimizer *o = c->optimizer;
    place_given at = {0};
    ot_status st = OT_OK;

    c->pending->updates = ot__alloc_zero((size_t)o->n_parameters + 1, sizeof(int64_t));
    OT_TRY(ot__made(c->pending->updates != NULL));
    for (int i = 0; i < o->n_parameters && st == OT_OK; i++) {
        const ot__state_name *name = ot__state_name_of(c->pending->call, o->parameters[i]);

        c->pending->updates[i] = o->parameters[i]->n_updates;
        for (int k = 0; k < OT_SLOTS && name != NULL && st == OT_OK; k++)
            if (ot__slot_key(o, k) != NULL)
                st = check_given_slot(c, name, k, &at);
        if (name != NULL && ot__counts_steps(o))
            OT_THEN(st, check_given_step(c, i, name, &at));
    }
    ot__buf_deinit(&at.label);
    if (ot__counts_steps(o))
        OT_THEN(st, check_one_counter(c));
    return st;
}

// ---- what nobody asks for ----

static bool is_trained_name(const optimizer_check *c, const char *name)
{
    const ot__state_name *own = ot__map_get(&c->pending->call->by_name, name);

    return own != NULL && own->parameter->trainable;
}

static bool is_slot_key(const optimizer_check *c, const char *key)
{
    if (ot__counts_steps(c->optimizer) && strcmp(key, OT_KEY_SLOT_STEP) == 0)
        return true;
    for (int k = 0; k < OT_SLOTS; k++)
        if (ot__slot_key(c->optimizer, k) != NULL &&
            strcmp(ot__slot_key(c->optimizer, k), key) == 0)
            return true;
    return false;
}

static ot_status note_unexpected_slot(optimizer_check *c, const char *name, const char *slot)
{
    ot__buf label = {0};
    ot_status st;

    ot__buf_printf(&label, OT_KEY_STATE ".%s%s%s", name, slot != NULL ? "." : "",
                   slot != NULL ? slot : "");
    st = ot__buf_status(&label);
    OT_THEN(st, ot__report_add(c->pending->report, OT_REPORT_UNEXPECTED, OT_STATE_OPTIMIZER,
                               label.data, ""));
    ot__buf_deinit(&label);
    return st;
}

static ot_status check_nested_keys(optimizer_check *c)
{
    for (int i = 0; i < ot_dict_count(c->state); i++) {
        const char *name = ot_dict_name(c->state, i);
        ot_dict *of;

        if (!ot__state_includes(c->pending->call, name))
            continue;
        if (!is_trained_name(c, name)) {
            OT_TRY(note_unexpected_slot(c, name, NULL));
            continue;
        }
        OT_TRY(ot_dict_get_dict(c->state, name, &of));
        for (int k = 0; k < ot_dict_count(of); k++)
            if (!is_slot_key(c, ot_dict_name(of, k)))
                OT_TRY(note_unexpected_slot(c, name, ot_dict_name(of, k)));
    }
    return OT_OK;
}

// ---- flat groups, as nested ones ----

// The name that a flat key is of: the longest; *rest: what follows it.
static const ot__state_name *name_of_key(const optimizer_check *c, const char *key,
                                         const char **rest)
{
    const ot__state_name *found = NULL;

    for (int i = 0; i < c->pending->call->n_names; i++) {
        const ot__state_name *name = &c->pending->call->names[i];
        const size_t length = strlen(name->name);

        if (ot__starts_with(key, name->name) && key[length] == '.' &&
            (found == NULL || length > strlen(found->name))) {
            found = name;
            *rest = key + length + 1;
        }
    }
    return found;
}

static bool is_flat_slot(const optimizer_check *c, const char *key)
{
    const size_t n_prefix = strlen(OT_KEY_STATE ".");

    for (int i = 0; i < c->pending->call->n_names && ot__starts_with(key, OT_KEY_STATE "."); i++) {
        const ot__state_name *name = &c->pending->call->names[i];
        const char *rest = key + n_prefix + strlen(name->name);

        if (name->is_first && name->parameter->trainable &&
            ot__starts_with(key + n_prefix, name->name) && *rest == '.' && is_slot_key(c, rest + 1))
            return true;
    }
    return false;
}

static int group_of_name(const optimizer_check *c, const ot__state_name *name)
{
    for (int i = 0; i < c->optimizer->n_parameters; i++)
        if (c->optimizer->parameters[i] == name->parameter)
            return ot__group_of(c->optimizer, i);
    return -1;
}

static ot_status add_flat_member(ot_dict *group, const ot__state_name *name)
{
    ot_dict *params;
    char number[16];

    OT_TRY(ot_dict_get_list(group, OT_KEY_PARAMS, &params));
    for (int i = 0; i < ot_dict_count(params); i++) {
        const char *member = "";

        OT_TRY(ot_dict_get_string(params, ot_dict_name(params, i), &member));
        if (strcmp(member, name->name) == 0)
            return OT_OK;
    }
    snprintf(number, sizeof number, "%d", ot_dict_count(params));
    return ot_dict_set_string(params, number, name->name);
}

static ot_status add_flat_number(optimizer_check *c, ot_dict *group, const ot__state_name *name,
                                 const char *key, const char *hyper)
{
    OT_TRY(add_flat_member(group, name));
    if (!ot__dict_has(group, hyper))
        return ot__dict_copy(c->optim, key, group, hyper);
    if (ot__dict_same(c->optim, key, group, hyper))
        return OT_OK;
    c->pending->is_refused = true;
    return ot__report_add(c->pending->report, OT_REPORT_GROUP, OT_STATE_OPTIMIZER, key,
                          "differs among the members of its group");
}

static ot_status make_flat_groups(const optimizer_check *c, ot_dict **list)
{
    ot_dict *group, *params;
    char number[16];

    OT_TRY(ot_dict_create(&c->pending->normal));
    OT_TRY(ot_dict_set_list(c->pending->normal, OT_KEY_GROUPS, list));
    for (int g = 0; g < c->optimizer->n_groups; g++) {
        snprintf(number, sizeof number, "%d", g);
        OT_TRY(ot_dict_set_dict(*list, number, &group));
        OT_TRY(ot_dict_set_list(group, OT_KEY_PARAMS, &params));
    }
    return OT_OK;
}

// Behind a filter only keys of names that it takes are looked at. `key`, which does not say where
// its name ends, is used up.
static bool may_be_included(const optimizer_check *c, char *key)
{
    bool is_in = ot__state_includes(c->pending->call, key);

    for (char *dot; !is_in && (dot = strrchr(key, '.')) != NULL;) {
        *dot = '\0';
        is_in = ot__state_includes(c->pending->call, key);
    }
    return is_in;
}

static ot_status note_unknown_key(optimizer_check *c, const char *key)
{
    const char *rest = key;
    char *name;
    bool is_in;

    if (ot__starts_with(key, OT_KEY_STATE "."))
        rest += strlen(OT_KEY_STATE ".");
    else if (ot__starts_with(key, OT_KEY_GROUPS "."))
        rest += strlen(OT_KEY_GROUPS ".");
    name = ot__strdup(rest);
    OT_TRY(ot__made(name != NULL));
    is_in = may_be_included(c, name);
    ot__free(name);
    return is_in ? ot__report_add(c->pending->report, OT_REPORT_UNEXPECTED, OT_STATE_OPTIMIZER, key,
                                  "")
                 : OT_OK;
}

static ot_status take_flat_key(optimizer_check *c, ot_dict *list, const char *key)
{
    const char *rest = NULL;
    const ot__state_name *name = NULL;
    char number[16];
    ot_dict *group;

    if (ot__starts_with(key, OT_KEY_GROUPS "."))
        name = name_of_key(c, key + strlen(OT_KEY_GROUPS "."), &rest);
    if (name == NULL)
        return is_flat_slot(c, key) ? OT_OK : note_unknown_key(c, key);
    if (group_of_name(c, name) < 0) // frozen
        return OT_OK;
    snprintf(number, sizeof number, "%d", group_of_name(c, name));
    OT_TRY(ot_dict_get_dict(list, number, &group));
    return add_flat_number(c, group, name, key, rest);
}

static bool must_be_given(const optimizer_check *c, const char *hyper)
{
    ot__hyper_row row;

    for (int i = 0; ot__hyper_row_at(c->optimizer->rule->op, i, &row); i++)
        if (strcmp(row.key, hyper) == 0)
            return !row.is_own;
    return strcmp(hyper, OT_KEY_LR) == 0;
}

// Numbers of its group that a member lacks while others have them. One that lacks all is in no
// group.
static ot_status check_flat_member(optimizer_check *c, const ot_dict *group, const char *name)
{
    ot__buf key = {0};
    int n_given = 0;
    ot_status st = OT_OK;

    for (int i = 0; i < 2 * ot_dict_count(group) && st == OT_OK; i++) { // counted, then told
        const char *hyper = ot_dict_name(group, i % ot_dict_count(group));
        const bool is_told = i >= ot_dict_count(group);

        if (!must_be_given(c, hyper))
            continue;
        key.length = 0;
        ot__buf_printf(&key, OT_KEY_GROUPS ".%s.%s", name, hyper);
        st = ot__buf_status(&key);
        if (st == OT_OK && ot__dict_has(c->optim, key.data))
            n_given++;
        else if (is_told && n_given > 0)
            OT_THEN(st, ot__report_add(c->pending->report, OT_REPORT_MISSING, OT_STATE_OPTIMIZER,
                                       key.data, ""));
    }
    ot__buf_deinit(&key);
    return st;
}

static ot_status flat_groups(optimizer_check *c, ot_dict **list)
{
    const ot__optimizer *o = c->optimizer;
    ot_dict *group;
    char number[16];

    OT_TRY(make_flat_groups(c, list));
    for (int i = 0; i < ot_dict_count(c->optim); i++)
        OT_TRY(take_flat_key(c, *list, ot_dict_name(c->optim, i)));
    for (int i = 0; i < o->n_parameters; i++) {
        const ot__state_name *name = ot__state_name_of(c->pending->call, o->parameters[i]);

        snprintf(number, sizeof number, "%d", ot__group_of(o, i));
        OT_TRY(ot_dict_get_dict(*list, number, &group));
        if (name != NULL)
            OT_TRY(check_flat_member(c, group, name->name));
    }
    return OT_OK;
}

// ---- the whole ----

static ot_status check_given_groups(optimizer_check *c)
{
    ot_dict *list = NULL;
    bool is_refused = false;

    if (c->state == NULL)
        OT_TRY(flat_groups(c, &list));
    else if (ot__dict_has(c->optim, OT_KEY_GROUPS))
        OT_TRY(ot_dict_get_list(c->optim, OT_KEY_GROUPS, &list));
    if (list == NULL)
        return ot__report_add(c->pending->report, OT_REPORT_MISSING, OT_STATE_OPTIMIZER,
                              OT_KEY_GROUPS, "");
    OT_TRY(ot__groups_check(c->pending->call, list, c->state == NULL, c->pending->report,
                            &is_refused, &c->pending->groups));
    c->pending->is_refused = c->pending->is_refused || is_refused;
    return OT_OK;
}

ot_status ot__pending_check_optimizer(ot__pending_state *pending, ot_dict *optim)
{
    optimizer_check c = {
        .pending = pending, .optimizer = &pending->call->session->optimizer, .optim = optim};
    ot_status st = OT_OK;

    if (ot__dict_has(optim, OT_KEY_STATE))
        st = ot_dict_get_dict(optim, OT_KEY_STATE, &c.state);
    OT_THEN(st, check_slots(&c));
    if (c.state != NULL)
        OT_THEN(st, check_nested_keys(&c));
    OT_THEN(st, check_given_groups(&c));
    return st;
}
