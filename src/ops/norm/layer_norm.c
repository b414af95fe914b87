// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/layer_norm.h"

const ot_attr_spec ot__layer_norm_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = -1},
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f},
    {.name = "stash_type", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = OT_F32},
    {0},
};

static bool check_shape(ot_infer *c, const ot_shape *x, int axis, int input)
{
    const ot_shape *v = ot_infer_shape(c, input);
    bool fits = v->ndim == x->ndim - axis;

    for (int i = 0; fits && i < v->ndim; i++)
        fits = v->dim[i] == x->dim[axis + i] || !ot_dim_is_number(v->dim[i]) ||
               !ot_dim_is_number(x->dim[axis + i]);
    if (!fits)
        ot_infer_fail(c, "input %d must have the shape of the normalised axes %d to %d", input,
                      axis, x->ndim - 1);
    return fits;
}

bool ot__layer_norm_check(ot_infer *c, int x, int scale, int bias, ot_shape *stats)
{
    const ot_shape *shape = ot_infer_shape(c, x);
    const int64_t stash = ot_attr_int(ot_infer_node(c), "stash_type");
    int axis;

    // Means are kept in the type of X, which is f32 or wider.
    if (stash != OT_F32 && stash != (int64_t)ot_infer_dtype(c, x)) {
        ot_infer_fail(c, "stash_type is %" PRId64 ", expected %d", stash, OT_F32);
        return false;
    }
    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), shape->ndim, &axis) ||
        !check_shape(c, shape, axis, scale) ||
        (bias >= 0 && ot_infer_has(c, bias) && !check_shape(c, shape, axis, bias)))
        return false;
    *stats = *shape;
    for (int i = axis; i < shape->ndim; i++)
        stats->dim[i] = 1;
    return true;
}

ot_status ot__layer_norm_prepare(ot_prep *p, int x)
{
    const ot_shape *shape = &ot_prep_in(p, x)->shape;
    const ot_node *node = ot_prep_node(p);
    ot__layer_norm *norm = ot_prep_state(p, sizeof(*norm));
    int axis;

    if (!norm)
        return OT_ERR_NO_MEMORY;
    (void)ot__axis_normalize(ot_attr_int(node, "axis"), shape->ndim, &axis);
    *norm = (ot__layer_norm){1, 1, (double)ot_attr_float(node, "epsilon")};
    for (int i = 0; i < shape->ndim; i++)
        *(i < axis ? &norm->rows : &norm->columns) *= shape->dim[i];
    return OT_OK;
}
