// SPDX-License-Identifier: Apache-2.0
// Parameters that are cut over ranks, whole on all of them: before a test looks at them.
#ifndef TESTS_DIST_WHOLE_H
#define TESTS_DIST_WHOLE_H

#include "onnxtrain/onnxtrain.h"
#include "session/ranks.h"

// The session takes no further step.
static inline ot_status make_values_whole(ot_session *session)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(session);
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *all;
    ot_status st = OT_OK;

    if (!ot__session_cuts_values(session))
        return OT_OK;
    options.gather = OT_GATHER_ALL;
    OT_TRY(ot_session_get_shards(session, OT_STATE_MODEL, &options, &all));
    for (int i = 0; i < checkpoint->n_parameters && st == OT_OK; i++) {
        ot__parameter *p = checkpoint->parameters[i];
        ot_tensor *whole;

        ot__ckpt_unpack(checkpoint, p);
        if (p->value_sharding == NULL)
            continue;
        st = ot__session_take_value(all, p, &whole);
        if (st != OT_OK)
            break;
        ot_tensor_destroy(p->value);
        p->value = whole;
        p->value_sharding = NULL;
    }
    ot_dict_destroy(all);
    return st;
}

#endif
