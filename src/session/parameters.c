// SPDX-License-Identifier: Apache-2.0
// All parameters, or all gradients, as one flat vector in the order of the training model's inputs.
#include <string.h>

#include "session/session_internal.h"

static bool is_selected(const ot__parameter *p, int which)
{
    return p->trainable || which == OT_PARAMETERS_ALL;
}

// From the model's declarations: a nominal checkpoint has no shapes.
static int64_t count_parameter(const ot_session *session, const ot__parameter *p)
{
    const ot_value *value;
    int64_t count;

    if (!session->checkpoint->is_nominal)
        return ot__shape_count(ot__parameter_shape(p), &count) ? count : 0;
    value = ot__graph_find(session->training.model->graph, p->name);
    return value->has_shape && ot__shape_is_static(&value->shape) &&
                   ot__shape_count(&value->shape, &count)
               ? count
               : 0;
}

int64_t ot_session_parameters_size(const ot_session *session, int which)
{
    int64_t sum = 0;

    if (!OT_IS_LIVE(session))
        return 0;
    for (int i = 0; i < session->n_parameters; i++)
        if (is_selected(session->parameters[i], which))
            sum += count_parameter(session, session->parameters[i]);
    return sum;
}

static ot_status check_vector(const ot_session *session, int which, bool gradients, int64_t count)
{
    const int64_t expected = ot_session_parameters_size(session, which);

    if (which != OT_PARAMETERS_ALL && which != OT_PARAMETERS_TRAINABLE)
        return ot__error(OT_ERR_INVALID, "%d means neither all nor the trainable parameters",
                         which);
    if (count != expected)
        return ot__error(OT_ERR_INVALID,
                         "a vector of %" PRId64 " elements for %" PRId64 " of the parameters",
                         count, expected);
    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        if (is_selected(p, which) && !ot__dtype_is_float(p->value->dtype))
            return ot__error(OT_ERR_UNSUPPORTED,
                             "parameter '%s' is %s and cannot be put into a vector of f32", p->name,
                             ot_dtype_name(p->value->dtype));
        if (is_selected(p, which))
            OT_TRY(ot__parameter_check_whole(p, gradients));
    }
    return OT_OK;
}

// The elements of a tensor in row-major f32, from it or to it. Only f32 tensors have layouts of
// their own.
static void move_elements(ot_tensor *tensor, const ot_layout *layout, float *to, const float *from)
{
    const int64_t count = ot_tensor_count(tensor);

    if (layout != NULL && to != NULL)
        ot__layout_convert(to, NULL, tensor->data, layout, &tensor->shape, sizeof *to);
    else if (layout != NULL)
        ot__layout_convert(tensor->data, layout, from, NULL, &tensor->shape, sizeof *from);
    else if (to != NULL)
        (void)ot__convert(to, OT_F32, tensor->data, tensor->dtype, count);
    else
        (void)ot__convert(tensor->data, tensor->dtype, from, OT_F32, count);
}

// All values or gradients, to the vector `to` or from the vector `from`.
static void move_vector(ot_session *session, int which, bool gradients, float *to,
                        const float *from)
{
    int64_t at = 0;

    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];
        ot_tensor *tensor = gradients ? p->gradient : p->value;

        if (tensor == NULL || !is_selected(p, which))
            continue;
        move_elements(tensor, p->layout, to ? to + at : NULL, from ? from + at : NULL);
        at += ot_tensor_count(tensor);
    }
}

static ot_status move_checked(ot_session *session, int which, bool gradients, float *to,
                              const float *from, int64_t count)
{
    OT_TRY(ot__session_check_values(session));
    if (gradients)
        OT_TRY(ot__session_need_gradients(session));
    OT_TRY(check_vector(session, which, gradients, count));
    move_vector(session, which, gradients, to, from);
    return OT_OK;
}

ot_status ot_session_get_parameters(ot_session *session, int which, float *to, int64_t count)
{
    OT_TRY(OT_GIVEN_MANY(to, count));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, move_checked(session, which, false, to, NULL, count));
}

// The vector must have a value for every parameter, and the model declare its shape.
static ot_status check_completing(const ot_session *session)
{
    const ot_checkpoint *checkpoint = session->checkpoint;

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const char *name = checkpoint->parameters[i]->name;
        const ot_value *value;

        if (checkpoint->parameters[i]->number < 0)
            return ot__error(OT_ERR_STATE,
                             "the checkpoint is nominal, and its parameter '%s' is not among those "
                             "of the training model, which the vector has values for",
                             name);
        value = ot__graph_find(session->training.model->graph, name);
        if (!value->has_shape || !ot__shape_is_static(&value->shape))
            return ot__error(OT_ERR_INVALID, "the shape of parameter '%s' is not declared", name);
    }
    return OT_OK;
}

// A nominal checkpoint gets its values: their shapes are those that the model declares.
static ot_status complete(ot_session *session)
{
    OT_TRY(check_completing(session));
    for (int i = 0; i < session->n_parameters; i++) {
        ot__parameter *p = session->parameters[i];
        const ot_value *value = ot__graph_find(session->training.model->graph, p->name);
        ot_tensor *fresh;

        OT_TRY(ot_tensor_create(p->value->dtype, &value->shape, &fresh));
        ot_tensor_destroy(p->value);
        p->value = fresh;
    }
    ot__undo_deinit(&session->undo); // it had room for no values
    OT_TRY(ot__undo_create(session));
    OT_TRY(ot__session_make_gradients(session));
    session->checkpoint->is_nominal = false; // from here on nothing can fail
    return OT_OK;
}

static ot_status set_parameters(ot_session *session, int which, const float *from, int64_t count)
{
    OT_TRY(check_vector(session, which, false, count));
    if (session->checkpoint->is_nominal) {
        if (which != OT_PARAMETERS_ALL)
            return ot__error(OT_ERR_STATE, "the checkpoint is nominal: all parameters are needed");
        OT_TRY(complete(session));
    }
    session->checkpoint->n_changes++;
    ot__ckpt_outdate(session->checkpoint);
    move_vector(session, which, false, NULL, from);
    return OT_OK;
}

ot_status ot_session_set_parameters(ot_session *session, int which, const float *from,
                                    int64_t count)
{
    OT_TRY(OT_GIVEN_MANY(from, count));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, set_parameters(session, which, from, count));
}

static ot_status move_gradients(ot_session *session, float *to, const float *from, int64_t count)
{
    return move_checked(session, OT_PARAMETERS_TRAINABLE, true, to, from, count);
}

ot_status ot_session_set_gradients(ot_session *session, const float *from, int64_t count)
{
    OT_TRY(OT_GIVEN_MANY(from, count));
    OT_TRY(ot__session_enter_step(session));
    return ot__session_leave(session, move_gradients(session, NULL, from, count));
}

ot_status ot_session_get_gradients(ot_session *session, float *to, int64_t count)
{
    OT_TRY(OT_GIVEN_MANY(to, count));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, move_gradients(session, to, NULL, count));
}

typedef struct scaling {
    ot_tensor *tensor;
    double factor;
} scaling;

static void scale_range(void *context, int64_t first, int64_t last)
{
    const scaling *s = context;

    if (s->tensor->dtype == OT_F32) {
        float *x = s->tensor->data;

        for (int64_t i = first; i < last; i++)
            x[i] *= (float)s->factor;
    } else {
        double *x = s->tensor->data;

        for (int64_t i = first; i < last; i++)
            x[i] *= s->factor;
    }
}

static void scale(const ot_session *session, ot_tensor *gradient, double factor)
{
    scaling s = {gradient, factor};

    if (gradient != NULL)
        ot__session_for(session, ot_tensor_count(gradient), scale_range, &s);
}

static ot_status check_scalable(const char *what, const char *name, ot_dtype dtype)
{
    if (dtype == OT_F32 || dtype == OT_F64)
        return OT_OK;
    return ot__error(OT_ERR_UNSUPPORTED, "the gradient of %s '%s' is %s", what, name,
                     ot_dtype_name(dtype));
}

ot_status ot__session_scale_parameter_gradients(ot_session *session, double factor)
{
    OT_TRY(ot__session_check_values(session));
    for (int i = 0; i < session->n_parameters; i++)
        if (session->parameters[i]->trainable)
            OT_TRY(check_scalable("parameter", session->parameters[i]->name,
                                  session->parameters[i]->value->dtype));
    for (int i = 0; i < session->n_parameters; i++)
        if (session->parameters[i]->trainable)
            scale(session, session->parameters[i]->gradient, factor);
    return OT_OK;
}

static ot_status scale_gradients(ot_session *session, double factor)
{
    const ot__compiled_model *program = &session->training;

    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_INPUT_GRADIENT)
            OT_TRY(check_scalable("input", program->model->graph->inputs[i]->name,
                                  program->model->graph->inputs[i]->dtype));
    OT_TRY(ot__session_scale_parameter_gradients(session, factor));
    for (int i = 0; i < program->n_inputs; i++)
        scale(session, program->inputs[i].gradient, factor);
    return OT_OK;
}

ot_status ot_session_scale_gradients(ot_session *session, double factor)
{
    OT_TRY(ot__session_enter_step(session));
    return ot__session_leave(session, scale_gradients(session, factor));
}
