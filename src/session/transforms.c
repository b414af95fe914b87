// SPDX-License-Identifier: Apache-2.0
// Parameters in the shape that the program knows which a model was exported from.
#include <string.h>

#include "session/state_dict.h"

// Two axes exchanged, which is its own inverse.
static ot_box turn_box(const ot__state_name *name, const ot_box *given)
{
    ot_box box = *given;

    if (name->how != NULL && name->how->transform == OT_NAME_TRANSPOSE) {
        const int *axes = name->how->axes;

        box.offset[axes[0]] = given->offset[axes[1]];
        box.offset[axes[1]] = given->offset[axes[0]];
        box.size[axes[0]] = given->size[axes[1]];
        box.size[axes[1]] = given->size[axes[0]];
    }
    return box;
}

ot_box ot__box_in_checkpoint(const ot__state_name *name, const ot_sharding *sharding,
                             const ot_box *given)
{
    ot_box box = turn_box(name, given);

    if (sharding != NULL && box.ndim == 0) {
        box.ndim = 1;
        box.offset[0] = 0;
        box.size[0] = 1;
    }
    return box;
}

ot_box ot__box_in_state(const ot__state_name *name, const ot_box *of_sharding)
{
    ot_box box = turn_box(name, of_sharding);

    if (ot__parameter_shape(name->parameter)->ndim == 0)
        box.ndim = 0;
    return box;
}

void ot__transpose(void *to, const void *from, const ot_shape *from_shape, const int axes[2],
                   size_t element_size)
{
    ot_shape shape = *from_shape;
    int64_t strides[OT_MAX_NDIM], index[OT_MAX_NDIM] = {0}, step, at = 0, count;
    char *next = to;
    int k;

    ot__shape_strides(from_shape, strides);
    shape.dim[axes[0]] = from_shape->dim[axes[1]];
    shape.dim[axes[1]] = from_shape->dim[axes[0]];
    step = strides[axes[0]];
    strides[axes[0]] = strides[axes[1]];
    strides[axes[1]] = step;
    (void)ot__shape_count(&shape, &count);
    for (int64_t i = 0; i < count; i++) {
        memcpy(next, (const char *)from + (size_t)at * element_size, element_size);
        next += element_size;
        for (k = shape.ndim - 1; k >= 0; k--) {
            at += strides[k];
            if (++index[k] < shape.dim[k])
                break;
            at -= shape.dim[k] * strides[k];
            index[k] = 0;
        }
    }
}
