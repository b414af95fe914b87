// SPDX-License-Identifier: Apache-2.0
// An ordered tree of named values: what states of training are handed around as.
#ifndef ONNXTRAIN_DICT_H
#define ONNXTRAIN_DICT_H

#include "onnxtrain/sharding.h"
#include "onnxtrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ot_dict_kind {
    OT_DICT_BOOL,
    OT_DICT_INT,
    OT_DICT_FLOAT,
    OT_DICT_STRING,
    OT_DICT_INTS,
    OT_DICT_TENSOR,
    OT_DICT_DICT,
    OT_DICT_NULL, ///< there is such a name, and no more
    OT_DICT_BYTES,
    OT_DICT_LIST,
    OT_DICT_SHARDS,
} ot_dict_kind;

/** Values by name, in the order in which they were set. A dict within another belongs to that one.
 * One thread at a time uses a tree.
 *
 * A list is a dict whose values have the names "0", "1" and so on: another name than that of a
 * value that is there, or of the next one, is OT_ERR_INVALID, and so is removing another than the
 * last. */
typedef struct ot_dict ot_dict;

/** Parts of a tensor: what a process has of one that is spread over several. */
typedef struct ot_shards {
    ot_dtype dtype;
    ot_shape shape;          ///< of the whole
    int n_parts;             ///< 0: nothing of it is here
    const ot_box *boxes;     ///< which elements a part has
    ot_tensor *const *parts; ///< of the sizes of their boxes
} ot_shards;

OT_API ot_status ot_dict_create(ot_dict **out);
/** NULL is fine; so is a dict within another one, which is destroyed with that: nothing happens. */
OT_API void ot_dict_destroy(ot_dict *dict);

OT_API int ot_dict_count(const ot_dict *dict);
/** Owned by the dict; NULL out of range. */
OT_API const char *ot_dict_name(const ot_dict *dict, int index);
/** OT_ERR_NOT_FOUND when there is no such name. */
OT_API ot_status ot_dict_kind_of(const ot_dict *dict, const char *name, ot_dict_kind *out);

// OT_ERR_NOT_FOUND when there is no such name, with the nearest; OT_ERR_INVALID for a value of
// another kind, with both kinds. What is handed out is owned by the dict until the value is set
// again or removed.

OT_API ot_status ot_dict_get_bool(const ot_dict *dict, const char *name, int *out);
OT_API ot_status ot_dict_get_int(const ot_dict *dict, const char *name, int64_t *out);
OT_API ot_status ot_dict_get_float(const ot_dict *dict, const char *name, double *out);
OT_API ot_status ot_dict_get_string(const ot_dict *dict, const char *name, const char **out);
/** Also of a tensor of i64 with one axis, which is what files have of a list. */
OT_API ot_status ot_dict_get_ints(const ot_dict *dict, const char *name, const int64_t **out,
                                  int *n);
OT_API ot_status ot_dict_get_tensor(const ot_dict *dict, const char *name, const ot_tensor **out);
OT_API ot_status ot_dict_get_dict(ot_dict *dict, const char *name, ot_dict **out);
OT_API ot_status ot_dict_get_list(ot_dict *dict, const char *name, ot_dict **out);
OT_API ot_status ot_dict_get_bytes(const ot_dict *dict, const char *name, const void **out,
                                   size_t *n_bytes);
OT_API ot_status ot_dict_get_shards(const ot_dict *dict, const char *name, const ot_shards **out);

// A value that is there already is replaced, in its place, also one of another kind. Names are not
// empty. On failure the dict stays as it was.

OT_API ot_status ot_dict_set_bool(ot_dict *dict, const char *name, int value);
OT_API ot_status ot_dict_set_int(ot_dict *dict, const char *name, int64_t value);
OT_API ot_status ot_dict_set_float(ot_dict *dict, const char *name, double value);
OT_API ot_status ot_dict_set_string(ot_dict *dict, const char *name, const char *value);
OT_API ot_status ot_dict_set_ints(ot_dict *dict, const char *name, const int64_t *values, int n);
/** A copy of the tensor. */
OT_API ot_status ot_dict_set_tensor(ot_dict *dict, const char *name, const ot_tensor *value);
/** The tensor itself, which the dict destroys from then on; on failure it stays the caller's. */
OT_API ot_status ot_dict_take_tensor(ot_dict *dict, const char *name, ot_tensor *value);
/** A new empty dict. */
OT_API ot_status ot_dict_set_dict(ot_dict *dict, const char *name, ot_dict **out);
/** A new empty list. */
OT_API ot_status ot_dict_set_list(ot_dict *dict, const char *name, ot_dict **out);
OT_API ot_status ot_dict_set_null(ot_dict *dict, const char *name);
/** A copy of the bytes. */
OT_API ot_status ot_dict_set_bytes(ot_dict *dict, const char *name, const void *bytes,
                                   size_t n_bytes);
/**
 * Parts of a tensor whose whole has this type and shape.
 *
 * @param boxes copied; NULL is fine where there are none
 * @param parts tensors of that type and of the sizes of the boxes, which the dict destroys from
 * then on; on failure they stay the caller's. Those of ot_tensor_wrap() are views of memory that
 * must be there until the value is replaced or removed. NULL: new ones, of zeros
 * @return OT_ERR_INVALID for boxes that are empty, not within the shape or have elements in common,
 * and for parts that are not of their sizes; OT_ERR_UNSUPPORTED for strings and for types below 8
 * bits
 */
OT_API ot_status ot_dict_take_shards(ot_dict *dict, const char *name, ot_dtype dtype,
                                     const ot_shape *shape, const ot_box *boxes,
                                     ot_tensor *const *parts, int n_parts);
/** OT_ERR_NOT_FOUND when there is no such name. */
OT_API ot_status ot_dict_remove(ot_dict *dict, const char *name);

// ---- HDF5 files (libhdf5, OT_WITH_HDF5), in the layout of ONNX Runtime's ORTTrainer ----

/**
 * Write a new file, durably: a group for every dict, a dataset for every value. Tensors of bf16
 * become f32. A '/' in a name makes groups within groups.
 *
 * @return OT_ERR_IO when there is something at the path, which stays; OT_ERR_UNSUPPORTED naming
 * values (null, bytes, lists, shards, some types) and names that such files cannot hold, or that
 * this library was built without it
 */
OT_API ot_status ot_dict_save_hdf5(const ot_dict *dict, const char *path);
/**
 * Read a file of any maker, if it is to be trusted: libhdf5 is not safe on files that are made to
 * harm. Scalars of i64, f64, bool and strings are such values; all else is tensors.
 *
 * @param key the group or dataset to read, its path joined by '/': the dict has it alone, by the
 * last part of that name. NULL: all
 * @param out the caller destroys it
 * @return OT_ERR_NOT_FOUND when the file has no such key; OT_ERR_FORMAT, OT_ERR_UNSUPPORTED,
 * OT_ERR_NO_MEMORY naming the object, before anything is read: links other than to the object
 * itself, data in other files, filters other than deflate and shuffle, objects with two names,
 * groups nested more than 64 deep, sizes that the file cannot hold or the memory limit refuses
 */
OT_API ot_status ot_dict_load_hdf5(const char *path, const char *key, ot_dict **out);
/** The same of a file that is not to be trusted: it is read in a child process, with limits on its
 * memory and its time, whose end is no more than an error. Needs fork(). */
OT_API ot_status ot_dict_load_hdf5_apart(const char *path, const char *key, ot_dict **out);
/** 1: there is such a file, by its signature; 0: not. */
OT_API int ot_hdf5_is_file(const char *path);

#ifdef __cplusplus
}
#endif
#endif
