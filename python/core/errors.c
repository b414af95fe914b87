// SPDX-License-Identifier: Apache-2.0
// Exceptions: one class per status, each also the built-in class that scripts would expect.
#include "core.h"

typedef struct error_class {
    ot_status status;
    const char *name; // with the module's
    PyObject **base;  // second base class; NULL: none
    const char *doc;
} error_class;

static PyObject *base_class;

static const error_class classes[] = {
    {OT_ERR_INVALID, "onnxtrain.InvalidArgument", &PyExc_ValueError,
     "An argument or input is wrong: type, shape, value or name."},
    {OT_ERR_FORMAT, "onnxtrain.FormatError", &PyExc_ValueError, "A file is malformed."},
    {OT_ERR_IO, "onnxtrain.FileError", &PyExc_OSError, "A file cannot be read or written."},
    {OT_ERR_NO_MEMORY, "onnxtrain.NoMemory", &PyExc_MemoryError,
     "Out of memory, or above the memory limit that was set."},
    {OT_ERR_UNSUPPORTED, "onnxtrain.Unsupported", &PyExc_NotImplementedError,
     "An operator, element type or form of a file that onnxtrain does not support."},
    {OT_ERR_NOT_FOUND, "onnxtrain.NotFound", &PyExc_LookupError, "There is nothing of that name."},
    {OT_ERR_STATE, "onnxtrain.StateError", NULL, "Not possible in the present state."},
    {OT_ERR_NOT_FINITE, "onnxtrain.NotFinite", &PyExc_ArithmeticError,
     "The loss or a parameter has become infinite or not a number."},
    {OT_ERR_INTERRUPTED, "onnxtrain.Interrupted", NULL, "A callback stopped the training."},
    {OT_ERR_MISMATCH, "onnxtrain.Mismatch", NULL,
     "The processes of a training disagree: version, options, model, data or order of calls."},
    {OT_ERR_TIMEOUT, "onnxtrain.TimedOut", &PyExc_TimeoutError,
     "A process of a training did not answer in time."},
};
enum { N_CLASSES = sizeof classes / sizeof classes[0] };
static PyObject *made[N_CLASSES];

// What the binding itself finds; no function of the library fails so.
static const error_class type_class = {OT_OK, "onnxtrain.InvalidType", &PyExc_TypeError,
                                       "An argument is of a type that is not taken."};
PyObject *core_type_class;

static int add(PyObject *module, const char *name, PyObject *object)
{
    const char *last = name + sizeof "onnxtrain." - 1;

    return object == NULL ? -1 : PyModule_AddObjectRef(module, last, object);
}

static PyObject *make(const error_class *c)
{
    PyObject *bases = c->base ? PyTuple_Pack(2, base_class, *c->base) : PyTuple_Pack(1, base_class);
    PyObject *class = bases ? PyErr_NewExceptionWithDoc(c->name, c->doc, bases, NULL) : NULL;

    Py_XDECREF(bases);
    return class;
}

int core_add_errors(PyObject *module)
{
    base_class = PyErr_NewExceptionWithDoc("onnxtrain.Error", "Base of all errors of onnxtrain.",
                                           PyExc_RuntimeError, NULL);
    if (add(module, "onnxtrain.Error", base_class) != 0)
        return -1;
    for (int i = 0; i < N_CLASSES; i++) {
        made[i] = make(&classes[i]);
        if (add(module, classes[i].name, made[i]) != 0)
            return -1;
    }
    core_type_class = make(&type_class);
    return add(module, type_class.name, core_type_class);
}

PyObject *core_error_class(ot_status status)
{
    for (int i = 0; i < N_CLASSES; i++)
        if (classes[i].status == status)
            return made[i];
    return base_class;
}

PyObject *core_raise(ot_status status)
{
    const char *message = ot_error_message();

    PyErr_SetString(core_error_class(status),
                    message[0] != '\0' ? message : ot_status_text(status));
    return NULL;
}

PyObject *core_result(ot_status status)
{
    return status == OT_OK ? Py_NewRef(Py_None) : core_raise(status);
}
