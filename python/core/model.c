// SPDX-License-Identifier: Apache-2.0
// Model: load, inspect, run, save.
#include <stdlib.h>
#include <string.h>

#include "core.h"

PyTypeObject *core_model_type;

static ot_model *handle(PyObject *self)
{
    return ((model_object *)self)->model;
}

PyObject *core_model_new(ot_model *model, PyObject *owner)
{
    model_object *self = core_alloc(core_model_type);

    if (self == NULL) {
        if (owner == NULL)
            ot_model_destroy(model);
        return NULL;
    }
    self->model = model;
    self->owner = Py_XNewRef(owner);
    return (PyObject *)self;
}

static PyObject *model_load(PyObject *class, PyObject *args)
{
    PyObject *path;
    ot_model *model;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_model_load(PyBytes_AsString(path), NULL, &model);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return st == OT_OK ? core_model_new(model, NULL) : core_raise(st);
}

static PyObject *model_load_bytes(PyObject *class, PyObject *args)
{
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    PyObject *bytes, *folder = NULL;
    ot_model *model;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "S|O&", &bytes, PyUnicode_FSConverter, &folder))
        return NULL;
    options.directory = folder != NULL ? PyBytes_AsString(folder) : NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_model_load_buffer(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes), &options,
                              &model);
    Py_END_ALLOW_THREADS
    Py_XDECREF(folder);
    return st == OT_OK ? core_model_new(model, NULL) : core_raise(st);
}

static PyObject *model_save(PyObject *self, PyObject *args)
{
    PyObject *path;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_model_save(handle(self), PyBytes_AsString(path), NULL);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return core_result(st);
}

static PyObject *model_to_bytes(PyObject *self, PyObject *unused)
{
    ot_tensor *bytes;
    ot_status st;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    st = ot_model_to_bytes(handle(self), &bytes);
    Py_END_ALLOW_THREADS
    return st == OT_OK ? core_tensor_new(bytes) : core_raise(st);
}

static PyObject *model_infer(PyObject *self, PyObject *unused)
{
    ot_status st;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    st = ot_model_infer(handle(self));
    Py_END_ALLOW_THREADS
    return core_result(st);
}

// [(whether the model was changed, text), ...]
static PyObject *findings_list(const ot_findings *findings)
{
    const int n = ot_findings_count(findings);
    PyObject *list = PyList_New(n);

    for (int i = 0; list != NULL && i < n; i++) {
        const ot_finding *finding = ot_findings_get(findings, i);
        PyObject *row =
            Py_BuildValue("(ON)", finding->changes ? Py_True : Py_False, core_text(finding->text));

        if (row == NULL || PyList_SetItem(list, i, row) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *model_prepare(PyObject *self, PyObject *args)
{
    ot_prepare_options options = OT_PREPARE_OPTIONS_INIT;
    PyObject *list, *result = NULL;
    core_strings shared;
    ot_findings *findings;
    ot_model *model;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O", &list) || core_strings_take(list, &shared) != 0)
        return NULL;
    options.shared = shared.items;
    options.n_shared = shared.count;
    Py_BEGIN_ALLOW_THREADS
    st = ot_model_prepare_training(handle(self), &options, &model, &findings);
    Py_END_ALLOW_THREADS
    if (st == OT_OK) {
        result = Py_BuildValue("(NN)", core_model_new(model, NULL), findings_list(findings));
        ot_findings_destroy(findings);
    } else {
        core_raise(st);
    }
    core_strings_drop(&shared);
    return result;
}

static void model_dealloc(PyObject *self)
{
    model_object *m = (model_object *)self;

    if (m->owner == NULL)
        ot_model_destroy(m->model);
    Py_CLEAR(m->owner);
    core_free(self);
}

// ---- inspection ----

static const char *input_name(const void *model, int index)
{
    return ot_model_input_name(model, index);
}

static const char *output_name(const void *model, int index)
{
    return ot_model_output_name(model, index);
}

static PyObject *model_input_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    return core_names(ot_model_input_count(handle(self)), input_name, handle(self));
}

static PyObject *model_output_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    return core_names(ot_model_output_count(handle(self)), output_name, handle(self));
}

static const char *initializer_name(const void *model, int index)
{
    return ot_model_initializer_name(model, index);
}

static PyObject *model_initializer_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    return core_names(ot_model_initializer_count(handle(self)), initializer_name, handle(self));
}

static PyObject *model_initializer(PyObject *self, PyObject *args)
{
    const char *name;
    ot_tensor *tensor;
    ot_status st;

    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    st = ot_model_get_initializer(handle(self), name, &tensor);
    return st == OT_OK ? core_tensor_new(tensor) : core_raise(st);
}

PyObject *core_value_info(ot_dtype dtype, const ot_shape *shape)
{
    if (shape->ndim < 0)
        return Py_BuildValue("(iO)", (int)dtype, Py_None);
    return Py_BuildValue("(iN)", (int)dtype, core_shape_tuple(shape));
}

static PyObject *model_value_info(PyObject *self, PyObject *args)
{
    const char *name;
    ot_dtype dtype;
    ot_shape shape;
    ot_status st;

    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    st = ot_model_value_info(handle(self), name, &dtype, &shape);
    return st == OT_OK ? core_value_info(dtype, &shape) : core_raise(st);
}

// (is a sequence, dtype, shape or None); symbolic extents are their names, unknown ones None
static PyObject *model_value_type(PyObject *self, PyObject *args)
{
    const ot_model *model = handle(self);
    const char *name;
    ot_dtype dtype;
    ot_shape shape;
    ot_status st;
    PyObject *extents;

    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    st = ot_model_value_info(model, name, &dtype, &shape);
    if (st != OT_OK)
        return core_raise(st);
    extents = shape.ndim < 0 ? Py_NewRef(Py_None) : PyList_New(shape.ndim);
    for (int i = 0; extents != NULL && i < shape.ndim; i++) {
        PyObject *extent = shape.dim[i] >= 0 ? PyLong_FromLongLong(shape.dim[i])
                                             : core_text(ot_model_value_dim(model, name, i));

        if (extent == NULL || PyList_SetItem(extents, i, extent) != 0)
            Py_CLEAR(extents);
    }
    return Py_BuildValue("(iiN)", ot_model_value_is_sequence(model, name), (int)dtype, extents);
}

static PyObject *model_metadata(PyObject *self, PyObject *args)
{
    const char *key, *value;

    if (!PyArg_ParseTuple(args, "s", &key))
        return NULL;
    value = ot_model_metadata(handle(self), key);
    return core_text(value);
}

static const char *metadata_key(const void *model, int index)
{
    return ot_model_metadata_key(model, index);
}

static PyObject *model_metadata_keys(PyObject *self, PyObject *unused)
{
    (void)unused;
    return core_names(ot_model_metadata_count(handle(self)), metadata_key, handle(self));
}

// What the file says about itself, by ModelMetadata's names.
static PyObject *model_about(PyObject *self, PyObject *unused)
{
    const ot_model *m = handle(self);

    (void)unused;
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:s,s:L}", "producer_name", ot_model_text(m, OT_MODEL_PRODUCER_NAME),
        "domain", ot_model_text(m, OT_MODEL_DOMAIN), "description",
        ot_model_text(m, OT_MODEL_DESCRIPTION), "graph_name", ot_model_text(m, OT_MODEL_GRAPH_NAME),
        "graph_description", ot_model_text(m, OT_MODEL_GRAPH_DESCRIPTION), "version",
        (long long)ot_model_version(m));
}

static PyObject *model_set_metadata(PyObject *self, PyObject *args)
{
    const char *key, *value;

    if (!PyArg_ParseTuple(args, "ss", &key, &value))
        return NULL;
    return core_result(ot_model_set_metadata(handle(self), key, value));
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"load", model_load, METH_VARARGS | METH_STATIC, "load(path) -> Model"},
    {"load_bytes", model_load_bytes, METH_VARARGS | METH_STATIC,
     "load_bytes(bytes, directory of external data=none) -> Model"},
    {"save", model_save, METH_VARARGS, "save(path)"},
    {"to_bytes", model_to_bytes, METH_NOARGS, "The model as protobuf, in a Tensor of bytes."},
    {"infer", model_infer, METH_NOARGS, "Types and shapes of all values; opsets below 13 raised."},
    {"prepare", model_prepare, METH_VARARGS,
     "prepare(names that stay shared, or None) -> (Model, [(is a change, text), ...])"},
    {"initializer_names", model_initializer_names, METH_NOARGS, "Names, in order."},
    {"initializer", model_initializer, METH_VARARGS, "initializer(name) -> Tensor, a copy"},
    {"input_names", model_input_names, METH_NOARGS, "Names of the inputs, in order."},
    {"output_names", model_output_names, METH_NOARGS, "Names of the outputs, in order."},
    {"value_info", model_value_info, METH_VARARGS,
     "value_info(name) -> (dtype, shape); unknown dim sizes are -1, an unknown shape None"},
    {"value_type", model_value_type, METH_VARARGS,
     "value_type(name) -> (is a sequence, dtype, shape with names, or None)"},
    {"metadata", model_metadata, METH_VARARGS, "metadata(key) -> text or None"},
    {"metadata_keys", model_metadata_keys, METH_NOARGS, "Keys of the metadata, in order."},
    {"about", model_about, METH_NOARGS, "What the file says about itself, a dict."},
    {"set_metadata", model_set_metadata, METH_VARARGS, "set_metadata(key, text)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "An ONNX model in memory."},
    {Py_tp_dealloc, model_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Model",
    .basicsize = sizeof(model_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_model(PyObject *module)
{
    return core_add_type(module, &spec, &core_model_type);
}
