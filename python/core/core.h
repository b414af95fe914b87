// SPDX-License-Identifier: Apache-2.0
// What the files of the extension module share: objects around the library's handles.
#ifndef PYTHON_CORE_H
#define PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000 // one build serves Python 3.10 and every later version
#include <Python.h>
#include <stdbool.h>

#include "onnxtrain/onnxtrain.h"

typedef struct tensor_object {
    PyObject_HEAD ot_tensor *tensor;
    PyObject *owner; // keeps borrowed elements alive; NULL when the tensor owns them
} tensor_object;

typedef struct model_object {
    PyObject_HEAD ot_model *model;
    PyObject *owner; // of the model; NULL: this object
} model_object;

typedef struct session_object session_object;

// A checkpoint and the session over it are one state: `busy` guards both.
typedef struct checkpoint_object {
    PyObject_HEAD ot_checkpoint *checkpoint;
    session_object *session; // that works on it now, or NULL; borrowed
    bool busy;               // a thread without the interpreter's lock is inside
    bool in_run;             // a training run is under way, perhaps in its callback
    unsigned long guest;     // the thread whose callback may enter though busy; 0: none
} checkpoint_object;

// A communicator. Who uses it keeps it open, and has no use for it once the process ends.
typedef struct comm_object {
    PyObject_HEAD ot_comm *comm; // NULL: closed
    int n_users;
    struct comm_object *previous, *next; // of those that are open
} comm_object;

struct session_object {
    PyObject_HEAD ot_session *session; // NULL: another session took the checkpoint over
    checkpoint_object *checkpoint;
    comm_object *comm; // held; NULL: none
    ot_precision precision;
};

// A loss scaler, which trainers share.
typedef struct scaler_object {
    PyObject_HEAD ot_loss_scaler scaler;
    PyObject *function; // a rule of the program's; NULL: none
    bool failed;        // an exception of it is set
} scaler_object;

extern PyTypeObject *core_tensor_type, *core_model_type, *core_checkpoint_type, *core_session_type,
    *core_batches_type, *core_artifacts_type, *core_scaler_type, *core_comm_type;

int core_add_errors(PyObject *module); // and the rest: 0, or -1 with an exception
int core_add_tensor(PyObject *module);
int core_add_model(PyObject *module);
int core_add_checkpoint(PyObject *module);
int core_add_session(PyObject *module);
int core_add_artifacts(PyObject *module);
int core_add_data(PyObject *module);
int core_add_train(PyObject *module);
int core_add_runner(PyObject *module);
int core_add_gradients(PyObject *module);
int core_add_report(PyObject *module);
int core_add_record(PyObject *module);
int core_add_schedule(PyObject *module);
int core_add_config(PyObject *module);
int core_add_trainer(PyObject *module);
int core_add_dict(PyObject *module);
int core_add_log(PyObject *module);
int core_add_comm(PyObject *module);
int core_add_directory(PyObject *module);

// errors.c: the class of a status, borrowed; an exception for the failed call, NULL.
PyObject *core_error_class(ot_status status);
extern PyObject *core_type_class; // InvalidType
PyObject *core_raise(ot_status status);
// None, or the exception.
PyObject *core_result(ot_status status);

// module.c: makes the type and puts it into the module.
int core_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type);
void *core_alloc(PyTypeObject *type); // a zeroed object; NULL with an exception
void core_free(PyObject *self);       // for the end of a destructor
// A name or text of the library, None for NULL; an exception where it is not UTF-8.
PyObject *core_text(const char *text);
PyObject *core_names(int count, const char *(*name_at)(const void *, int), const void *handle);

// Texts of a list for the library. None: items NULL, count 0.
typedef struct core_strings {
    const char **items;
    int count;
    PyObject *list; // holds the objects while the lock is released
} core_strings;
int core_strings_take(PyObject *list, core_strings *out); // 0, or -1 with an exception
void core_strings_drop(core_strings *strings);

// config.c: a configuration of JSON, also where something is wrong with it: then `violations` is to
// be freed, and the status is OT_OK.
ot_status core_config_read(const char *json, ot_config **config, char **violations);

// dict.c: a tree as a Python dict, whose tensors keep the tree; takes it over, also on failure. And
// the other way round; the tensors stay those of the objects. NULL with an exception.
PyObject *core_dict_new(ot_dict *dict);
ot_dict *core_dict_take(PyObject *dict);
// The values of a Python dict into another by their names, each by `take`; not 0 with an exception.
typedef int (*core_take_value)(PyObject *value, const char *name, ot_dict *to);
int core_dict_take_pairs(PyObject *from, ot_dict *to, core_take_value take);

// data.c: numbers of a sequence, to be freed; None: NULL, and *count stays. 0, or -1 with an
// exception.
int core_numbers_take(PyObject *sequence, double **out, int *count);
typedef struct batches_object {
    PyObject_HEAD ot_batches *batches;
    PyObject *dataset;
} batches_object;

// dlpack.c: methods of Tensor
PyObject *core_from_dlpack(PyObject *class, PyObject *capsule);
PyObject *core_to_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *core_dlpack_device(PyObject *self, PyObject *unused);

// tensor.c
PyObject *core_tensor_new(ot_tensor *tensor); // takes the tensor over, also on failure
// The same of elements that `owner` keeps.
PyObject *core_tensor_over(ot_tensor *tensor, PyObject *owner);
PyObject *core_shape_tuple(const ot_shape *shape);
int core_shape_take(PyObject *sequence, ot_shape *shape); // 0, or -1 with an exception
typedef struct core_tensors {
    const ot_tensor **items;
    int count;
    PyObject *list; // holds the objects while the lock is released
} core_tensors;
int core_tensors_take(PyObject *sequence, core_tensors *out); // 0, or -1 with an exception
void core_tensors_drop(core_tensors *tensors);
// A list of Tensor objects; takes all tensors over.
PyObject *core_tensor_list(ot_tensor **tensors, int count);

// model.c
// Takes the model over, also on failure; with an owner, that keeps it.
PyObject *core_model_new(ot_model *model, PyObject *owner);
PyObject *core_value_info(ot_dtype dtype, const ot_shape *shape); // (number, tuple or None)

// checkpoint.c
PyObject *core_checkpoint_new(ot_checkpoint *checkpoint); // takes it over, also on failure
bool core_enter(checkpoint_object *state); // false with an exception: another thread is inside
void core_leave(checkpoint_object *state);

// artifacts.c
typedef struct artifacts_object {
    PyObject_HEAD ot_artifacts *artifacts;
} artifacts_object;
// The tuples of Artifacts.generate() in the library's form.
enum { CORE_MAX_LOSSES = 16, CORE_MAX_HYPER = 16 };
typedef struct core_artifacts_options {
    ot_artifacts_options options;
    ot_optimizer_options optimizer;
    ot_hyper hyper[CORE_MAX_HYPER], no_decay;
    ot_param_group undecayed;
    ot_trainer_options trainer;
    ot_loss_options losses[CORE_MAX_LOSSES];
    core_strings trainable, frozen, additional, init, shared,
        undecayed_names; // memory of what `options` points to
} core_artifacts_options;
// The list of a loss's terms: 0, or -1 with an exception.
int core_losses_take(PyObject *list, ot_loss_options losses[CORE_MAX_LOSSES], int *n);
int core_artifacts_options_take(PyObject *args, PyObject **model, core_artifacts_options *out);
void core_artifacts_options_drop(core_artifacts_options *options);

// record.c: how a model was trained, (artifacts, forward Model or None, scale, mean, std, classes);
// None: artifacts NULL.
typedef struct core_trained {
    const ot_artifacts *artifacts;
    ot_data_options data; // points to `batches`: the struct stays where it is
    ot_batches_options batches;
    core_strings classes;
    double *mean, *std;
} core_trained;
int core_trained_take(PyObject *tuple, core_trained *out); // 0, or -1 with an exception
void core_trained_drop(core_trained *trained);

// session.c: the session of a call that is about to begin, or NULL with an exception; core_leave()
// ends it. core_session_hold(): of one that a training run's callback may make.
// core_session_look(): of one that begins and ends at once. Arguments are parsed before: they may
// run any code.
ot_session *core_session_enter(PyObject *self);
ot_session *core_session_hold(PyObject *self);
ot_session *core_session_look(PyObject *self);
// session_parameters.c: methods
PyObject *core_session_parameters_size(PyObject *self, PyObject *args);
PyObject *core_session_get_parameters(PyObject *self, PyObject *args);
PyObject *core_session_set_parameters(PyObject *self, PyObject *args);
PyObject *core_session_get_gradients(PyObject *self, PyObject *unused);
PyObject *core_session_scale_gradients(PyObject *self, PyObject *args);
PyObject *core_session_get_input_gradient(PyObject *self, PyObject *args);
// trainer_state.c: methods
typedef struct trainer_object {
    PyObject_HEAD ot_trainer *trainer;
    comm_object *comm;  // held; NULL: none
    PyObject *schedule; // function that gives the learning rates; NULL: none
    PyObject *scaler;   // a LossScaler; NULL: none
    int n_fetches;
    bool failed; // the schedule raised: the exception is set
} trainer_object;
PyObject *core_trainer_get_state(PyObject *self, PyObject *args);
PyObject *core_trainer_set_state(PyObject *self, PyObject *args);
PyObject *core_trainer_save(PyObject *self, PyObject *args);
PyObject *core_trainer_load(PyObject *self, PyObject *args);
PyObject *core_trainer_export(PyObject *self, PyObject *unused);
// shards.c: methods, and parts of a tensor, whose elements `owner` keeps
PyObject *core_session_get_shards(PyObject *self, PyObject *args);
PyObject *core_session_set_shards(PyObject *self, PyObject *args);
PyObject *core_trainer_get_shards(PyObject *self, PyObject *args);
PyObject *core_trainer_set_shards(PyObject *self, PyObject *args);
PyObject *core_shards_new(const ot_shards *shards, PyObject *owner);
// A state, whose tensors are views of the objects' memory; NULL with an exception.
ot_dict *core_state_take(PyObject *state);
PyObject *core_trainer_save_as_onnx(PyObject *self, PyObject *args);
// comm.c: the communicator, or NULL with an exception.
ot_comm *core_comm_get(comm_object *comm);
typedef struct core_parallel {
    ot_parallel_options options;
    comm_object *comm; // borrowed; NULL: this process alone
} core_parallel;
// Of (Comm or None, bucket_bytes, zero): 0, or -1 with an exception.
int core_comm_take(PyObject *object, core_parallel *out);
// A user more, and one less; NULL is fine.
comm_object *core_comm_hold(comm_object *comm);
void core_comm_release(comm_object *comm);
// Where the process is at its end: what works over it must not be destroyed any more.
bool core_comm_is_over(const comm_object *comm);
// A new session object over a state; `make` creates the session without the interpreter's lock.
typedef ot_status (*core_make_session)(void *context, ot_checkpoint *checkpoint,
                                       const ot_session_options *options, ot_session **out);
PyObject *core_session_new(checkpoint_object *state, const ot_session_options *options,
                           comm_object *comm, core_make_session make, void *context);

#endif
