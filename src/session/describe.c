// SPDX-License-Identifier: Apache-2.0
// The plan of a session, for those who want to see it.
#include "session/session_internal.h"

static ot_status describe_plan(ot_session *session, ot__compiled_model *program,
                               const ot_shape *input_shapes, int n_inputs,
                               ot_status (*write)(const ot__plan *, ot__buf *), char **out)
{
    ot__buf text = {0};
    ot__plan *plan;
    ot_status st;

    if (program->model == NULL)
        return ot__error(OT_ERR_STATE, "the session has no %s", program->what);
    OT_TRY(ot__session_check_values(session));
    if (n_inputs != program->n_user_inputs)
        return ot__error(OT_ERR_INVALID, "%s: %d input shapes, expected %d", program->what,
                         n_inputs, program->n_user_inputs);
    ot__compiled_model_set_shapes(program, input_shapes);
    OT_TRY(ot__session_plan(session, program, &plan));
    st = write(plan, &text);
    if (st != OT_OK)
        ot__buf_deinit(&text);
    *out = text.data;
    return st;
}

static ot_status show_plan(ot_session *session, ot_mode mode, const ot_shape *input_shapes,
                           int n_inputs, ot_status (*write)(const ot__plan *, ot__buf *),
                           char **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN_MANY(input_shapes, n_inputs));
    OT_TRY(ot__session_check_mode(mode));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(
        session, describe_plan(session, mode == OT_MODE_TRAIN ? &session->training : &session->eval,
                               input_shapes, n_inputs, write, out));
}

ot_status ot_session_describe_plan(ot_session *session, ot_mode mode, const ot_shape *input_shapes,
                                   int n_inputs, char **out)
{
    return show_plan(session, mode, input_shapes, n_inputs, ot__plan_describe, out);
}

ot_status ot_session_plan_json(ot_session *session, ot_mode mode, const ot_shape *input_shapes,
                               int n_inputs, char **out)
{
    return show_plan(session, mode, input_shapes, n_inputs, ot__plan_write_json, out);
}
