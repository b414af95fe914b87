// SPDX-License-Identifier: Apache-2.0
// Training state: parameters, optimizer moments, properties; the checkpoint file.
#ifndef ONNXTRAIN_CHECKPOINT_H
#define ONNXTRAIN_CHECKPOINT_H

#include "onnxtrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters (trainable and frozen), optimizer state and properties. One thread at a time: a call
 * from a second one, or while another thread is inside the session over it, returns OT_ERR_STATE.
 */
typedef struct ot_checkpoint ot_checkpoint;

/** New and empty; the caller destroys it. */
OT_API ot_status ot_checkpoint_create(ot_checkpoint **out);

/**
 * Read a checkpoint file (the format of ONNX Runtime training, versions 1 and 2).
 *
 * @return OT_ERR_IO, OT_ERR_FORMAT (what is wrong and where), OT_ERR_NO_MEMORY; *out is NULL then
 */
OT_API ot_status ot_checkpoint_load(const char *path, ot_checkpoint **out);
/** As ot_checkpoint_load(), without the optimizer state: what export and evaluation need. */
OT_API ot_status ot_checkpoint_load_parameters(const char *path, ot_checkpoint **out);
/** As ot_checkpoint_load() from memory, which is borrowed for the call. External data is
 * OT_ERR_UNSUPPORTED, since there is no directory. */
OT_API ot_status ot_checkpoint_load_buffer(const void *bytes, size_t n_bytes, ot_checkpoint **out);

enum {
    OT_CHECKPOINT_OPTIMIZER_STATE = 1, /**< moments and step too */
    OT_CHECKPOINT_NOMINAL = 2,         /**< names and element types of parameters, no values */
};

/** Write version 2, durably: a kill at any moment leaves the old or the new file. */
OT_API ot_status ot_checkpoint_save(ot_checkpoint *checkpoint, const char *path, unsigned flags);

/**
 * As ot_checkpoint_save(), into memory, in one piece.
 *
 * @param to      receives the bytes if there is room; NULL: only the number is wanted
 * @param n_bytes receives how many bytes there are
 * @return OT_ERR_INVALID when `capacity` is less; OT_ERR_UNSUPPORTED for 1.8 GiB and more, for
 * which the format needs a file beside it
 */
OT_API ot_status ot_checkpoint_save_buffer(ot_checkpoint *checkpoint, unsigned flags, void *to,
                                           size_t capacity, size_t *n_bytes);

/** NULL is fine. A session over it goes on; the memory goes with the session then. While another
 * thread is inside, nothing happens. */
OT_API void ot_checkpoint_destroy(ot_checkpoint *checkpoint);

/** 1 when it holds names and element types only; a session gives it values through
 * ot_session_set_parameters(). */
OT_API int ot_checkpoint_is_nominal(const ot_checkpoint *checkpoint);

// ---- parameters: sorted by name ----

enum { OT_PARAMETER_FROZEN = 0, OT_PARAMETER_TRAINABLE = 1 };

OT_API int ot_checkpoint_parameter_count(const ot_checkpoint *checkpoint);
/** Owned by the checkpoint; NULL out of range. */
OT_API const char *ot_checkpoint_parameter_name(const ot_checkpoint *checkpoint, int index);
/** 1 trainable, 0 frozen, -1 no such parameter. */
OT_API int ot_checkpoint_parameter_trainable(const ot_checkpoint *checkpoint, const char *name);
/** Type and shape; shape->ndim is -1 in a nominal checkpoint. OT_ERR_NOT_FOUND. */
OT_API ot_status ot_checkpoint_parameter_info(const ot_checkpoint *checkpoint, const char *name,
                                              ot_dtype *dtype, ot_shape *shape);
/** A copy of the value; the caller destroys it. OT_ERR_NOT_FOUND; OT_ERR_STATE for a nominal
 * checkpoint. */
OT_API ot_status ot_checkpoint_get_parameter(const ot_checkpoint *checkpoint, const char *name,
                                             ot_tensor **out);
/** Overwrite the value; same type and shape, else OT_ERR_INVALID with both. Sessions see it at
 * their next step. */
OT_API ot_status ot_checkpoint_set_parameter(ot_checkpoint *checkpoint, const char *name,
                                             const ot_tensor *value);
/** A copy of the accumulated gradient. OT_ERR_STATE before a session exists, for a frozen
 * parameter, and where a trainer's steps keep none (docs/trainer.md). */
OT_API ot_status ot_checkpoint_get_gradient(const ot_checkpoint *checkpoint, const char *name,
                                            ot_tensor **out);
/** Overwrite the gradient; the parameter's type and shape, else OT_ERR_INVALID with both. The next
 * optimizer step uses it, a train step before that adds to it or overwrites it, as
 * ot_session_reset_gradients() says. One given before there is a session is kept by it. */
OT_API ot_status ot_checkpoint_set_gradient(ot_checkpoint *checkpoint, const char *name,
                                            const ot_tensor *gradient);
/** Add a parameter with a copy of `value`; an existing name is OT_ERR_INVALID. */
OT_API ot_status ot_checkpoint_add_parameter(ot_checkpoint *checkpoint, const char *name,
                                             const ot_tensor *value, int trainable);

// ---- properties: named values of the user's; names under "onnxtrain." are the library's ----

typedef enum ot_property_kind {
    OT_PROPERTY_INT = 0,
    OT_PROPERTY_FLOAT = 1,
    OT_PROPERTY_STRING = 2,
} ot_property_kind;

/** Replaces a property of the same name, also one of another kind. */
OT_API ot_status ot_checkpoint_set_int(ot_checkpoint *checkpoint, const char *name, int64_t value);
OT_API ot_status ot_checkpoint_set_float(ot_checkpoint *checkpoint, const char *name, float value);
OT_API ot_status ot_checkpoint_set_string(ot_checkpoint *checkpoint, const char *name,
                                          const char *value);
/** OT_ERR_NOT_FOUND when missing, OT_ERR_INVALID when of another kind. */
OT_API ot_status ot_checkpoint_get_int(const ot_checkpoint *checkpoint, const char *name,
                                       int64_t *out);
OT_API ot_status ot_checkpoint_get_float(const ot_checkpoint *checkpoint, const char *name,
                                         float *out);
/** Owned by the checkpoint until the property is set anew. */
OT_API ot_status ot_checkpoint_get_string(const ot_checkpoint *checkpoint, const char *name,
                                          const char **out);
OT_API int ot_checkpoint_property_count(const ot_checkpoint *checkpoint);
OT_API const char *ot_checkpoint_property_name(const ot_checkpoint *checkpoint,
                                               int index); ///< sorted
OT_API ot_status ot_checkpoint_property_kind_of(const ot_checkpoint *checkpoint, const char *name,
                                                ot_property_kind *out);
OT_API ot_status ot_checkpoint_remove_property(ot_checkpoint *checkpoint, const char *name);

#ifdef __cplusplus
}
#endif
#endif
