// SPDX-License-Identifier: Apache-2.0
// GroupNormalization: the channels of an image in groups, each of which is a channel of an
// InstanceNormalization by ones and zeros, as exporters write it and fuse_group_norm.c finds it.
// Scale and bias have an element a channel; before opset 21 one a group.
#include "op/expand.h"
#include "ops/norm/batch_norm.h"

#include <math.h>
#include <string.h>

enum { X, SCALE, BIAS };

static bool is_by_group(const ot_op_def *op)
{
    return op->since < 21;
}

static void group_norm_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *x = ot_infer_shape(c, X);
    const int64_t groups = ot_attr_int(node, "num_groups"), stash = ot_attr_int(node, "stash_type");
    const ot_shape *scale = ot_infer_shape(c, SCALE);
    const bool scale_says = !is_by_group(node->op) && scale->ndim == 1;
    int64_t channels = x->ndim > 1 ? x->dim[1] : ot_dim_unknown(), expected;

    if (!ot_dim_is_number(channels) && scale_says)
        channels = scale->dim[0];
    expected = is_by_group(node->op) ? groups : channels;
    if (x->ndim < 2)
        ot_infer_fail(c, "X has %d axes, expected at least 2", x->ndim);
    else if (ot_dim_is_number(channels) && channels % groups != 0)
        ot_infer_fail(c, "%" PRId64 " channels are not divisible by num_groups, which is %" PRId64,
                      channels, groups);
    if (stash != OT_F32 && stash != OT_F64 && stash != OT_F16 && stash != OT_BF16)
        ot_infer_fail(c, "stash_type is %" PRId64 ", expected %d, %d, %d or %d", stash, OT_F32,
                      OT_F16, OT_F64, OT_BF16);
    for (int i = SCALE; i <= BIAS; i++) {
        const ot_shape *list = ot_infer_shape(c, i);

        if (list->ndim != 1)
            ot_infer_fail(c, "input %d has %d axes, expected 1", i, list->ndim);
        else if (ot__dim_differs(list->dim[0], expected))
            ot_infer_fail(c, "input %d has %" PRId64 " elements, expected %" PRId64, i,
                          list->dim[0], expected);
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, X), x);
}

// X with an axis of groups and one of their elements.
static ot_value *emit_groups(ot_grad *g, ot_value *x, int64_t groups)
{
    const ot_shape *shape = ot_value_shape(x);
    int64_t dims[3] = {0, groups, 1};

    for (int k = 1; k < shape->ndim && dims[2] >= 0; k++)
        dims[2] = ot_dim_is_number(shape->dim[k]) ? dims[2] * shape->dim[k] : -1;
    if (dims[2] > 0)
        dims[2] /= groups;
    return ot__emit_reshape(g, x, dims, 3); // 0: as many images as X has
}

// `number` for each group.
static ot_value *emit_filled(ot_grad *g, double number, ot_value *like)
{
    const int64_t groups = ot_attr_int(ot_grad_node(g), "num_groups");

    ot_value *element = ot_emit_constant(g, number, like);

    return ot_emit2(g, "Expand", element, ot_emit_constant_i64(g, &groups, 1));
}

static ot_value *emit_instances(ot_grad *g, ot_value *x, float epsilon)
{
    ot_value *ones = emit_filled(g, 1, x), *zeros = emit_filled(g, 0, x);
    ot_node *node = ot_emit(g, "InstanceNormalization", NULL, (ot_value *[]){x, ones, zeros}, 3, 1);

    ot_emit_float(g, node, "epsilon", epsilon);
    return ot_emit_output(g, node, 0);
}

// (x - mean) / sqrt(variance + epsilon) over the last axis: ONNX Runtime has no
// InstanceNormalization of f64.
static ot_value *emit_normalised(ot_grad *g, ot_value *x, double epsilon)
{
    static const int64_t axes[] = {2};
    ot_value *mean = ot__emit_reduce(g, "ReduceMean", x, axes, 1);
    ot_value *centred = ot_emit2(g, "Sub", x, mean);
    ot_value *squares = ot_emit2(g, "Mul", centred, centred);
    ot_value *variance = ot__emit_reduce(g, "ReduceMean", squares, axes, 1);
    ot_value *sum = ot_emit2(g, "Add", variance, ot_emit_constant(g, epsilon, x));

    return ot_emit2(g, "Div", centred, ot_emit1(g, "Sqrt", sum));
}

static ot_value *emit_scaled(ot_grad *g, ot_value *normalised)
{
    ot_value *scale = ot__emit_channels(g, ot_grad_x(g, SCALE), normalised), *product;

    product = ot_emit2(g, "Mul", normalised, scale);
    return ot_emit2(g, "Add", product, ot__emit_channels(g, ot_grad_x(g, BIAS), normalised));
}

static bool has_no_elements(const ot_shape *shape)
{
    for (int k = 0; k < shape->ndim; k++)
        if (shape->dim[k] == 0)
            return true;
    return false;
}

static void group_norm_compose(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    ot_value *x = ot_grad_x(g, X), *y;
    const ot_dtype dtype = ot_value_dtype(x);
    const bool is_wide = dtype == OT_F64 || ot_attr_int(node, "stash_type") == OT_F64;

    if (!ot_value_has_shape(x))
        return;
    if (has_no_elements(ot_value_shape(x))) {
        ot_expand_set(g, 0, x);
        return;
    }
    y = ot_emit_cast(g, x, is_wide ? OT_F64 : OT_F32);
    y = emit_groups(g, y, ot_attr_int(node, "num_groups"));
    y = is_wide ? emit_normalised(g, y, (double)ot_attr_float(node, "epsilon"))
                : emit_instances(g, y, ot_attr_float(node, "epsilon"));
    y = ot_emit_cast(g, y, dtype);
    if (is_by_group(node->op)) {
        y = ot_emit_reshape_like(g, emit_scaled(g, y), x);
    } else {
        y = emit_scaled(g, ot_emit_reshape_like(g, y, x));
    }
    ot_expand_set(g, 0, y);
}

// ---- from opset 21 on ----

static ot_value *build_sizes(ot__builder *b, const char *of, const int64_t *sizes, int n)
{
    ot_value *list =
        ot__build_initializer(b, ot__build_name(b, "%s_sizes", of), OT_I64, &OT_SHAPE(n));

    if (list != NULL)
        memcpy(list->constant->data, sizes, (size_t)n * sizeof *sizes);
    return list;
}

static ot_value *build_by_sizes(ot__builder *b, const char *op_type, ot_value *v,
                                const int64_t *sizes, int n)
{
    const char *name = v == NULL ? NULL : ot__build_name(b, "%s_by_channel", v->name);
    ot_value *const in[] = {v, name == NULL ? NULL : build_sizes(b, name, sizes, n)};
    ot_value *y = name == NULL ? NULL : ot__build_value(b, name);

    if (y != NULL)
        ot__op_settle(b, ot__op_build(b, "", op_type, name, in, 2, &y, 1));
    return y;
}

// An element a group becomes one a channel.
static void group_norm_raise(ot_upgrade *u)
{
    ot_node *node = ot_upgrade_node(u);
    ot__builder b = {.graph = node->graph};
    const int64_t groups = ot_attr_int(node, "num_groups");
    const ot_value *x = node->inputs[X];
    const int64_t channels = x->has_shape ? x->shape.dim[1] : ot_dim_unknown();

    if (!ot_dim_is_number(channels)) {
        ot_upgrade_fail(u, "the number of channels is not known, which opset 21 needs");
        return;
    }
    for (int i = SCALE; i <= BIAS; i++) {
        const int64_t columns[] = {groups, 1}, table[] = {groups, channels / groups};
        ot_value *list = build_by_sizes(&b, "Reshape", node->inputs[i], columns, 2);

        list = build_by_sizes(&b, "Expand", list, table, 2);
        node->inputs[i] = build_by_sizes(&b, "Reshape", list, &channels, 1);
    }
    ot__upgrade_made(u, b.status == OT_OK);
}

static const ot_port group_norm_in[] = {{"X", "T", 0},
                                        {"scale", "T", OT_PORT_SCALE | OT_PORT_F32},
                                        {"bias", "T", OT_PORT_BIAS | OT_PORT_F32},
                                        {0}};
static const ot_attr_spec group_norm_attrs[] = {
    OT__FLOAT_ATTR("epsilon", 1e-5f),
    {.name = "num_groups",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_REQUIRED,
     .low = 1,
     .high = INFINITY},
    OT__INT_ATTR("stash_type", OT_F32),
    {0},
};
#define GROUP_NORM(since_, raise_)                                                                 \
    {                                                                                              \
        .name = "GroupNormalization", .since = since_, .inputs = group_norm_in,                    \
        .outputs = ot__unary_out, .attrs = group_norm_attrs, .types = "T: f32 f64",                \
        .infer = group_norm_infer, .train = group_norm_compose, .raise = raise_                    \
    }
const ot_op_def ot__op_group_normalization[] = {
    GROUP_NORM(18, group_norm_raise), GROUP_NORM(21, NULL), {0}};
