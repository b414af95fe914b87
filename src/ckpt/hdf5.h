// SPDX-License-Identifier: Apache-2.0
// HDF5 files, without libhdf5's own header. Private to `ckpt`.
#ifndef OT_CKPT_HDF5_H
#define OT_CKPT_HDF5_H

#include "ckpt/ckpt.h"

enum {
    OT_H5_DEPTH_MAX = 64,        // of groups within groups
    OT_H5_OBJECTS_MAX = 1 << 20, // in a file
    OT_H5_DEFLATE_FACTOR = 1032, // what deflate makes of a byte at most
    OT_H5_CHUNK_FREE = 1 << 20,  // bytes of a chunk that need not be in the file
};

// hdf5_write.c, hdf5_read.c. `key` NULL: the whole file.
ot_status ot__hdf5_write(const ot_dict *dict, const char *path, ot__file_writer **out);
ot_status ot__hdf5_load(const char *path, const char *key, ot_dict **out);
ot_status ot__hdf5_view(const char *path, ot__file_map *map, ot_dict **out);
// hdf5_child.c: in a process of its own.
ot_status ot__hdf5_load_apart(const char *path, const char *key, ot_dict **out);
bool ot__hdf5_has_signature(const ot__file_map *file); // hdf5.c

// hdf5.c: the link that stands for a part of a name, between its '/'. What HDF5 has no links for,
// "" and ".", are "%" and "%.".
void ot__h5_link_name(const char *part, size_t length, ot__buf *out);

#endif
