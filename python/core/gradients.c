// SPDX-License-Identifier: Apache-2.0
// Gradients: of a value of a model with respect to others.
#include <stdlib.h>

#include "core.h"

static PyTypeObject *gradients_type;

typedef struct gradients_object {
    PyObject_HEAD ot_gradients *gradients;
    bool busy; // a thread without the interpreter's lock is inside
} gradients_object;

static const ot_model *model_of(PyObject *self)
{
    return ot_gradients_model(((gradients_object *)self)->gradients);
}

// ---- life ----

static PyObject *create(const ot_model *model, const char *of, const core_strings *wrt,
                        const ot_gradients_options *options)
{
    gradients_object *self = core_alloc(gradients_type);
    ot_status st;

    if (self == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_gradients_create(model, of, wrt->items, wrt->count, options, &self->gradients);
    Py_END_ALLOW_THREADS
    if (st == OT_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return core_raise(st);
}

static PyObject *gradients_create(PyObject *class, PyObject *args)
{
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_session_options session = OT_SESSION_OPTIONS_INIT;
    PyObject *model, *list, *result;
    core_strings wrt;
    const char *of;
    unsigned long long memory_max;
    int seed;

    (void)class;
    if (!PyArg_ParseTuple(args, "O!sOipipK", core_model_type, &model, &of, &list, &seed,
                          &options.keep_operators, &session.n_threads, &session.reproducible,
                          &memory_max) ||
        core_strings_take(list, &wrt) != 0)
        return NULL;
    session.memory_max = (size_t)memory_max;
    options.seed = (ot_gradient_seed)seed;
    options.session = &session;
    result = create(((model_object *)model)->model, of, &wrt, &options);
    core_strings_drop(&wrt);
    return result;
}

static void gradients_dealloc(PyObject *self)
{
    ot_gradients_destroy(((gradients_object *)self)->gradients);
    core_free(self);
}

// ---- use ----

// The model stays this object's, and nobody changes it.
static PyObject *gradients_model(PyObject *self, PyObject *unused)
{
    (void)unused;
    return core_model_new((ot_model *)model_of(self), self);
}

static PyObject *run(gradients_object *self, const core_tensors *inputs)
{
    const int n_outputs = ot_model_output_count(model_of((PyObject *)self));
    ot_tensor **outputs;
    PyObject *result;
    ot_status st;

    if (self->busy)
        return PyErr_Format(core_error_class(OT_ERR_STATE),
                            "another thread runs these gradients: one thread at a time");
    outputs = calloc((size_t)n_outputs + 1, sizeof(*outputs));
    if (outputs == NULL)
        return PyErr_NoMemory();
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    st = ot_gradients_run(self->gradients, inputs->items, inputs->count, outputs, n_outputs);
    Py_END_ALLOW_THREADS
    self->busy = false;
    result = st == OT_OK ? core_tensor_list(outputs, n_outputs) : core_raise(st);
    free(outputs);
    return result;
}

static PyObject *gradients_run(PyObject *self, PyObject *list)
{
    core_tensors inputs;
    PyObject *result;

    if (core_tensors_take(list, &inputs) != 0)
        return NULL;
    result = run((gradients_object *)self, &inputs);
    core_tensors_drop(&inputs);
    return result;
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"create", gradients_create, METH_VARARGS | METH_STATIC,
     "create(model, of, wrt, seed, keep_operators, n_threads, reproducible, memory_max) -> "
     "Gradients"},
    {"model", gradients_model, METH_NOARGS, "The model that computes value and gradients."},
    {"run", gradients_run, METH_O, "run(inputs) -> list of Tensor: the value, then its gradients"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Gradients of a value of a model."},
    {Py_tp_dealloc, gradients_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Gradients",
    .basicsize = sizeof(gradients_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_gradients(PyObject *module)
{
    return core_add_type(module, &spec, &gradients_type);
}
