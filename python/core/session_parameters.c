// SPDX-License-Identifier: Apache-2.0
// Session: parameters and gradients as one vector, and gradients of inputs.
#include "core.h"

static int which_of(int trainable_only)
{
    return trainable_only ? OT_PARAMETERS_TRAINABLE : OT_PARAMETERS_ALL;
}

PyObject *core_session_parameters_size(PyObject *self, PyObject *args)
{
    const ot_session *session;
    int trainable_only;

    if (!PyArg_ParseTuple(args, "p", &trainable_only))
        return NULL;
    session = core_session_look(self);
    if (session == NULL)
        return NULL;
    return PyLong_FromLongLong(ot_session_parameters_size(session, which_of(trainable_only)));
}

static PyObject *vector_of(ot_session *session, int which, bool is_gradients)
{
    ot_shape shape = {.ndim = 1, .dim = {ot_session_parameters_size(session, which)}};
    ot_tensor *vector;
    ot_status st = ot_tensor_create(OT_F32, &shape, &vector);

    if (st != OT_OK)
        return core_raise(st);
    st = is_gradients
             ? ot_session_get_gradients(session, ot_tensor_data(vector), shape.dim[0])
             : ot_session_get_parameters(session, which, ot_tensor_data(vector), shape.dim[0]);
    if (st == OT_OK)
        return core_tensor_new(vector);
    ot_tensor_destroy(vector);
    return core_raise(st);
}

PyObject *core_session_get_parameters(PyObject *self, PyObject *args)
{
    ot_session *session;
    int trainable_only;

    if (!PyArg_ParseTuple(args, "p", &trainable_only))
        return NULL;
    session = core_session_look(self);
    if (session == NULL)
        return NULL;
    return vector_of(session, which_of(trainable_only), false);
}

PyObject *core_session_get_gradients(PyObject *self, PyObject *unused)
{
    ot_session *session = core_session_look(self);

    (void)unused;
    return session != NULL ? vector_of(session, OT_PARAMETERS_TRAINABLE, true) : NULL;
}

PyObject *core_session_set_parameters(PyObject *self, PyObject *args)
{
    ot_session *session;
    PyObject *object;
    int trainable_only;
    const ot_tensor *vector;

    if (!PyArg_ParseTuple(args, "O!p", core_tensor_type, &object, &trainable_only))
        return NULL;
    session = core_session_look(self);
    if (session == NULL)
        return NULL;
    vector = ((tensor_object *)object)->tensor;
    if (ot_tensor_dtype(vector) != OT_F32)
        return PyErr_Format(core_error_class(OT_ERR_INVALID),
                            "a vector of %s for the parameters, expected f32",
                            ot_dtype_name(ot_tensor_dtype(vector)));
    return core_result(ot_session_set_parameters(
        session, which_of(trainable_only), ot_tensor_data_const(vector), ot_tensor_count(vector)));
}

PyObject *core_session_scale_gradients(PyObject *self, PyObject *args)
{
    ot_session *session;
    double factor;

    if (!PyArg_ParseTuple(args, "d", &factor))
        return NULL;
    session = core_session_look(self);
    if (session == NULL)
        return NULL;
    return core_result(ot_session_scale_gradients(session, factor));
}

PyObject *core_session_get_input_gradient(PyObject *self, PyObject *args)
{
    const ot_session *session;
    const char *name;
    ot_tensor *gradient;
    ot_status st;

    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    session = core_session_look(self);
    if (session == NULL)
        return NULL;
    st = ot_session_get_input_gradient(session, name, &gradient);
    return st == OT_OK ? core_tensor_new(gradient) : core_raise(st);
}
