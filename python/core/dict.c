// SPDX-License-Identifier: Apache-2.0
// Trees of named values from and to Python's dicts.
#include <stdlib.h>

#include "core.h"

// ---- to Python ----

// Keeps the memory of tensors that were given out.
typedef struct dict_object {
    PyObject_HEAD ot_dict *dict;
} dict_object;

static PyTypeObject *dict_type;

static void dict_dealloc(PyObject *self)
{
    ot_dict_destroy(((dict_object *)self)->dict);
    core_free(self);
}

static PyObject *ints_out(const int64_t *values, int n)
{
    PyObject *list = PyList_New(n);

    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *item = PyLong_FromLongLong(values[i]);

        if (item == NULL || PyList_SetItem(list, i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// The elements stay the tensor's.
static ot_status view_of(const ot_tensor *tensor, ot_tensor **view)
{
    void *data = (void *)(uintptr_t)ot_tensor_data_const(tensor);

    return ot_tensor_wrap(ot_tensor_dtype(tensor), ot_tensor_shape(tensor), data,
                          ot_tensor_bytes(tensor), view);
}

static PyObject *tensor_out(const ot_tensor *tensor, PyObject *owner)
{
    ot_tensor *view;
    const ot_status st = view_of(tensor, &view);

    return st == OT_OK ? core_tensor_over(view, owner) : core_raise(st);
}

static PyObject *dict_out(ot_dict *dict, PyObject *owner);
static PyObject *list_out(ot_dict *list, PyObject *owner);

static PyObject *value_out(ot_dict *dict, const char *name, PyObject *owner)
{
    union {
        int flag;
        int64_t number;
        double real;
        const char *text;
        const int64_t *numbers;
        const ot_tensor *tensor;
        const void *bytes;
        const ot_shards *shards;
        ot_dict *dict;
    } v;
    ot_dict_kind kind;
    size_t n_bytes;
    int n;
    ot_status st = ot_dict_kind_of(dict, name, &kind);

    if (st != OT_OK)
        return core_raise(st);
    switch (kind) {
    case OT_DICT_BOOL:
        st = ot_dict_get_bool(dict, name, &v.flag);
        return st == OT_OK ? PyBool_FromLong(v.flag) : core_raise(st);
    case OT_DICT_INT:
        st = ot_dict_get_int(dict, name, &v.number);
        return st == OT_OK ? PyLong_FromLongLong(v.number) : core_raise(st);
    case OT_DICT_FLOAT:
        st = ot_dict_get_float(dict, name, &v.real);
        return st == OT_OK ? PyFloat_FromDouble(v.real) : core_raise(st);
    case OT_DICT_STRING:
        st = ot_dict_get_string(dict, name, &v.text);
        return st == OT_OK ? core_text(v.text) : core_raise(st);
    case OT_DICT_INTS:
        st = ot_dict_get_ints(dict, name, &v.numbers, &n);
        return st == OT_OK ? ints_out(v.numbers, n) : core_raise(st);
    case OT_DICT_TENSOR:
        st = ot_dict_get_tensor(dict, name, &v.tensor);
        return st == OT_OK ? tensor_out(v.tensor, owner) : core_raise(st);
    case OT_DICT_NULL:
        Py_RETURN_NONE;
    case OT_DICT_BYTES:
        st = ot_dict_get_bytes(dict, name, &v.bytes, &n_bytes);
        return st == OT_OK ? PyBytes_FromStringAndSize(v.bytes, (Py_ssize_t)n_bytes)
                           : core_raise(st);
    case OT_DICT_LIST:
        st = ot_dict_get_list(dict, name, &v.dict);
        return st == OT_OK ? list_out(v.dict, owner) : core_raise(st);
    case OT_DICT_SHARDS:
        st = ot_dict_get_shards(dict, name, &v.shards);
        return st == OT_OK ? core_shards_new(v.shards, owner) : core_raise(st);
    case OT_DICT_DICT:
    default:
        st = ot_dict_get_dict(dict, name, &v.dict);
        return st == OT_OK ? dict_out(v.dict, owner) : core_raise(st);
    }
}

static PyObject *list_out(ot_dict *list, PyObject *owner)
{
    const int n = ot_dict_count(list);
    PyObject *result = PyList_New(n);

    for (int i = 0; result != NULL && i < n; i++) {
        PyObject *value = value_out(list, ot_dict_name(list, i), owner);

        if (value == NULL || PyList_SetItem(result, i, value) != 0)
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *dict_out(ot_dict *dict, PyObject *owner)
{
    PyObject *result = PyDict_New();

    for (int i = 0; result != NULL && i < ot_dict_count(dict); i++) {
        PyObject *name = core_text(ot_dict_name(dict, i));
        PyObject *value = name != NULL ? value_out(dict, ot_dict_name(dict, i), owner) : NULL;

        if (value == NULL || PyDict_SetItem(result, name, value) != 0)
            Py_CLEAR(result);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return result;
}

PyObject *core_dict_new(ot_dict *dict)
{
    dict_object *owner = core_alloc(dict_type);
    PyObject *result;

    if (owner == NULL) {
        ot_dict_destroy(dict);
        return NULL;
    }
    owner->dict = dict;
    result = dict_out(dict, (PyObject *)owner);
    Py_DECREF(owner); // tensors keep it
    return result;
}

// ---- from Python ----

static int take_value(PyObject *value, const char *name, ot_dict *to);

static int take_ints(PyObject *list, const char *name, ot_dict *to)
{
    const Py_ssize_t n = PyList_Size(list);
    int64_t *values = calloc((size_t)n + 1, sizeof(*values));
    ot_status st = OT_OK;

    if (values == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        values[i] = PyLong_AsLongLong(PyList_GetItem(list, i));
    if (!PyErr_Occurred())
        st = ot_dict_set_ints(to, name, values, (int)n);
    free(values);
    if (st != OT_OK)
        core_raise(st);
    return PyErr_Occurred() ? -1 : 0;
}

static ot_status take_tensor(PyObject *object, const char *name, ot_dict *to)
{
    ot_tensor *view;
    ot_status st = view_of(((tensor_object *)object)->tensor, &view);

    if (st != OT_OK)
        return st;
    st = ot_dict_take_tensor(to, name, view);
    if (st != OT_OK)
        ot_tensor_destroy(view);
    return st;
}

static int take_below(PyObject *from, const char *name, ot_dict *to)
{
    ot_dict *below;
    const ot_status st = ot_dict_set_dict(to, name, &below);
    int failed;

    if (st != OT_OK) {
        core_raise(st);
        return -1;
    }
    if (Py_EnterRecursiveCall(" in a state") != 0)
        return -1;
    failed = core_dict_take_pairs(from, below, take_value);
    Py_LeaveRecursiveCall();
    return failed;
}

static int take_value(PyObject *value, const char *name, ot_dict *to)
{
    ot_status st;

    if (PyDict_Check(value))
        return take_below(value, name, to);
    if (PyList_Check(value))
        return take_ints(value, name, to);
    if (PyBool_Check(value)) {
        st = ot_dict_set_bool(to, name, value == Py_True);
    } else if (PyLong_Check(value)) {
        const long long number = PyLong_AsLongLong(value);

        if (PyErr_Occurred())
            return -1;
        st = ot_dict_set_int(to, name, number);
    } else if (PyFloat_Check(value)) {
        st = ot_dict_set_float(to, name, PyFloat_AsDouble(value));
    } else if (PyUnicode_Check(value)) {
        const char *text = PyUnicode_AsUTF8AndSize(value, NULL);

        if (text == NULL)
            return -1;
        st = ot_dict_set_string(to, name, text);
    } else if (PyObject_TypeCheck(value, core_tensor_type)) {
        st = take_tensor(value, name, to);
    } else {
        PyErr_Format(core_type_class, "'%s' of a state is %R, which a state cannot hold", name,
                     value);
        return -1;
    }
    if (st != OT_OK)
        core_raise(st);
    return st == OT_OK ? 0 : -1;
}

int core_dict_take_pairs(PyObject *from, ot_dict *to, core_take_value take)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(from, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;

        if (name == NULL && !PyErr_Occurred())
            PyErr_Format(core_type_class, "a key of a state is %R, expected str", key);
        if (name == NULL || take(value, name, to) != 0)
            return -1;
    }
    return 0;
}

ot_dict *core_dict_take(PyObject *dict)
{
    ot_dict *taken = NULL;
    const ot_status st = ot_dict_create(&taken);

    if (st != OT_OK) {
        core_raise(st);
        return NULL;
    }
    if (core_dict_take_pairs(dict, taken, take_value) == 0)
        return taken;
    ot_dict_destroy(taken);
    return NULL;
}

// ---- HDF5 files ----

static PyObject *save_hdf5(PyObject *module, PyObject *args)
{
    PyObject *path, *dict;
    ot_dict *taken;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&O!", PyUnicode_FSConverter, &path, &PyDict_Type, &dict))
        return NULL;
    taken = core_dict_take(dict);
    if (taken == NULL) {
        Py_DECREF(path);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    st = ot_dict_save_hdf5(taken, PyBytes_AsString(path));
    ot_dict_destroy(taken);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return core_result(st);
}

static PyObject *load_hdf5(PyObject *module, PyObject *args)
{
    const char *key;
    PyObject *path;
    ot_dict *dict;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&z", PyUnicode_FSConverter, &path, &key))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_dict_load_hdf5(PyBytes_AsString(path), key, &dict);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return st == OT_OK ? core_dict_new(dict) : core_raise(st);
}

static PyObject *is_hdf5(PyObject *module, PyObject *args)
{
    PyObject *path;
    int is_it;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    is_it = ot_hdf5_is_file(PyBytes_AsString(path));
    Py_DECREF(path);
    return PyBool_FromLong(is_it);
}

// ---- the type ----

static PyType_Slot slots[] = {
    {Py_tp_doc, "The memory of a state."},
    {Py_tp_dealloc, dict_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Dict",
    .basicsize = sizeof(dict_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyObject *aggregate(PyObject *module, PyObject *list)
{
    core_strings paths;
    ot_dict *state;
    ot_status st;

    (void)module;
    if (core_strings_take(list, &paths) != 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_state_aggregate(paths.items, paths.count, &state);
    Py_END_ALLOW_THREADS
    core_strings_drop(&paths);
    return st == OT_OK ? core_dict_new(state) : core_raise(st);
}

static PyMethodDef functions[] = {
    {"save_hdf5", save_hdf5, METH_VARARGS, "save_hdf5(path, dict)"},
    {"load_hdf5", load_hdf5, METH_VARARGS, "load_hdf5(path, key or None) -> dict"},
    {"is_hdf5", is_hdf5, METH_VARARGS, "is_hdf5(path) -> bool"},
    {"aggregate", aggregate, METH_O, "aggregate(paths) -> dict of dicts"},
    {NULL, NULL, 0, NULL},
};

int core_add_dict(PyObject *module)
{
    if (core_add_type(module, &spec, &dict_type) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
