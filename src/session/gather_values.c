// SPDX-License-Identifier: Apache-2.0
// Values that are cut over ranks, for models that are made of them: rank 0 gets them whole.
#include "session/ranks.h"
#include "session/state_dict.h"

#define SECTION_MODEL "model"

bool ot__session_cuts_values(const ot_session *session)
{
    return session->ranks != NULL && session->ranks->cuts_values && session->ranks->is_cut;
}

bool ot__session_is_root(const ot_session *session)
{
    return session->ranks == NULL || session->ranks->rank == 0;
}

ot_status ot__session_gather_values(ot_session *session, ot_dict **out)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;

    *out = NULL;
    if (!ot__session_cuts_values(session))
        return OT_OK;
    options.comm = session->ranks->comm;
    options.gather = OT_GATHER_ROOT;
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

ot_status ot__session_take_value(ot_dict *values, const ot__parameter *p, ot_tensor **out)
{
    ot_dict *model;

    *out = NULL;
    OT_TRY(ot_dict_get_dict(values, SECTION_MODEL, &model));
    return ot__dict_release_tensor(model, p->name, out);
}
