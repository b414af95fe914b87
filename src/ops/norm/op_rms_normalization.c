// SPDX-License-Identifier: Apache-2.0
// Y = X / sqrt(mean(X^2) + epsilon) * scale, the mean over the axes from `axis` on: ONNX's name for
// SimplifiedLayerNormalization, whose scale has the shape of those axes. Here it is broadcast to X.
#include "op/expand.h"
#include "ops/norm/layer_norm.h"

enum { X, SCALE };

static bool is_stash_type(int64_t type)
{
    return type == OT_F32 || type == OT_F64 || type == OT_F16 || type == OT_BF16;
}

static void rms_norm_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *x = ot_infer_shape(c, X), *scale = ot_infer_shape(c, SCALE);
    const int64_t stash = ot_attr_int(node, "stash_type");
    const int extra = x->ndim - scale->ndim;
    int axis;

    if (!ot_infer_axis(c, ot_attr_int(node, "axis"), x->ndim, &axis))
        return;
    if (!is_stash_type(stash))
        ot_infer_fail(c, "stash_type is %" PRId64 ", expected %d, %d, %d or %d", stash, OT_F32,
                      OT_F16, OT_F64, OT_BF16);
    if (extra < 0)
        ot_infer_fail(c, "scale has %d axes, X has %d", scale->ndim, x->ndim);
    for (int k = 0; extra >= 0 && k < scale->ndim; k++)
        if (scale->dim[k] != 1 && ot__dim_differs(scale->dim[k], x->dim[k + extra]))
            ot_infer_fail(c, "scale has size %" PRId64 " along axis %d, expected 1 or X's %" PRId64,
                          scale->dim[k], k, x->dim[k + extra]);
    ot_infer_set(c, 0, ot_infer_dtype(c, SCALE), x);
}

// What is computed in: the widest of the types, and f32 at least.
static ot_dtype computed_type(const ot_node *node)
{
    const bool is_wide = node->inputs[X]->dtype == OT_F64 || node->inputs[SCALE]->dtype == OT_F64 ||
                         ot_attr_int(node, "stash_type") == OT_F64;

    return is_wide ? OT_F64 : OT_F32;
}

static bool has_shape_of(const ot_shape *scale, const ot_shape *x, int axis)
{
    if (scale->ndim != x->ndim - axis)
        return false;
    for (int k = 0; k < scale->ndim; k++)
        if (!ot__dim_same(scale->dim[k], x->dim[axis + k]))
            return false;
    return true;
}

// One for each element of the axes that are normalised.
static ot_value *emit_row_ones(ot_grad *g, ot_value *shape, ot_dtype dtype)
{
    ot_node *node = shape == NULL ? NULL : ot_emit(g, "ConstantOfShape", NULL, &shape, 1, 1);

    if (node == NULL)
        return NULL;
    ot__build_number(&g->build, node, "value", dtype, 1.0);
    return ot_emit_output(g, node, 0);
}

static void rms_norm_compose(ot_grad *g)
{
    const ot_node *of = ot_grad_node(g);
    ot_value *x = ot_grad_x(g, X), *scale = ot_grad_x(g, SCALE), *y;
    const ot_dtype result = ot_value_dtype(scale), dtype = computed_type(of);
    const ot_shape shape = *ot_value_shape(x);
    ot_value *in[2], *rows, *factor = NULL;
    ot_node *node;
    int axis;

    if (!ot_value_has_shape(x) || !ot_value_has_shape(scale))
        return;
    (void)ot__axis_normalize(ot_attr_int(of, "axis"), shape.ndim, &axis);
    if (dtype == OT_F64 || ot_value_dtype(x) != result) { // else narrow ones are read as they are
        x = ot_emit_cast(g, x, dtype);
        scale = ot_emit_cast(g, scale, dtype);
    }
    in[0] = x;
    in[1] = scale;
    if (!has_shape_of(ot_value_shape(scale), &shape, axis)) {
        rows = ot__emit_extents(g, x, axis, shape.ndim);
        if (ot_value_shape(scale)->ndim > shape.ndim - axis) {
            factor = scale;
            in[1] = emit_row_ones(g, rows, ot_value_dtype(x));
        } else {
            in[1] = ot_emit2(g, "Expand", scale, rows);
        }
    }
    node = ot_emit(g, "SimplifiedLayerNormalization", NULL, in, 2, 1);
    ot_emit_int(g, node, "axis", axis);
    ot_emit_float(g, node, "epsilon", ot_attr_float(of, "epsilon"));
    y = ot_emit_output(g, node, 0);
    if (factor != NULL)
        y = ot_emit2(g, "Mul", y, factor);
    ot_expand_set(g, 0, ot_emit_cast(g, y, result));
}

static const ot_port rms_norm_in[] = {
    {"X", "T", 0}, {"scale", "V", OT_PORT_SCALE | OT_PORT_F32}, {0}};
static const ot_port rms_norm_out[] = {{"Y", "V", 0}, {0}};
const ot_op_def ot__op_rms_normalization[] = {
    {.name = "RMSNormalization",
     .since = 23,
     .inputs = rms_norm_in,
     .outputs = rms_norm_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64; V: f32 f64",
     .infer = rms_norm_infer,
     .train = rms_norm_compose},
    {0},
};
