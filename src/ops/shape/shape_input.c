// SPDX-License-Identifier: Apache-2.0
// Shapes that integer inputs state: of Expand, ConstantOfShape and the gradients that are told
// their result's shape; and element types that attributes state.
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

bool ot__infer_dtype_attr(ot_infer *c, const char *attr, const char *variable, ot_dtype otherwise,
                          ot_dtype *dtype)
{
    const ot_node *node = ot_infer_node(c);
    const int64_t stated = ot_attr_given(node, attr) ? ot_attr_int(node, attr) : (int64_t)otherwise;
    const uint64_t known = ot__op_type_set(node->op, variable);
    char text[200];

    *dtype = OT_DTYPE_UNDEFINED;
    if (stated < 0 || stated > 63 || (known >> stated & 1) == 0)
        return ot__refuse(c, "%s is %" PRId64 " (%s), expected one of %s", attr, stated,
                          stated < 0 || stated > 63 ? "unknown" : ot_dtype_name((ot_dtype)stated),
                          ot__types_text(known, text, sizeof(text)));
    *dtype = (ot_dtype)stated;
    return true;
}

int64_t ot__infer_stated_dim(const ot_infer *c, int output, int axis, int64_t otherwise)
{
    const ot_node *node = ot_infer_node(c);
    const ot_value *y = output < node->n_outputs ? node->outputs[output] : NULL;
    const bool is_stated =
        y != NULL && y->has_shape && axis < y->shape.ndim && ot_dim_is_number(y->shape.dim[axis]);

    return is_stated ? y->shape.dim[axis] : otherwise;
}

ot_status ot__check_planned(int64_t found, const char *what, int64_t planned)
{
    return found == planned ? OT_OK
                            : ot__error(OT_ERR_INVALID, "%" PRId64 " %s, %" PRId64 " were planned",
                                        found, what, planned);
}
