// SPDX-License-Identifier: Apache-2.0
// Session: steps, learning rate, the parameters as one vector, export.
#include <stdlib.h>
#include <string.h>

#include "core.h"

PyTypeObject *core_session_type;

static ot_session *present(const session_object *s)
{
    if (s->comm != NULL && core_comm_get(s->comm) == NULL)
        return NULL;
    if (s->session == NULL)
        PyErr_SetString(core_error_class(OT_ERR_STATE),
                        "another Module has taken over the state of this one");
    return s->session;
}

ot_session *core_session_enter(PyObject *self)
{
    const session_object *s = (session_object *)self;

    if (present(s) == NULL)
        return NULL;
    if (s->checkpoint->in_run) {
        PyErr_SetString(core_error_class(OT_ERR_STATE), "a training run is under way");
        return NULL;
    }
    return core_enter(s->checkpoint) ? s->session : NULL;
}

static void leave(PyObject *self)
{
    core_leave(((session_object *)self)->checkpoint);
}

ot_session *core_session_hold(PyObject *self)
{
    const session_object *s = (session_object *)self;

    return present(s) != NULL && core_enter(s->checkpoint) ? s->session : NULL;
}

ot_session *core_session_look(PyObject *self)
{
    ot_session *session = core_session_hold(self);

    if (session != NULL)
        leave(self);
    return session;
}

// ---- life ----

static const ot_model *optional_model(PyObject *object)
{
    return object == Py_None ? NULL : ((model_object *)object)->model;
}

static bool is_model(PyObject *object, bool may_be_none)
{
    if (PyObject_TypeCheck(object, core_model_type) || (may_be_none && object == Py_None))
        return true;
    PyErr_SetString(PyExc_TypeError, "expected a Model");
    return false;
}

// A new session takes the state over from an older one.
static void close_older(checkpoint_object *state)
{
    session_object *const older = state->session;

    if (older == NULL)
        return;
    ot_session_destroy(older->session);
    older->session = NULL;
    state->session = NULL;
    core_comm_release(older->comm);
    older->comm = NULL;
}

PyObject *core_session_new(checkpoint_object *state, const ot_session_options *options,
                           comm_object *comm, core_make_session make, void *context)
{
    session_object *self = core_alloc(core_session_type);
    ot_status st;

    if (self == NULL)
        return NULL;
    if (state->in_run)
        PyErr_SetString(core_error_class(OT_ERR_STATE), "a training run is under way");
    if (state->in_run || !core_enter(state)) {
        Py_DECREF(self);
        return NULL;
    }
    close_older(state);
    self->checkpoint = (checkpoint_object *)Py_NewRef(state);
    self->precision = options->precision;
    self->comm = core_comm_hold(comm);
    Py_BEGIN_ALLOW_THREADS
    st = make(context, state->checkpoint, options, &self->session);
    Py_END_ALLOW_THREADS
    core_leave(state);
    if (st != OT_OK) {
        Py_DECREF(self);
        return core_raise(st);
    }
    state->session = self;
    return (PyObject *)self;
}

typedef struct models {
    const ot_model *training, *eval;
} models;

static ot_status make_of_models(void *context, ot_checkpoint *checkpoint,
                                const ot_session_options *options, ot_session **out)
{
    const models *m = context;

    return ot_session_create(m->training, m->eval, NULL, checkpoint, options, out);
}

static PyObject *session_create(PyObject *class, PyObject *args)
{
    PyObject *training, *eval, *state, *over;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    unsigned long long memory_max;
    core_parallel parallel;
    models m;

    (void)class;
    if (!PyArg_ParseTuple(args, "OOO!ipKO", &training, &eval, core_checkpoint_type, &state,
                          &options.n_threads, &options.reproducible, &memory_max, &over) ||
        !is_model(training, false) || !is_model(eval, true) || core_comm_take(over, &parallel) != 0)
        return NULL;
    options.memory_max = (size_t)memory_max;
    options.parallel = &parallel.options;
    m = (models){optional_model(training), optional_model(eval)};
    return core_session_new((checkpoint_object *)state, &options, parallel.comm, make_of_models,
                            &m);
}

static void session_dealloc(PyObject *self)
{
    session_object *s = (session_object *)self;

    if (s->session != NULL && s->checkpoint->session == s)
        s->checkpoint->session = NULL;
    if (!core_comm_is_over(s->comm))
        ot_session_destroy(s->session);
    core_comm_release(s->comm);
    Py_CLEAR(s->checkpoint);
    core_free(self);
}

static PyObject *session_set_optimizer(PyObject *self, PyObject *model)
{
    ot_session *session;
    ot_status st;

    if (!is_model(model, true))
        return NULL;
    session = core_session_enter(self);
    if (session == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_session_set_optimizer(session, optional_model(model));
    Py_END_ALLOW_THREADS
    leave(self);
    return core_result(st);
}

// ---- names ----

typedef struct names_of {
    const ot_session *session;
    ot_mode mode;
} names_of;

static const char *input_name(const void *context, int index)
{
    const names_of *n = context;

    return ot_session_input_name(n->session, n->mode, index);
}

static const char *output_name(const void *context, int index)
{
    const names_of *n = context;

    return ot_session_output_name(n->session, n->mode, index);
}

static PyObject *names(PyObject *self, PyObject *args, int (*count)(const ot_session *, ot_mode),
                       const char *(*name_at)(const void *, int))
{
    names_of n = {0};
    PyObject *list;
    int training;

    if (!PyArg_ParseTuple(args, "p", &training))
        return NULL;
    n.mode = training ? OT_MODE_TRAIN : OT_MODE_EVAL;
    n.session = core_session_hold(self); // what the list brings about may run any code
    if (n.session == NULL)
        return NULL;
    list = core_names(count(n.session, n.mode), name_at, &n);
    leave(self);
    return list;
}

static PyObject *session_input_names(PyObject *self, PyObject *args)
{
    return names(self, args, ot_session_input_count, input_name);
}

static PyObject *session_output_names(PyObject *self, PyObject *args)
{
    return names(self, args, ot_session_output_count, output_name);
}

// ---- steps ----

static PyObject *run_step(PyObject *self, ot_session *session, const core_tensors *inputs,
                          ot_mode mode)
{
    const int n_outputs = ot_session_output_count(session, mode);
    ot_tensor **outputs = calloc((size_t)n_outputs + 1, sizeof(*outputs));
    PyObject *result;
    ot_status st;

    if (outputs == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    st = mode == OT_MODE_TRAIN
             ? ot_session_train_step(session, inputs->items, inputs->count, outputs, n_outputs)
             : ot_session_eval_step(session, inputs->items, inputs->count, outputs, n_outputs);
    Py_END_ALLOW_THREADS(void)
    self;
    result = st == OT_OK ? core_tensor_list(outputs, n_outputs) : core_raise(st);
    free(outputs);
    return result;
}

static PyObject *session_step(PyObject *self, PyObject *args)
{
    PyObject *sequence, *result = NULL;
    int training;
    core_tensors inputs;
    ot_session *session;

    if (!PyArg_ParseTuple(args, "Op", &sequence, &training) ||
        core_tensors_take(sequence, &inputs) != 0)
        return NULL;
    session = core_session_enter(self);
    if (session != NULL) {
        result = run_step(self, session, &inputs, training ? OT_MODE_TRAIN : OT_MODE_EVAL);
        leave(self);
    }
    core_tensors_drop(&inputs);
    return result;
}

static PyObject *session_optimizer_step(PyObject *self, PyObject *unused)
{
    ot_session *session = core_session_enter(self);
    ot_status st;

    (void)unused;
    if (session == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_session_optimizer_step(session);
    Py_END_ALLOW_THREADS
    leave(self);
    return core_result(st);
}

static PyObject *session_reset_gradients(PyObject *self, PyObject *unused)
{
    ot_session *session = core_session_look(self);

    (void)unused;
    if (session == NULL)
        return NULL;
    ot_session_reset_gradients(session);
    Py_RETURN_NONE;
}

static PyObject *session_set_seed(PyObject *self, PyObject *args)
{
    ot_session *session;
    unsigned long long seed;

    if (!PyArg_ParseTuple(args, "K", &seed))
        return NULL;
    session = core_session_look(self);
    if (session == NULL)
        return NULL;
    ot_session_set_seed(session, seed);
    Py_RETURN_NONE;
}

// ---- learning rate ----

static PyObject *session_set_learning_rate(PyObject *self, PyObject *args)
{
    ot_session *session;
    double rate;

    if (!PyArg_ParseTuple(args, "d", &rate))
        return NULL;
    session = core_session_look(self);
    if (session == NULL)
        return NULL;
    return core_result(ot_session_set_learning_rate(session, rate));
}

static PyObject *session_learning_rate(PyObject *self, PyObject *unused)
{
    const ot_session *session = core_session_look(self);

    (void)unused;
    return session != NULL ? PyFloat_FromDouble(ot_session_learning_rate(session)) : NULL;
}

static PyObject *session_step_count(PyObject *self, PyObject *unused)
{
    const ot_session *session = core_session_look(self);

    (void)unused;
    return session != NULL ? PyLong_FromLongLong(ot_session_step_count(session)) : NULL;
}

static PyObject *session_schedule_step(PyObject *self, PyObject *unused)
{
    ot_session *session = core_session_look(self);

    (void)unused;
    return session != NULL ? core_result(ot_session_schedule_step(session)) : NULL;
}

// ---- the rest ----

static PyObject *session_memory(PyObject *self, PyObject *unused)
{
    const ot_session *session = core_session_look(self);

    (void)unused;
    if (session == NULL)
        return NULL;
    return Py_BuildValue("(KK)", (unsigned long long)ot_session_state_bytes(session),
                         (unsigned long long)ot_session_plan_bytes(session));
}

// ---- export ----

// Without copies of the parameters.
static ot_status export_file(ot_session *session, const core_strings *names, const char *path,
                             const core_trained *trained)
{
    ot_model *model;
    ot_status st = ot_session_export_view(session, names->items, names->count, &model);

    if (st != OT_OK || model == NULL) // rank 0 of several has it
        return st;
    if (trained->artifacts != NULL)
        st = ot_record_write(model, trained->artifacts, &trained->data);
    if (st == OT_OK)
        st = ot_model_save(model, path, NULL);
    ot_model_destroy(model);
    return st;
}

// export(names or None, path, how it was trained or None); names None: the outputs that need no
// target.
static PyObject *session_export(PyObject *self, PyObject *args)
{
    PyObject *list, *path, *tuple, *result = NULL;
    core_strings names;
    core_trained trained;
    ot_session *session;
    ot_status st;

    if (!PyArg_ParseTuple(args, "OO&O", &list, PyUnicode_FSConverter, &path, &tuple))
        return NULL;
    if (core_trained_take(tuple, &trained) == 0 && core_strings_take(list, &names) == 0) {
        session = core_session_look(self); // a training run's callback may export, too
        if (session != NULL && core_enter(((session_object *)self)->checkpoint)) {
            Py_BEGIN_ALLOW_THREADS
            st = export_file(session, &names, PyBytes_AsString(path), &trained);
            Py_END_ALLOW_THREADS
            leave(self);
            result = core_result(st);
        }
        core_strings_drop(&names);
    }
    core_trained_drop(&trained);
    Py_DECREF(path);
    return result;
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"create", session_create, METH_VARARGS | METH_STATIC,
     "create(training, eval, checkpoint, n_threads, reproducible, memory_max, (Comm or None, "
     "bucket_bytes, zero, sync_batch_norm)) -> Session"},
    {"set_optimizer", session_set_optimizer, METH_O, "set_optimizer(Model or None)"},
    {"input_names", session_input_names, METH_VARARGS, "input_names(training)"},
    {"output_names", session_output_names, METH_VARARGS, "output_names(training)"},
    {"step", session_step, METH_VARARGS, "step(inputs, training) -> list of Tensor"},
    {"optimizer_step", session_optimizer_step, METH_NOARGS, "Update the parameters."},
    {"reset_gradients", session_reset_gradients, METH_NOARGS, "The next step overwrites them."},
    {"set_seed", session_set_seed, METH_VARARGS, "set_seed(seed)"},
    {"set_learning_rate", session_set_learning_rate, METH_VARARGS, "set_learning_rate(rate)"},
    {"learning_rate", session_learning_rate, METH_NOARGS, "The present learning rate."},
    {"step_count", session_step_count, METH_NOARGS, "Optimizer steps done."},
    {"schedule_step", session_schedule_step, METH_NOARGS, "The schedule's rate for the next step."},
    {"parameters_size", core_session_parameters_size, METH_VARARGS,
     "parameters_size(trainable_only)"},
    {"get_parameters", core_session_get_parameters, METH_VARARGS, "get_parameters(trainable_only)"},
    {"set_parameters", core_session_set_parameters, METH_VARARGS,
     "set_parameters(Tensor, trainable_only)"},
    {"scale_gradients", core_session_scale_gradients, METH_VARARGS, "scale_gradients(factor)"},
    {"get_gradients", core_session_get_gradients, METH_NOARGS, "The gradients as one vector."},
    {"get_input_gradient", core_session_get_input_gradient, METH_VARARGS,
     "get_input_gradient(name) -> Tensor, a copy"},
    {"get_shards", core_session_get_shards, METH_VARARGS, "get_shards(how) -> dict of dicts"},
    {"set_shards", core_session_set_shards, METH_VARARGS,
     "set_shards(how, dict of dicts, only to check) -> what did not fit"},
    {"memory", session_memory, METH_NOARGS, "(bytes of the state, bytes of the largest plan)"},
    {"export", session_export, METH_VARARGS,
     "export(names or None, path, how it was trained or None)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Training over a checkpoint."},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Session",
    .basicsize = sizeof(session_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_session(PyObject *module)
{
    return core_add_type(module, &spec, &core_session_type);
}
