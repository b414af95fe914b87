// SPDX-License-Identifier: Apache-2.0
// Checkpoint directories: what a run goes on from, and any trees of values.
#include <stdlib.h>

#include "core.h"

// Of a Comm or None: the communicator, held until it is released.
static int hold_comm(PyObject *over, comm_object **holder, ot_comm **comm)
{
    *holder = NULL;
    *comm = NULL;
    if (over == Py_None)
        return 0;
    if (!PyObject_TypeCheck(over, core_comm_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Comm or None");
        return -1;
    }
    *comm = core_comm_get((comm_object *)over);
    if (*comm == NULL)
        return -1;
    *holder = core_comm_hold((comm_object *)over);
    return 0;
}

// ---- what a run goes on from ----

#define RESUME_CAPSULE "onnxtrain.resume"

static void resume_done(PyObject *capsule)
{
    ot_resume_destroy(PyCapsule_GetPointer(capsule, RESUME_CAPSULE));
}

static PyObject *wrap_resume(ot_resume *resume)
{
    ot_checkpoint *checkpoint = ot_resume_take_checkpoint(resume);
    PyObject *state = checkpoint != NULL ? core_checkpoint_new(checkpoint) : Py_NewRef(Py_None);
    PyObject *capsule = state != NULL ? PyCapsule_New(resume, RESUME_CAPSULE, resume_done) : NULL;

    if (capsule != NULL)
        return Py_BuildValue("(NN)", capsule, state);
    Py_XDECREF(state);
    ot_resume_destroy(resume);
    return NULL;
}

// resume_find(Comm or None, directory) -> (for resume_load(), Checkpoint or None)
static PyObject *resume_find(PyObject *module, PyObject *args)
{
    PyObject *over, *path;
    comm_object *holder;
    ot_comm *comm;
    ot_resume *resume;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&", &over, PyUnicode_FSConverter, &path))
        return NULL;
    if (hold_comm(over, &holder, &comm) != 0) {
        Py_DECREF(path);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    st = ot_resume_create(comm, PyBytes_AsString(path), &resume);
    Py_END_ALLOW_THREADS
    core_comm_release(holder);
    Py_DECREF(path);
    return st == OT_OK ? wrap_resume(resume) : core_raise(st);
}

// resume_load(what resume_find() found, Session) -> where the state is from, or None
static PyObject *resume_load(PyObject *module, PyObject *args)
{
    PyObject *capsule, *owner;
    ot_resume *resume;
    ot_session *session;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, core_session_type, &owner))
        return NULL;
    resume = PyCapsule_GetPointer(capsule, RESUME_CAPSULE);
    session = resume != NULL ? core_session_enter(owner) : NULL;
    if (session == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_resume_load(resume, session);
    Py_END_ALLOW_THREADS
    core_leave(((session_object *)owner)->checkpoint);
    if (st != OT_OK)
        return core_raise(st);
    return ot_resume_path(resume) != NULL ? PyUnicode_DecodeFSDefault(ot_resume_path(resume))
                                          : Py_NewRef(Py_None);
}

// ---- trees ----

enum { ITEMS_MAX = 64 };

// What a call is over: (Comm or None, path, {name: tree}).
typedef struct trees {
    comm_object *holder; // held during the call; NULL: none
    ot_comm *comm;
    PyObject *path, *dict; // bytes; borrowed
    ot_shards_item items[ITEMS_MAX];
    int n;
} trees;

static int take_items(trees *t)
{
    PyObject *name, *tree;
    Py_ssize_t at = 0;

    while (PyDict_Next(t->dict, &at, &name, &tree)) {
        ot_shards_item *item = &t->items[t->n];

        if (t->n == ITEMS_MAX || !PyUnicode_Check(name) || !PyDict_Check(tree)) {
            PyErr_Format(core_type_class, "expected up to %d dicts by their names", ITEMS_MAX);
            return -1;
        }
        *item = (ot_shards_item)OT_SHARDS_ITEM_INIT;
        item->name = PyUnicode_AsUTF8AndSize(name, NULL);
        item->dict = item->name != NULL ? core_state_take(tree) : NULL;
        if (item->dict == NULL)
            return -1;
        t->n++;
    }
    return 0;
}

static void trees_drop(trees *t)
{
    for (int i = 0; i < t->n; i++)
        ot_dict_destroy(t->items[i].dict);
    core_comm_release(t->holder);
    Py_XDECREF(t->path);
}

static int trees_take(PyObject *over, PyObject *path, PyObject *dict, trees *t)
{
    *t = (trees){.dict = dict};
    if (!PyUnicode_FSConverter(path, &t->path))
        return -1;
    return hold_comm(over, &t->holder, &t->comm) == 0 ? take_items(t) : -1;
}

// What the trees have become, but for their tensors, which are where they were.
static PyObject *trees_out(trees *t)
{
    PyObject *result = PyDict_New();

    for (int i = 0; i < t->n && result != NULL; i++) {
        PyObject *tree = core_dict_new(t->items[i].dict);

        t->items[i].dict = NULL;
        if (tree == NULL || PyDict_SetItemString(result, t->items[i].name, tree) != 0)
            Py_CLEAR(result);
        Py_XDECREF(tree);
    }
    return result;
}

// shards_load(Comm or None, path, {name: tree}) -> {name: tree} with the values that are no tensors
static PyObject *shards_load(PyObject *module, PyObject *args)
{
    PyObject *over, *path, *dict, *result = NULL;
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    trees t;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!", &over, &path, &PyDict_Type, &dict))
        return NULL;
    options.allows_unexpected = 1;
    if (trees_take(over, path, dict, &t) == 0) {
        Py_BEGIN_ALLOW_THREADS
        st = ot_shards_load(t.comm, PyBytes_AsString(t.path), t.items, t.n, &options);
        Py_END_ALLOW_THREADS
        result = st == OT_OK ? trees_out(&t) : core_raise(st);
    }
    trees_drop(&t);
    return result;
}

// ---- saves ----

typedef struct save_object {
    PyObject_HEAD ot_shards_job *job;
    comm_object *comm; // held until the end of the save; NULL: none
} save_object;

static PyTypeObject *save_type;

static ot_status begin(save_object *self, const trees *t, bool waits, int64_t step)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    const char *path = PyBytes_AsString(t->path);

    options.replaces = 1;
    options.step = step;
    if (waits)
        return ot_shards_save(t->comm, path, t->items, t->n, &options);
    if (ot_shards_job_create(&self->job) != OT_OK)
        self->job = NULL; // which starting says on all ranks
    return ot_shards_job_start(self->job, t->comm, path, t->items, t->n, &options);
}

// start(Comm or None, path, {name: tree}, step, whether it waits) -> Save
static PyObject *save_start(PyObject *class, PyObject *args)
{
    PyObject *over, *path, *dict;
    save_object *self = NULL;
    long long step;
    int waits;
    trees t;
    ot_status st = OT_OK;

    (void)class;
    if (!PyArg_ParseTuple(args, "OOO!Lp", &over, &path, &PyDict_Type, &dict, &step, &waits))
        return NULL;
    if (trees_take(over, path, dict, &t) == 0 && (self = core_alloc(save_type)) != NULL) {
        Py_BEGIN_ALLOW_THREADS
        st = begin(self, &t, waits != 0, step);
        Py_END_ALLOW_THREADS
        if (!waits)
            self->comm = core_comm_hold(t.holder);
        if (st != OT_OK) {
            Py_CLEAR(self);
            core_raise(st);
        }
    }
    trees_drop(&t);
    return (PyObject *)self;
}

static bool is_open(const save_object *self)
{
    return self->comm == NULL || core_comm_get(self->comm) != NULL;
}

// The save has come to its end.
static void finish(save_object *self)
{
    core_comm_release(self->comm);
    self->comm = NULL;
}

static PyObject *save_poll(PyObject *object, PyObject *unused)
{
    save_object *self = (save_object *)object;
    int done = 1;
    ot_status st = OT_OK;

    (void)unused;
    if (!is_open(self))
        return NULL;
    if (self->job != NULL) {
        Py_BEGIN_ALLOW_THREADS
        st = ot_shards_job_poll(self->job, &done);
        Py_END_ALLOW_THREADS
    }
    if (done != 0 || st != OT_OK)
        finish(self);
    return st == OT_OK ? PyBool_FromLong(done) : core_raise(st);
}

static PyObject *save_wait(PyObject *object, PyObject *unused)
{
    save_object *self = (save_object *)object;
    ot_status st = OT_OK;

    (void)unused;
    if (!is_open(self))
        return NULL;
    if (self->job != NULL) {
        Py_BEGIN_ALLOW_THREADS
        st = ot_shards_job_wait(self->job);
        Py_END_ALLOW_THREADS
    }
    finish(self);
    return core_result(st);
}

static void save_dealloc(PyObject *object)
{
    save_object *self = (save_object *)object;

    if (!core_comm_is_over(self->comm)) {
        Py_BEGIN_ALLOW_THREADS // its thread may have something to say
        ot_shards_job_destroy(self->job);
        Py_END_ALLOW_THREADS
    }
    finish(self);
    core_free(object);
}

static PyMethodDef methods[] = {
    {"start", save_start, METH_VARARGS | METH_STATIC,
     "start(Comm or None, path, {name: tree}, step, whether it waits for the end) -> Save"},
    {"poll", save_poll, METH_NOARGS, "Whether it has come to its end."},
    {"wait", save_wait, METH_NOARGS, "For the end."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The save of a checkpoint directory."},
    {Py_tp_dealloc, save_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Save",
    .basicsize = sizeof(save_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyMethodDef functions[] = {
    {"resume_find", resume_find, METH_VARARGS,
     "resume_find(Comm or None, directory) -> (for resume_load(), Checkpoint or None)"},
    {"resume_load", resume_load, METH_VARARGS,
     "resume_load(what resume_find() found, Session) -> where the state is from, or None"},
    {"shards_load", shards_load, METH_VARARGS,
     "shards_load(Comm or None, path, {name: tree}) -> {name: tree} with the values that are no "
     "tensors"},
    {NULL, NULL, 0, NULL},
};

int core_add_directory(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) != 0)
        return -1;
    return core_add_type(module, &spec, &save_type);
}
