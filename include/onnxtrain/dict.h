// SPDX-License-Identifier: Apache-2.0
// An ordered tree of named values: what states of training are handed around as.
#ifndef ONNXTRAIN_DICT_H
#define ONNXTRAIN_DICT_H

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
} ot_dict_kind;

/** Values by name, in the order in which they were set. A dict within another belongs to that one.
 * One thread at a time uses a tree. */
typedef struct ot_dict ot_dict;

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
OT_API ot_status ot_dict_get_ints(const ot_dict *dict, const char *name, const int64_t **out,
                                  int *n);
OT_API ot_status ot_dict_get_tensor(const ot_dict *dict, const char *name, const ot_tensor **out);
OT_API ot_status ot_dict_get_dict(ot_dict *dict, const char *name, ot_dict **out);

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
/** OT_ERR_NOT_FOUND when there is no such name. */
OT_API ot_status ot_dict_remove(ot_dict *dict, const char *name);

#ifdef __cplusplus
}
#endif
#endif
