// SPDX-License-Identifier: Apache-2.0
// Runner: any model by hand.
#include <stdlib.h>

#include "core.h"

static PyTypeObject *runner_type;

typedef struct runner_object {
    PyObject_HEAD ot_runner *runner;
    bool busy; // a thread without the interpreter's lock is inside
} runner_object;

static PyObject *runner_create(PyObject *class, PyObject *args)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    PyObject *model;
    unsigned long long memory_max;
    runner_object *self;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "O!ipK", core_model_type, &model, &options.n_threads,
                          &options.reproducible, &memory_max))
        return NULL;
    options.memory_max = (size_t)memory_max;
    self = core_alloc(runner_type);
    if (self == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_runner_create(((model_object *)model)->model, &options, &self->runner);
    Py_END_ALLOW_THREADS
    if (st == OT_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return core_raise(st);
}

static void runner_dealloc(PyObject *self)
{
    ot_runner_destroy(((runner_object *)self)->runner);
    core_free(self);
}

// ---- running ----

enum { MAX_FEEDS = 4096, MAX_OUTPUTS = 1024 };

// What one call works on.
typedef struct call {
    core_tensors *given; // per feed
    ot_feed *feeds;
    int n_feeds;
    int which[MAX_OUTPUTS];
    ot_tensor *outputs[MAX_OUTPUTS];
    int n_outputs;
} call;

static int take_feeds(PyObject *list, call *c)
{
    const Py_ssize_t n = PyList_Size(list);

    if (n < 0)
        return -1;
    if (n > MAX_FEEDS) {
        PyErr_Format(core_error_class(OT_ERR_INVALID), "%zd inputs, at most %d are possible", n,
                     MAX_FEEDS);
        return -1;
    }
    c->given = calloc((size_t)n + 1, sizeof(*c->given));
    c->feeds = calloc((size_t)n + 1, sizeof(*c->feeds));
    if (c->given == NULL || c->feeds == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; c->n_feeds < (int)n; c->n_feeds++) {
        core_tensors *given = &c->given[c->n_feeds];

        if (core_tensors_take(PyList_GetItem(list, c->n_feeds), given) != 0)
            return -1;
        c->feeds[c->n_feeds] = (ot_feed){given->items, given->count};
    }
    return 0;
}

static int take_which(PyObject *list, call *c)
{
    const Py_ssize_t n = PyList_Size(list);

    if (n < 0)
        return -1;
    if (n > MAX_OUTPUTS) {
        PyErr_Format(core_error_class(OT_ERR_INVALID), "%zd outputs, at most %d are possible", n,
                     MAX_OUTPUTS);
        return -1;
    }
    c->n_outputs = (int)n;
    for (int i = 0; i < c->n_outputs; i++) {
        c->which[i] = (int)PyLong_AsLong(PyList_GetItem(list, i));
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *run(runner_object *self, call *c)
{
    ot_status st;

    if (self->busy)
        return PyErr_Format(core_error_class(OT_ERR_STATE),
                            "another thread runs this session: one thread at a time");
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    st = ot_runner_run(self->runner, c->feeds, c->n_feeds, c->which, c->outputs, c->n_outputs);
    Py_END_ALLOW_THREADS
    self->busy = false;
    return st == OT_OK ? core_tensor_list(c->outputs, c->n_outputs) : core_raise(st);
}

// run(feeds, which) -> list of Tensor; a feed is the list of its tensors, which are output
// positions.
static PyObject *runner_run(PyObject *self, PyObject *args)
{
    PyObject *feeds, *which, *result = NULL;
    call *c;

    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &feeds, &PyList_Type, &which))
        return NULL;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return PyErr_NoMemory();
    if (take_feeds(feeds, c) == 0 && take_which(which, c) == 0)
        result = run((runner_object *)self, c);
    for (int i = 0; i < c->n_feeds; i++)
        core_tensors_drop(&c->given[i]);
    free(c->given);
    free(c->feeds);
    free(c);
    return result;
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"create", runner_create, METH_VARARGS | METH_STATIC,
     "create(model, n_threads, reproducible, memory_max) -> Runner"},
    {"run", runner_run, METH_VARARGS, "run(feeds, which) -> list of Tensor"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Runs a model."},
    {Py_tp_dealloc, runner_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Runner",
    .basicsize = sizeof(runner_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_runner(PyObject *module)
{
    return core_add_type(module, &spec, &runner_type);
}
