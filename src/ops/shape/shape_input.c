// SPDX-License-Identifier: Apache-2.0
// Shapes that integer inputs state: of Expand, ConstantOfShape and the gradients that are told
// their result's shape.
#include "ops/move/move.h"

bool ot__infer_shape_input(ot_infer *c, int input, ot_shape *shape)
{
    const ot_shape *list = ot_infer_shape(c, input);
    int n;
    const int64_t *values = ot_infer_values(c, input, &n);

    *shape = (ot_shape){0};
    if (list->ndim != 1)
        return ot__refuse(c, "input %d is a shape and must have 1 axis, has %d", input, list->ndim);
    if (!ot_dim_is_number(list->dim[0]))
        return false;
    if (list->dim[0] > OT_MAX_NDIM)
        return ot__refuse(c, "input %d gives %" PRId64 " axes, at most %d are possible", input,
                          list->dim[0], OT_MAX_NDIM);
    shape->ndim = (int)list->dim[0];
    for (int k = 0; k < shape->ndim; k++) {
        shape->dim[k] = values == NULL ? ot_dim_unknown() : values[k];
        if (ot_dim_is_number(shape->dim[k]) && shape->dim[k] < 0)
            return ot__refuse(c, "input %d gives size %" PRId64 " for axis %d", input,
                              shape->dim[k], k);
    }
    return true;
}

void ot__infer_stated(ot_infer *c, int input, ot_dtype dtype)
{
    ot_shape shape;

    if (ot__infer_shape_input(c, input, &shape))
        ot_infer_set(c, 0, dtype, &shape);
    else
        ot_infer_set_unknown(c, 0, dtype);
}
