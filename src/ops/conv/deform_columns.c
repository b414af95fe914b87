// SPDX-License-Identifier: Apache-2.0
// DeformColumns: what windows whose points are moved by offsets see of images, as columns (batch,
// channels times kernel positions, output positions); and its gradients. DeformConv is its product
// with weights.
#include "ops/conv/deform.h"
#include "ops/move/move.h"

enum { X, OFFSET, MASK };                          // inputs of DeformColumns
enum { DCOLUMNS, GRAD_X, GRAD_OFFSET, GRAD_MASK }; // of its gradient
enum { DX, DOFFSET, DMASK };                       // outputs of that

// ---- inference ----

// Whether list `input` has the axes of the columns' places behind the batch and `channels`.
static bool check_moves(ot_infer *c, int input, const ot_shape *x, int64_t channels,
                        const ot_shape *places)
{
    const ot_shape *list = ot_infer_shape(c, input);
    const char *name = ot__op_input_port(ot_infer_node(c)->op, input)->name;

    if (list->ndim != x->ndim)
        return ot__refuse(c, "%s has %d axes, expected %d as X has", name, list->ndim, x->ndim);
    if (ot__dim_differs(list->dim[0], x->dim[0]) || ot__dim_differs(list->dim[1], channels))
        return ot__refuse(c, "%s must have X's batch size and %" PRId64 " channels", name,
                          channels);
    for (int a = 2; a < x->ndim; a++)
        if (ot__dim_differs(list->dim[a], places->dim[a]))
            return ot__refuse(c, "%s has size %" PRId64 " along axis %d, the output %" PRId64, name,
                              list->dim[a], a, places->dim[a]);
    return true;
}

bool ot__infer_deform(ot_infer *c, const ot__geometry *window, int x, int offset, int mask,
                      ot_shape *places)
{
    const ot_shape *images = ot_infer_shape(c, x);
    const int64_t groups = ot_attr_int(ot_infer_node(c), "offset_group");
    ot__geometry g = *window;
    int64_t n = groups;

    if (groups < 1 || (ot_dim_is_number(images->dim[1]) && images->dim[1] % groups != 0))
        return ot__refuse(c, "X has %" PRId64 " channels for %" PRId64 " groups of offsets",
                          images->dim[1], groups);
    for (int a = 0; a < g.n_axes; a++) {
        if (ot_dim_is_number(images->dim[2 + a]) && images->dim[2 + a] > OT__GRID_AXIS_MAX)
            return ot__refuse(c, "axis %d of X has size %" PRId64 ", at most %d are possible",
                              2 + a, images->dim[2 + a], OT__GRID_AXIS_MAX);
        if (ot__mul_overflows(n, g.kernel[a], &n))
            return ot__refuse(c, "the kernel has too many elements");
    }
    if (n > INT64_MAX / OT__WINDOW_AXES)
        return ot__refuse(c, "the kernel has too many elements");
    places->dim[0] = images->dim[0];
    return ot__geometry_infer(c, &g, images, places) &&
           check_moves(c, offset, images, n * g.n_axes, places) &&
           (!ot_infer_has(c, mask) || check_moves(c, mask, images, n, places));
}

static bool infer_columns(ot_infer *c, int x, int offset, int mask, ot_shape *columns)
{
    const ot_shape *images = ot_infer_shape(c, x);
    ot_shape places = {0};
    ot__geometry g;
    const char *wrong = ot__geometry_read(&g, ot_infer_node(c), images, NULL);

    if (wrong != NULL)
        return ot__refuse(c, "%s", wrong);
    if (!ot__infer_deform(c, &g, x, offset, mask, &places))
        return false;
    *columns = OT_SHAPE(images->dim[0], images->dim[1], 1);
    for (int a = 0; a < g.n_axes; a++) {
        columns->dim[1] = ot_infer_mul(c, columns->dim[1], g.kernel[a]);
        columns->dim[2] = ot_infer_mul(c, columns->dim[2], places.dim[2 + a]);
    }
    return true;
}

static void deform_columns_infer(ot_infer *c)
{
    ot_shape y;

    if (infer_columns(c, X, OFFSET, MASK, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
}

static void deform_columns_grad_infer(ot_infer *c)
{
    ot_shape columns;

    if (!infer_columns(c, GRAD_X, GRAD_OFFSET, GRAD_MASK, &columns))
        return;
    if (!ot__shape_may_equal(&columns, ot_infer_shape(c, DCOLUMNS))) {
        ot_infer_fail(c, "dY does not have the shape of the columns");
        return;
    }
    if (ot_infer_wants(c, DMASK) && !ot_infer_has(c, GRAD_MASK))
        ot_infer_fail(c, "there is no mask to give a gradient of");
    ot_infer_set(c, DX, ot_infer_dtype(c, GRAD_X), ot_infer_shape(c, GRAD_X));
    ot_infer_set(c, DOFFSET, ot_infer_dtype(c, GRAD_OFFSET), ot_infer_shape(c, GRAD_OFFSET));
    if (ot_infer_has(c, GRAD_MASK))
        ot_infer_set(c, DMASK, ot_infer_dtype(c, GRAD_MASK), ot_infer_shape(c, GRAD_MASK));
}

// ---- kernels ----

static ot_status prep_deform(ot_prep *p, const ot_arg *x, const ot_arg *offset)
{
    const ot_node *node = ot_prep_node(p);
    const int64_t groups = ot_attr_int(node, "offset_group");
    ot__deform *s = ot_prep_state(p, sizeof *s);
    ot__geometry g;

    OT_TRY(ot__made(s));
    (void)ot__geometry_read(&g, node, &x->shape, NULL);
    *s = (ot__deform){.groups = x->shape.dim[0] * groups,
                      .channels = x->shape.dim[1] / groups,
                      .n_axes = g.n_axes,
                      .window = ot__window_make(&g, &x->shape, &offset->shape)};
    return OT_OK;
}

static ot_status deform_columns_prep(ot_prep *p)
{
    return prep_deform(p, ot_prep_in(p, X), ot_prep_in(p, OFFSET));
}

static ot_status deform_columns_grad_prep(ot_prep *p)
{
    return prep_deform(p, ot_prep_in(p, GRAD_X), ot_prep_in(p, GRAD_OFFSET));
}

#define TEMPLATE "ops/conv/deform_columns.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- gradient ----

static void deform_columns_rule(ot_grad *g)
{
    static const int input_of[] = {[DX] = X, [DOFFSET] = OFFSET, [DMASK] = MASK};
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_x(g, X), ot_grad_x(g, OFFSET), ot_grad_x(g, MASK)};
    const int n = in[GRAD_MASK] == NULL ? 3 : 4;
    ot_node *node = ot_emit(g, "ai.onnxtrain.DeformColumnsGrad", NULL, in, n, n - 1);

    ot_emit_forward_attrs(g, node);
    for (int i = 0; i < n - 1; i++)
        if (!ot_grad_wants(g, input_of[i]))
            ot_emit_omit_output(g, node, i);
    for (int i = 0; i < n - 1; i++)
        if (ot_grad_wants(g, input_of[i]))
            ot_grad_set_dx(g, input_of[i], ot_emit_output(g, node, i));
}

// ---- records ----

// Points need f32: bf16 tells but 256 apart.
static const ot_port deform_columns_in[] = {
    {"X", "T", 0}, {"offset", "T", OT_PORT_F32}, {"mask", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_port deform_columns_grad_in[] = {{"dY", "T", 0},
                                                 {"X", "T", 0},
                                                 {"offset", "T", OT_PORT_F32},
                                                 {"mask", "T", OT_PORT_OPTIONAL},
                                                 {0}};
static const ot_port deform_columns_grad_out[] = {{"dX", "T", OT_PORT_OPTIONAL},
                                                  {"dOffset", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                                  {"dMask", "T", OT_PORT_OPTIONAL},
                                                  {0}};
static const ot_attr_spec deform_columns_attrs[] = {
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    OT__INT_ATTR("offset_group", 1),
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel deform_columns_kernels[] = {
    OT__REF_KERNELS(deform_columns_prep, deform_columns_run), {0}};
static const ot_kernel deform_columns_grad_kernels[] = {
    OT__REF_KERNELS(deform_columns_grad_prep, deform_columns_grad_run), {0}};
const ot_op_def ot__op_deform_columns[] = {
    {.domain = "ai.onnxtrain",
     .name = "DeformColumns",
     .since = 1,
     .inputs = deform_columns_in,
     .outputs = ot__unary_out,
     .attrs = deform_columns_attrs,
     .types = "T: f32 f64",
     .infer = deform_columns_infer,
     .kernels = deform_columns_kernels,
     .grad = deform_columns_rule,
     .by_image = {.in = 1 << X | 1 << OFFSET | 1 << MASK, .out = 1}},
    {0},
};
const ot_op_def ot__op_deform_columns_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "DeformColumnsGrad",
     .since = 1,
     .inputs = deform_columns_grad_in,
     .outputs = deform_columns_grad_out,
     .attrs = deform_columns_attrs,
     .types = "T: f32 f64",
     .infer = deform_columns_grad_infer,
     .kernels = deform_columns_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .by_image = {.in = 1 << DCOLUMNS | 1 << GRAD_X | 1 << GRAD_OFFSET | 1 << GRAD_MASK,
                  .out = 1 << DX | 1 << DOFFSET | 1 << DMASK}},
    {0},
};
