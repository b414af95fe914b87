// SPDX-License-Identifier: Apache-2.0
// DLPack's exchange of arrays: the structs of its first, unversioned form, which every producer and
// consumer knows.
#ifndef PYTHON_DLPACK_H
#define PYTHON_DLPACK_H

#include <stdint.h>

#include "onnxtrain/tensor.h"

#define DL_CAPSULE "dltensor"
#define DL_USED "used_dltensor" // of a capsule whose array has been taken over

enum { DL_CPU = 1, DL_ALIGNMENT = 8 };

typedef struct dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; // in elements; NULL: dense, row-major
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

ot_dtype core_dtype_of_dlpack(dl_dtype dtype); // OT_DTYPE_UNDEFINED when there is none
dl_dtype core_dlpack_of_dtype(ot_dtype dtype); // bits 0 when there is none

#endif
