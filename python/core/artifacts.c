// SPDX-License-Identifier: Apache-2.0
// Artifacts: from a forward model to the four files.
#include <stdlib.h>
#include <string.h>

#include "core.h"

PyTypeObject *core_artifacts_type;

// ---- arguments ----

void core_artifacts_options_drop(core_artifacts_options *a)
{
    core_strings_drop(&a->trainable);
    core_strings_drop(&a->frozen);
    core_strings_drop(&a->additional);
    core_strings_drop(&a->init);
    core_strings_drop(&a->shared);
    core_strings_drop(&a->undecayed_names);
}

// A tensor or a model, or NULL for None.
static int take_optional(PyObject *object, PyTypeObject *type, const char *expected)
{
    if (object == Py_None)
        return 0;
    if (PyObject_TypeCheck(object, type))
        return 1;
    PyErr_SetString(PyExc_TypeError, expected);
    return -1;
}

// A loss is (kind, factor, input or None, target or None, reduction) and perhaps (class weights or
// None, ignored label or None, Model or None, class axis).
static int take_loss(PyObject *item, ot_loss_options *loss)
{
    const ot_loss_options defaults = OT_LOSS_OPTIONS_INIT;
    PyObject *weights = Py_None, *ignored = Py_None, *custom = Py_None;
    int kind, reduction, has_weights, has_custom;

    *loss = defaults;
    if (!PyArg_ParseTuple(item, "idzzi|OOOi", &kind, &loss->factor, &loss->input, &loss->target,
                          &reduction, &weights, &ignored, &custom, &loss->class_axis))
        return -1;
    loss->loss = (ot_loss)kind;
    loss->reduction = (ot_reduction)reduction;
    has_weights = take_optional(weights, core_tensor_type, "expected a Tensor or None");
    has_custom = take_optional(custom, core_model_type, "expected a Model or None");
    if (has_weights < 0 || has_custom < 0)
        return -1;
    loss->weight = has_weights ? ((tensor_object *)weights)->tensor : NULL;
    loss->custom = has_custom ? ((model_object *)custom)->model : NULL;
    loss->has_ignore_index = ignored != Py_None;
    if (loss->has_ignore_index)
        loss->ignore_index = PyLong_AsLongLong(ignored);
    return PyErr_Occurred() ? -1 : 0;
}

int core_losses_take(PyObject *list, ot_loss_options losses[CORE_MAX_LOSSES], int *count)
{
    const Py_ssize_t n = PyList_Size(list);

    if (n < 0)
        return -1;
    if (n > CORE_MAX_LOSSES) {
        PyErr_Format(core_error_class(OT_ERR_INVALID), "%zd losses, at most %d are possible", n,
                     CORE_MAX_LOSSES);
        return -1;
    }
    for (int i = 0; i < (int)n; i++)
        if (take_loss(PyList_GetItem(list, i), &losses[i]) != 0)
            return -1;
    *count = (int)n;
    return 0;
}

// (operator or None, [(hyper-parameter, number), ...], max_norm[, [parameters without decay],
// hyper-parameter of the decay])
static int take_optimizer(PyObject *tuple, core_artifacts_options *a)
{
    ot_optimizer_options *o = &a->optimizer;
    PyObject *numbers, *undecayed = Py_None;

    if (!PyArg_ParseTuple(tuple, "zO!d|Os", &o->name, &PyList_Type, &numbers, &o->max_norm,
                          &undecayed, &a->no_decay.name) ||
        core_strings_take(undecayed, &a->undecayed_names) != 0)
        return -1;
    if (a->undecayed_names.count > 0) {
        a->undecayed = (ot_param_group)OT_PARAM_GROUP_INIT;
        a->undecayed.params = a->undecayed_names.items;
        a->undecayed.n_params = a->undecayed_names.count;
        a->undecayed.hyper = &a->no_decay;
        a->undecayed.n_hyper = 1;
        o->groups = &a->undecayed;
        o->n_groups = 1;
    }
    if (PyList_Size(numbers) > CORE_MAX_HYPER) {
        PyErr_Format(core_error_class(OT_ERR_INVALID),
                     "%zd hyper-parameters, at most %d are possible", PyList_Size(numbers),
                     CORE_MAX_HYPER);
        return -1;
    }
    o->n_hyper = (int)PyList_Size(numbers);
    o->hyper = a->hyper;
    for (int i = 0; i < o->n_hyper; i++)
        if (!PyArg_ParseTuple(PyList_GetItem(numbers, i), "sd", &a->hyper[i].name,
                              &a->hyper[i].value))
            return -1;
    return 0;
}

int core_artifacts_options_take(PyObject *args, PyObject **model, core_artifacts_options *a)
{
    PyObject *losses, *optimizer, *trainable, *frozen, *additional, *init, *shared = Py_None;
    ot_artifacts_options *o = &a->options;
    const ot_optimizer_options optimizer_defaults = OT_OPTIMIZER_OPTIONS_INIT;
    const ot_trainer_options trainer_defaults = OT_TRAINER_OPTIONS_INIT;
    int batch_norm, is_prepared = 1, precision = OT_PRECISION_F32, standard_ops = 0;
    unsigned long long seed;

    a->optimizer = optimizer_defaults;
    a->trainer = trainer_defaults;
    o->optimizer = &a->optimizer;
    if (!PyArg_ParseTuple(args, "O!O!O!OOOiiKO|ppppOpppip", core_model_type, model, &PyList_Type,
                          &losses, &PyTuple_Type, &optimizer, &trainable, &frozen, &additional,
                          &batch_norm, &o->ignore_unknown_frozen, &seed, &init, &o->ort_format,
                          &o->train_buffers, &o->input_gradients, &o->names_of_module, &shared,
                          &is_prepared, &o->unrecorded, &a->trainer.skip_non_finite, &precision,
                          &standard_ops) ||
        core_losses_take(losses, a->losses, &o->n_losses) != 0 ||
        take_optimizer(optimizer, a) != 0 || core_strings_take(trainable, &a->trainable) != 0 ||
        core_strings_take(frozen, &a->frozen) != 0 ||
        core_strings_take(additional, &a->additional) != 0 ||
        core_strings_take(init, &a->init) != 0 || core_strings_take(shared, &a->shared) != 0)
        return -1;
    a->trainer.precision = (ot_precision)precision;
    o->standard_ops = standard_ops;
    o->losses = a->losses;
    o->batch_norm = (ot_batch_norm)batch_norm;
    o->seed = seed;
    o->trainable = a->trainable.items;
    o->n_trainable = a->trainable.count;
    o->frozen = a->frozen.items;
    o->n_frozen = a->frozen.count;
    o->additional_outputs = a->additional.items;
    o->n_additional_outputs = a->additional.count;
    o->init = a->init.items;
    o->n_init = a->init.count;
    o->shared = a->shared.items;
    o->n_shared = a->shared.count;
    o->prepare = is_prepared ? OT_PREPARE_TRAINING : OT_PREPARE_NONE;
    return 0;
}

// ---- life ----

static PyObject *artifacts_new(ot_artifacts *artifacts)
{
    artifacts_object *self = core_alloc(core_artifacts_type);

    if (self == NULL) {
        ot_artifacts_destroy(artifacts);
        return NULL;
    }
    self->artifacts = artifacts;
    return (PyObject *)self;
}

static PyObject *artifacts_generate(PyObject *class, PyObject *args)
{
    core_artifacts_options a = {.options = OT_ARTIFACTS_OPTIONS_INIT};
    PyObject *model, *result = NULL;
    ot_artifacts *artifacts;
    ot_status st;

    (void)class;
    if (core_artifacts_options_take(args, &model, &a) == 0) {
        Py_BEGIN_ALLOW_THREADS
        st = ot_trainer_generate_artifacts(((model_object *)model)->model, &a.options, &a.trainer,
                                           &artifacts);
        Py_END_ALLOW_THREADS
        result = st == OT_OK ? artifacts_new(artifacts) : core_raise(st);
    }
    core_artifacts_options_drop(&a);
    return result;
}

// [(whether it is a warning, text), ...]
static PyObject *artifacts_notes(PyObject *self, PyObject *unused)
{
    const ot_artifacts *artifacts = ((artifacts_object *)self)->artifacts;
    const int n = ot_artifacts_note_count(artifacts);
    PyObject *list = PyList_New(n);

    (void)unused;
    for (int i = 0; list != NULL && i < n; i++) {
        ot_log_level level;
        const char *text = ot_artifacts_note(artifacts, i, &level);
        PyObject *note =
            Py_BuildValue("(ON)", level == OT_LOG_WARNING ? Py_True : Py_False, core_text(text));

        if (note == NULL || PyList_SetItem(list, i, note) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *artifacts_load(PyObject *class, PyObject *args)
{
    PyObject *folder;
    ot_artifacts *artifacts;
    ot_status st;

    (void)class;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &folder))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = ot_artifacts_load(PyBytes_AsString(folder), "", &artifacts);
    Py_END_ALLOW_THREADS
    Py_DECREF(folder);
    return st == OT_OK ? artifacts_new(artifacts) : core_raise(st);
}

static void artifacts_dealloc(PyObject *self)
{
    ot_artifacts_destroy(((artifacts_object *)self)->artifacts);
    core_free(self);
}

// ---- saving ----

static PyObject *save(PyObject *self, PyObject *args,
                      ot_status (*write)(const ot_artifacts *, const char *, const char *))
{
    const ot_artifacts *artifacts = ((artifacts_object *)self)->artifacts;
    PyObject *folder, *prefix;
    ot_status st;

    if (!PyArg_ParseTuple(args, "O&O&", PyUnicode_FSConverter, &folder, PyUnicode_FSConverter,
                          &prefix))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = write(artifacts, PyBytes_AsString(folder), PyBytes_AsString(prefix));
    Py_END_ALLOW_THREADS
    Py_DECREF(folder);
    Py_DECREF(prefix);
    return core_result(st);
}

static PyObject *artifacts_save(PyObject *self, PyObject *args)
{
    return save(self, args, ot_artifacts_save);
}

static PyObject *artifacts_save_nominal(PyObject *self, PyObject *args)
{
    return save(self, args, ot_artifacts_save_nominal);
}

// ---- the parts ----

// model(0 training, 1 eval, 2 optimizer) -> a Tensor with the bytes of the model, or None
static PyObject *artifacts_model(PyObject *self, PyObject *args)
{
    const ot_artifacts *a = ((artifacts_object *)self)->artifacts;
    const ot_model *models[] = {ot_artifacts_training_model(a), ot_artifacts_eval_model(a),
                                ot_artifacts_optimizer_model(a)};
    ot_tensor *bytes = NULL;
    unsigned which;
    ot_status st = OT_OK;

    if (!PyArg_ParseTuple(args, "I", &which))
        return NULL;
    if (which >= sizeof models / sizeof models[0])
        return PyErr_Format(PyExc_ValueError, "there is no model %u", which);
    if (models[which] == NULL)
        return Py_NewRef(Py_None);
    Py_BEGIN_ALLOW_THREADS
    st = ot_model_to_bytes(models[which], &bytes);
    Py_END_ALLOW_THREADS
    return st == OT_OK ? core_tensor_new(bytes) : core_raise(st);
}

static PyObject *artifacts_set_optimizer(PyObject *self, PyObject *args)
{
    PyObject *model;

    if (!PyArg_ParseTuple(args, "O!", core_model_type, &model))
        return NULL;
    return core_result(ot_artifacts_set_optimizer_model(((artifacts_object *)self)->artifacts,
                                                        ((model_object *)model)->model));
}

static PyObject *artifacts_trains(PyObject *self, PyObject *unused)
{
    const ot_checkpoint *checkpoint =
        ot_artifacts_checkpoint(((artifacts_object *)self)->artifacts);
    const int n = checkpoint != NULL ? ot_checkpoint_parameter_count(checkpoint) : 0;
    bool trains = false;

    (void)unused;
    for (int i = 0; i < n && !trains; i++)
        trains = ot_checkpoint_parameter_trainable(
                     checkpoint, ot_checkpoint_parameter_name(checkpoint, i)) == 1;
    return PyBool_FromLong(trains);
}

// One row of artifacts_parameters().
static PyObject *parameter_row(const ot_checkpoint *checkpoint, int index)
{
    const char *name = ot_checkpoint_parameter_name(checkpoint, index);
    const int trains = ot_checkpoint_parameter_trainable(checkpoint, name);
    ot_tensor *tensor;
    const ot_status st = ot_checkpoint_get_parameter(checkpoint, name, &tensor);

    if (st != OT_OK)
        return core_raise(st);
    return Py_BuildValue("(NNN)", core_text(name), PyBool_FromLong(trains),
                         core_tensor_new(tensor));
}

static PyObject *artifacts_parameters(PyObject *self, PyObject *unused)
{
    const ot_checkpoint *checkpoint =
        ot_artifacts_checkpoint(((artifacts_object *)self)->artifacts);
    const int n = checkpoint != NULL ? ot_checkpoint_parameter_count(checkpoint) : 0;
    PyObject *list = PyList_New(n);

    (void)unused;
    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *row = parameter_row(checkpoint, i);

        if (row == NULL || PyList_SetItem(list, i, row) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// ---- training in memory ----

static ot_status make_of_artifacts(void *context, ot_checkpoint *checkpoint,
                                   const ot_session_options *options, ot_session **out)
{
    const ot_artifacts *a = context;

    return ot_session_create(ot_artifacts_training_model(a), ot_artifacts_eval_model(a),
                             ot_artifacts_optimizer_model(a), checkpoint, options, out);
}

static PyObject *take_checkpoint(ot_artifacts *artifacts)
{
    ot_checkpoint *checkpoint = ot_artifacts_take_checkpoint(artifacts);

    if (checkpoint != NULL)
        return core_checkpoint_new(checkpoint);
    return PyErr_Format(core_error_class(OT_ERR_STATE),
                        "the checkpoint of these artifacts has been taken");
}

static PyObject *artifacts_take_checkpoint(PyObject *self, PyObject *unused)
{
    (void)unused;
    return take_checkpoint(((artifacts_object *)self)->artifacts);
}

// session(checkpoint or None, n_threads, reproducible, memory_max, (Comm or None,
// bucket_bytes, zero, sync_batch_norm)) -> (Checkpoint, Session)
static PyObject *artifacts_session(PyObject *self, PyObject *args)
{
    ot_artifacts *artifacts = ((artifacts_object *)self)->artifacts;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    PyObject *state, *session, *over;
    unsigned long long memory_max;
    core_parallel parallel;
    int precision = OT_PRECISION_F32, dropout = 0, gelu = 0, layers = 0;

    if (!PyArg_ParseTuple(args, "OipKO|ipppi", &state, &options.n_threads, &options.reproducible,
                          &memory_max, &over, &precision, &dropout, &gelu, &layers,
                          &options.recompute_layers) ||
        core_comm_take(over, &parallel) != 0)
        return NULL;
    options.parallel = &parallel.options;
    options.memory_max = (size_t)memory_max;
    options.precision = (ot_precision)precision;
    options.recompute = (dropout ? OT_RECOMPUTE_ATTN_DROPOUT : 0u) |
                        (gelu ? OT_RECOMPUTE_GELU : 0u) | (layers ? OT_RECOMPUTE_LAYER : 0u);
    if (state == Py_None)
        state = take_checkpoint(artifacts);
    else if (PyObject_TypeCheck(state, core_checkpoint_type))
        Py_INCREF(state);
    else
        return PyErr_Format(PyExc_TypeError, "expected a Checkpoint or None");
    session = state != NULL ? core_session_new((checkpoint_object *)state, &options, parallel.comm,
                                               make_of_artifacts, artifacts)
                            : NULL;
    if (session == NULL) {
        Py_XDECREF(state);
        return NULL;
    }
    return Py_BuildValue("(NN)", state, session);
}

// ---- the type ----

static PyMethodDef methods[] = {
    {"generate", artifacts_generate, METH_VARARGS | METH_STATIC,
     "generate(model, losses, optimizer, trainable, frozen, additional, batch_norm, "
     "ignore_unknown_frozen, seed, init, ort_format=False, train_buffers=False, "
     "input_gradients=False, names_of_module=False, shared=None, prepare=True, "
     "unrecorded=False, skip_non_finite=False, precision=0, standard_ops=False) -> Artifacts"},
    {"load", artifacts_load, METH_VARARGS | METH_STATIC, "load(directory) -> Artifacts"},
    {"notes", artifacts_notes, METH_NOARGS, "notes() -> [(is a warning, text), ...]"},
    {"save", artifacts_save, METH_VARARGS, "save(directory, prefix)"},
    {"model", artifacts_model, METH_VARARGS,
     "model(0 training, 1 eval, 2 optimizer) -> Tensor of the model's bytes, or None"},
    {"set_optimizer", artifacts_set_optimizer, METH_VARARGS, "set_optimizer(model)"},
    {"trains", artifacts_trains, METH_NOARGS, "Whether there is a parameter that trains."},
    {"parameters", artifacts_parameters, METH_NOARGS,
     "(name, whether it trains, Tensor with a copy) of every parameter, sorted by name."},
    {"session", artifacts_session, METH_VARARGS,
     "session(checkpoint or None: takes its own, n_threads, reproducible, memory_max, (Comm or "
     "None, bucket_bytes, zero, sync_batch_norm), precision=0, attn_dropout=False, gelu=False, "
     "layers=False, number_of_layers=0) -> "
     "(Checkpoint, Session)"},
    {"take_checkpoint", artifacts_take_checkpoint, METH_NOARGS,
     "The checkpoint, which the artifacts then no longer have."},
    {"save_nominal", artifacts_save_nominal, METH_VARARGS, "save_nominal(directory, prefix)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Training, eval and optimizer model and a checkpoint."},
    {Py_tp_dealloc, artifacts_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "onnxtrain._core.Artifacts",
    .basicsize = sizeof(artifacts_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_artifacts(PyObject *module)
{
    return core_add_type(module, &spec, &core_artifacts_type);
}
