// SPDX-License-Identifier: Apache-2.0
// Learning rates by themselves, and LossScaler.
#include "core.h"

#include <structmember.h> // needs Python.h

// ---- schedules ----

static PyObject *schedule_value(PyObject *module, PyObject *args)
{
    ot_schedule s = OT_SCHEDULE_INIT;
    long long total, step;
    int kind;

    (void)module;
    if (!PyArg_ParseTuple(args, "iddLdddL", &kind, &s.initial_lr, &s.warmup_steps, &total, &s.power,
                          &s.end_factor, &s.cycles, &step))
        return NULL;
    s.kind = (ot_schedule_kind)kind;
    s.total_steps = total;
    return PyFloat_FromDouble(ot_schedule_value(&s, step));
}

// ---- LossScaler ----

PyTypeObject *core_scaler_type;

static PyObject *scaler_create(PyObject *class, PyObject *args)
{
    ot_loss_scaler scaler = OT_LOSS_SCALER_INIT;
    long long window;
    scaler_object *self;

    (void)class;
    if (!PyArg_ParseTuple(args, "dpLdd", &scaler.loss_scale, &scaler.automatic_update, &window,
                          &scaler.min_loss_scale, &scaler.max_loss_scale))
        return NULL;
    self = core_alloc(core_scaler_type);
    if (self == NULL)
        return NULL;
    scaler.initial_loss_scale = scaler.loss_scale;
    scaler.up_scale_window = window;
    self->scaler = scaler;
    return (PyObject *)self;
}

// The function gets whether all gradients were finite.
static int on_update(void *context, const ot_step_info *info, double *loss_scale)
{
    scaler_object *self = context;
    const PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *answer =
        PyObject_CallFunction(self->function, "N", PyBool_FromLong(info->all_finite));

    if (answer != NULL)
        *loss_scale = PyFloat_AsDouble(answer);
    Py_XDECREF(answer);
    self->failed = PyErr_Occurred() != NULL;
    PyGILState_Release(lock);
    return self->failed;
}

static PyObject *scaler_of(PyObject *class, PyObject *args)
{
    ot_loss_scaler scaler = OT_LOSS_SCALER_INIT;
    PyObject *function;
    scaler_object *self;

    (void)class;
    if (!PyArg_ParseTuple(args, "Od", &function, &scaler.loss_scale))
        return NULL;
    self = core_alloc(core_scaler_type);
    if (self == NULL)
        return NULL;
    self->function = Py_NewRef(function);
    self->scaler = scaler;
    self->scaler.update = on_update;
    self->scaler.context = self;
    return (PyObject *)self;
}

static void scaler_dealloc(PyObject *self)
{
    Py_CLEAR(((scaler_object *)self)->function);
    core_free(self);
}

static PyObject *scaler_update(PyObject *self, PyObject *args)
{
    ot_loss_scaler *scaler = &((scaler_object *)self)->scaler;
    ot_step_info info = OT_STEP_INFO_INIT;

    if (!PyArg_ParseTuple(args, "p", &info.all_finite))
        return NULL;
    return PyFloat_FromDouble(ot_loss_scaler_update(scaler, &info));
}

static PyObject *scaler_reset(PyObject *self, PyObject *unused)
{
    (void)unused;
    ot_loss_scaler_reset(&((scaler_object *)self)->scaler);
    Py_RETURN_NONE;
}

static PyObject *get_automatic(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((scaler_object *)self)->scaler.automatic_update);
}

static int set_automatic(PyObject *self, PyObject *value, void *unused)
{
    const int automatic = value != NULL ? PyObject_IsTrue(value) : -1;

    (void)unused;
    if (value == NULL)
        PyErr_SetString(PyExc_AttributeError, "automatic_update cannot be deleted");
    if (automatic < 0)
        return -1;
    ((scaler_object *)self)->scaler.automatic_update = automatic;
    return 0;
}

#define AT(member) (Py_ssize_t) offsetof(scaler_object, scaler.member)

static PyMemberDef members[] = {
    {"loss_scale", T_DOUBLE, AT(loss_scale), 0, "The present scale."},
    {"initial_loss_scale", T_DOUBLE, AT(initial_loss_scale), 0, "What reset() goes back to."},
    {"up_scale_window", T_LONGLONG, AT(up_scale_window), 0, "Updates in a row that double it."},
    {"n_stable", T_LONGLONG, AT(n_stable), 0, "Updates in a row so far."},
    {"min_loss_scale", T_DOUBLE, AT(min_loss_scale), 0, "The least scale."},
    {"max_loss_scale", T_DOUBLE, AT(max_loss_scale), 0, "The greatest scale."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"automatic_update", get_automatic, set_automatic, "Whether update() changes the scale.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"create", scaler_create, METH_VARARGS | METH_STATIC,
     "create(loss_scale, automatic_update, up_scale_window, min, max) -> LossScaler"},
    {"of", scaler_of, METH_VARARGS | METH_STATIC,
     "of(function, loss_scale) -> LossScaler; function(all_finite) -> the new scale"},
    {"update", scaler_update, METH_VARARGS, "update(all_finite) -> the new scale"},
    {"reset", scaler_reset, METH_NOARGS, "Back to initial_loss_scale."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A loss scale, and how it changes."},
    {Py_tp_dealloc, scaler_dealloc},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.LossScaler",
    .basicsize = sizeof(scaler_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyMethodDef functions[] = {
    {"schedule_value", schedule_value, METH_VARARGS,
     "schedule_value(kind, initial_lr, warmup, total, power, end_factor, cycles, step)"},
    {NULL, NULL, 0, NULL},
};

int core_add_schedule(PyObject *module)
{
    if (core_add_type(module, &spec, &core_scaler_type) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
