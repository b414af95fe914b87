// SPDX-License-Identifier: Apache-2.0
// Trainer: one call a batch.
#include <stdlib.h>

#include "core.h"

// ---- life ----

static PyTypeObject *trainer_type;

static int copy_rates(PyObject *answer, double *lr, int n_lr)
{
    double *rates = NULL;
    int n = 0;

    if (core_numbers_take(answer, &rates, &n) != 0)
        return -1;
    if (n != 1 && n != n_lr)
        PyErr_Format(core_error_class(OT_ERR_INVALID),
                     "the schedule gave %d learning rates, expected 1 or one for each of %d groups "
                     "of parameters",
                     n, n_lr);
    else
        for (int i = 0; i < n_lr; i++)
            lr[i] = rates[n == 1 ? 0 : i];
    free(rates);
    return PyErr_Occurred() ? -1 : 0;
}

static int on_schedule(void *context, const ot_step_info *info, double *lr, int n_lr)
{
    trainer_object *self = context;
    const PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *answer = PyObject_CallNoArgs(self->schedule);

    (void)info;
    self->failed = answer == NULL || copy_rates(answer, lr, n_lr) != 0;
    Py_XDECREF(answer);
    PyGILState_Release(lock);
    return self->failed;
}

// Exceptions of the program's functions are raised as they are.
static PyObject *failure(trainer_object *self, ot_status st)
{
    scaler_object *scaler = (scaler_object *)self->scaler;
    const bool is_own = self->failed || (scaler != NULL && scaler->failed);

    self->failed = false;
    if (scaler != NULL)
        scaler->failed = false;
    return is_own ? NULL : core_raise(st);
}

// What of a trainer's options is an object.
typedef struct objects {
    PyObject *model, *schedule, *scaler, *session, *over;
    ot_session_options session_options;
    core_parallel parallel;
} objects;

static int take_objects(objects *o)
{
    unsigned long long memory_max;

    o->session_options = (ot_session_options)OT_SESSION_OPTIONS_INIT;
    if (o->scaler != Py_None && !PyObject_TypeCheck(o->scaler, core_scaler_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a LossScaler or None");
        return -1;
    }
    if (core_comm_take(o->over, &o->parallel) != 0)
        return -1;
    o->session_options.parallel = &o->parallel.options;
    if (o->session == Py_None)
        return 0;
    if (!PyArg_ParseTuple(o->session, "ipK", &o->session_options.n_threads,
                          &o->session_options.reproducible, &memory_max))
        return -1;
    o->session_options.memory_max = (size_t)memory_max;
    return 0;
}

static ot_status create(trainer_object *self, const ot_config *config, const objects *o)
{
    ot_trainer_options options = *ot_config_options(config);

    if (self->schedule != NULL) {
        options.lr_function = on_schedule;
        options.lr_context = self;
    }
    if (self->scaler != NULL)
        options.loss_scaler = &((scaler_object *)self->scaler)->scaler;
    if (o->session != Py_None || o->parallel.comm != NULL)
        options.session = &o->session_options;
    return ot_trainer_create(((model_object *)o->model)->model, ot_config_description(config),
                             ot_config_optimizer(config), &options, &self->trainer);
}

static ot_status create_of_json(trainer_object *self, const char *json, const objects *o,
                                char **violations)
{
    ot_config *config = NULL;
    ot_status st = core_config_read(json, &config, violations);

    if (st == OT_OK && *violations == NULL)
        st = create(self, config, o);
    ot_config_destroy(config);
    return st;
}

static PyObject *optional(PyObject *object)
{
    return object == Py_None ? NULL : Py_NewRef(object);
}

static PyObject *trainer_create(PyObject *class, PyObject *args)
{
    objects o;
    const char *json;
    char *violations = NULL;
    trainer_object *self;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "O!sOOOO", core_model_type, &o.model, &json, &o.schedule, &o.scaler,
                          &o.session, &o.over) ||
        take_objects(&o) != 0 || (self = core_alloc(trainer_type)) == NULL)
        return NULL;
    self->schedule = optional(o.schedule);
    self->scaler = optional(o.scaler);
    self->comm = core_comm_hold(o.parallel.comm);
    Py_BEGIN_ALLOW_THREADS
    st = create_of_json(self, json, &o, &violations);
    Py_END_ALLOW_THREADS
    if (st == OT_OK && violations == NULL)
        return (PyObject *)self;
    if (violations != NULL)
        PyErr_Format(core_error_class(OT_ERR_INVALID), "invalid configuration: %s", violations);
    else
        failure(self, st);
    ot_string_free(violations);
    Py_DECREF(self);
    return NULL;
}

static void trainer_dealloc(PyObject *self)
{
    trainer_object *t = (trainer_object *)self;

    if (!core_comm_is_over(t->comm))
        ot_trainer_destroy(t->trainer);
    core_comm_release(t->comm);
    Py_CLEAR(t->schedule);
    Py_CLEAR(t->scaler);
    core_free(self);
}

// ---- questions ----

static const char *input_name(const void *trainer, int index)
{
    return ot_trainer_input_name(trainer, index);
}

static const char *output_name(const void *trainer, int index)
{
    return ot_trainer_output_name(trainer, index);
}

static PyObject *trainer_input_names(PyObject *self, PyObject *unused)
{
    const ot_trainer *trainer = ((trainer_object *)self)->trainer;

    (void)unused;
    return core_names(ot_trainer_input_count(trainer), input_name, trainer);
}

static PyObject *trainer_output_names(PyObject *self, PyObject *unused)
{
    const ot_trainer *trainer = ((trainer_object *)self)->trainer;

    (void)unused;
    return core_names(ot_trainer_output_count(trainer), output_name, trainer);
}

static PyObject *trainer_computed_in(PyObject *self, PyObject *index)
{
    const long i = PyLong_AsLong(index);

    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(
        (long)ot_trainer_output_computed_in(((trainer_object *)self)->trainer, (int)i));
}

static PyObject *trainer_info(PyObject *self, PyObject *unused)
{
    ot_step_info info = OT_STEP_INFO_INIT;
    const ot_status st = ot_trainer_info(((trainer_object *)self)->trainer, &info);

    (void)unused;
    if (st != OT_OK)
        return core_raise(st);
    return Py_BuildValue("(NLLddd)", PyBool_FromLong(info.all_finite),
                         (long long)info.optimization_step, (long long)info.step,
                         info.learning_rate, info.loss_scale, info.gradient_norm);
}

// ---- steps ----

static PyObject *trainer_set_fetches(PyObject *self, PyObject *names)
{
    trainer_object *t = (trainer_object *)self;
    core_strings fetches;
    ot_status st;

    if (core_strings_take(names, &fetches) != 0)
        return NULL;
    st = ot_trainer_set_fetches(t->trainer, fetches.items, fetches.count);
    if (st == OT_OK)
        t->n_fetches = fetches.count;
    core_strings_drop(&fetches);
    return core_result(st);
}

static PyObject *run_step(trainer_object *self, const core_tensors *inputs, bool is_training)
{
    const int n = self->n_fetches > 0 ? self->n_fetches : ot_trainer_output_count(self->trainer);
    ot_tensor **outputs = calloc((size_t)n + 1, sizeof(*outputs));
    PyObject *result;
    ot_status st;

    if (outputs == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    st = is_training
             ? ot_trainer_train_step(self->trainer, inputs->items, inputs->count, outputs, n)
             : ot_trainer_eval_step(self->trainer, inputs->items, inputs->count, outputs, n);
    Py_END_ALLOW_THREADS
    result = st == OT_OK ? core_tensor_list(outputs, n) : failure(self, st);
    free(outputs);
    return result;
}

static PyObject *trainer_step(PyObject *self, PyObject *args)
{
    PyObject *sequence, *result;
    int is_training;
    core_tensors inputs;

    if (!PyArg_ParseTuple(args, "Op", &sequence, &is_training) ||
        core_tensors_take(sequence, &inputs) != 0)
        return NULL;
    result = run_step((trainer_object *)self, &inputs, is_training);
    core_tensors_drop(&inputs);
    return result;
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"create", trainer_create, METH_VARARGS | METH_STATIC,
     "create(Model, json, schedule or None, LossScaler or None, session options or None, "
     "(Comm or None, bucket_bytes, zero, sync_batch_norm))"},
    {"input_names", trainer_input_names, METH_NOARGS, "In the order of the description."},
    {"output_names", trainer_output_names, METH_NOARGS, "In the order of the description."},
    {"computed_in", trainer_computed_in, METH_O,
     "computed_in(index) -> ONNX's number of the type that the latest train step computed an "
     "output "
     "in"},
    {"info", trainer_info, METH_NOARGS,
     "(all_finite, optimization_step, step, learning_rate, loss_scale, gradient_norm)"},
    {"set_fetches", trainer_set_fetches, METH_O, "set_fetches(names); none: all outputs"},
    {"step", trainer_step, METH_VARARGS, "step(inputs, training) -> list of Tensor"},
    {"get_state", core_trainer_get_state, METH_VARARGS, "get_state(sections) -> dict of dicts"},
    {"set_state", core_trainer_set_state, METH_VARARGS, "set_state(dict of dicts, strict)"},
    {"get_shards", core_trainer_get_shards, METH_VARARGS, "get_shards(how) -> dict of dicts"},
    {"set_shards", core_trainer_set_shards, METH_VARARGS,
     "set_shards(how, dict of dicts, only to check) -> what did not fit"},
    {"save", core_trainer_save, METH_VARARGS,
     "save(path, include_optimizer_states, user_dict or None, hdf5)"},
    {"load", core_trainer_load, METH_VARARGS, "load(paths, strict) -> user_dict or None"},
    {"export", core_trainer_export, METH_NOARGS, "The forward model as it is trained."},
    {"save_as_onnx", core_trainer_save_as_onnx, METH_VARARGS, "save_as_onnx(path)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A trainer over a model."},
    {Py_tp_dealloc, trainer_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Trainer",
    .basicsize = sizeof(trainer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_trainer(PyObject *module)
{
    return core_add_type(module, &spec, &trainer_type);
}
