// Y = transposed convolution of X (N, C, spatial...) by W (C, M/group, kernel...) plus B (M): the
// gradient of a convolution's input, where X stands for the gradient of its output.
#include "ops/window.h"

#include <string.h>

// Extents of y along spatial axis a: from output_shape, or stride * (n - 1) + output_padding + span
// - pads. Settles the pads.
static const char *out_extents(ot__geometry *g, const ot_node *node, const ot_shape *x, ot_shape *y)
{
    int n_padding, n_shape;
    const int64_t *extra = ot_attr_ints(node, "output_padding", &n_padding);
    const int64_t *given = ot_attr_ints(node, "output_shape", &n_shape);

    if ((extra && n_padding != g->n_axes) || (given && n_shape != g->n_axes))
        return "output_padding or output_shape has not one entry a spatial axis";
    for (int a = 0; a < g->n_axes; a++) {
        const int64_t more = extra ? extra[a] : 0;
        const int64_t span = (g->kernel[a] - 1) * g->dilation[a] + 1;
        int64_t full, total;

        if (more < 0 || more >= OT_MAX(g->stride[a], g->dilation[a]))
            return "output_padding must be below the stride or dilation";
        full = g->stride[a] * (x->dim[2 + a] - 1) + more + span;
        if (!given && g->padding == OT__PAD_GIVEN) {
            y->dim[2 + a] = full - g->pad[a] - g->pad_end[a];
        } else {
            y->dim[2 + a] = given ? given[a] : x->dim[2 + a] * g->stride[a];
            total = OT_MAX(full - y->dim[2 + a], 0);
            g->pad[a] = g->padding == OT__PAD_SAME_UPPER ? total / 2 : total - total / 2;
            g->pad_end[a] = total - g->pad[a];
        }
        if (y->dim[2 + a] < 1)
            return "an output extent is below 1";
    }
    return NULL;
}

static void conv_transpose_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *w = ot_infer_shape(c, 1);
    const ot_node *node = ot_infer_node(c);
    const int64_t groups = ot_attr_int(node, "group");
    ot__geometry g;
    ot_shape y = {.ndim = x->ndim};
    bool is_static = true;
    const char *wrong = NULL;

    if (x->ndim != w->ndim || x->ndim < 3)
        wrong = "X and W must have the same three to five axes";
    for (int i = 1; !wrong && i < w->ndim; i++)
        if (!ot_dim_is_number(w->dim[i]))
            wrong = "the output channels and kernel extents of W must be numbers";
    if (!wrong)
        wrong = ot__geometry_read(&g, node, x, w->dim + 2);
    if (!wrong &&
        (groups < 1 || (ot_dim_is_number(w->dim[0]) && w->dim[0] % groups != 0) ||
         (ot_dim_is_number(x->dim[1]) && ot_dim_is_number(w->dim[0]) && x->dim[1] != w->dim[0])))
        wrong = "the channels of X, W and group do not fit";
    for (int i = 2; !wrong && i < x->ndim; i++)
        is_static = is_static && ot_dim_is_number(x->dim[i]);
    if (!wrong && is_static)
        wrong = out_extents(&g, node, x, &y);
    if (wrong) {
        ot_infer_fail(c, "%s", wrong);
        return;
    }
    for (int i = 2; !is_static && i < x->ndim; i++)
        y.dim[i] = ot_dim_unknown();
    y.dim[0] = x->dim[0];
    y.dim[1] = w->dim[1] * groups;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_status conv_transpose_prepare(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *w = ot_prep_in(p, 1), *y = ot_prep_out(p, 0);
    ot__conv *conv = ot_prep_state(p, sizeof(*conv));
    ot__geometry g;
    ot_shape extents = y->shape;

    if (!conv)
        return OT_ERR_NO_MEMORY;
    (void)ot__geometry_read(&g, ot_prep_node(p), &x->shape, w->shape.dim + 2);
    (void)out_extents(&g, ot_prep_node(p), &x->shape, &extents);
    *conv =
        ot__conv_make(&g, &y->shape, &w->shape, &x->shape, ot_attr_int(ot_prep_node(p), "group"));
    ot_prep_scratch(p, (size_t)(conv->c_in * conv->window.n_kernel * conv->window.n_out) *
                           ot_dtype_size(x->dtype));
    return OT_OK;
}

static ot_status conv_transpose_run(const ot_run *r)
{
    const void *b = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL;

    if (r->in[0]->dtype == OT_F32)
        ot__ref_conv_dx_f32(r->out[0]->data, r->in[0]->data, r->in[1]->data, b, r->state,
                            r->scratch);
    else
        ot__ref_conv_dx_f64(r->out[0]->data, r->in[0]->data, r->in[1]->data, b, r->state,
                            r->scratch);
    return OT_OK;
}

static ot_value *emit_sum_of_channels(ot_grad *g, ot_value *dy)
{
    int64_t axes[OT_MAX_NDIM];
    int n = 0;
    ot_value *in[2] = {dy, NULL};
    ot_node *node;

    for (int i = 0; i < ot_value_shape(dy)->ndim; i++)
        if (i != 1)
            axes[n++] = i;
    in[1] = ot_emit_constant_i64(g, axes, n);
    node = ot_emit(g, "ReduceSum", "keepdims = 0", in, 2, 1);
    return ot_emit_output(g, node, 0);
}

// dX = convolution of dY by W; dW as a convolution's, with X and dY in each other's place; dB = sum
// of dY.
static void conv_transpose_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *w = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);
    const int64_t groups = ot_attr_int(ot_grad_node(g), "group");
    ot_shape extents = *ot_value_shape(dy);
    ot__geometry geometry;
    ot_node *node;

    (void)ot__geometry_read(&geometry, ot_grad_node(g), ot_value_shape(x),
                            ot_value_shape(w)->dim + 2);
    for (int i = 2; i < ot_value_shape(x)->ndim; i++)
        if (!ot_dim_is_number(ot_value_shape(x)->dim[i])) {
            ot_grad_fail(g, "needs spatial extents that are numbers");
            return;
        }
    (void)out_extents(&geometry, ot_grad_node(g), ot_value_shape(x), &extents);
    geometry.padding = OT__PAD_GIVEN;
    if (ot_grad_wants(g, 0)) {
        ot_value *in[] = {dy, w};
        node = ot_emit(g, "Conv", NULL, in, 2, 1);
        ot_emit_int(g, node, "group", groups);
        if (ot__geometry_emit(g, node, &geometry, ot_value_shape(dy), true))
            ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
    }
    if (ot_grad_wants(g, 1)) {
        ot_value *in[] = {x, dy, w};
        node = ot_emit(g, "com.microsoft.ConvGrad", NULL, in, 3, 2);
        ot_emit_int(g, node, "group", groups);
        ot_emit_omit_output(g, node, 0);
        if (ot__geometry_emit(g, node, &geometry, ot_value_shape(dy), true))
            ot_grad_set_dx(g, 1, ot_emit_output(g, node, 1));
    }
    if (ot_grad_wants(g, 2))
        ot_grad_set_dx(g, 2, emit_sum_of_channels(g, dy));
}

static const ot_port conv_transpose_in[] = {
    {"X", "T", 0}, {"W", "T", 0}, {"B", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_port conv_transpose_out[] = {{"Y", "T", 0}, {0}};
static const ot_attr_spec conv_transpose_attrs[] = {
    {.name = "auto_pad", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "NOTSET"},
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    {.name = "group", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1},
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS},
    {.name = "output_padding", .kind = OT_ATTRIBUTE_INTS},
    {.name = "output_shape", .kind = OT_ATTRIBUTE_INTS},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel conv_transpose_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = conv_transpose_prepare,
     .run = conv_transpose_run},
    {0},
};
const ot_op_def ot__op_conv_transpose[] = {
    {.name = "ConvTranspose",
     .since = 1,
     .inputs = conv_transpose_in,
     .outputs = conv_transpose_out,
     .attrs = conv_transpose_attrs,
     .types = "T: f32 f64",
     .infer = conv_transpose_infer,
     .kernels = conv_transpose_kernels,
     .grad = conv_transpose_grad},
    {0},
};
