// SPDX-License-Identifier: Apache-2.0
// Comm: the processes of a job.
#include <stdlib.h>
#include <string.h>

#include "core.h"

PyTypeObject *core_comm_type;
static comm_object *first; // of all that are open
static bool is_over;       // the process ends in a failure: others are not to wait for it

// ---- life ----

static void link_open(comm_object *c)
{
    c->next = first;
    c->previous = NULL;
    if (first != NULL)
        first->previous = c;
    first = c;
}

static void end(comm_object *c)
{
    if (c->comm == NULL)
        return;
    if (c->next != NULL)
        c->next->previous = c->previous;
    if (c->previous != NULL)
        c->previous->next = c->next;
    else
        first = c->next;
    if (!is_over)
        ot_comm_destroy(c->comm);
    c->comm = NULL;
}

static PyObject *new_comm(ot_comm *comm)
{
    comm_object *self = core_alloc(core_comm_type);

    if (self == NULL) {
        ot_comm_destroy(comm);
        return NULL;
    }
    self->comm = comm;
    link_open(self);
    return (PyObject *)self;
}

// open(kind, seconds that are waited, number of a communicator of MPI or None, its library or None)
static PyObject *comm_open(PyObject *class, PyObject *args)
{
    ot_comm_options options = OT_COMM_OPTIONS_INIT;
    const char *kind;
    PyObject *number;
    int handle = 0;
    ot_comm *comm;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "sdOz", &kind, &options.timeout, &number, &options.mpi_library))
        return NULL;
    if (number != Py_None) {
        if (!PyArg_Parse(number, "i", &handle))
            return NULL;
        options.mpi_comm = &handle;
    }
    Py_BEGIN_ALLOW_THREADS
    st = ot_comm_open(kind, &options, &comm);
    Py_END_ALLOW_THREADS
    return st == OT_OK ? new_comm(comm) : core_raise(st);
}

static void comm_dealloc(PyObject *self)
{
    end((comm_object *)self);
    core_free(self);
}

ot_comm *core_comm_get(comm_object *c)
{
    if (c->comm == NULL)
        PyErr_SetString(core_error_class(OT_ERR_STATE), "the communicator is closed");
    return c->comm;
}

static PyObject *comm_close(PyObject *self, PyObject *unused)
{
    comm_object *c = (comm_object *)self;

    (void)unused;
    if (c->n_users > 0)
        return PyErr_Format(core_error_class(OT_ERR_STATE),
                            "the communicator is in use by %d sessions, trainers or saves",
                            c->n_users);
    end(c);
    Py_RETURN_NONE;
}

static PyObject *end_comms(PyObject *module, PyObject *args)
{
    int has_failed, aborts;

    (void)module;
    if (!PyArg_ParseTuple(args, "pp", &has_failed, &aborts))
        return NULL;
    is_over = has_failed != 0;
    for (comm_object *c = first; c != NULL && aborts; c = c->next)
        if (ot_comm_world_size(c->comm) > 1)
            ot_comm_abort(c->comm, 1);
    while (first != NULL)
        end(first);
    Py_RETURN_NONE;
}

// ---- who uses it ----

int core_comm_take(PyObject *object, core_parallel *out)
{
    PyObject *comm;
    unsigned long long bucket_bytes;

    *out = (core_parallel){.options = OT_PARALLEL_OPTIONS_INIT};
    if (!PyArg_ParseTuple(object, "OKip", &comm, &bucket_bytes, &out->options.zero,
                          &out->options.sync_batch_norm))
        return -1;
    out->options.bucket_bytes = (size_t)bucket_bytes;
    if (comm == Py_None)
        return 0;
    if (!PyObject_TypeCheck(comm, core_comm_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Comm or None");
        return -1;
    }
    out->comm = (comm_object *)comm;
    out->options.comm = core_comm_get(out->comm);
    return out->options.comm != NULL ? 0 : -1;
}

comm_object *core_comm_hold(comm_object *c)
{
    if (c != NULL) {
        Py_INCREF(c);
        c->n_users++;
    }
    return c;
}

void core_comm_release(comm_object *c)
{
    if (c == NULL)
        return;
    c->n_users--;
    Py_DECREF(c);
}

bool core_comm_is_over(const comm_object *c)
{
    return c != NULL && c->comm == NULL;
}

// A call that is under way keeps it open.
static ot_comm *enter(PyObject *self)
{
    ot_comm *comm = core_comm_get((comm_object *)self);

    if (comm != NULL)
        (void)core_comm_hold((comm_object *)self);
    return comm;
}

static void leave(PyObject *self)
{
    core_comm_release((comm_object *)self);
}

// ---- questions ----

static PyObject *question(PyObject *self, int (*ask)(const ot_comm *))
{
    const ot_comm *comm = core_comm_get((comm_object *)self);

    return comm != NULL ? PyLong_FromLong(ask(comm)) : NULL;
}

static PyObject *comm_rank(PyObject *self, PyObject *unused)
{
    (void)unused;
    return question(self, ot_comm_rank);
}

static PyObject *comm_world_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    return question(self, ot_comm_world_size);
}

static PyObject *comm_local_rank(PyObject *self, PyObject *unused)
{
    (void)unused;
    return question(self, ot_comm_local_rank);
}

static PyObject *comm_local_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    return question(self, ot_comm_local_size);
}

static PyObject *comm_threads(PyObject *self, PyObject *unused)
{
    (void)unused;
    return question(self, ot_comm_threads);
}

static PyObject *comm_counters(PyObject *self, PyObject *unused)
{
    const ot_comm *comm = core_comm_get((comm_object *)self);
    ot_comm_counters counters = OT_COMM_COUNTERS_INIT;
    ot_status st;

    (void)unused;
    if (comm == NULL)
        return NULL;
    st = ot_comm_get_counters(comm, &counters);
    if (st != OT_OK)
        return core_raise(st);
    return Py_BuildValue("(LLdL)", (long long)counters.messages_sent,
                         (long long)counters.bytes_sent, counters.seconds_waited,
                         (long long)counters.agreements);
}

// ---- collective calls ----

static PyObject *comm_split(PyObject *self, PyObject *args)
{
    ot_comm *comm, *group;
    int color, key;
    ot_status st;

    if (!PyArg_ParseTuple(args, "ii", &color, &key))
        return NULL;
    comm = enter(self);
    if (comm == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_comm_split(comm, color, key, &group);
    Py_END_ALLOW_THREADS
    leave(self);
    if (st != OT_OK)
        return core_raise(st);
    return group != NULL ? new_comm(group) : Py_NewRef(Py_None);
}

static PyObject *comm_barrier(PyObject *self, PyObject *unused)
{
    ot_comm *comm = enter(self);
    ot_status st;

    (void)unused;
    if (comm == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_comm_barrier(comm);
    Py_END_ALLOW_THREADS
    leave(self);
    return core_result(st);
}

// broadcast(Tensor, root): into the tensor.
static PyObject *comm_broadcast(PyObject *self, PyObject *args)
{
    PyObject *object;
    ot_tensor *tensor;
    ot_comm *comm;
    int root;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O!i", core_tensor_type, &object, &root))
        return NULL;
    comm = enter(self);
    if (comm == NULL)
        return NULL;
    tensor = ((tensor_object *)object)->tensor;
    Py_BEGIN_ALLOW_THREADS
    st = ot_comm_broadcast(comm, root, ot_tensor_data(tensor), ot_tensor_bytes(tensor));
    Py_END_ALLOW_THREADS
    leave(self);
    return core_result(st);
}

// all_reduce(operation, Tensor): in the tensor.
static PyObject *comm_all_reduce(PyObject *self, PyObject *args)
{
    PyObject *object;
    ot_tensor *tensor;
    ot_comm *comm;
    int op;
    ot_status st;

    if (!PyArg_ParseTuple(args, "iO!", &op, core_tensor_type, &object))
        return NULL;
    comm = enter(self);
    if (comm == NULL)
        return NULL;
    tensor = ((tensor_object *)object)->tensor;
    Py_BEGIN_ALLOW_THREADS
    st = ot_comm_all_reduce(comm, (ot_comm_op)op, ot_tensor_dtype(tensor), ot_tensor_data(tensor),
                            ot_tensor_count(tensor));
    Py_END_ALLOW_THREADS
    leave(self);
    return core_result(st);
}

// all_gather(bytes of the same length on all ranks) -> those of all, one after the other.
static PyObject *comm_all_gather(PyObject *self, PyObject *own)
{
    const char *from = PyBytes_AsString(own);
    ot_comm *comm = from != NULL ? core_comm_get((comm_object *)self) : NULL;
    PyObject *all;
    char *to;
    Py_ssize_t n;
    ot_status st;

    if (comm == NULL)
        return NULL;
    n = PyBytes_Size(own);
    all = PyBytes_FromStringAndSize(NULL, n * ot_comm_world_size(comm));
    if (all == NULL)
        return NULL;
    to = PyBytes_AsString(all);
    (void)enter(self);
    Py_BEGIN_ALLOW_THREADS
    st = ot_comm_all_gather(comm, from, (size_t)n, to);
    Py_END_ALLOW_THREADS
    leave(self);
    if (st == OT_OK)
        return all;
    Py_DECREF(all);
    return core_raise(st);
}

static PyObject *comm_abort(PyObject *self, PyObject *args)
{
    ot_comm *comm;
    int code;

    if (!PyArg_ParseTuple(args, "i", &code))
        return NULL;
    comm = core_comm_get((comm_object *)self);
    if (comm == NULL)
        return NULL;
    ot_comm_abort(comm, code);
    Py_RETURN_NONE;
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"open", comm_open, METH_VARARGS | METH_STATIC,
     "open(kind, seconds that are waited, number of a communicator of MPI or None, its library or "
     "None) -> Comm"},
    {"close", comm_close, METH_NOARGS, "No use is made of it any more."},
    {"rank", comm_rank, METH_NOARGS, "From 0."},
    {"world_size", comm_world_size, METH_NOARGS, "How many ranks there are."},
    {"local_rank", comm_local_rank, METH_NOARGS, "Among the ranks on this machine, from 0."},
    {"local_size", comm_local_size, METH_NOARGS, "How many ranks this machine has."},
    {"threads", comm_threads, METH_NOARGS, "Threads for this rank."},
    {"counters", comm_counters, METH_NOARGS,
     "(messages sent, bytes sent, seconds waited, agreements)"},
    {"split", comm_split, METH_VARARGS, "split(color, key) -> Comm or None"},
    {"barrier", comm_barrier, METH_NOARGS, "All have come."},
    {"broadcast", comm_broadcast, METH_VARARGS, "broadcast(Tensor, root): in place"},
    {"all_reduce", comm_all_reduce, METH_VARARGS, "all_reduce(operation, Tensor): in place"},
    {"all_gather", comm_all_gather, METH_O, "all_gather(bytes, as many on all ranks) -> bytes"},
    {"abort", comm_abort, METH_VARARGS, "abort(code)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The processes of a job."},
    {Py_tp_dealloc, comm_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Comm",
    .basicsize = sizeof(comm_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyMethodDef functions[] = {
    {"end_comms", end_comms, METH_VARARGS,
     "end_comms(whether the process has failed, whether that ends the job): before the interpreter "
     "ends"},
    {NULL, NULL, 0, NULL},
};

int core_add_comm(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) != 0)
        return -1;
    return core_add_type(module, &spec, &core_comm_type);
}
