// SPDX-License-Identifier: Apache-2.0
// Getting a state: what is in it, section by section.
#include "session/get_shards.h"

// ---- sections ----

static ot_status put_model(const ot__state_writer *w, ot_status *failed)
{
    const ot__state_call *call = w->call;

    for (int i = 0; i < call->n_names; i++) {
        const ot__state_name *name = &call->names[i];
        ot__state_leaf l = {.path = {OT_KEY_SECTION_MODEL, name->name}, .n_path = 2};

        const ot__parameter *p = name->parameter;

        OT_TRY(call->takes_shown
                   ? ot__leaf_put_tensor(w, name, &l, ot__ckpt_shown(call->checkpoint, p),
                                         ot__ckpt_shown_sharding(call->checkpoint, p), failed)
                   : ot__leaf_put_tensor(w, name, &l, p->value, p->value_sharding, failed));
    }
    for (const ot__named_bytes *b = call->session->bytes; b != NULL && w->is_here; b = b->next) {
        ot__state_leaf l = {.path = {OT_KEY_SECTION_MODEL, b->name}, .n_path = 2};

        if (*failed != OT_OK || !ot__state_includes(call, b->name))
            continue;
        OT_THEN(*failed, ot__leaf_open(w, &l));
        OT_THEN(*failed,
                ot__leaf_close(w, &l, ot_dict_set_bytes(l.dict, b->name, b->data, b->n_bytes)));
    }
    return OT_OK;
}

static ot_status put_step(const ot__state_writer *w, ot__state_leaf *l, int64_t number)
{
    OT_TRY(ot__leaf_open(w, l));
    return ot__leaf_close(w, l, ot_dict_set_int(l->dict, l->path[l->n_path - 1], number));
}

// "state.<name>.<key>" in one, or its parts.
static ot_status name_leaf(const ot__state_writer *w, const ot__state_name *name, const char *key,
                           ot__buf *text, ot__state_leaf *l)
{
    *l = (ot__state_leaf){.path = {OT_KEY_SECTION_OPTIMIZER, OT_KEY_STATE, name->name, key},
                          .n_path = 4};
    if (w->call->options.flat_optimizer == 0)
        return OT_OK;
    text->length = 0;
    ot__buf_printf(text, OT_KEY_STATE ".%s.%s", name->name, key);
    *l = (ot__state_leaf){.path = {OT_KEY_SECTION_OPTIMIZER, text->data}, .n_path = 2};
    return ot__buf_status(text);
}

static ot_status put_slots(const ot__state_writer *w, const ot__state_name *name, ot__buf *text,
                           ot_status *failed)
{
    const ot__optimizer *o = &w->call->session->optimizer;
    ot__parameter *p = name->parameter;
    ot__state_leaf l;

    for (int k = 0; k < OT_SLOTS; k++) {
        if (ot__slot_key(o, k) == NULL || p->slots[k] == NULL)
            continue;
        OT_THEN(*failed, name_leaf(w, name, ot__slot_key(o, k), text, &l));
        OT_TRY(ot__leaf_put_tensor(w, name, &l, p->slots[k], p->state_sharding, failed));
    }
    if (ot__counts_steps(o) && w->is_here) {
        OT_THEN(*failed, name_leaf(w, name, OT_KEY_SLOT_STEP, text, &l));
        OT_THEN(*failed,
                put_step(w, &l, o->n_steps == 1 ? w->call->checkpoint->step : p->n_updates));
    }
    return OT_OK;
}

static ot_status fill_group(const ot__state_call *call, int group, ot_dict *to)
{
    const ot__optimizer *o = &call->session->optimizer;
    ot_dict *params;
    int n = 0;

    OT_TRY(ot_dict_set_list(to, OT_KEY_PARAMS, &params));
    for (int i = 0; i < o->n_parameters; i++) {
        const ot__state_name *name = ot__state_name_of(call, o->parameters[i]);
        char number[16];

        if (name == NULL || ot__group_of(o, i) != group)
            continue;
        snprintf(number, sizeof number, "%d", n++);
        OT_TRY(ot_dict_set_string(params, number, name->name));
    }
    return ot__group_write(call, group, to);
}

static ot_status put_group_list(const ot__state_writer *w)
{
    ot__state_leaf l = {.path = {OT_KEY_SECTION_OPTIMIZER, OT_KEY_GROUPS}, .n_path = 2};
    ot_dict *list = NULL, *group;
    ot_status st;

    OT_TRY(ot__leaf_open(w, &l));
    st = ot_dict_set_list(l.dict, OT_KEY_GROUPS, &list);
    for (int g = 0; g < w->call->session->optimizer.n_groups && st == OT_OK; g++) {
        char number[16];

        snprintf(number, sizeof number, "%d", g);
        st = ot_dict_set_dict(list, number, &group);
        OT_THEN(st, fill_group(w->call, g, group));
    }
    return ot__leaf_close(w, &l, st);
}

static ot_status put_flat_numbers(const ot__state_writer *w, const ot__state_name *name, int group,
                                  ot__buf *text)
{
    ot_dict *numbers;
    ot_status st;

    OT_TRY(ot_dict_create(&numbers));
    st = ot__group_write(w->call, group, numbers);
    for (int i = 0; i < ot_dict_count(numbers) && st == OT_OK; i++) {
        ot__state_leaf l = {.path = {OT_KEY_SECTION_OPTIMIZER, NULL}, .n_path = 2};
        const char *key = ot_dict_name(numbers, i);

        text->length = 0;
        ot__buf_printf(text, OT_KEY_GROUPS ".%s.%s", name->name, key);
        st = ot__buf_status(text);
        l.path[1] = text->data;
        OT_THEN(st, ot__leaf_open(w, &l));
        OT_THEN(st, ot__leaf_close(w, &l, ot__dict_copy(numbers, key, l.dict, text->data)));
    }
    ot_dict_destroy(numbers);
    return st;
}

static ot_status put_groups(const ot__state_writer *w, ot__buf *text)
{
    const ot__optimizer *o = &w->call->session->optimizer;

    if (w->call->options.flat_optimizer == 0)
        return put_group_list(w);
    for (int i = 0; i < o->n_parameters; i++) {
        const ot__state_name *name = ot__state_name_of(w->call, o->parameters[i]);

        if (name != NULL)
            OT_TRY(put_flat_numbers(w, name, ot__group_of(o, i), text));
    }
    return OT_OK;
}

static ot_status put_optimizer_state(const ot__state_writer *w, ot_status *failed)
{
    const ot__state_call *call = w->call;
    ot__buf text = {0};
    ot_status st = OT_OK;

    if (!ot__session_has_optimizer(call->session))
        return OT_OK;
    if (call->options.flat_optimizer == 0 && w->root != NULL && w->is_here) {
        ot__state_leaf l = {.path = {OT_KEY_SECTION_OPTIMIZER, OT_KEY_STATE, ""}, .n_path = 3};

        OT_THEN(*failed, ot__leaf_open(w, &l)); // "state" is there, also of rules that keep nothing
    }
    for (int i = 0; i < call->n_names && st == OT_OK; i++)
        if (call->names[i].is_first && call->names[i].parameter->trainable)
            st = put_slots(w, &call->names[i], &text, failed);
    if (w->is_here)
        OT_THEN(*failed, put_groups(w, &text));
    ot__buf_deinit(&text);
    return st;
}

static ot_status put_schedule(const ot_session *session, ot_dict *to)
{
    ot__buf text = {0};
    ot_status st;

    if (!session->has_schedule)
        return OT_OK;
    ot__schedule_text(&session->schedule, &text);
    st = ot__buf_status(&text);
    OT_THEN(st, ot_dict_set_string(to, OT_KEY_TRAIN_SCHEDULE, text.data));
    ot__buf_deinit(&text);
    return st;
}

static ot_status fill_own(const ot_session *session, ot_dict *to)
{
    OT_TRY(ot_dict_set_int(to, OT_KEY_TRAIN_SEED, (int64_t)session->seed));
    OT_TRY(ot_dict_set_int(to, OT_KEY_TRAIN_COUNTER, (int64_t)session->counter));
    OT_TRY(ot_dict_set_float(to, OT_KEY_TRAIN_RATE, session->learning_rate));
    OT_TRY(ot_dict_set_int(to, OT_KEY_SLOT_STEP, session->checkpoint->step));
    OT_TRY(ot__properties_write(session->checkpoint, to));
    return put_schedule(session, to);
}

static ot_status put_own(const ot__state_writer *w)
{
    ot_dict *numbers;
    ot_status st;

    OT_TRY(ot_dict_create(&numbers));
    st = fill_own(w->call->session, numbers);
    if (w->call->owner != NULL)
        OT_THEN(st, w->call->owner->fill(w->call->owner->context, numbers));
    for (int i = 0; i < ot_dict_count(numbers) && st == OT_OK; i++) {
        const char *key = ot_dict_name(numbers, i);
        ot__state_leaf l = {.path = {OT_KEY_SECTION_OWN, key}, .n_path = 2};

        st = ot__leaf_open(w, &l);
        OT_THEN(st, ot__leaf_close(w, &l, ot__dict_copy(numbers, key, l.dict, key)));
    }
    ot_dict_destroy(numbers);
    return st;
}

// ---- the whole ----

static ot_status write_sections(const ot__state_writer *w)
{
    const unsigned sections = w->call->sections;
    ot_status failed = OT_OK, st = OT_OK;

    if ((sections & OT_STATE_MODEL) != 0)
        st = put_model(w, &failed);
    if ((sections & OT_STATE_OPTIMIZER) != 0)
        OT_THEN(st, put_optimizer_state(w, &failed));
    if (st == OT_OK && failed == OT_OK && (sections & OT_STATE_OWN) != 0 && w->is_here)
        failed = put_own(w);
    return st == OT_OK ? ot__state_agree(w->call, failed) : st;
}

static bool gets_state(const ot__state_call *call)
{
    return call->options.gather != OT_GATHER_ROOT || ot__state_is_root(call);
}

// In a call that has begun as `st` says, which ends.
static ot_status make_state(ot__state_call *call, ot_status st, ot_dict **out)
{
    ot_dict *dict = NULL;

    if (st == OT_OK) {
        ot__state_writer w = {.call = call, .is_here = gets_state(call)};

        st = ot__state_agree(call, ot_dict_create(&dict));
        w.root = dict;
        OT_THEN(st, write_sections(&w));
    }
    ot__state_end(call);
    return OT_HAND_OUT(st, out, dict, ot_dict_destroy);
}

static ot_status get_sections(ot_session *session, unsigned sections,
                              const ot_state_dict_options *options, const ot__state_owner *owner,
                              bool keeps_layouts, ot_dict **out)
{
    ot__state_call call = {0};
    const ot_status st = ot__state_begin(&call, "get_shards", session, sections, options, false);

    call.owner = owner;
    call.keeps_layouts = keeps_layouts;
    return make_state(&call, st, out);
}

ot_status ot__session_get_shards(ot_session *session, unsigned sections,
                                 const ot_state_dict_options *options, const ot__state_owner *owner,
                                 ot_dict **out)
{
    return get_sections(session, sections, options, owner, false, out);
}

ot_status ot__session_get_packed(ot_session *session, unsigned sections,
                                 const ot_state_dict_options *options, const ot__state_owner *owner,
                                 ot_dict **out)
{
    const bool are_views = options->copy == 0 && !ot__session_is_cut(session);

    return get_sections(session, sections, options, owner, are_views, out);
}

ot_status ot__session_get_shown(ot_session *session, const ot_state_dict_options *options,
                                ot_dict **out)
{
    ot__state_call call = {0};
    const ot_status st = ot__state_begin(&call, "export", session, OT_STATE_MODEL, options, false);

    call.takes_shown = true;
    return make_state(&call, st, out);
}

ot_status ot_session_get_shards(ot_session *session, unsigned sections,
                                const ot_state_dict_options *options, ot_dict **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session,
                             ot__session_get_shards(session, sections, options, NULL, out));
}

ot_status ot__session_stream_shards(ot_session *session, unsigned sections,
                                    const ot_state_dict_options *options, ot_gather gather,
                                    ot_state_sink sink, void *context)
{
    ot__state_call call = {0};
    ot_status st = ot__state_begin(&call, "stream_shards", session, sections, options, false);

    if (st == OT_OK) {
        ot__state_writer w = {.call = &call, .sink = sink, .context = context};

        call.options.gather = gather;
        w.is_here = gets_state(&call);
        st = write_sections(&w);
    }
    ot__state_end(&call);
    return st;
}

ot_status ot_session_stream_shards(ot_session *session, unsigned sections,
                                   const ot_state_dict_options *options, ot_state_sink sink,
                                   void *context)
{
    OT_TRY(sink != NULL ? OT_OK : ot__error(OT_ERR_INVALID, "sink is NULL"));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, ot__session_stream_shards(session, sections, options,
                                                                OT_GATHER_ROOT, sink, context));
}
