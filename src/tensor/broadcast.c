// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

ot_status ot__shape_broadcast(const ot_shape *a, const ot_shape *b, ot_shape *y)
{
    ot_shape result = {.ndim = OT_MAX(a->ndim, b->ndim)};

    for (int i = 0; i < result.ndim; i++) { // from the last axis
        int64_t da = i < a->ndim ? a->dim[a->ndim - 1 - i] : 1;
        int64_t db = i < b->ndim ? b->dim[b->ndim - 1 - i] : 1;
        if (da != db && da != 1 && db != 1)
            return ot__error(OT_ERR_INVALID, "shapes %s and %s do not broadcast", OT_SHAPE_TEXT(a),
                             OT_SHAPE_TEXT(b));
        result.dim[result.ndim - 1 - i] = da == 1 ? db : da;
    }
    *y = result;
    return OT_OK;
}

void ot__broadcast_strides(const ot_shape *x, const ot_shape *y, int64_t strides[OT_MAX_NDIM])
{
    int64_t stride = 1;

    for (int i = 0; i < y->ndim; i++) { // from the last axis
        int at = y->ndim - 1 - i;
        int64_t extent = i < x->ndim ? x->dim[x->ndim - 1 - i] : 1;
        strides[at] = extent == 1 ? 0 : stride;
        (void)ot__mul_overflows(stride, OT_MAX(extent, 1), &stride); // wraps in no real tensor
    }
}
