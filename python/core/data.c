// SPDX-License-Identifier: Apache-2.0
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
    long long max_unpacked;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "OiL", &list, &options.csv_header, &max_unpacked))
        return NULL;
    if (max_unpacked < 0)
        return PyErr_Format(core_error_class(OT_ERR_INVALID),
                            "max_unpacked: %lld, expected 0 or more", max_unpacked);
    if (core_strings_take(list, &paths) != 0)
        return NULL;
    options.max_unpacked = (uint64_t)max_unpacked;
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
        return Py_BuildValue("(NiO)", core_text(ot_dataset_field_name(dataset, index)), 0, Py_None);
    return Py_BuildValue("(NiN)", core_text(ot_dataset_field_name(dataset, index)), (int)dtype,
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

// What batches() is given, in the library's form.
typedef struct arguments {
    ot_data_options options;
    ot_batches_options batches;
    core_strings targets, bind, classes;
    double *mean, *std;
} arguments;

static void arguments_drop(arguments *a)
{
    core_strings_drop(&a->targets);
    core_strings_drop(&a->bind);
    core_strings_drop(&a->classes);
    free(a->mean);
    free(a->std);
}

int core_numbers_take(PyObject *sequence, double **out, int *count)
{
    const Py_ssize_t n = sequence != Py_None ? PySequence_Size(sequence) : 0;

    if (sequence == Py_None || n < 0)
        return n < 0 ? -1 : 0;
    *out = calloc((size_t)n + 1, sizeof(**out));
    if (*out == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);

        (*out)[i] = item != NULL ? PyFloat_AsDouble(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    *count = (int)n;
    return 0;
}

static int take_channels(PyObject *mean, PyObject *std, arguments *a)
{
    int n_mean = 1, n_std = 1;

    if (core_numbers_take(mean, &a->mean, &n_mean) != 0 ||
        core_numbers_take(std, &a->std, &n_std) != 0)
        return -1;
    if (a->mean != NULL && a->std != NULL && n_mean != n_std) {
        PyErr_Format(core_error_class(OT_ERR_INVALID), "mean has %d numbers, std %d", n_mean,
                     n_std);
        return -1;
    }
    a->options.mean = a->mean;
    a->options.std = a->std;
    a->options.n_channels = a->mean != NULL ? n_mean : n_std;
    return 0;
}

static int take_forward(PyObject *model, ot_data_options *options)
{
    if (model == Py_None)
        return 0;
    if (!PyObject_TypeCheck(model, core_model_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Model or None");
        return -1;
    }
    options->forward = ((model_object *)model)->model;
    return 0;
}

// What batches() takes behind session and datasets.
static int take_arguments(PyObject *tuple, arguments *a)
{
    ot_data_options *o = &a->options;
    PyObject *forward, *targets, *bind, *mean, *std, *classes;
    long long batch_size;
    unsigned long long seed;

    if (!PyArg_ParseTuple(tuple, "OOzOdOOdLpKO", &forward, &targets, &o->label, &bind, &o->scale,
                          &mean, &std, &o->split, &batch_size, &a->batches.shuffle, &seed,
                          &classes) ||
        take_forward(forward, o) != 0 || core_strings_take(targets, &a->targets) != 0 ||
        core_strings_take(bind, &a->bind) != 0 || core_strings_take(classes, &a->classes) != 0 ||
        take_channels(mean, std, a) != 0)
        return -1;
    o->targets = a->targets.items;
    o->n_targets = a->targets.count;
    o->bind = a->bind.items;
    o->n_bind = a->bind.count;
    o->batches = &a->batches;
    a->batches.batch_size = batch_size;
    a->batches.seed = seed;
    return 0;
}

// Takes batches over; None for no batches.
static PyObject *batches_new(ot_batches *batches, PyObject *dataset)
{
    batches_object *self = batches != NULL ? core_alloc(core_batches_type) : NULL;

    if (batches == NULL)
        return Py_NewRef(Py_None);
    if (self == NULL) {
        ot_batches_destroy(batches);
        return NULL;
    }
    self->batches = batches;
    self->dataset = Py_NewRef(dataset);
    return (PyObject *)self;
}

// Behind what the artifacts say: classes that are known by name.
static void set_classes(const core_strings *classes, ot_batches_options *options)
{
    options->class_names = classes->items;
    if (classes->items != NULL)
        options->n_classes = classes->count;
}

static PyObject *open_batches(PyObject *session, const ot_artifacts *artifacts, PyObject *dataset,
                              arguments *a)
{
    ot_session *entered = core_session_enter(session);
    ot_train_options train = OT_TRAIN_OPTIONS_INIT;
    ot_batches *training = NULL, *held_out = NULL;
    ot_status st;

    if (entered == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_train_describe(artifacts, entered, &a->options, &a->batches, &train);
    set_classes(&a->classes, &a->batches);
    if (st == OT_OK)
        st = ot_train_batches(entered, handle(dataset), NULL, &a->options, &training, &held_out);
    Py_END_ALLOW_THREADS
    core_leave(((session_object *)session)->checkpoint);
    if (st != OT_OK)
        return core_raise(st);
    return Py_BuildValue("(NN(iiii))", batches_new(training, dataset),
                         batches_new(held_out, dataset), (int)train.task, train.metric_output,
                         train.metric_input, train.class_axis);
}

static PyObject *batches(PyObject *module, PyObject *args)
{
    arguments a = {.options = OT_DATA_OPTIONS_INIT, .batches = OT_BATCHES_OPTIONS_INIT};
    PyObject *session, *artifacts, *dataset, *tuple, *result = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O!", core_session_type, &session, core_artifacts_type,
                          &artifacts, dataset_type, &dataset, &PyTuple_Type, &tuple))
        return NULL;
    if (take_arguments(tuple, &a) == 0)
        result = open_batches(session, ((artifacts_object *)artifacts)->artifacts, dataset, &a);
    arguments_drop(&a);
    return result;
}

static const char *name_at(const void *names, int index)
{
    return ((const char *const *)names)[index];
}

// target_names(session, artifacts, forward or None, names or None): inputs that are targets.
static PyObject *target_names(PyObject *module, PyObject *args)
{
    ot_data_options options = OT_DATA_OPTIONS_INIT;
    ot_train_options train = OT_TRAIN_OPTIONS_INIT;
    PyObject *session, *artifacts, *forward, *list, *result = NULL;
    core_strings names;
    ot_session *present;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OO", core_session_type, &session, core_artifacts_type,
                          &artifacts, &forward, &list) ||
        take_forward(forward, &options) != 0 || core_strings_take(list, &names) != 0)
        return NULL;
    options.targets = names.items;
    options.n_targets = names.count;
    present = core_session_hold(session);
    if (present != NULL) {
        st = ot_train_describe(((artifacts_object *)artifacts)->artifacts, present, &options, NULL,
                               &train);
        result =
            st == OT_OK ? core_names(options.n_targets, name_at, options.targets) : core_raise(st);
        core_leave(((session_object *)session)->checkpoint);
    }
    core_strings_drop(&names);
    return result;
}

static void batches_dealloc(PyObject *self)
{
    batches_object *b = (batches_object *)self;

    ot_batches_destroy(b->batches);
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

static PyObject *batches_left_over(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(ot_batches_left_over(((batches_object *)self)->batches));
}

static PyObject *batches_class_names(PyObject *self, void *unused)
{
    int n;
    const char *const *names = ot_batches_class_names(((batches_object *)self)->batches, &n);
    PyObject *list = names != NULL ? PyList_New(n) : Py_NewRef(Py_None);

    (void)unused;
    for (int i = 0; names != NULL && list != NULL && i < n; i++) {
        PyObject *name = core_text(names[i]);

        if (name == NULL || PyList_SetItem(list, i, name) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// ---- the types ----

static PyMethodDef dataset_methods[] = {
    {"open", dataset_open, METH_VARARGS | METH_STATIC,
     "open(paths, header, max_unpacked) -> Dataset"},
    {"from_tensors", dataset_from_tensors, METH_VARARGS | METH_STATIC,
     "from_tensors(names, tensors) -> Dataset over their memory"},
    {"fields", dataset_fields, METH_NOARGS, "(name, dtype, row shape) of every field."},
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
    {"left_over", batches_left_over, NULL, "Rows of an epoch that no batch has.", NULL},
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

static PyMethodDef functions[] = {
    {"batches", batches, METH_VARARGS,
     "batches(session, artifacts, dataset, (forward or None, targets or None, label, bind, scale, "
     "mean, std, "
     "split, batch_size, shuffle, seed, class_names)) -> (training, held out or None, task, "
     "metric_output, metric_input)"},
    {"target_names", target_names, METH_VARARGS,
     "target_names(session, artifacts, forward or None, targets or None) -> list of names"},
    {NULL, NULL, 0, NULL},
};

int core_add_data(PyObject *module)
{
    if (core_add_type(module, &dataset_spec, &dataset_type) != 0)
        return -1;
    if (core_add_type(module, &batches_spec, &core_batches_type) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
