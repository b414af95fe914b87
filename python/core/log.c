// SPDX-License-Identifier: Apache-2.0
// What the library logs, for a Python function.
#include <string.h>

#include "core.h"

static PyObject *listener; // NULL: the library writes where OT_LOG says

// From any thread, with the interpreter's lock or without, and perhaps with an exception under way.
static void deliver(void *context, ot_log_level level, const char *line)
{
    PyObject *type, *value, *traceback, *function, *text, *result = NULL;
    PyGILState_STATE lock;

    (void)context;
    if (!Py_IsInitialized())
        return;
    lock = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &traceback);
    function = Py_XNewRef(listener); // it may be replaced meanwhile
    text = PyUnicode_DecodeUTF8(line, (Py_ssize_t)strlen(line), "backslashreplace");
    if (function != NULL && text != NULL)
        result = PyObject_CallFunction(function, "iO", (int)level, text);
    if (PyErr_Occurred()) // the library's call goes on
        PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
    Py_XDECREF(text);
    Py_XDECREF(function);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(lock);
}

static PyObject *set_log(PyObject *module, PyObject *function)
{
    PyObject *before = listener;

    (void)module;
    listener = function == Py_None ? NULL : Py_NewRef(function);
    ot_set_log(listener != NULL ? deliver : NULL, NULL);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_log", set_log, METH_O,
     "set_log(function): it gets what the library logs, (level from 0: debug, info, warning; "
     "text); None: OT_LOG says what goes to standard error"},
    {0},
};

int core_add_log(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
