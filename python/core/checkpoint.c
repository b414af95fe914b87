// SPDX-License-Identifier: Apache-2.0
// Checkpoint: parameters, gradients and properties.
#include <string.h>

#include "core.h"

PyTypeObject *core_checkpoint_type;

static ot_checkpoint *handle(PyObject *self)
{
    return ((checkpoint_object *)self)->checkpoint;
}

bool core_enter(checkpoint_object *state)
{
    if (state->busy && state->guest == PyThread_get_thread_ident()) {
        state->guest = 0; // until it leaves
        return true;
    }
    if (state->busy) {
        PyErr_SetString(core_error_class(OT_ERR_STATE),
                        "another thread works on this state: one thread at a time");
        return false;
    }
    state->busy = true;
    return true;
}

void core_leave(checkpoint_object *state)
{
    if (state->in_run)
        state->guest = PyThread_get_thread_ident(); // a callback goes on
    else
        state->busy = false;
}

// Calls that are short keep the interpreter's lock; they only must not meet a running step.
static bool is_free(PyObject *self)
{
    if (!core_enter((checkpoint_object *)self))
        return false;
    core_leave((checkpoint_object *)self);
    return true;
}

// ---- life ----

PyObject *core_checkpoint_new(ot_checkpoint *checkpoint)
{
    checkpoint_object *self = core_alloc(core_checkpoint_type);

    if (self == NULL) {
        ot_checkpoint_destroy(checkpoint);
        return NULL;
    }
    self->checkpoint = checkpoint;
    return (PyObject *)self;
}

static PyObject *checkpoint_create(PyObject *class, PyObject *unused)
{
    ot_checkpoint *checkpoint;
    const ot_status st = ot_checkpoint_create(&checkpoint);

    (void)class, (void)unused;
    return st == OT_OK ? core_checkpoint_new(checkpoint) : core_raise(st);
}

static PyObject *checkpoint_load(PyObject *class, PyObject *args)
{
    PyObject *path;
    int with_optimizer;
    ot_checkpoint *checkpoint;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "O&p", PyUnicode_FSConverter, &path, &with_optimizer))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = with_optimizer ? ot_checkpoint_load(PyBytes_AsString(path), &checkpoint)
                        : ot_checkpoint_load_parameters(PyBytes_AsString(path), &checkpoint);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return st == OT_OK ? core_checkpoint_new(checkpoint) : core_raise(st);
}

static PyObject *checkpoint_load_bytes(PyObject *class, PyObject *bytes)
{
    char *data;
    Py_ssize_t n_bytes;
    ot_checkpoint *checkpoint;
    ot_status st;

    (void)class;
    if (PyBytes_AsStringAndSize(bytes, &data, &n_bytes) != 0)
        return NULL;
    st = ot_checkpoint_load_buffer(data, (size_t)n_bytes, &checkpoint);
    return st == OT_OK ? core_checkpoint_new(checkpoint) : core_raise(st);
}

static PyObject *checkpoint_is_nominal(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(ot_checkpoint_is_nominal(((checkpoint_object *)self)->checkpoint));
}

static PyObject *checkpoint_save_nominal(PyObject *self, PyObject *args)
{
    checkpoint_object *state = (checkpoint_object *)self;
    PyObject *path;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    if (!core_enter(state)) {
        Py_DECREF(path);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    st = ot_checkpoint_save(state->checkpoint, PyBytes_AsString(path), OT_CHECKPOINT_NOMINAL);
    Py_END_ALLOW_THREADS
    core_leave(state);
    Py_DECREF(path);
    return core_result(st);
}

// With the optimizer's state, and a session at work: all that resuming bit for bit needs.
static PyObject *checkpoint_save(PyObject *self, PyObject *args)
{
    checkpoint_object *state = (checkpoint_object *)self;
    session_object *held;
    ot_session *session;
    PyObject *path;
    int with_optimizer;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O&p", PyUnicode_FSConverter, &path, &with_optimizer))
        return NULL;
    if (!core_enter(state)) {
        Py_DECREF(path);
        return NULL;
    }
    held = state->session; // another thread may drop it while the lock is released
    Py_XINCREF(held);
    session = held != NULL ? held->session : NULL;
    Py_BEGIN_ALLOW_THREADS
    st = with_optimizer && session != NULL
             ? ot_session_save(session, PyBytes_AsString(path))
             : ot_checkpoint_save(state->checkpoint, PyBytes_AsString(path),
                                  with_optimizer ? OT_CHECKPOINT_OPTIMIZER_STATE : 0);
    Py_END_ALLOW_THREADS
    core_leave(state);
    Py_DECREF(path);
    Py_XDECREF(held);
    return core_result(st);
}

static ot_status save_into(const checkpoint_object *state, const session_object *held,
                           unsigned flags, void *to, size_t capacity, size_t *n_bytes)
{
    if (flags != 0 && held != NULL)
        return ot_session_save_buffer(held->session, to, capacity, n_bytes);
    return ot_checkpoint_save_buffer(state->checkpoint, flags, to, capacity, n_bytes);
}

static PyObject *to_bytes(const checkpoint_object *state, const session_object *held,
                          unsigned flags)
{
    PyObject *bytes = NULL;
    char *to = NULL;
    size_t n_bytes = 0;
    ot_status st;

    Py_BEGIN_ALLOW_THREADS
    st = save_into(state, held, flags, NULL, 0, &n_bytes);
    Py_END_ALLOW_THREADS
    if (st == OT_OK) {
        bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n_bytes);
        if (bytes == NULL)
            return NULL;
        to = PyBytes_AsString(bytes);
        Py_BEGIN_ALLOW_THREADS
        st = save_into(state, held, flags, to, n_bytes, &n_bytes);
        Py_END_ALLOW_THREADS
    }
    if (st == OT_OK)
        return bytes;
    Py_XDECREF(bytes);
    return core_raise(st);
}

static PyObject *checkpoint_to_bytes(PyObject *self, PyObject *args)
{
    checkpoint_object *state = (checkpoint_object *)self;
    session_object *held;
    PyObject *result;
    int with_optimizer;

    if (!PyArg_ParseTuple(args, "p", &with_optimizer) || !core_enter(state))
        return NULL;
    held = state->session; // another thread may drop it while the lock is released
    Py_XINCREF(held);
    result = to_bytes(state, held, with_optimizer ? OT_CHECKPOINT_OPTIMIZER_STATE : 0);
    core_leave(state);
    Py_XDECREF(held);
    return result;
}

static void checkpoint_dealloc(PyObject *self)
{
    ot_checkpoint_destroy(handle(self));
    core_free(self);
}

static PyObject *names(PyObject *self, PyObject *unused, int (*count)(const ot_checkpoint *),
                       const char *(*name_at)(const void *, int))
{
    PyObject *list;

    (void)unused;
    if (!core_enter((checkpoint_object *)self)) // what the list brings about may run any code
        return NULL;
    list = core_names(count(handle(self)), name_at, handle(self));
    core_leave((checkpoint_object *)self);
    return list;
}

// ---- parameters ----

static const char *parameter_name(const void *checkpoint, int index)
{
    return ot_checkpoint_parameter_name(checkpoint, index);
}

static PyObject *parameter_names(PyObject *self, PyObject *unused)
{
    return names(self, unused, ot_checkpoint_parameter_count, parameter_name);
}

static PyObject *parameter_trainable(PyObject *self, PyObject *args)
{
    const char *name;

    if (!PyArg_ParseTuple(args, "s", &name) || !is_free(self))
        return NULL;
    return PyLong_FromLong(ot_checkpoint_parameter_trainable(handle(self), name));
}

static PyObject *add_parameter(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *value;
    int trainable;

    if (!PyArg_ParseTuple(args, "sO!p", &name, core_tensor_type, &value, &trainable) ||
        !is_free(self))
        return NULL;
    return core_result(ot_checkpoint_add_parameter(handle(self), name,
                                                   ((tensor_object *)value)->tensor, trainable));
}

static PyObject *get_parameter(PyObject *self, PyObject *args)
{
    const char *name;
    ot_tensor *tensor;
    ot_status st;

    if (!PyArg_ParseTuple(args, "s", &name) || !is_free(self))
        return NULL;
    st = ot_checkpoint_get_parameter(handle(self), name, &tensor);
    return st == OT_OK ? core_tensor_new(tensor) : core_raise(st);
}

static PyObject *set_parameter(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *value;

    if (!PyArg_ParseTuple(args, "sO!", &name, core_tensor_type, &value) || !is_free(self))
        return NULL;
    return core_result(
        ot_checkpoint_set_parameter(handle(self), name, ((tensor_object *)value)->tensor));
}

// None for a frozen parameter and before there is a session.
static PyObject *get_gradient(PyObject *self, PyObject *args)
{
    const char *name;
    ot_tensor *tensor;
    ot_status st;

    if (!PyArg_ParseTuple(args, "s", &name) || !is_free(self))
        return NULL;
    st = ot_checkpoint_get_gradient(handle(self), name, &tensor);
    if (st == OT_ERR_STATE)
        return Py_NewRef(Py_None);
    return st == OT_OK ? core_tensor_new(tensor) : core_raise(st);
}

// ---- properties ----

static const char *property_name(const void *checkpoint, int index)
{
    return ot_checkpoint_property_name(checkpoint, index);
}

static PyObject *property_names(PyObject *self, PyObject *unused)
{
    return names(self, unused, ot_checkpoint_property_count, property_name);
}

static PyObject *get_property(PyObject *self, PyObject *args)
{
    const char *name, *text;
    int64_t i;
    float f;
    ot_property_kind kind;
    ot_status st;

    if (!PyArg_ParseTuple(args, "s", &name) || !is_free(self))
        return NULL;
    st = ot_checkpoint_property_kind_of(handle(self), name, &kind);
    if (st != OT_OK)
        return core_raise(st);
    if (kind == OT_PROPERTY_INT)
        return ot_checkpoint_get_int(handle(self), name, &i) == OT_OK ? PyLong_FromLongLong(i)
                                                                      : NULL;
    if (kind == OT_PROPERTY_FLOAT)
        return ot_checkpoint_get_float(handle(self), name, &f) == OT_OK
                   ? PyFloat_FromDouble((double)f)
                   : NULL;
    return ot_checkpoint_get_string(handle(self), name, &text) == OT_OK ? core_text(text) : NULL;
}

static PyObject *set_int(PyObject *self, PyObject *args)
{
    const char *name;
    long long value;

    if (!PyArg_ParseTuple(args, "sL", &name, &value) || !is_free(self))
        return NULL;
    return core_result(ot_checkpoint_set_int(handle(self), name, value));
}

static PyObject *set_float(PyObject *self, PyObject *args)
{
    const char *name;
    float value;

    if (!PyArg_ParseTuple(args, "sf", &name, &value) || !is_free(self))
        return NULL;
    return core_result(ot_checkpoint_set_float(handle(self), name, value));
}

static PyObject *set_string(PyObject *self, PyObject *args)
{
    const char *name, *value;

    if (!PyArg_ParseTuple(args, "ss", &name, &value) || !is_free(self))
        return NULL;
    return core_result(ot_checkpoint_set_string(handle(self), name, value));
}

static PyObject *remove_property(PyObject *self, PyObject *args)
{
    const char *name;

    if (!PyArg_ParseTuple(args, "s", &name) || !is_free(self))
        return NULL;
    return core_result(ot_checkpoint_remove_property(handle(self), name));
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"create", checkpoint_create, METH_NOARGS | METH_STATIC, "create() -> Checkpoint, empty"},
    {"load", checkpoint_load, METH_VARARGS | METH_STATIC,
     "load(path, with_optimizer) -> Checkpoint"},
    {"load_bytes", checkpoint_load_bytes, METH_O | METH_STATIC, "load_bytes(bytes) -> Checkpoint"},
    {"to_bytes", checkpoint_to_bytes, METH_VARARGS, "to_bytes(with_optimizer) -> bytes"},
    {"save", checkpoint_save, METH_VARARGS, "save(path, with_optimizer)"},
    {"is_nominal", checkpoint_is_nominal, METH_NOARGS, "Whether parameters have no values yet."},
    {"save_nominal", checkpoint_save_nominal, METH_VARARGS, "save_nominal(path): no values"},
    {"parameter_names", parameter_names, METH_NOARGS, "Names of the parameters, sorted."},
    {"parameter_trainable", parameter_trainable, METH_VARARGS,
     "1: trained, 0: frozen, -1: no such parameter"},
    {"add_parameter", add_parameter, METH_VARARGS, "add_parameter(name, Tensor, trainable)"},
    {"get_parameter", get_parameter, METH_VARARGS, "get_parameter(name) -> Tensor, a copy"},
    {"set_parameter", set_parameter, METH_VARARGS, "set_parameter(name, Tensor)"},
    {"get_gradient", get_gradient, METH_VARARGS, "get_gradient(name) -> Tensor, a copy, or None"},
    {"property_names", property_names, METH_NOARGS, "Names of the properties, sorted."},
    {"get_property", get_property, METH_VARARGS, "get_property(name) -> int, float or str"},
    {"set_int", set_int, METH_VARARGS, "set_int(name, value)"},
    {"set_float", set_float, METH_VARARGS, "set_float(name, value)"},
    {"set_string", set_string, METH_VARARGS, "set_string(name, value)"},
    {"remove_property", remove_property, METH_VARARGS, "remove_property(name)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Training state."},
    {Py_tp_dealloc, checkpoint_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Checkpoint",
    .basicsize = sizeof(checkpoint_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_checkpoint(PyObject *module)
{
    return core_add_type(module, &spec, &core_checkpoint_type);
}
