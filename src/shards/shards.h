// SPDX-License-Identifier: Apache-2.0
// Interface of `shards`: files of tensors and of parts of tensors.
#ifndef OT_SHARDS_SHARDS_H
#define OT_SHARDS_SHARDS_H

#include "tensor/tensor.h"

// ---- safetensors (safetensors_read.c, safetensors_write.c) ----

enum {
    OT_SAFETENSORS_HEADER_MAX = 100000000, // bytes of JSON
    OT_SAFETENSORS_ALIGNMENT = 8,          // of the data in files of other makers
};

typedef struct ot__safetensor {
    const char *name;
    ot_dtype dtype;
    int ndim;
    const int64_t *dims;
    uint64_t begin, end; // of its bytes, in the data
} ot__safetensor;

typedef struct ot__safetensors_text { // of __metadata__
    const char *name, *text;
} ot__safetensors_text;

typedef struct ot__safetensors {
    const uint8_t *data;           // what was read, behind the header
    uint64_t data_start;           // in the file
    const ot__safetensor *tensors; // in the order of their places
    int n_tensors;
    const ot__safetensors_text *texts;
    int n_texts;
    ot__arena *arena; // of all above but the data
    ot__map by_name;
} ot__safetensors;

// A whole file in memory, which must outlive what is read of it; the data are not looked at.
// OT_ERR_FORMAT says what is wrong, without the file's name.
ot_status ot__safetensors_read(const void *bytes, size_t n_bytes, ot__safetensors *out);
void ot__safetensors_deinit(ot__safetensors *file); // of {0} it does nothing
const ot__safetensor *ot__safetensors_find(const ot__safetensors *file, const char *name);
// "F32" for OT_F32; NULL: it has no such type.
const char *ot__safetensors_type(ot_dtype dtype);
// The bytes of a tensor; OT_ERR_FORMAT "overflow", or for sub-byte types that end within a byte.
ot_status ot__safetensor_bytes(const ot__safetensor *tensor, uint64_t *n_bytes);

// Sorts the tensors as the files have them, the largest elements first, and sets their places.
// OT_ERR_INVALID for names that are there twice or cannot be written; OT_ERR_UNSUPPORTED for types.
ot_status ot__safetensors_place(ot__safetensor *tensors, int n_tensors);
// What is before the data, whose first byte is at a multiple of `alignment`: length, JSON, spaces.
// Of tensors that have places. OT_ERR_UNSUPPORTED above OT_SAFETENSORS_HEADER_MAX.
ot_status ot__safetensors_header(const ot__safetensor *tensors, int n_tensors,
                                 const ot__safetensors_text *texts, int n_texts, size_t alignment,
                                 ot__buf *out);

#endif
