// SPDX-License-Identifier: Apache-2.0
// A call on the state by names: its options, and which names parameters have in it.
#include <stdlib.h>
#include <string.h>

#include "session/state_dict.h"

enum { WINDOW_MIN = 16 }; // bytes of the largest element

static bool is_wildcard(const char *pattern)
{
    return strpbrk(pattern, "*?") != NULL;
}

bool ot__state_includes(const ot__state_call *call, const char *name)
{
    const ot_state_dict_options *o = &call->options;
    bool is_in = o->n_include == 0 || o->strip_prefix != 0;

    for (int i = 0; i < o->n_include && !is_in; i++)
        is_in = is_wildcard(o->include[i]) ? ot__name_matches(o->include[i], name)
                                           : ot__starts_with(name, o->include[i]);
    return is_in;
}

// ---- options ----

static ot_status check_include(const ot_state_dict_options *o)
{
    OT_TRY(OT_GIVEN_MANY(o->include, o->n_include));
    for (int i = 0; i < o->n_include; i++)
        OT_TRY(OT_GIVEN(o->include[i]));
    if (o->strip_prefix != 0 && (o->n_include != 1 || is_wildcard(o->include[0])))
        return ot__error(OT_ERR_INVALID,
                         "strip_prefix: expected one beginning of names in include, without * "
                         "and ?, got %d",
                         o->n_include);
    return OT_OK;
}

static ot_status check_state_options(const ot__state_call *call)
{
    const ot_state_dict_options *o = &call->options;
    const unsigned known = OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_OWN;

    if (call->sections == 0 || (call->sections & ~known) != 0)
        return ot__error(OT_ERR_INVALID, "sections 0x%x of a state dict, expected a sum of 0x%x",
                         call->sections, known);
    if ((int)o->gather < OT_GATHER_NONE || o->gather > OT_GATHER_ALL)
        return ot__error(OT_ERR_INVALID, "gather %d, expected 0 to %d", (int)o->gather,
                         (int)OT_GATHER_ALL);
    if ((int)o->scatter < OT_SCATTER_SHARDED || o->scatter > OT_SCATTER_ROOT)
        return ot__error(OT_ERR_INVALID, "scatter %d, expected 0 to %d", (int)o->scatter,
                         (int)OT_SCATTER_ROOT);
    if ((int)o->strictness < OT_STRICTNESS_ALL || o->strictness > OT_STRICTNESS_NONE)
        return ot__error(OT_ERR_INVALID, "strictness %d, expected 0 to %d", (int)o->strictness,
                         (int)OT_STRICTNESS_NONE);
    if (o->window_bytes < WINDOW_MIN)
        return ot__error(OT_ERR_INVALID, "window_bytes is %zu, expected at least %d",
                         o->window_bytes, (int)WINDOW_MIN);
    if (call->sections == OT_STATE_OPTIMIZER && !ot__session_has_optimizer(call->session))
        return ot__error(OT_ERR_INVALID, "the session has no optimizer, whose state is asked for");
    return check_include(o);
}

// ---- names in other shapes ----

static ot_status check_entry(const ot_name_entry *entry, const ot__parameter *p)
{
    const ot_shape *shape = ot__parameter_shape(p);
    int64_t count, expected;

    if ((int)entry->transform < OT_NAME_SAME || entry->transform > OT_NAME_RESHAPE)
        return ot__error(OT_ERR_INVALID, "names: '%s': unknown transform %d", entry->name,
                         (int)entry->transform);
    for (int i = 0; i < 2 && entry->transform == OT_NAME_TRANSPOSE; i++)
        if (entry->axes[i] < 0 || entry->axes[i] >= shape->ndim)
            return ot__error(OT_ERR_INVALID, "names: '%s': axis %d of '%s', which has %d",
                             entry->name, entry->axes[i], p->name, shape->ndim);
    if (entry->transform != OT_NAME_RESHAPE)
        return OT_OK;
    OT_TRY(OT_GIVEN(entry->shape));
    OT_TRY(ot__shape_check(entry->shape, &count));
    (void)ot__shape_count(shape, &expected);
    return count == expected
               ? OT_OK
               : ot__error(OT_ERR_INVALID, "names: '%s' is %s, but '%s' is %s", entry->name,
                           OT_SHAPE_TEXT(entry->shape), p->name, OT_SHAPE_TEXT(shape));
}

ot_shape ot__state_shape(const ot__state_name *name)
{
    ot_shape shape = *ot__parameter_shape(name->parameter);

    if (name->how != NULL && name->how->transform == OT_NAME_RESHAPE)
        return *name->how->shape;
    if (name->how != NULL && name->how->transform == OT_NAME_TRANSPOSE) {
        shape.dim[name->how->axes[0]] =
            ot__parameter_shape(name->parameter)->dim[name->how->axes[1]];
        shape.dim[name->how->axes[1]] =
            ot__parameter_shape(name->parameter)->dim[name->how->axes[0]];
    }
    return shape;
}

static ot_status read_entries(ot__state_call *call)
{
    const ot_state_dict_options *o = &call->options;

    OT_TRY(OT_GIVEN_MANY(o->names, o->n_names));
    call->entries = ot__alloc_zero((size_t)o->n_names + 1, sizeof *call->entries);
    OT_TRY(ot__made(call->entries != NULL));
    OT_TRY(ot__options_read_all("ot_name_entry", o->names, o->n_names,
                                &(const ot_name_entry)OT_NAME_ENTRY_INIT, call->entries,
                                sizeof call->entries[0]));
    for (int i = 0; i < o->n_names; i++) {
        const ot__parameter *p;

        OT_TRY(OT_GIVEN(call->entries[i].name));
        OT_TRY(OT_GIVEN(call->entries[i].parameter));
        p = ot__ckpt_find(call->checkpoint, call->entries[i].parameter);
        if (p == NULL)
            return ot__ckpt_no_parameter(call->checkpoint, call->entries[i].parameter);
        OT_TRY(check_entry(&call->entries[i], p));
    }
    return OT_OK;
}

// ---- names ----

static ot_status add_name(ot__state_call *call, ot__parameter *p, const char *name,
                          const ot_name_entry *how, bool is_set)
{
    const bool is_frozen = !p->trainable && !p->is_undone;
    const bool is_optional = is_frozen && call->options.skip_frozen != 0;
    ot__state_name *added = &call->names[call->n_names];

    if (is_optional && !is_set)
        return OT_OK;
    if (call->options.strip_prefix != 0) {
        if (!ot__starts_with(name, call->options.include[0]))
            return OT_OK;
        name += strlen(call->options.include[0]);
    }
    if (!ot__state_includes(call, name))
        return OT_OK;
    if (*name == '\0')
        return ot__error(OT_ERR_INVALID, "a name of parameter '%s' is empty", p->name);
    *added = (ot__state_name){.parameter = p, .how = how, .is_optional = is_optional};
    added->name = ot__strdup(name);
    OT_TRY(ot__made(added->name != NULL));
    call->n_names++;
    added->is_first = ot__map_get(&call->first_names, p->name) == NULL;
    return ot__made(!added->is_first || ot__map_put(&call->first_names, p->name, p));
}

static int compare_state_names(const void *a, const void *b)
{
    return strcmp(((const ot__state_name *)a)->name, ((const ot__state_name *)b)->name);
}

static ot_status index_names(ot__state_call *call)
{
    qsort(call->names, (size_t)call->n_names, sizeof *call->names, compare_state_names);
    for (int i = 0; i < call->n_names; i++) {
        ot__state_name *name = &call->names[i];

        if (ot__map_get(&call->by_name, name->name) != NULL ||
            ((call->sections & OT_STATE_MODEL) != 0 &&
             ot__bytes_find(call->session, name->name) != NULL))
            return ot__error(OT_ERR_INVALID, "two values of the state have the name '%s'",
                             name->name);
        OT_TRY(ot__made(ot__map_put(&call->by_name, name->name, name)));
        if (name->is_first)
            OT_TRY(ot__made(ot__map_put(&call->first_names, name->parameter->name, name)));
    }
    return OT_OK;
}

static ot_status make_names(ot__state_call *call, bool is_set)
{
    const int n = call->checkpoint->n_parameters;

    OT_TRY(read_entries(call));
    call->names =
        ot__alloc_zero((size_t)n + (size_t)call->options.n_names + 1, sizeof *call->names);
    OT_TRY(ot__made(call->names != NULL));
    for (int i = 0; i < call->options.n_names; i++)
        OT_TRY(add_name(call, ot__ckpt_find(call->checkpoint, call->entries[i].parameter),
                        call->entries[i].name, &call->entries[i], is_set));
    for (int i = 0; i < n; i++) {
        ot__parameter *p = call->checkpoint->parameters[i];
        bool has_entry = false;

        for (int k = 0; k < call->options.n_names && !has_entry; k++)
            has_entry = strcmp(call->entries[k].parameter, p->name) == 0;
        if (!has_entry)
            OT_TRY(add_name(call, p, p->name, NULL, is_set));
    }
    return index_names(call);
}

const ot__state_name *ot__state_name_of(const ot__state_call *call, const ot__parameter *p)
{
    return ot__map_get(&call->first_names, p->name);
}

// ---- ranks ----

ot_status ot__state_agree(const ot__state_call *call, ot_status st)
{
    return call->options.comm == NULL
               ? st
               : ot__comm_agree_on(call->options.comm, st, call->what, NULL, 0);
}

static uint64_t mix_name_text(uint64_t hash, const char *text)
{
    return ot__id_mix(hash, text, strlen(text) + 1);
}

static uint64_t hash_of_names(const ot__state_call *call)
{
    uint64_t hash = 0;

    for (int i = 0; i < call->n_names; i++) {
        const ot__state_name *name = &call->names[i];
        const ot_shape shape = ot__state_shape(name);

        hash = mix_name_text(mix_name_text(hash, name->name), name->parameter->name);
        hash = ot__id_mix_word(hash, name->is_first);
        hash = ot__id_mix_word(hash, (uint64_t)name->parameter->value->dtype);
        for (int k = 0; k < shape.ndim; k++)
            hash = ot__id_mix_word(hash, (uint64_t)shape.dim[k]);
        if (name->how == NULL)
            continue;
        hash = ot__id_mix_word(hash, (uint64_t)name->how->transform);
        for (int k = 0; k < 2 && name->how->transform == OT_NAME_TRANSPOSE; k++)
            hash = ot__id_mix_word(hash, (uint64_t)name->how->axes[k]);
    }
    return hash;
}

static uint64_t hash_of_options(const ot__state_call *call)
{
    const ot_state_dict_options *o = &call->options;
    const uint64_t words[] = {call->sections,
                              (uint64_t)o->gather,
                              (uint64_t)o->scatter,
                              (uint64_t)(o->flat_optimizer != 0),
                              (uint64_t)o->strictness,
                              (uint64_t)(o->allow_cast != 0),
                              (uint64_t)(o->skip_frozen != 0),
                              (uint64_t)(o->strip_prefix != 0),
                              (uint64_t)o->n_include,
                              o->window_bytes};
    uint64_t hash = 0;

    for (size_t i = 0; i < OT_COUNT(words); i++)
        hash = ot__id_mix_word(hash, words[i]);
    for (int i = 0; i < o->n_include; i++)
        hash = mix_name_text(hash, o->include[i]);
    return hash;
}

static ot_status exchange_places(ot__state_call *call, ot_status st)
{
    ot_comm *comm = call->options.comm;
    const size_t n = comm == NULL ? 1 : (size_t)ot_comm_world_size(comm);
    const size_t at = comm == NULL ? 0 : (size_t)ot_comm_rank(comm);

    if (st == OT_OK) {
        call->places = ot__alloc_zero(n, sizeof *call->places);
        st = ot__made(call->places != NULL);
    }
    OT_TRY(ot__state_agree(call, st));
    memcpy(call->places[at], call->checkpoint->places, sizeof call->places[at]);
    return comm == NULL ? OT_OK
                        : ot__comm_gather(comm, call->places, sizeof call->places[0], call->what);
}

static ot_status begin_local(ot__state_call *call, bool is_set)
{
    OT_TRY(check_state_options(call));
    // What a failed set has left is to be set again.
    if (!is_set)
        OT_TRY(ot__session_check_values(call->session));
    if (call->checkpoint->is_nominal)
        return ot__error(OT_ERR_STATE, "the checkpoint is nominal: its parameters have no values");
    if ((call->sections & OT_STATE_OPTIMIZER) != 0)
        OT_TRY(ot__session_make_slots(call->session));
    OT_TRY(make_names(call, is_set));
    call->window = ot__alloc(call->options.comm == NULL ? 1 : call->options.window_bytes);
    return ot__made(call->window != NULL);
}

ot_status ot__state_begin(ot__state_call *call, const char *what, ot_session *session,
                          unsigned sections, const ot_state_dict_options *options, bool is_set)
{
    ot_comm *comm;
    ot_status st;

    *call = (ot__state_call){
        .what = what, .session = session, .checkpoint = session->checkpoint, .sections = sections};
    OT_TRY(OT_OPTIONS_READ(ot_state_dict_options, OT_STATE_DICT_OPTIONS_INIT, options,
                           &call->options));
    if (call->options.comm == NULL && (is_set || call->options.gather != OT_GATHER_NONE))
        call->options.comm = ot__session_comm(session);
    comm = call->options.comm;
    if (comm != NULL)
        OT_TRY(ot__comm_check(comm));
    st = begin_local(call, is_set);
    if (comm != NULL) {
        const ot_agree_field fields[] = {{"the options", hash_of_options(call)},
                                         {"the names and shapes", hash_of_names(call)}};

        st = ot__comm_agree_on(comm, st, what, fields, (int)OT_COUNT(fields));
    }
    OT_TRY(st);
    return exchange_places(call, OT_OK);
}

void ot__state_end(ot__state_call *call)
{
    for (int i = 0; i < call->n_names; i++)
        ot__free(call->names[i].name);
    ot__free(call->names);
    ot__free(call->entries);
    ot__free(call->places);
    ot__free(call->window);
    ot__map_deinit(&call->by_name);
    ot__map_deinit(&call->first_names);
}
