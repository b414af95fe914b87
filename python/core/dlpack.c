// SPDX-License-Identifier: Apache-2.0
// Tensors to and from other programs' arrays by DLPack: the structs of its first, unversioned form,
// which every producer and consumer knows.
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define DL_CAPSULE "dltensor"
#define DL_USED "used_dltensor" // of a capsule whose array has been taken over

enum { DL_CPU = 1, DL_ALIGNMENT = 8 };

typedef struct dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; // in elements; NULL: dense, row-major
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

// ---- element types ----

enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

static const struct {
    ot_dtype dtype;
    uint8_t code, bits;
} types[] = {
    {OT_F32, DL_FLOAT, 32},   {OT_F64, DL_FLOAT, 64},   {OT_F16, DL_FLOAT, 16},
    {OT_BF16, DL_BFLOAT, 16}, {OT_I64, DL_INT, 64},     {OT_I32, DL_INT, 32},
    {OT_I16, DL_INT, 16},     {OT_I8, DL_INT, 8},       {OT_U64, DL_UINT, 64},
    {OT_U32, DL_UINT, 32},    {OT_U16, DL_UINT, 16},    {OT_U8, DL_UINT, 8},
    {OT_BOOL, DL_BOOL, 8},    {OT_C64, DL_COMPLEX, 64}, {OT_C128, DL_COMPLEX, 128},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

// OT_DTYPE_UNDEFINED when there is none.
static ot_dtype dtype_of_dlpack(dl_dtype dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].code == dtype.code && types[i].bits == dtype.bits && dtype.lanes == 1)
            return types[i].dtype;
    return OT_DTYPE_UNDEFINED;
}

// Its bits are 0 when there is none.
static dl_dtype dlpack_of_dtype(ot_dtype dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype)
            return (dl_dtype){types[i].code, types[i].bits, 1};
    return (dl_dtype){0, 0, 1};
}

// ---- in ----

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
        const int64_t size = shape->dim[i] = dl->shape[i];

        if (size < 0 || (size > 0 && n_bytes > INT64_MAX / size)) {
            PyErr_Format(core_error_class(OT_ERR_INVALID),
                         size < 0 ? "an array whose axis %d has the negative size %lld"
                                  : "an array too large to be one: axis %d has %lld elements",
                         i, (long long)size);
            return -1;
        }
        n_bytes *= size;
    }
    return n_bytes;
}

static PyObject *wrap_dlpack(const dl_tensor *dl, PyObject *owner)
{
    const ot_dtype dtype = dtype_of_dlpack(dl->dtype);
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
    return st == OT_OK ? core_tensor_over(tensor, owner) : core_raise(st);
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
PyObject *core_from_dlpack(PyObject *class, PyObject *capsule)
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

// ---- out ----

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

PyObject *core_to_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
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
                   .dtype = dlpack_of_dtype(ot_tensor_dtype(t)),
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

PyObject *core_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}
