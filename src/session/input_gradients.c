// SPDX-License-Identifier: Apache-2.0
// Gradients of user inputs. No checkpoint keeps them: their buffers are the session's, and have the
// shapes of the inputs of the step.
#include <string.h>

#include "session/session_internal.h"

static ot_status make_input_gradient(const ot_session *session, const ot__compiled_model *program,
                                     ot__input *input)
{
    const ot_shape *shape = &program->given.shapes[input->i_user];
    const ot_value *value = ot__user_input(program, input->i_user);
    const bool is_kept = program == &session->training && !session->overwrite_gradients;

    if (input->gradient != NULL && ot__shape_equal(&input->gradient->shape, shape))
        return OT_OK;
    if (input->gradient != NULL && is_kept)
        return ot__error(OT_ERR_STATE,
                         "input '%s' has shape %s, but its gradient so far is of %s: reset the "
                         "gradients first",
                         value->name, OT_SHAPE_TEXT(shape), OT_SHAPE_TEXT(&input->gradient->shape));
    ot_tensor_destroy(input->gradient);
    return ot_tensor_create(value->dtype, shape, &input->gradient);
}

ot_status ot__input_gradients_make(const ot_session *session, ot__compiled_model *program)
{
    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_INPUT_GRADIENT)
            OT_TRY(make_input_gradient(session, program, &program->inputs[i]));
    return OT_OK;
}

size_t ot__input_gradients_bytes(const ot__compiled_model *program)
{
    size_t sum = 0;

    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].gradient != NULL)
            sum += program->inputs[i].gradient->n_bytes;
    return sum;
}

void ot__input_gradients_deinit(ot__compiled_model *program)
{
    for (int i = 0; i < program->n_inputs; i++)
        ot_tensor_destroy(program->inputs[i].gradient);
}

static ot_status get_input_gradient(const ot_session *session, const char *name, ot_tensor **out)
{
    const ot__compiled_model *program = &session->training;

    for (int i = 0; i < program->n_inputs; i++) {
        const ot__input *input = &program->inputs[i];

        if (input->role != OT_ROLE_INPUT_GRADIENT ||
            strcmp(ot__user_input(program, input->i_user)->name, name) != 0)
            continue;
        if (input->gradient == NULL)
            return ot__error(OT_ERR_STATE, "input '%s' has no gradient before the first train step",
                             name);
        return ot_tensor_clone(input->gradient, out);
    }
    return ot__error(OT_ERR_NOT_FOUND, "training model: no gradient of an input '%s' is summed",
                     name);
}

ot_status ot_session_get_input_gradient(const ot_session *session, const char *name,
                                        ot_tensor **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(name));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, get_input_gradient(session, name, out));
}
