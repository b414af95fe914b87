// SPDX-License-Identifier: Apache-2.0
// Tensor: elements that numpy and DLPack see without a copy, by address, since the stable interface
// of Python 3.10 has no buffer protocol.
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "dlpack.h"

PyTypeObject *core_tensor_type;

// ---- shapes ----

PyObject *core_shape_tuple(const ot_shape *shape)
{
    PyObject *tuple = PyTuple_New(shape->ndim);

    for (int i = 0; tuple != NULL && i < shape->ndim; i++) {
        PyObject *extent = PyLong_FromLongLong(shape->dim[i]);

        if (extent == NULL || PyTuple_SetItem(tuple, i, extent) != 0)
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

// -1: too many to count, or a negative extent.
static Py_ssize_t shape_count(const ot_shape *shape)
{
    Py_ssize_t count = 1;

    for (int i = 0; i < shape->ndim; i++) {
        const int64_t extent = shape->dim[i];

        if (extent < 0 || (extent > 0 && count > PY_SSIZE_T_MAX / extent))
            return -1;
        count *= (Py_ssize_t)extent;
    }
    return count;
}

// ---- making ----

static PyObject *new_over(ot_tensor *tensor, PyObject *owner)
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
    return new_over(tensor, NULL);
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
    return st == OT_OK ? new_over(tensor, owner) : core_raise(st);
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

// ---- DLPack in ----

// The producer's own code may run here, which must not find an exception that is under way.
static void capsule_done(PyObject *capsule)
{
    PyObject *type, *value, *traceback;
    dl_managed *managed;

    if (!PyCapsule_IsValid(capsule, DL_CAPSULE)) // a consumer has taken the array over
        return;
    managed = PyCapsule_GetPointer(capsule, DL_CAPSULE);
    if (managed->deleter == NULL)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    managed->deleter(managed);
    PyErr_Restore(type, value, traceback);
}

static bool is_dense(const dl_tensor *dl)
{
    int64_t stride = 1;

    for (int i = 0; i < dl->ndim; i++)
        if (dl->shape[i] == 0) // without elements strides say nothing
            return true;
    for (int i = dl->ndim - 1; dl->strides != NULL && i >= 0; i--) {
        if (dl->shape[i] != 1 && dl->strides[i] != stride)
            return false;
        stride *= dl->shape[i];
    }
    return true;
}

// Bytes of the elements; -1 with an exception. Whoever made the array may have written anything.
static int64_t take_shape(const dl_tensor *dl, size_t element, ot_shape *shape)
{
    int64_t n_bytes = (int64_t)element;

    *shape = (ot_shape){.ndim = dl->ndim};
    for (int i = 0; i < dl->ndim; i++) {
        const int64_t extent = shape->dim[i] = dl->shape[i];

        if (extent < 0 || (extent > 0 && n_bytes > INT64_MAX / extent)) {
            PyErr_Format(core_error_class(OT_ERR_INVALID),
                         extent < 0 ? "an array whose axis %d has the negative size %lld"
                                    : "an array too large to be one: axis %d has %lld elements",
                         i, (long long)extent);
            return -1;
        }
        n_bytes *= extent;
    }
    return n_bytes;
}

static PyObject *wrap_dlpack(const dl_tensor *dl, PyObject *owner)
{
    const ot_dtype dtype = core_dtype_of_dlpack(dl->dtype);
    const size_t element = ot_dtype_size(dtype);
    const char *const data = (const char *)dl->data + (dl->data != NULL ? dl->byte_offset : 0);
    PyObject *const wrong = core_error_class(OT_ERR_INVALID);
    ot_shape shape;
    ot_tensor *tensor;
    int64_t n_bytes;
    ot_status st;

    if (dl->device_type != DL_CPU)
        return PyErr_Format(wrong, "an array on DLPack device type %d, expected 1, the CPU",
                            (int)dl->device_type);
    if (dtype == OT_DTYPE_UNDEFINED)
        return PyErr_Format(core_type_class,
                            "an array of DLPack type code %d with %d bits and %d lanes",
                            (int)dl->dtype.code, (int)dl->dtype.bits, (int)dl->dtype.lanes);
    if (dl->ndim < 0 || dl->ndim > OT_MAX_NDIM)
        return PyErr_Format(wrong, "an array of %d axes, at most %d are possible", (int)dl->ndim,
                            OT_MAX_NDIM);
    if (dl->ndim > 0 && dl->shape == NULL)
        return PyErr_Format(wrong, "an array of %d axes that has no shape", (int)dl->ndim);
    n_bytes = take_shape(dl, element, &shape);
    if (n_bytes < 0)
        return NULL;
    if (!is_dense(dl))
        return PyErr_Format(wrong, "an array that is not contiguous");
    if (n_bytes > 0 && data == NULL)
        return PyErr_Format(wrong, "an array that has no memory");
    if ((uintptr_t)data % (element < DL_ALIGNMENT ? element : DL_ALIGNMENT) != 0)
        return PyErr_Format(wrong, "an array whose elements are not aligned");
    st = ot_tensor_wrap(dtype, &shape, (void *)(uintptr_t)data, (size_t)n_bytes, &tensor);
    return st == OT_OK ? new_over(tensor, owner) : core_raise(st);
}

static dl_managed *managed_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DL_CAPSULE))
        return PyCapsule_GetPointer(capsule, DL_CAPSULE);
    if (PyCapsule_IsValid(capsule, DL_USED))
        PyErr_SetString(core_error_class(OT_ERR_INVALID),
                        "a capsule of DLPack that was taken already: its producer gives another");
    else
        PyErr_Format(core_type_class, "%R is no capsule of DLPack", capsule);
    return NULL;
}

// The producer's array is kept by a capsule of our own, whose end tells the producer.
static PyObject *tensor_from_dlpack(PyObject *class, PyObject *capsule)
{
    dl_managed *managed = managed_of(capsule);
    PyObject *owner, *tensor;

    (void)class;
    if (managed == NULL)
        return NULL;
    owner = PyCapsule_New(managed, DL_CAPSULE, capsule_done);
    if (owner == NULL)
        return NULL;
    if (PyCapsule_SetName(capsule, DL_USED) != 0) {
        (void)PyCapsule_SetDestructor(owner, NULL);
        Py_DECREF(owner);
        return NULL;
    }
    tensor = wrap_dlpack(&managed->tensor, owner);
    Py_DECREF(owner);
    return tensor;
}

// ---- DLPack out ----

typedef struct exported {
    dl_managed managed;
    PyObject *tensor;
    int64_t shape[OT_MAX_NDIM];
} exported;

static void exported_done(dl_managed *managed)
{
    exported *e = managed->context;
    const PyGILState_STATE lock = PyGILState_Ensure();

    Py_DECREF(e->tensor);
    PyGILState_Release(lock);
    free(e);
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    ot_tensor *t = ((tensor_object *)self)->tensor;
    const ot_shape *shape = ot_tensor_shape(t);
    exported *e;
    PyObject *capsule;

    (void)args, (void)keywords; // stream, version and device: there is one of each
    e = calloc(1, sizeof *e);
    if (e == NULL)
        return PyErr_NoMemory();
    memcpy(e->shape, shape->dim, sizeof e->shape);
    e->managed = (dl_managed){
        .tensor = {.data = ot_tensor_data(t),
                   .device_type = DL_CPU,
                   .ndim = shape->ndim,
                   .dtype = core_dlpack_of_dtype(ot_tensor_dtype(t)),
                   .shape = e->shape},
        .context = e,
        .deleter = exported_done,
    };
    if (e->managed.tensor.dtype.bits == 0) {
        free(e);
        return PyErr_Format(core_type_class, "DLPack has no type for %s",
                            ot_dtype_name(ot_tensor_dtype(t)));
    }
    e->tensor = Py_NewRef(self);
    capsule = PyCapsule_New(&e->managed, DL_CAPSULE, capsule_done);
    if (capsule == NULL)
        exported_done(&e->managed);
    return capsule;
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
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
    {"from_dlpack", tensor_from_dlpack, METH_O | METH_STATIC, "from_dlpack(capsule) -> Tensor"},
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over the same memory."},
    {"to_bytes", tensor_to_bytes, METH_NOARGS, "A copy of the elements, row-major."},
    {"to_strings", tensor_to_strings, METH_NOARGS, "The strings, row-major."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
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
