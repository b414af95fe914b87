// SPDX-License-Identifier: Apache-2.0
// The training loop, with a Python function for its events.
#include "core.h"

// ---- events ----

typedef struct listener {
    PyObject *function;
    checkpoint_object *state;
    bool failed; // an exception is set
    bool saved;  // after that
} listener;

static PyObject *metrics_tuple(const ot_metrics *m)
{
    return Py_BuildValue("(Lddddd)", (long long)m->rows, m->loss, m->accuracy, m->mae, m->r2,
                         m->seconds);
}

static PyObject *event_tuple(const ot_event *e)
{
    return Py_BuildValue("(iLLLLLdNNiNLd)", (int)e->kind, (long long)e->epoch,
                         (long long)e->n_epochs, (long long)e->batch, (long long)e->n_batches,
                         (long long)e->step, e->learning_rate, metrics_tuple(&e->training),
                         metrics_tuple(&e->validation), e->is_best,
                         e->path != NULL ? PyUnicode_DecodeFSDefault(e->path) : Py_NewRef(Py_None),
                         (long long)e->n_skipped, e->loss_scale);
}

// Whether the function wants to stop, or failed.
static bool call(listener *l, const ot_event *event)
{
    PyObject *tuple = event_tuple(event), *answer;
    int stop;

    answer = tuple != NULL ? PyObject_CallFunctionObjArgs(l->function, tuple, NULL) : NULL;
    Py_XDECREF(tuple);
    stop = answer != NULL ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    l->failed = stop < 0 || PyErr_CheckSignals() != 0;
    return l->failed || stop > 0;
}

static bool warn(void)
{
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s", ot_error_message()) != 0;
}

// Between two steps the function may look at the state, and export it.
static int on_event(void *context, const ot_event *event)
{
    listener *l = context;
    const PyGILState_STATE lock = PyGILState_Ensure();
    bool stop;

    if (l->failed) { // the run saves and says so; with an exception set nothing may be called
        l->saved = l->saved || event->kind == OT_EVENT_SAVED;
        PyGILState_Release(lock);
        return 1;
    }
    l->state->guest = PyThread_get_thread_ident(); // other threads stay outside
    if (event->kind == OT_EVENT_LOG_LOST || event->kind == OT_EVENT_SAVE_FAILED)
        stop = l->failed = warn();
    else
        stop = call(l, event);
    l->state->guest = 0;
    PyGILState_Release(lock);
    return stop || l->failed;
}

// ---- schedules ----

// A converter of (kind, initial_lr, warmup, total, step_size, gamma, power, end_factor).
static int take_schedule(PyObject *tuple, void *to)
{
    ot_schedule s = OT_SCHEDULE_INIT;
    long long warmup, total, step_size;
    int kind;

    if (!PyArg_ParseTuple(tuple, "idLLLddd", &kind, &s.initial_lr, &warmup, &total, &step_size,
                          &s.gamma, &s.power, &s.end_factor))
        return 0;
    s.kind = (ot_schedule_kind)kind;
    s.warmup_steps = (double)warmup;
    s.total_steps = total;
    s.step_size = step_size;
    *(ot_schedule *)to = s;
    return 1;
}

static PyObject *set_schedule(PyObject *module, PyObject *args)
{
    PyObject *session;
    ot_schedule schedule;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O&", core_session_type, &session, take_schedule, &schedule))
        return NULL;
    if (core_session_look(session) == NULL)
        return NULL;
    return core_result(ot_session_set_schedule(((session_object *)session)->session, &schedule));
}

// ---- runs ----

// What train() takes besides numbers.
typedef struct train_arguments {
    PyObject *session, *training, *validation, *outputs, *trained, *notes, *function;
    PyObject *folder, *log, *tensorboard; // bytes; empty: none
    ot_schedule schedule;
    long long accumulation;
} train_arguments;

static void drop_paths(train_arguments *a)
{
    Py_CLEAR(a->folder);
    Py_CLEAR(a->log);
    Py_CLEAR(a->tensorboard);
}

static const char *path_of(PyObject *bytes)
{
    return PyBytes_Size(bytes) > 0 ? PyBytes_AsString(bytes) : NULL;
}

static int take_options(PyObject *args, train_arguments *a, ot_train_options *o)
{
    long long epochs, max_steps, slices, save_every, patience;
    int task, format;

    if (!PyArg_ParseTuple(args, "O!O!OLLLLO&iiiiO&ipLiLiiOOO&O&OO", core_session_type, &a->session,
                          core_batches_type, &a->training, &a->validation, &epochs, &max_steps,
                          &a->accumulation, &slices, take_schedule, &a->schedule, &task,
                          &o->metric_output, &o->metric_input, &o->class_axis,
                          PyUnicode_FSConverter, &a->folder, &format, &o->save_async, &save_every,
                          &o->resume, &patience, &o->keep_best, &o->overwrite, &a->outputs,
                          &a->trained, PyUnicode_FSConverter, &a->log, PyUnicode_FSConverter,
                          &a->tensorboard, &a->notes, &a->function)) {
        drop_paths(a);
        return -1;
    }
    o->epochs = epochs;
    o->max_steps = max_steps;
    o->task = (ot_task)task;
    o->checkpoint_format = (ot_checkpoint_format)format;
    o->save_every = save_every;
    o->slices = slices;
    o->patience = patience;
    o->checkpoint_dir = path_of(a->folder);
    o->log = path_of(a->log);
    o->tensorboard_dir = path_of(a->tensorboard);
    o->schedule = &a->schedule;
    return 0;
}

static ot_status train_over(const train_arguments *a, const ot_train_options *options,
                            ot_metrics *last)
{
    ot_trainer_options how = OT_TRAINER_OPTIONS_INIT;
    ot_batches *const validation =
        a->validation == Py_None ? NULL : ((batches_object *)a->validation)->batches;
    ot_trainer *trainer;
    ot_status st;

    how.gradient_accumulation_steps = a->accumulation;
    how.precision = ((session_object *)a->session)->precision;
    st = ot_trainer_create_from_session(((session_object *)a->session)->session, NULL, &how,
                                        &trainer);
    if (st == OT_OK)
        st = ot_train_run(trainer, ((batches_object *)a->training)->batches, validation, options,
                          last);
    ot_trainer_destroy(trainer);
    return st;
}

static PyObject *run(const train_arguments *a, ot_train_options *options)
{
    session_object *session = (session_object *)a->session;
    listener l = {.function = a->function, .state = session->checkpoint};
    ot_metrics last = {0};
    ot_status st;

    options->callback = on_event;
    options->callback_context = &l;
    session->checkpoint->in_run = true;
    Py_BEGIN_ALLOW_THREADS
    st = train_over(a, options, &last);
    Py_END_ALLOW_THREADS
    session->checkpoint->in_run = false;
    core_leave(session->checkpoint);
    if (l.saved && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        PyErr_Format(PyExc_KeyboardInterrupt,
                     "interrupted; saved in '%s', from where resume=True goes on",
                     options->checkpoint_dir);
    if (l.failed)
        return NULL;
    if (st != OT_OK && st != OT_ERR_INTERRUPTED)
        return core_raise(st);
    return Py_BuildValue("(NO)", metrics_tuple(&last), st == OT_OK ? Py_False : Py_True);
}

// With the strings that the options point to.
static PyObject *run_with_strings(const train_arguments *a, ot_train_options *options)
{
    core_strings outputs = {0}, notes = {0};
    core_trained trained;
    PyObject *result = NULL;

    if (core_trained_take(a->trained, &trained) == 0 &&
        core_strings_take(a->outputs, &outputs) == 0 && core_strings_take(a->notes, &notes) == 0) {
        options->outputs = outputs.items;
        options->n_outputs = outputs.count;
        options->notes = notes.items;
        options->n_notes = notes.count;
        options->artifacts = trained.artifacts;
        options->data = &trained.data;
        if (core_session_enter(a->session) != NULL)
            result = run(a, options);
    }
    core_strings_drop(&outputs);
    core_strings_drop(&notes);
    core_trained_drop(&trained);
    return result;
}

static PyObject *train(PyObject *module, PyObject *args)
{
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    train_arguments a = {0};
    PyObject *result = NULL;

    (void)module;
    if (take_options(args, &a, &options) != 0)
        return NULL;
    if (a.validation != Py_None && !PyObject_TypeCheck(a.validation, core_batches_type))
        PyErr_SetString(PyExc_TypeError, "expected Batches or None");
    else
        result = run_with_strings(&a, &options);
    drop_paths(&a);
    return result;
}

static PyObject *evaluate(PyObject *module, PyObject *args)
{
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    PyObject *session_arg, *batches;
    ot_session *session;
    ot_metrics metrics = {0};
    ot_status st;
    int task;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!iiii", core_session_type, &session_arg, core_batches_type,
                          &batches, &task, &options.metric_output, &options.metric_input,
                          &options.class_axis))
        return NULL;
    options.task = (ot_task)task;
    session = core_session_enter(session_arg);
    if (session == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_train_evaluate(session, ((batches_object *)batches)->batches, &options, &metrics);
    Py_END_ALLOW_THREADS
    core_leave(((session_object *)session_arg)->checkpoint);
    return st == OT_OK ? metrics_tuple(&metrics) : core_raise(st);
}

// ---- optimizers ----

static PyObject *hyper_defaults(const char *optimizer)
{
    ot_hyper_info info = OT_HYPER_INFO_INIT;
    PyObject *all = PyDict_New();

    for (int i = 0; all != NULL && ot_optimizer_hyper(optimizer, i, &info) == OT_OK; i++) {
        PyObject *value = PyFloat_FromDouble(info.fallback);

        if (value == NULL || PyDict_SetItemString(all, info.name, value) != 0)
            Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

static PyObject *optimizers(PyObject *module, PyObject *none)
{
    PyObject *all = PyDict_New();

    (void)module;
    (void)none;
    for (int i = 0; all != NULL && i < ot_optimizer_count(); i++) {
        PyObject *hyper = hyper_defaults(ot_optimizer_name(i));

        if (hyper == NULL || PyDict_SetItemString(all, ot_optimizer_name(i), hyper) != 0)
            Py_CLEAR(all);
        Py_XDECREF(hyper);
    }
    return all;
}

static PyMethodDef functions[] = {
    {"optimizers", optimizers, METH_NOARGS,
     "optimizers() -> {operator: {hyper-parameter: its default}}"},
    {"train", train, METH_VARARGS, "train(session, training, validation, ..., function)"},
    {"evaluate", evaluate, METH_VARARGS,
     "evaluate(session, batches, task, metric_output, metric_input, class_axis) -> "
     "metrics"},
    {"set_schedule", set_schedule, METH_VARARGS,
     "set_schedule(session, (kind, initial_lr, warmup, total, step_size, gamma, power, "
     "end_factor))"},
    {NULL, NULL, 0, NULL},
};

int core_add_train(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
