// SPDX-License-Identifier: Apache-2.0
// What is refused of an HDF5 file before anything in it is read. Private to `ckpt`.
#ifndef OT_CKPT_HDF5_CHECK_H
#define OT_CKPT_HDF5_CHECK_H

#include "ckpt/hdf5.h"
#include "ckpt/hdf5_library.h"

// Objects by their places in the file.
typedef struct ot__h5_places {
    uint64_t *slots; // place + 1; 0: free
    size_t n_slots;
    int n;
} ot__h5_places;

typedef struct ot__h5_reader {
    const char *path;
    ot__buf name; // of the object at work
    uint64_t file_bytes;
    const ot__file_map *view; // tensors are views of it where they lie in it as here; NULL: copies
    bool reads;               // or only checks, which comes first
    size_t n_bytes;           // of all tensors
    ot__h5_places seen;
} ot__h5_reader;

// One line that names the object.
ot_status ot__h5_refuse(const ot__h5_reader *reader, ot_status status, const char *format, ...)
    OT_PRINTF(3, 4);
// What libhdf5 has failed at, with its message.
ot_status ot__h5_unreadable(const ot__h5_reader *reader);
// The object behind a link of a group, or behind the name of a file's root, which the caller
// closes.
ot_status ot__h5_open_object(ot__h5_reader *reader, hid_t at, const char *name, hid_t *object,
                             H5O_type_t *type);
ot_status ot__h5_open_link(ot__h5_reader *reader, hid_t group, const char *link, hid_t *object,
                           H5O_type_t *type);

typedef struct ot__h5_dataset {
    hid_t id, type;
    bool is_string; // one; else elements of `dtype`
    ot_dtype dtype;
    ot_shape shape;
    bool is_view;
    uint64_t at; // of a view in the file
} ot__h5_dataset;
// Of an open dataset; the caller closes its type, whatever happens.
ot_status ot__h5_check_dataset(ot__h5_reader *reader, hid_t id, ot__h5_dataset *out);

#endif
