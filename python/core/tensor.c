// SPDX-License-Identifier: Apache-2.0
// Tensor: elements that numpy and DLPack see without a copy, by address, since the stable interface
// of Python 3.10 has no buffer protocol.
#include <stdlib.h>
#include <string.h>

#include "core.h"

PyTypeObject *core_tensor_type;

// ---- shapes ----

PyObject *core_shape_tuple(const ot_shape *shape)
{
    PyObject *tuple = PyTuple_New(shape->ndim);

    for (int i = 0; tuple != NULL && i < shape->ndim; i++) {
        PyObject *size = PyLong_FromLongLong(shape->dim[i]);

        if (size == NULL || PyTuple_SetItem(tuple, i, size) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

int core_shape_take(PyObject *sequence, ot_shape *shape)
{
    const Py_ssize_t n = PySequence_Size(sequence);

    if (n < 0)
        return -1;
    if (n > OT_MAX_NDIM) {
        PyErr_Format(core_error_class(OT_ERR_INVALID),
                     "an array of %zd axes, at most %d are possible", n, OT_MAX_NDIM);
        return -1;
    }
    shape->ndim = (int)n;
    for (int i = 0; i < shape->ndim; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);

        shape->dim[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

// -1: too many to count, or a negative size.
static Py_ssize_t shape_count(const ot_shape *shape)
{
    Py_ssize_t count = 1;

    for (int i = 0; i < shape->ndim; i++) {
        const int64_t size = shape->dim[i];

        if (size < 0 || (size > 0 && count > PY_SSIZE_T_MAX / size))
            return -1;
        count *= (Py_ssize_t)size;
    }
    return count;
}

// ---- making ----

PyObject *core_tensor_over(ot_tensor *tensor, PyObject *owner)
{
    tensor_object *self = core_alloc(core_tensor_type);

    if (self == NULL) {
        ot_tensor_destroy(tensor);
        return NULL;
    }
    self->tensor = tensor;
    self->owner = Py_XNewRef(owner);
    return (PyObject *)self;
}

PyObject *core_tensor_new(ot_tensor *tensor)
{
    return core_tensor_over(tensor, NULL);
}

static PyObject *tensor_zeros(PyObject *class, PyObject *args)
{
    int dtype;
    PyObject *sequence;
    ot_shape shape;
    ot_tensor *tensor;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "iO", &dtype, &sequence) || core_shape_take(sequence, &shape) != 0)
        return NULL;
    st = ot_tensor_create((ot_dtype)dtype, &shape, &tensor);
    return st == OT_OK ? core_tensor_new(tensor) : core_raise(st);
}

static PyObject *tensor_wrap(PyObject *class, PyObject *args)
{
    int dtype;
    PyObject *sequence, *address_object, *owner;
    Py_ssize_t n_bytes;
    ot_shape shape;
    ot_tensor *tensor;
    void *address;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "iOOnO", &dtype, &sequence, &address_object, &n_bytes, &owner) ||
        core_shape_take(sequence, &shape) != 0)
        return NULL;
    address = PyLong_AsVoidPtr(address_object);
    if (PyErr_Occurred())
        return NULL;
    st = ot_tensor_wrap((ot_dtype)dtype, &shape, address, (size_t)n_bytes, &tensor);
    return st == OT_OK ? core_tensor_over(tensor, owner) : core_raise(st);
}

// strings(shape, list of bytes) -> Tensor
static PyObject *tensor_strings(PyObject *class, PyObject *args)
{
    PyObject *sequence, *list, *result = NULL;
    const char **strings;
    size_t *n_bytes;
    ot_shape shape;
    ot_tensor *tensor;
    ot_status st;
    Py_ssize_t n;

    (void)class;
    if (!PyArg_ParseTuple(args, "OO!", &sequence, &PyList_Type, &list) ||
        core_shape_take(sequence, &shape) != 0)
        return NULL;
    n = PyList_Size(list);
    strings = calloc((size_t)n + 1, sizeof(*strings));
    n_bytes = calloc((size_t)n + 1, sizeof(*n_bytes));
    for (Py_ssize_t i = 0; strings != NULL && n_bytes != NULL && i < n; i++) {
        PyObject *item = PyList_GetItem(list, i); // held by the list: nothing of Python's runs here

        strings[i] = PyBytes_AsString(item);
        n_bytes[i] = strings[i] != NULL ? (size_t)PyBytes_Size(item) : 0;
        if (strings[i] == NULL)
            goto done;
    }
    if (strings == NULL || n_bytes == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    if (shape_count(&shape) != n) {
        PyErr_Format(core_error_class(OT_ERR_INVALID), "%zd strings for a tensor of another count",
                     n);
        goto done;
    }
    st = ot_tensor_create_strings(&shape, strings, n_bytes, &tensor);
    result = st == OT_OK ? core_tensor_new(tensor) : core_raise(st);
done:
    free(strings);
    free(n_bytes);
    return result;
}

static void tensor_dealloc(PyObject *self)
{
    tensor_object *t = (tensor_object *)self;

    ot_tensor_destroy(t->tensor);
    Py_CLEAR(t->owner);
    core_free(self);
}

// ---- looking at it ----

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong((long)ot_tensor_dtype(((tensor_object *)self)->tensor));
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return core_shape_tuple(ot_tensor_shape(((tensor_object *)self)->tensor));
}

static PyObject *get_address(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(ot_tensor_data(((tensor_object *)self)->tensor));
}

static PyObject *get_owner(PyObject *self, void *unused)
{
    const tensor_object *t = (tensor_object *)self;

    (void)unused;
    return Py_NewRef(t->owner != NULL ? t->owner : Py_None);
}

// ---- lists of them ----

int core_tensors_take(PyObject *sequence, core_tensors *out)
{
    Py_ssize_t n;

    *out = (core_tensors){.list = PySequence_List(sequence)};
    if (out->list == NULL)
        return -1;
    n = PyList_Size(out->list);
    out->items = calloc((size_t)n + 1, sizeof(*out->items));
    for (Py_ssize_t i = 0; i < n && out->items != NULL; i++) {
        PyObject *item = PyList_GetItem(out->list, i);

        if (!PyObject_TypeCheck(item, core_tensor_type)) {
            PyErr_SetString(PyExc_TypeError, "expected a list of Tensor");
            core_tensors_drop(out);
            return -1;
        }
        out->items[i] = ((tensor_object *)item)->tensor;
    }
    out->count = (int)n;
    if (out->items != NULL)
        return 0;
    core_tensors_drop(out);
    PyErr_NoMemory();
    return -1;
}

void core_tensors_drop(core_tensors *tensors)
{
    free(tensors->items);
    Py_CLEAR(tensors->list);
    tensors->items = NULL;
}

PyObject *core_tensor_list(ot_tensor **tensors, int count)
{
    PyObject *list = PyList_New(count);

    for (int i = 0; i < count; i++) {
        PyObject *item = list != NULL ? core_tensor_new(tensors[i]) : NULL;

        if (list == NULL)
            ot_tensor_destroy(tensors[i]);
        else if (item == NULL || PyList_SetItem(list, i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// ---- the type ----

static PyObject *tensor_to_bytes(PyObject *self, PyObject *unused)
{
    const ot_tensor *tensor = ((tensor_object *)self)->tensor;

    (void)unused;
    if (ot_tensor_dtype(tensor) == OT_STRING)
        return PyErr_Format(core_type_class, "strings are no bytes of one size");
    return PyBytes_FromStringAndSize(ot_tensor_data_const(tensor),
                                     (Py_ssize_t)ot_tensor_bytes(tensor));
}

static PyObject *tensor_to_strings(PyObject *self, PyObject *unused)
{
    const ot_tensor *tensor = ((tensor_object *)self)->tensor;
    const Py_ssize_t n = (Py_ssize_t)ot_tensor_count(tensor);
    PyObject *list;

    (void)unused;
    if (ot_tensor_dtype(tensor) != OT_STRING)
        return PyErr_Format(core_type_class, "a tensor of %s, expected strings",
                            ot_dtype_name(ot_tensor_dtype(tensor)));
    list = PyList_New(n);
    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
        size_t n_bytes;
        const char *text = ot_tensor_string(tensor, i, &n_bytes);
        PyObject *item = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n_bytes, NULL);

        if (item == NULL || PyList_SetItem(list, i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"zeros", tensor_zeros, METH_VARARGS | METH_STATIC, "zeros(dtype, shape) -> Tensor"},
    {"wrap", tensor_wrap, METH_VARARGS | METH_STATIC,
     "wrap(dtype, shape, address, n_bytes, owner) -> Tensor over the owner's memory"},
    {"strings", tensor_strings, METH_VARARGS | METH_STATIC,
     "strings(shape, list of bytes) -> Tensor"},
    {"from_dlpack", core_from_dlpack, METH_O | METH_STATIC, "from_dlpack(capsule) -> Tensor"},
    {"__dlpack__", (PyCFunction)(void (*)(void))core_to_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over the same memory."},
    {"to_bytes", tensor_to_bytes, METH_NOARGS, "A copy of the elements, row-major."},
    {"to_strings", tensor_to_strings, METH_NOARGS, "The strings, row-major."},
    {"__dlpack_device__", core_dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"dtype", get_dtype, NULL, "Element type, as ONNX numbers it.", NULL},
    {"shape", get_shape, NULL, "Extents of the axes.", NULL},
    {"address", get_address, NULL, "Address of the first element.", NULL},
    {"owner", get_owner, NULL, "Whose memory it is; None: its own.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A dense array of the library."},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Tensor",
    .basicsize = sizeof(tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_tensor(PyObject *module)
{
    return core_add_type(module, &spec, &core_tensor_type);
}
