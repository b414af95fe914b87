// SPDX-License-Identifier: Apache-2.0
// DeformConv: a convolution whose window's points are moved by offsets, as the product of weights
// and of what the points see.
#include "op/expand.h"
#include "ops/conv/deform.h"
#include "ops/move/move.h"

enum { X, W, OFFSET, B, MASK }; // inputs

// The kernel's sizes: W's, or where these are not known what kernel_shape says. NULL, or what is
// wrong.
static const char *read_kernel(const ot_node *node, const ot_shape *w, int64_t *kernel)
{
    int n;
    const int64_t *given = ot_attr_ints(node, "kernel_shape", &n);

    if (given != NULL && n != w->ndim - 2)
        return "kernel_shape has not one entry a spatial axis";
    for (int a = 0; a < w->ndim - 2; a++) {
        kernel[a] = ot_dim_is_number(w->dim[2 + a]) || given == NULL ? w->dim[2 + a] : given[a];
        if (!ot_dim_is_number(kernel[a]))
            return "the kernel sizes of W must be numbers";
        if (given != NULL && given[a] != kernel[a])
            return "kernel_shape is not that of W";
    }
    return NULL;
}

// The window; false with the failure in `c`, which is NULL where inference has seen that it fits.
static bool read_deform_conv(ot_infer *c, const ot_node *node, const ot_shape *x, const ot_shape *w,
                             ot__geometry *g)
{
    int64_t kernel[OT_MAX_NDIM];
    const char *wrong = x->ndim != w->ndim ? "X and W must have the same three to five axes" : NULL;

    if (wrong == NULL)
        wrong = read_kernel(node, w, kernel);
    if (wrong == NULL)
        wrong = ot__geometry_read(g, node, x, kernel);
    return wrong == NULL || (c != NULL && ot__refuse(c, "%s", wrong));
}

static bool check_deform_channels(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *w = ot_infer_shape(c, W), *b = ot_infer_shape(c, B);
    const int64_t groups = ot_attr_int(ot_infer_node(c), "group");
    int64_t channels;

    if (groups < 1 || (ot_dim_is_number(w->dim[0]) && w->dim[0] % groups != 0))
        return ot__refuse(c, "W has %" PRId64 " output channels for %" PRId64 " groups", w->dim[0],
                          groups);
    if (ot_dim_is_number(w->dim[1]) &&
        (ot__mul_overflows(w->dim[1], groups, &channels) || ot__dim_differs(x->dim[1], channels)))
        return ot__refuse(
            c, "X has %" PRId64 " channels, W has %" PRId64 " for each of %" PRId64 " groups",
            x->dim[1], w->dim[1], groups);
    return !ot_infer_has(c, B) || (b->ndim == 1 && !ot__dim_differs(b->dim[0], w->dim[0])) ||
           ot__refuse(c, "B must have the %" PRId64 " output channels of W", w->dim[0]);
}

static void deform_conv_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *w = ot_infer_shape(c, W);
    ot_shape y = {0};
    ot__geometry g;

    if (!read_deform_conv(c, ot_infer_node(c), x, w, &g) || !check_deform_channels(c) ||
        !ot__infer_deform(c, &g, X, OFFSET, MASK, &y))
        return;
    y.dim[1] = w->dim[0];
    ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
}

// ---- in other operators ----

static ot_value *emit_columns(ot_grad *g, const ot__geometry *window)
{
    ot_value *in[] = {ot_grad_x(g, X), ot_grad_x(g, OFFSET), ot_grad_x(g, MASK)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.DeformColumns", NULL, in, in[2] == NULL ? 2 : 3, 1);

    ot_emit_ints(g, node, "kernel_shape", window->kernel, window->n_axes);
    ot_emit_ints(g, node, "strides", window->stride, window->n_axes);
    ot_emit_ints(g, node, "dilations", window->dilation, window->n_axes);
    ot__geometry_emit_pads(g, node, window);
    ot_emit_int(g, node, "offset_group", ot_attr_int(ot_grad_node(g), "offset_group"));
    return ot_emit_output(g, node, 0);
}

// (batch, groups, output channels of one, positions), without the groups where there is one.
static ot_value *emit_deformed(ot_grad *g, ot_value *columns)
{
    const int64_t groups = ot_attr_int(ot_grad_node(g), "group");
    const int64_t taken = ot_value_shape(columns)->dim[1] / groups;
    const int64_t of_weights[] = {groups, -1, taken}, of_columns[] = {0, groups, taken, -1};
    ot_value *weights = ot_grad_x(g, W);

    if (groups == 1)
        return ot_emit2(g, "MatMul", ot__emit_reshape(g, weights, of_weights + 1, 2), columns);
    weights = ot__emit_reshape(g, weights, of_weights, 3);
    return ot_emit2(g, "MatMul", weights, ot__emit_reshape(g, columns, of_columns, 4));
}

static void deform_conv_compose(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, X), *offset = ot_grad_x(g, OFFSET), *b = ot_grad_x(g, B);
    const ot_shape *w = ot_value_shape(ot_grad_x(g, W));
    int64_t of_bias[OT_MAX_NDIM];
    ot_value *extents[3], *y;
    ot__geometry window;

    if (!ot_value_has_shape(x) || !ot_value_has_shape(ot_grad_x(g, W)) ||
        !ot_value_has_shape(offset) || !ot_dim_is_number(ot_value_shape(x)->dim[1]) ||
        !read_deform_conv(NULL, ot_grad_node(g), ot_value_shape(x), w, &window))
        return;
    y = emit_columns(g, &window);
    if (y == NULL)
        return;
    y = emit_deformed(g, y);
    extents[0] = ot__emit_extents(g, x, 0, 1);
    extents[1] = ot__emit_extents(g, ot_grad_x(g, W), 0, 1);
    extents[2] = ot__emit_extents(g, offset, 2, w->ndim);
    y = ot_emit2(g, "Reshape", y, ot__emit_concat(g, extents, 3, 0));
    for (int k = 0; k < w->ndim - 1; k++)
        of_bias[k] = k == 0 ? -1 : 1;
    if (b != NULL)
        y = ot_emit2(g, "Add", y, ot__emit_reshape(g, b, of_bias, w->ndim - 1));
    ot_expand_set(g, 0, y);
}

static const ot_port deform_conv_in[] = {
    {"X", "T", 0},
    {"W", "T", OT_PORT_WEIGHT},
    {"offset", "T", OT_PORT_F32},
    {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {"mask", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec deform_conv_attrs[] = {
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("group", 1),
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("offset_group", 1),
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
const ot_op_def ot__op_deform_conv[] = {
    {.name = "DeformConv",
     .since = 19,
     .inputs = deform_conv_in,
     .outputs = ot__unary_out,
     .attrs = deform_conv_attrs,
     .types = "T: f32 f64",
     .infer = deform_conv_infer,
     .train = deform_conv_compose},
    {0},
};
