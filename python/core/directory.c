// SPDX-License-Identifier: Apache-2.0
// Checkpoint directories.
#include "core.h"

PyObject *core_session_load_shards(PyObject *self, PyObject *args)
{
    PyObject *path;
    ot_session *session;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    session = core_session_enter(self);
    if (session == NULL) {
        Py_DECREF(path);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    st = ot_session_load_shards(session, PyBytes_AsString(path));
    Py_END_ALLOW_THREADS
    core_leave(((session_object *)self)->checkpoint);
    Py_DECREF(path);
    return core_result(st);
}

// shards_info(path) -> (where it is, step, ranks that wrote it)
static PyObject *shards_info(PyObject *module, PyObject *args)
{
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;
    PyObject *path, *result;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_shards_open(PyBytes_AsString(path), &reader);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (st == OT_OK)
        st = ot_shards_reader_info(reader, &info);
    if (st != OT_OK)
        return core_raise(st);
    result = Py_BuildValue("(NLi)", PyUnicode_DecodeFSDefault(ot_shards_reader_path(reader)),
                           (long long)info.step, info.world_size);
    ot_shards_reader_destroy(reader);
    return result;
}

static PyMethodDef functions[] = {
    {"shards_info", shards_info, METH_VARARGS,
     "shards_info(path) -> (where it is, step, ranks that wrote it)"},
    {NULL, NULL, 0, NULL},
};

int core_add_directory(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
