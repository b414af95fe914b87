// SPDX-License-Identifier: Apache-2.0
// The extension module: conversion of arguments and results, nothing else.
#include <stdlib.h>
#include <string.h>

#include "core.h"

int core_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromSpec(spec);
    if (*type == NULL)
        return -1;
    return PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, (PyObject *)*type);
}

void *core_alloc(PyTypeObject *type)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return alloc(type, 0);
}

void core_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type); // objects of types made at run time hold their type
}

PyObject *core_text(const char *text)
{
    const Py_ssize_t length = text == NULL ? 0 : (Py_ssize_t)strlen(text);
    PyObject *result = text == NULL ? Py_NewRef(Py_None) : PyUnicode_DecodeUTF8(text, length, NULL);
    PyObject *shown;

    if (result != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return result;
    PyErr_Clear();
    shown = PyUnicode_DecodeUTF8(text, length, "backslashreplace");
    if (shown != NULL)
        PyErr_Format(core_error_class(OT_ERR_FORMAT),
                     "'%U' is not UTF-8, which names are in Python; rename it in the file, or use "
                     "the command onnxtrain",
                     shown);
    Py_XDECREF(shown);
    return NULL;
}

PyObject *core_names(int count, const char *(*name_at)(const void *, int), const void *handle)
{
    PyObject *list = PyList_New(count);

    for (int i = 0; list != NULL && i < count; i++) {
        PyObject *name = core_text(name_at(handle, i));

        if (name == NULL || PyList_SetItem(list, i, name) != 0)
            Py_CLEAR(list);
    }
    return list;
}

int core_strings_take(PyObject *list, core_strings *out)
{
    *out = (core_strings){0};
    if (list == Py_None)
        return 0;
    if (PyUnicode_Check(list)) { // whose letters would be taken for names
        PyErr_Format(core_error_class(OT_ERR_INVALID), "%R is a str, expected a list of names",
                     list);
        return -1;
    }
    out->list = PySequence_List(list); // a copy: nobody changes it while the library reads
    if (out->list == NULL)
        return -1;
    out->count = (int)PyList_Size(out->list);
    out->items = calloc((size_t)out->count + 1, sizeof(*out->items));
    if (out->items == NULL) {
        core_strings_drop(out);
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < out->count; i++) {
        PyObject *item = PyList_GetItem(out->list, i);

        if (!PyUnicode_Check(item))
            PyErr_Format(core_type_class, "name %d of a list is %R, expected str", i, item);
        else
            out->items[i] = PyUnicode_AsUTF8AndSize(item, NULL);
        if (out->items[i] == NULL) {
            core_strings_drop(out);
            return -1;
        }
    }
    return 0;
}

void core_strings_drop(core_strings *strings)
{
    free(strings->items);
    Py_CLEAR(strings->list);
    strings->items = NULL;
}

static PyObject *set_memory_max(PyObject *module, PyObject *args)
{
    unsigned long long n_bytes;

    (void)module;
    if (!PyArg_ParseTuple(args, "K", &n_bytes))
        return NULL;
    ot_set_memory_max((size_t)n_bytes);
    Py_RETURN_NONE;
}

static PyObject *nearest(PyObject *self, PyObject *args)
{
    const char *name, *found;
    core_strings names;
    PyObject *list;

    (void)self;
    if (!PyArg_ParseTuple(args, "sO:nearest", &name, &list) || core_strings_take(list, &names) != 0)
        return NULL;
    found = ot_nearest_name(name, names.items, names.count);
    list = core_text(found);
    core_strings_drop(&names);
    return list;
}

static PyObject *load_op_library(PyObject *module, PyObject *args)
{
    PyObject *path;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&:load_op_library", PyUnicode_FSConverter, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_op_library_load(PyBytes_AsString(path));
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (st != OT_OK)
        return core_raise(st);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"load_op_library", load_op_library, METH_VARARGS, "load_op_library(path)"},
    {"set_memory_max", set_memory_max, METH_VARARGS, "set_memory_max(n_bytes)"},
    {"nearest", nearest, METH_VARARGS,
     "nearest(name, names) -> the name that was probably meant, or None"},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "onnxtrain._core",
    .m_doc = "The C library's handles as objects; use the modules of the package onnxtrain.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module == NULL)
        return NULL;
    if (core_add_errors(module) != 0 || core_add_tensor(module) != 0 ||
        core_add_model(module) != 0 || core_add_checkpoint(module) != 0 ||
        core_add_session(module) != 0 || core_add_artifacts(module) != 0 ||
        core_add_data(module) != 0 || core_add_train(module) != 0 || core_add_runner(module) != 0 ||
        core_add_gradients(module) != 0 || core_add_report(module) != 0 ||
        core_add_record(module) != 0 || core_add_schedule(module) != 0 ||
        core_add_config(module) != 0 || core_add_trainer(module) != 0 ||
        core_add_dict(module) != 0 || core_add_log(module) != 0 || core_add_comm(module) != 0 ||
        core_add_directory(module) != 0 ||
        PyModule_AddStringConstant(module, "version", ot_version()) != 0)
        Py_CLEAR(module);
    return module;
}
