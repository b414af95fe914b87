// SPDX-License-Identifier: Apache-2.0
// Record: what a model's metadata say of its training.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

static PyTypeObject *record_type;

typedef struct record_object {
    PyObject_HEAD ot_record *record;
} record_object;

static const ot_record *handle(PyObject *self)
{
    return ((record_object *)self)->record;
}

// read(Model or Artifacts) -> Record, or None when nothing is recorded.
static PyObject *record_read(PyObject *class, PyObject *of)
{
    const ot_model *model;
    record_object *self;
    ot_record *record;
    ot_status st;

    (void)class;
    if (PyObject_TypeCheck(of, core_artifacts_type)) {
        model = ot_artifacts_training_model(((artifacts_object *)of)->artifacts);
    } else if (PyObject_TypeCheck(of, core_model_type)) {
        model = ((model_object *)of)->model;
    } else {
        PyErr_SetString(PyExc_TypeError, "expected a Model or Artifacts");
        return NULL;
    }
    st = ot_record_read(model, &record);
    if (st != OT_OK)
        return core_raise(st);
    if (record == NULL)
        return Py_NewRef(Py_None);
    self = core_alloc(record_type);
    if (self == NULL)
        ot_record_destroy(record);
    else
        self->record = record;
    return (PyObject *)self;
}

static void record_dealloc(PyObject *self)
{
    ot_record_destroy(((record_object *)self)->record);
    core_free(self);
}

// ---- what is recorded ----

static PyObject *weights_of(const ot_loss_options *term)
{
    ot_tensor *copy;
    ot_status st;

    if (term->weight == NULL)
        return Py_NewRef(Py_None);
    st = ot_tensor_clone(term->weight, &copy);
    return st == OT_OK ? core_tensor_new(copy) : core_raise(st);
}

static PyObject *term_tuple(const ot_loss_options *term)
{
    PyObject *ignored = term->has_ignore_index ? PyLong_FromLongLong((long long)term->ignore_index)
                                               : Py_NewRef(Py_None);

    return Py_BuildValue("(idNNiNNOi)", (int)term->loss, term->factor, core_text(term->input),
                         core_text(term->target), (int)term->reduction, weights_of(term), ignored,
                         Py_None, term->class_axis);
}

static PyObject *record_losses(PyObject *self, PyObject *unused)
{
    int n;
    const ot_loss_options *terms = ot_record_losses(handle(self), &n);
    PyObject *list = PyList_New(n);

    (void)unused;
    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *tuple = term_tuple(&terms[i]);

        if (tuple == NULL || PyList_SetItem(list, i, tuple) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *numbers_list(const double *numbers, int n)
{
    PyObject *list = numbers != NULL ? PyList_New(n) : Py_NewRef(Py_None);

    for (int i = 0; numbers != NULL && list != NULL && i < n; i++) {
        PyObject *number = PyFloat_FromDouble(numbers[i]);

        if (number == NULL || PyList_SetItem(list, i, number) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static const char *name_at(const void *names, int index)
{
    return ((const char *const *)names)[index];
}

// data() -> (scale, mean, std, classes), each None when it is not recorded.
static PyObject *record_data(PyObject *self, PyObject *unused)
{
    ot_data_options data = OT_DATA_OPTIONS_INIT;
    ot_batches_options batches = OT_BATCHES_OPTIONS_INIT;
    ot_status st;

    (void)unused;
    data.scale = NAN;
    st = ot_record_data(handle(self), &data, &batches);
    if (st != OT_OK)
        return core_raise(st);
    return Py_BuildValue(
        "(NNNN)", isnan(data.scale) ? Py_NewRef(Py_None) : PyFloat_FromDouble(data.scale),
        numbers_list(data.mean, data.n_channels), numbers_list(data.std, data.n_channels),
        batches.class_names != NULL ? core_names(batches.n_classes, name_at, batches.class_names)
                                    : Py_NewRef(Py_None));
}

static PyObject *record_text(PyObject *self, PyObject *unused)
{
    const char *text = ot_record_text(handle(self));

    (void)unused;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

// ---- what is given ----

typedef struct given_values {
    ot_record_given given;
    ot_loss_options losses[CORE_MAX_LOSSES];
    ot_reduction reduction;
    int64_t ignore_index;
    int class_axis;
    double scale, *mean, *std;
} given_values;

static int take_loss(given_values *v, PyObject *losses, PyObject *reduction, PyObject *weights,
                     PyObject *ignore_index, PyObject *class_axis)
{
    if (losses != Py_None) {
        if (core_losses_take(losses, v->losses, &v->given.n_losses) != 0)
            return -1;
        v->given.losses = v->losses;
    }
    if (reduction != Py_None) {
        v->reduction = (ot_reduction)PyLong_AsLong(reduction);
        v->given.reduction = &v->reduction;
    }
    if (weights != Py_None) {
        if (!PyObject_TypeCheck(weights, core_tensor_type)) {
            PyErr_SetString(PyExc_TypeError, "expected a Tensor or None");
            return -1;
        }
        v->given.class_weights = ((tensor_object *)weights)->tensor;
    }
    if (ignore_index != Py_None) {
        v->ignore_index = PyLong_AsLongLong(ignore_index);
        v->given.ignore_index = &v->ignore_index;
    }
    if (class_axis != Py_None) {
        v->class_axis = (int)PyLong_AsLong(class_axis);
        v->given.class_axis = &v->class_axis;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int take_data(given_values *v, PyObject *scale, PyObject *mean, PyObject *std)
{
    if (scale != Py_None) {
        v->scale = PyFloat_AsDouble(scale);
        v->given.scale = &v->scale;
    }
    if (PyErr_Occurred() || core_numbers_take(mean, &v->mean, &v->given.n_mean) != 0 ||
        core_numbers_take(std, &v->std, &v->given.n_std) != 0)
        return -1;
    v->given.mean = v->mean;
    v->given.std = v->std;
    return 0;
}

// check(losses, reduction, class weights, ignored label, class axis, scale, mean, std), each may be
// None.
static PyObject *record_check(PyObject *self, PyObject *args)
{
    given_values v = {.given = OT_RECORD_GIVEN_INIT};
    PyObject *losses, *reduction, *weights, *ignored, *axis, *scale, *mean, *std, *result = NULL;

    if (!PyArg_ParseTuple(args, "OOOOOOOO", &losses, &reduction, &weights, &ignored, &axis, &scale,
                          &mean, &std))
        return NULL;
    if (take_loss(&v, losses, reduction, weights, ignored, axis) == 0 &&
        take_data(&v, scale, mean, std) == 0)
        result = core_result(ot_record_check(handle(self), &v.given));
    free(v.mean);
    free(v.std);
    return result;
}

// ---- writing ----

void core_trained_drop(core_trained *trained)
{
    core_strings_drop(&trained->classes);
    free(trained->mean);
    free(trained->std);
}

int core_trained_take(PyObject *tuple, core_trained *trained)
{
    ot_data_options *data = &trained->data;
    PyObject *artifacts, *forward, *mean, *std, *classes;

    *trained = (core_trained){.data = OT_DATA_OPTIONS_INIT, .batches = OT_BATCHES_OPTIONS_INIT};
    data->batches = &trained->batches;
    if (tuple == Py_None)
        return 0;
    if (!PyArg_ParseTuple(tuple, "O!OdOOO", core_artifacts_type, &artifacts, &forward, &data->scale,
                          &mean, &std, &classes) ||
        core_numbers_take(mean, &trained->mean, &data->n_channels) != 0 ||
        core_numbers_take(std, &trained->std, &data->n_channels) != 0 ||
        core_strings_take(classes, &trained->classes) != 0)
        return -1;
    trained->artifacts = ((artifacts_object *)artifacts)->artifacts;
    if (PyObject_TypeCheck(forward, core_model_type))
        data->forward = ((model_object *)forward)->model;
    data->mean = trained->mean;
    data->std = trained->std;
    trained->batches.class_names = trained->classes.items;
    trained->batches.n_classes = trained->classes.count;
    return 0;
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"read", record_read, METH_O | METH_STATIC, "read(Model or Artifacts) -> Record or None"},
    {"losses", record_losses, METH_NOARGS, "Terms as of Artifacts.generate()."},
    {"data", record_data, METH_NOARGS, "(scale, mean, std, classes)"},
    {"text", record_text, METH_NOARGS, "One line for people."},
    {"check", record_check, METH_VARARGS,
     "check(losses, reduction, class weights, ignored label, class axis, scale, mean, std)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What a model's metadata say of its training."},
    {Py_tp_dealloc, record_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Record",
    .basicsize = sizeof(record_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_record(PyObject *module)
{
    return core_add_type(module, &spec, &record_type);
}
