// Dataset and Batches: rows from files or arrays, and batches of them.
#include <stdlib.h>

#include "core.h"

PyTypeObject *core_batches_type;
static PyTypeObject *dataset_type;

typedef struct dataset_object {
    PyObject_HEAD ot_dataset *dataset;
    PyObject *arrays; // that the rows are borrowed from, or NULL
} dataset_object;

static ot_dataset *handle(PyObject *self)
{
    return ((dataset_object *)self)->dataset;
}

static PyObject *dataset_new(ot_dataset *dataset, PyObject *arrays)
{
    dataset_object *self = core_alloc(dataset_type);

    if (self == NULL) {
        ot_dataset_destroy(dataset);
        return NULL;
    }
    self->dataset = dataset;
    self->arrays = Py_XNewRef(arrays);
    return (PyObject *)self;
}

static PyObject *dataset_open(PyObject *class, PyObject *args)
{
    ot_dataset_options options = OT_DATASET_OPTIONS_INIT;
    PyObject *list;
    core_strings paths;
    ot_dataset *dataset;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "Oi", &list, &options.csv_header) ||
        core_strings_take(list, &paths) != 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_dataset_open(paths.items, paths.count, &options, &dataset);
    Py_END_ALLOW_THREADS
    core_strings_drop(&paths);
    return st == OT_OK ? dataset_new(dataset, NULL) : core_raise(st);
}

static PyObject *dataset_from_tensors(PyObject *class, PyObject *args)
{
    PyObject *name_list, *tensor_list, *result = NULL;
    core_strings names;
    core_tensors tensors;
    ot_dataset *dataset;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "OO", &name_list, &tensor_list) ||
        core_strings_take(name_list, &names) != 0)
        return NULL;
    if (core_tensors_take(tensor_list, &tensors) == 0) {
        const int n = names.count < tensors.count ? names.count : tensors.count;

        st = ot_dataset_from_tensors(names.items, tensors.items, n, &dataset);
        result = st == OT_OK ? dataset_new(dataset, tensors.list) : core_raise(st);
        core_tensors_drop(&tensors);
    }
    core_strings_drop(&names);
    return result;
}

static void dataset_dealloc(PyObject *self)
{
    ot_dataset_destroy(handle(self));
    Py_CLEAR(((dataset_object *)self)->arrays);
    core_free(self);
}

// (name, dtype, row shape), or (name, 0, None) for an array that cannot be used.
static PyObject *field_at(const ot_dataset *dataset, int index)
{
    ot_dtype dtype;
    ot_shape shape;

    if (ot_dataset_field_info(dataset, index, &dtype, &shape) != OT_OK)
        return Py_BuildValue("(siO)", ot_dataset_field_name(dataset, index), 0, Py_None);
    return Py_BuildValue("(siN)", ot_dataset_field_name(dataset, index), (int)dtype,
                         core_shape_tuple(&shape));
}

static PyObject *dataset_fields(PyObject *self, PyObject *unused)
{
    const int n = ot_dataset_field_count(handle(self));
    PyObject *list = PyList_New(n);

    (void)unused;
    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *field = field_at(handle(self), i);

        if (field == NULL || PyList_SetItem(list, i, field) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// ---- batches ----

enum { MAX_BINDINGS = 256 };

// A binding is (input, dtype, row shape, fields, scale, is_class).
static int take_binding(PyObject *item, ot_binding *binding)
{
    PyObject *shape;
    int dtype;

    binding->n_channels = 1;
    if (!PyArg_ParseTuple(item, "siOsdi", &binding->input, &dtype, &shape, &binding->fields,
                          &binding->scale, &binding->is_class) ||
        core_shape_take(shape, &binding->shape) != 0)
        return -1;
    binding->dtype = (ot_dtype)dtype;
    return 0;
}

static int take_bindings(PyObject *list, ot_binding *bindings, int *n)
{
    const Py_ssize_t length = PyList_Size(list);

    if (length < 0)
        return -1;
    if (length > MAX_BINDINGS) {
        PyErr_Format(PyExc_ValueError, "%zd inputs, at most %d are possible", length, MAX_BINDINGS);
        return -1;
    }
    *n = (int)length;
    for (int i = 0; i < *n; i++)
        if (take_binding(PyList_GetItem(list, i), &bindings[i]) != 0)
            return -1;
    return 0;
}

// Takes batches and class names over; the library reads the names as long as there are batches.
static PyObject *batches_new(ot_batches *batches, PyObject *dataset, const core_strings *classes)
{
    batches_object *self = core_alloc(core_batches_type);

    if (self == NULL) {
        core_strings given = *classes;

        ot_batches_destroy(batches);
        core_strings_drop(&given);
        return NULL;
    }
    self->batches = batches;
    self->classes = *classes;
    self->dataset = Py_NewRef(dataset);
    return (PyObject *)self;
}

static PyObject *dataset_batches(PyObject *self, PyObject *args)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_binding bindings[MAX_BINDINGS] = {{0}};
    PyObject *list, *class_list;
    core_strings classes;
    long long batch_size, first, last;
    unsigned long long seed, split_seed;
    ot_batches *batches;
    ot_status st;
    int n;

    if (!PyArg_ParseTuple(args, "OLiKLLKOi", &list, &batch_size, &options.shuffle, &seed, &first,
                          &last, &split_seed, &class_list, &options.n_classes) ||
        take_bindings(list, bindings, &n) != 0 || core_strings_take(class_list, &classes) != 0)
        return NULL;
    options.batch_size = batch_size;
    options.seed = seed;
    options.first = first;
    options.last = last;
    options.split_seed = split_seed;
    options.class_names = classes.items;
    if (classes.items != NULL)
        options.n_classes = classes.count;
    Py_BEGIN_ALLOW_THREADS
    st = ot_batches_create(handle(self), bindings, n, &options, &batches);
    Py_END_ALLOW_THREADS
    if (st != OT_OK) {
        core_strings_drop(&classes);
        return core_raise(st);
    }
    return batches_new(batches, self, &classes);
}

static void batches_dealloc(PyObject *self)
{
    batches_object *b = (batches_object *)self;

    ot_batches_destroy(b->batches);
    core_strings_drop(&b->classes);
    Py_CLEAR(b->dataset);
    core_free(self);
}

static PyObject *batches_rows(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(ot_batches_rows(((batches_object *)self)->batches));
}

static PyObject *batches_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(ot_batches_count(((batches_object *)self)->batches));
}

static PyObject *batches_class_names(PyObject *self, void *unused)
{
    int n;
    const char *const *names = ot_batches_class_names(((batches_object *)self)->batches, &n);
    PyObject *list = names != NULL ? PyList_New(n) : Py_NewRef(Py_None);

    (void)unused;
    for (int i = 0; names != NULL && list != NULL && i < n; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);

        if (name == NULL || PyList_SetItem(list, i, name) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// ---- the types ----

static PyMethodDef dataset_methods[] = {
    {"open", dataset_open, METH_VARARGS | METH_STATIC, "open(paths, header) -> Dataset"},
    {"from_tensors", dataset_from_tensors, METH_VARARGS | METH_STATIC,
     "from_tensors(names, tensors) -> Dataset over their memory"},
    {"fields", dataset_fields, METH_NOARGS, "(name, dtype, row shape) of every field."},
    {"batches", dataset_batches, METH_VARARGS,
     "batches(bindings, batch_size, shuffle, seed, first, last, split_seed, class_names, "
     "n_classes) -> Batches"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot dataset_slots[] = {
    {Py_tp_doc, "Rows of named fields."},
    {Py_tp_dealloc, dataset_dealloc},
    {Py_tp_methods, dataset_methods},
    {0, NULL},
};

static PyType_Spec dataset_spec = {
    .name = "onnxtrain._core.Dataset",
    .basicsize = sizeof(dataset_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = dataset_slots,
};

static PyGetSetDef batches_attributes[] = {
    {"rows", batches_rows, NULL, "Rows of an epoch.", NULL},
    {"count", batches_count, NULL, "Batches of an epoch.", NULL},
    {"class_names", batches_class_names, NULL, "Names of text labels, sorted; or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot batches_slots[] = {
    {Py_tp_doc, "Batches of a dataset's rows."},
    {Py_tp_dealloc, batches_dealloc},
    {Py_tp_getset, batches_attributes},
    {0, NULL},
};

static PyType_Spec batches_spec = {
    .name = "onnxtrain._core.Batches",
    .basicsize = sizeof(batches_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = batches_slots,
};

int core_add_data(PyObject *module)
{
    if (core_add_type(module, &dataset_spec, &dataset_type) != 0)
        return -1;
    return core_add_type(module, &batches_spec, &core_batches_type);
}
