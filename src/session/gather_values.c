// SPDX-License-Identifier: Apache-2.0
// Values that are cut over ranks, for models and files that are made of them: rank 0 gets them
// whole.
#include "session/ranks.h"
#include "session/state_dict.h"

#define SECTION_MODEL "model"

bool ot__session_cuts_values(const ot_session *session)
{
    return session->ranks != NULL && session->ranks->cuts_values && session->ranks->is_cut;
}

bool ot__session_cuts_shown(const ot_session *session)
{
    return session->ranks != NULL && session->ranks->is_cut &&
           ot__ranks_gather(session, OT_MODE_EVAL);
}

bool ot__session_is_root(const ot_session *session)
{
    return session->ranks == NULL || session->ranks->rank == 0;
}

static ot_state_dict_options to_root(const ot_session *session)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;

    options.comm = session->ranks->comm;
    options.gather = OT_GATHER_ROOT;
    return options;
}

ot_status ot__session_gather_shown(ot_session *session, ot_dict **out)
{
    ot_state_dict_options options;

    *out = NULL;
    if (!ot__session_cuts_shown(session))
        return OT_OK;
    options = to_root(session);
    return ot__session_get_shown(session, &options, out);
}

static ot_status gather_values(ot_session *session, ot_dict **out)
{
    ot_state_dict_options options;

    *out = NULL;
    if (!ot__session_cuts_values(session))
        return OT_OK;
    options = to_root(session);
    return ot__session_get_shards(session, OT_STATE_MODEL, &options, NULL, out);
}

ot_status ot__session_agree(ot_session *session, ot_status st, const char *call)
{
    return ot__ranks_agree(ot__session_comm(session), st, call, NULL, 0);
}

ot_status ot__session_look_up_value(ot_dict *values, const ot__parameter *p, ot_tensor **out)
{
    const ot_tensor *tensor;
    ot_dict *model;

    OT_TRY(ot_dict_get_dict(values, SECTION_MODEL, &model));
    OT_TRY(ot_dict_get_tensor(model, p->name, &tensor));
    *out = (ot_tensor *)tensor;
    return OT_OK;
}

static ot_status fill_whole(const ot_checkpoint *from, ot_dict *values, ot_checkpoint *to)
{
    for (int i = 0; i < from->n_parameters; i++) {
        ot__parameter *p = from->parameters[i], *added;
        ot_tensor *value;

        ot__ckpt_unpack(from, p);
        OT_TRY(p->value_sharding != NULL
                   ? ot__session_take_value(values, p, &value)
                   : ot_tensor_wrap(p->value->dtype, &p->value->shape, p->value->data,
                                    p->value->n_bytes, &value));
        OT_TRY(ot__ckpt_add(to, p->name, value, p->trainable, &added));
        if (p->doc != NULL)
            OT_TRY(ot__made((added->doc = ot__strdup(p->doc)) != NULL));
    }
    to->has_external_data = from->has_external_data;
    return OT_OK;
}

// Of rank 0. Properties are the checkpoint's but for the time of writing.
static ot_status save_gathered(ot_checkpoint *checkpoint, ot_dict *values, const char *path)
{
    ot_checkpoint *whole;
    ot_status st;

    OT_TRY(ot_checkpoint_create(&whole));
    st = fill_whole(checkpoint, values, whole);
    ot__properties_take(whole, checkpoint);
    OT_THEN(st, ot_checkpoint_save(whole, path, 0));
    ot__properties_take(checkpoint, whole);
    ot_checkpoint_destroy(whole);
    return st;
}

ot_status ot__session_save_values(ot_session *session, const char *path)
{
    ot_dict *values = NULL;
    ot_status st = gather_values(session, &values);

    if (ot__session_is_root(session))
        OT_THEN(st, values != NULL ? save_gathered(session->checkpoint, values, path)
                                   : ot_checkpoint_save(session->checkpoint, path, 0));
    ot_dict_destroy(values);
    return ot__session_agree(session, st, "save_values");
}

ot_status ot__session_take_value(ot_dict *values, const ot__parameter *p, ot_tensor **out)
{
    ot_dict *model;

    *out = NULL;
    OT_TRY(ot_dict_get_dict(values, SECTION_MODEL, &model));
    return ot__dict_release_tensor(model, p->name, out);
}
