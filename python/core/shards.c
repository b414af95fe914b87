// SPDX-License-Identifier: Apache-2.0
// State dicts of sessions and trainers, from and to Python's values. A list is a list here; a tuple
// (type, shape, [(offsets, Tensor), ...]) is parts of a tensor.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

// ---- values from Python ----

static int take_item(PyObject *value, const char *name, ot_dict *to);

static int failed(ot_status st)
{
    if (st != OT_OK)
        core_raise(st);
    return st == OT_OK ? 0 : -1;
}

static int take_items(PyObject *list, ot_dict *to)
{
    const Py_ssize_t n = PyList_Size(list);

    for (Py_ssize_t i = 0; i < n; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "%zd", i);
        if (take_item(PyList_GetItem(list, i), name, to) != 0)
            return -1;
    }
    return 0;
}

static int take_inner(PyObject *value, const char *name, ot_dict *to)
{
    ot_dict *inner;
    const bool is_list = PyList_Check(value);
    int result;

    if (failed(is_list ? ot_dict_set_list(to, name, &inner) : ot_dict_set_dict(to, name, &inner)))
        return -1;
    if (Py_EnterRecursiveCall(" in a state") != 0)
        return -1;
    result = is_list ? take_items(value, inner) : core_dict_take_pairs(value, inner, take_item);
    Py_LeaveRecursiveCall();
    return result;
}

static ot_status view_of_object(PyObject *object, ot_tensor **view)
{
    const ot_tensor *t = ((tensor_object *)object)->tensor;

    return ot_tensor_wrap(ot_tensor_dtype(t), ot_tensor_shape(t),
                          (void *)(uintptr_t)ot_tensor_data_const(t), ot_tensor_bytes(t), view);
}

static int take_one_part(PyObject *part, const char *name, ot_box *box, ot_tensor **view)
{
    PyObject *offsets, *tensor;
    ot_shape at;

    if (!PyTuple_Check(part) ||
        !PyArg_ParseTuple(part, "OO!", &offsets, core_tensor_type, &tensor)) {
        PyErr_Format(core_type_class, "'%s' of a state: a part is (offsets, Tensor)", name);
        return -1;
    }
    if (core_shape_take(offsets, &at) != 0 || failed(view_of_object(tensor, view)))
        return -1;
    *box = (ot_box){.ndim = at.ndim};
    memcpy(box->offset, at.dim, sizeof box->offset);
    memcpy(box->size, ot_tensor_shape(*view)->dim, sizeof box->size);
    return 0;
}

static int put_parts(PyObject *list, const char *name, int number, const ot_shape *shape,
                     ot_dict *to)
{
    const Py_ssize_t n = PyList_Size(list);
    ot_box *boxes = calloc((size_t)n + 1, sizeof *boxes);
    ot_tensor **views = calloc((size_t)n + 1, sizeof *views);
    int result = boxes != NULL && views != NULL ? 0 : -1;

    if (result != 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && result == 0; i++)
        result = take_one_part(PyList_GetItem(list, i), name, &boxes[i], &views[i]);
    if (result == 0)
        result =
            failed(ot_dict_take_shards(to, name, (ot_dtype)number, shape, boxes, views, (int)n));
    for (Py_ssize_t i = 0; i < n && result != 0 && views != NULL; i++)
        ot_tensor_destroy(views[i]);
    free(boxes);
    free(views);
    return result;
}

static int take_parts(PyObject *value, const char *name, ot_dict *to)
{
    PyObject *sizes, *list;
    ot_shape shape;
    int number;

    if (!PyArg_ParseTuple(value, "iOO!", &number, &sizes, &PyList_Type, &list) ||
        core_shape_take(sizes, &shape) != 0)
        return -1;
    return put_parts(list, name, number, &shape, to);
}

static int take_number(PyObject *value, const char *name, ot_dict *to)
{
    long long number;

    if (PyBool_Check(value))
        return failed(ot_dict_set_bool(to, name, value == Py_True));
    if (PyFloat_Check(value))
        return failed(ot_dict_set_float(to, name, PyFloat_AsDouble(value)));
    number = PyLong_AsLongLong(value);
    return PyErr_Occurred() ? -1 : failed(ot_dict_set_int(to, name, number));
}

static int take_text(PyObject *value, const char *name, ot_dict *to)
{
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(value, &n);

    if (text == NULL)
        return -1;
    if (strlen(text) != (size_t)n) {
        PyErr_Format(core_type_class, "'%s' of a state has a zero byte", name);
        return -1;
    }
    return failed(ot_dict_set_string(to, name, text));
}

static int take_item(PyObject *value, const char *name, ot_dict *to)
{
    ot_tensor *view;

    if (value == Py_None)
        return failed(ot_dict_set_null(to, name));
    if (PyDict_Check(value) || PyList_Check(value))
        return take_inner(value, name, to);
    if (PyTuple_Check(value))
        return take_parts(value, name, to);
    if (PyLong_Check(value) || PyFloat_Check(value))
        return take_number(value, name, to);
    if (PyUnicode_Check(value))
        return take_text(value, name, to);
    if (PyBytes_Check(value))
        return failed(
            ot_dict_set_bytes(to, name, PyBytes_AsString(value), (size_t)PyBytes_Size(value)));
    if (!PyObject_TypeCheck(value, core_tensor_type)) {
        PyErr_Format(core_type_class, "'%s' of a state is %R, which a state cannot hold", name,
                     value);
        return -1;
    }
    if (failed(view_of_object(value, &view)))
        return -1;
    if (failed(ot_dict_take_tensor(to, name, view)) == 0)
        return 0;
    ot_tensor_destroy(view);
    return -1;
}

ot_dict *core_state_take(PyObject *state)
{
    ot_dict *dict;

    if (failed(ot_dict_create(&dict)))
        return NULL;
    if (core_dict_take_pairs(state, dict, take_item) == 0)
        return dict;
    ot_dict_destroy(dict);
    return NULL;
}

// ---- parts to Python ----

static PyObject *part_out(const ot_box *box, const ot_tensor *part, PyObject *owner)
{
    ot_shape offsets = {.ndim = box->ndim};
    PyObject *at, *tensor = NULL, *result = NULL;
    ot_tensor *view;
    ot_status st;

    memcpy(offsets.dim, box->offset, sizeof offsets.dim);
    at = core_shape_tuple(&offsets);
    if (at != NULL) {
        st = ot_tensor_wrap(ot_tensor_dtype(part), ot_tensor_shape(part),
                            (void *)(uintptr_t)ot_tensor_data_const(part), ot_tensor_bytes(part),
                            &view);
        tensor = st == OT_OK ? core_tensor_over(view, owner) : core_raise(st);
    }
    if (tensor != NULL)
        result = PyTuple_Pack(2, at, tensor);
    Py_XDECREF(at);
    Py_XDECREF(tensor);
    return result;
}

PyObject *core_shards_new(const ot_shards *shards, PyObject *owner)
{
    PyObject *number = PyLong_FromLong((long)shards->dtype);
    PyObject *shape = core_shape_tuple(&shards->shape), *list = PyList_New(shards->n_parts);
    PyObject *result = NULL;
    bool is_whole = number != NULL && shape != NULL && list != NULL;

    for (int i = 0; i < shards->n_parts && is_whole; i++) {
        PyObject *part = part_out(&shards->boxes[i], shards->parts[i], owner);

        is_whole = part != NULL && PyList_SetItem(list, i, part) == 0;
    }
    if (is_whole)
        result = PyTuple_Pack(3, number, shape, list);
    Py_XDECREF(number);
    Py_XDECREF(shape);
    Py_XDECREF(list);
    return result;
}

// ---- the calls ----

typedef struct shards_call {
    unsigned sections;
    ot_state_dict_options options;
    core_strings include;
} shards_call;

// (sections, gather, scatter, skip_frozen, flat, strictness, include, strip)
static int read_call(PyObject *tuple, shards_call *call)
{
    int gather, scatter, strictness;
    PyObject *include;

    *call = (shards_call){.options = OT_STATE_DICT_OPTIONS_INIT};
    if (!PyArg_ParseTuple(tuple, "IiippiOp", &call->sections, &gather, &scatter,
                          &call->options.skip_frozen, &call->options.flat_optimizer, &strictness,
                          &include, &call->options.strip_prefix) ||
        core_strings_take(include, &call->include) != 0)
        return -1;
    call->options.gather = (ot_gather)gather;
    call->options.scatter = (ot_scatter)scatter;
    call->options.strictness = (ot_strictness)strictness;
    call->options.include = call->include.items;
    call->options.n_include = call->include.count;
    call->options.copy = 1;
    return 0;
}

// Lists of (section, name, detail), a list for every category.
static PyObject *report_out(const ot_shards_report *report)
{
    PyObject *categories = PyList_New(OT_REPORT_CATEGORIES);

    for (int c = 0; c < OT_REPORT_CATEGORIES && categories != NULL; c++) {
        const ot_report_category category = (ot_report_category)c;
        const int n = ot_shards_report_count(report, category);
        PyObject *list = PyList_New(n);

        for (int i = 0; i < n && list != NULL; i++) {
            PyObject *found = Py_BuildValue("(Iss)", ot_shards_report_section(report, category, i),
                                            ot_shards_report_name(report, category, i),
                                            ot_shards_report_detail(report, category, i));

            if (found == NULL || PyList_SetItem(list, i, found) != 0)
                Py_CLEAR(list);
        }
        if (list == NULL || PyList_SetItem(categories, c, list) != 0)
            Py_CLEAR(categories);
    }
    return categories;
}

// A session, or a trainer.
typedef struct state_owner {
    PyObject *self;
    bool is_session;
    ot_session *session; // that has been entered
    ot_trainer *trainer;
} state_owner;

// Arguments are read before: they may run any code.
static bool enter_owner(state_owner *owner)
{
    if (owner->is_session)
        owner->session = core_session_enter(owner->self);
    else
        owner->trainer = ((trainer_object *)owner->self)->trainer;
    return owner->session != NULL || owner->trainer != NULL;
}

static void leave_owner(const state_owner *owner)
{
    if (owner->session != NULL)
        core_leave(((session_object *)owner->self)->checkpoint);
}

static ot_status get_from(const state_owner *owner, const shards_call *call, ot_dict **out)
{
    return owner->session != NULL
               ? ot_session_get_shards(owner->session, call->sections, &call->options, out)
               : ot_trainer_get_shards(owner->trainer, call->sections, &call->options, out);
}

static ot_status set_into(const state_owner *owner, const shards_call *call, const ot_dict *state,
                          bool is_check, ot_shards_report **report)
{
    if (owner->session != NULL && is_check)
        return ot_session_check_shards(owner->session, call->sections, state, &call->options,
                                       report);
    if (owner->session != NULL)
        return ot_session_set_shards(owner->session, call->sections, state, &call->options, report);
    return is_check ? ot_trainer_check_shards(owner->trainer, call->sections, state, &call->options,
                                              report)
                    : ot_trainer_set_shards(owner->trainer, call->sections, state, &call->options,
                                            report);
}

static PyObject *get_shards(state_owner owner, PyObject *args)
{
    shards_call call;
    PyObject *tuple, *result = NULL;
    ot_dict *dict = NULL;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &tuple) || read_call(tuple, &call) != 0)
        return NULL;
    if (enter_owner(&owner)) {
        Py_BEGIN_ALLOW_THREADS
        st = get_from(&owner, &call, &dict);
        Py_END_ALLOW_THREADS
        leave_owner(&owner);
        result = st == OT_OK ? core_dict_new(dict) : core_raise(st);
    }
    core_strings_drop(&call.include);
    return result;
}

static PyObject *set_taken(state_owner *owner, const shards_call *call, const ot_dict *dict,
                           bool is_check)
{
    ot_shards_report *report = NULL;
    PyObject *result;
    ot_status st;

    if (!enter_owner(owner))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = set_into(owner, call, dict, is_check, &report);
    Py_END_ALLOW_THREADS
    leave_owner(owner);
    result = st == OT_OK ? report_out(report) : core_raise(st);
    ot_shards_report_destroy(report);
    return result;
}

static PyObject *set_shards(state_owner owner, PyObject *args)
{
    PyObject *tuple, *state, *result = NULL;
    ot_dict *dict;
    shards_call call;
    int is_check;

    if (!PyArg_ParseTuple(args, "O!O!p", &PyTuple_Type, &tuple, &PyDict_Type, &state, &is_check) ||
        read_call(tuple, &call) != 0)
        return NULL;
    dict = core_state_take(state);
    if (dict != NULL)
        result = set_taken(&owner, &call, dict, is_check != 0);
    ot_dict_destroy(dict);
    core_strings_drop(&call.include);
    return result;
}

PyObject *core_session_get_shards(PyObject *self, PyObject *args)
{
    return get_shards((state_owner){.self = self, .is_session = true}, args);
}

PyObject *core_session_set_shards(PyObject *self, PyObject *args)
{
    return set_shards((state_owner){.self = self, .is_session = true}, args);
}

PyObject *core_trainer_get_shards(PyObject *self, PyObject *args)
{
    return get_shards((state_owner){.self = self}, args);
}

PyObject *core_trainer_set_shards(PyObject *self, PyObject *args)
{
    return set_shards((state_owner){.self = self}, args);
}
