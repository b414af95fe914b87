// SPDX-License-Identifier: Apache-2.0
// Trainer's state: in memory, in files, and as a model.
#include "core.h"

// ---- in memory ----

PyObject *core_trainer_get_state(PyObject *self, PyObject *args)
{
    unsigned int sections;
    ot_dict *state;
    ot_status st;

    if (!PyArg_ParseTuple(args, "I", &sections))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_trainer_get_state(((trainer_object *)self)->trainer, sections, &state);
    Py_END_ALLOW_THREADS
    return st == OT_OK ? core_dict_new(state) : core_raise(st);
}

static ot_strictness strictness(int is_strict)
{
    return is_strict ? OT_STRICTNESS_ALL : OT_STRICTNESS_SUBSET;
}

PyObject *core_trainer_set_state(PyObject *self, PyObject *args)
{
    PyObject *dict;
    int is_strict;
    ot_dict *state;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O!p", &PyDict_Type, &dict, &is_strict))
        return NULL;
    state = core_dict_take(dict);
    if (state == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_trainer_set_state(((trainer_object *)self)->trainer, state, strictness(is_strict));
    Py_END_ALLOW_THREADS
    ot_dict_destroy(state);
    return core_result(st);
}

// ---- files ----

PyObject *core_trainer_save(PyObject *self, PyObject *args)
{
    ot_save_options options = OT_SAVE_OPTIONS_INIT;
    PyObject *path;
    int is_hdf5;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O&pzp", PyUnicode_FSConverter, &path,
                          &options.include_optimizer_states, &options.user_dict, &is_hdf5))
        return NULL;
    options.format = is_hdf5 ? OT_FORMAT_HDF5 : OT_FORMAT_CHECKPOINT;
    Py_BEGIN_ALLOW_THREADS
    st = ot_trainer_save(((trainer_object *)self)->trainer, PyBytes_AsString(path), &options);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return core_result(st);
}

PyObject *core_trainer_load(PyObject *self, PyObject *args)
{
    PyObject *list, *result;
    core_strings paths;
    char *user_dict = NULL;
    int is_strict;
    ot_status st;

    if (!PyArg_ParseTuple(args, "Op", &list, &is_strict) || core_strings_take(list, &paths) != 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_trainer_load(((trainer_object *)self)->trainer, paths.items, paths.count,
                         strictness(is_strict), &user_dict);
    Py_END_ALLOW_THREADS
    core_strings_drop(&paths);
    if (st != OT_OK)
        return core_raise(st);
    result = core_text(user_dict);
    ot_string_free(user_dict);
    return result;
}

// ---- the trained model ----

PyObject *core_trainer_export(PyObject *self, PyObject *unused)
{
    ot_model *model;
    ot_status st;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    st = ot_trainer_export(((trainer_object *)self)->trainer, &model);
    Py_END_ALLOW_THREADS
    if (st == OT_OK && model == NULL) // rank 0 of several has it
        Py_RETURN_NONE;
    return st == OT_OK ? core_model_new(model, NULL) : core_raise(st);
}

PyObject *core_trainer_save_as_onnx(PyObject *self, PyObject *args)
{
    PyObject *path;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_trainer_save_as_onnx(((trainer_object *)self)->trainer, PyBytes_AsString(path));
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return core_result(st);
}
