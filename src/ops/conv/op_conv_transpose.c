// SPDX-License-Identifier: Apache-2.0
// Y = transposed convolution of X (N, C, spatial...) by W (C, M/group, kernel...) plus B (M): the
// gradient of a convolution's input, where X stands for the gradient of its output.
#include "op/grad.h"
#include "ops/conv/conv.h"
#include "ops/norm/batch_norm.h"

// Along spatial axis a, n elements of X reach stride * n + rest[a] elements of Y, before padding
// takes some off at both ends.
typedef struct transposed {
    ot__geometry g;
    int64_t rest[OT__WINDOW_AXES];  // output_padding + span of the window - stride
    int64_t extra[OT__WINDOW_AXES]; // output_padding
    const int64_t *given;           // output_shape; NULL when absent
} transposed;

static const char *read_transposed(transposed *t, const ot_node *node, const ot_shape *x,
                                   const ot_shape *w)
{
    int n_padding, n_shape;
    const int64_t *extra = ot_attr_ints(node, "output_padding", &n_padding);
    const char *wrong = ot__geometry_read(&t->g, node, x, w->dim + 2);

    if (wrong)
        return wrong;
    t->given = ot_attr_ints(node, "output_shape", &n_shape);
    if ((extra && n_padding != t->g.n_axes) || (t->given && n_shape != t->g.n_axes))
        return "output_padding or output_shape has not one entry a spatial axis";
    for (int a = 0; a < t->g.n_axes; a++) {
        t->extra[a] = extra ? extra[a] : 0;
        if (t->extra[a] < 0 || t->extra[a] >= OT_MAX(t->g.stride[a], t->g.dilation[a]))
            return "output_padding must be below the stride or dilation";
        t->rest[a] = t->extra[a] + (t->g.kernel[a] - 1) * t->g.dilation[a] + 1 - t->g.stride[a];
    }
    return NULL;
}

// The pads of axis a for extent n of X, which matters only with output_shape. The end's is negative
// where output_shape asks for more than the windows reach.
static void settle_pads(transposed *t, int a, int64_t n)
{
    ot__geometry *g = &t->g;
    int64_t total = t->rest[a];

    if (!t->given && g->padding == OT__PAD_GIVEN)
        return;
    if (t->given)
        total += g->stride[a] * n - t->given[a];
    g->pad[a] = g->padding == OT__PAD_SAME_UPPER ? OT_MAX(total, 0) / 2
                                                 : OT_MAX(total, 0) - OT_MAX(total, 0) / 2;
    g->pad_end[a] = total - g->pad[a];
}

// The extent of Y along spatial axis a, symbolic where n is.
static int64_t out_extent(ot_infer *c, const transposed *t, int a, int64_t n)
{
    const int64_t reached = ot_infer_mul(c, n, t->g.stride[a]);

    if (t->given)
        return t->given[a];
    if (t->g.padding != OT__PAD_GIVEN)
        return reached;
    return ot_infer_add(c, reached, t->rest[a] - t->g.pad[a] - t->g.pad_end[a]);
}

static const char *check_transposed_channels(ot_infer *c, int64_t groups)
{
    const ot_shape *x = ot_infer_shape(c, 0), *w = ot_infer_shape(c, 1), *b = ot_infer_shape(c, 2);
    const int64_t n_in = w->dim[0];

    if (groups < 1 || (ot_dim_is_number(n_in) && n_in % groups != 0) ||
        ot__dim_differs(x->dim[1], n_in) || !ot_dim_is_number(ot_infer_mul(c, w->dim[1], groups)))
        return "the channels of X, W and group do not fit";
    if (ot_infer_has(c, 2) && (b->ndim != 1 || ot__dim_differs(b->dim[0], w->dim[1] * groups)))
        return "B must have the output channels of W";
    return NULL;
}

static void conv_transpose_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *w = ot_infer_shape(c, 1);
    const int64_t groups = ot_attr_int(ot_infer_node(c), "group");
    transposed t;
    ot_shape y = {.ndim = x->ndim};
    const char *wrong = NULL;

    if (x->ndim != w->ndim || x->ndim < 3)
        wrong = "X and W must have the same three to five axes";
    for (int i = 1; !wrong && i < w->ndim; i++)
        if (!ot_dim_is_number(w->dim[i]))
            wrong = "the output channels and kernel sizes of W must be numbers";
    if (!wrong)
        wrong = read_transposed(&t, ot_infer_node(c), x, w);
    if (!wrong)
        wrong = check_transposed_channels(c, groups);
    for (int a = 0; !wrong && a < t.g.n_axes; a++) {
        const int64_t n = x->dim[2 + a];

        y.dim[2 + a] = out_extent(c, &t, a, n);
        if (ot_dim_is_number(y.dim[2 + a]) ? y.dim[2 + a] < 1
                                           : y.dim[2 + a] > 0 || ot_dim_is_number(n))
            wrong = "an output dim size is below 1 or too large";
    }
    if (wrong) {
        ot_infer_fail(c, "%s", wrong);
        return;
    }
    y.dim[0] = x->dim[0];
    y.dim[1] = w->dim[1] * groups;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_status conv_transpose_prepare(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *w = ot_prep_in(p, 1), *y = ot_prep_out(p, 0);
    ot__conv *conv = ot_prep_state(p, sizeof(*conv));
    transposed t;

    OT_TRY(ot__made(conv));
    (void)read_transposed(&t, ot_prep_node(p), &x->shape, &w->shape); // inference has checked it
    for (int a = 0; a < t.g.n_axes; a++)
        settle_pads(&t, a, x->shape.dim[2 + a]);
    *conv =
        ot__conv_make(&t.g, &y->shape, &w->shape, &x->shape, ot_attr_int(ot_prep_node(p), "group"));
    ot_prep_scratch(p, ot__conv_scratch_bytes(conv, x->dtype));
    return OT_OK;
}

#define TEMPLATE "ops/conv/conv_transpose.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- oneDNN ----

typedef struct transpose_state {
    ot__dnnl_primitives *program;
    ot__channels channels; // of Y, for B
    float *ones, *zeros;   // one a channel; NULL without B
} transpose_state;

// The convolution whose input has Y's shape and whose output has X's; `t` keeps the numbers that it
// points to. False where oneDNN has none: a whole stride of Y lies behind what the windows reach.
static bool transposed_problem(const ot_prep *p, transposed *t, ot__dnnl_conv *c)
{
    const ot_arg *x = ot_prep_in(p, 0), *w = ot_prep_in(p, 1), *y = ot_prep_out(p, 0);
    const ot_node *node = ot_prep_node(p);

    if (read_transposed(t, node, &x->shape, &w->shape) != NULL)
        return false;
    for (int a = 0; a < t->g.n_axes; a++) {
        const int64_t n = x->shape.dim[2 + a];

        settle_pads(t, a, n);
        if (y->shape.dim[2 + a] + t->g.pad[a] + t->extra[a] - t->rest[a] - t->g.stride[a] * n >=
            t->g.stride[a])
            return false;
    }
    *c = (ot__dnnl_conv){.type = x->dtype,
                         .bias_type = OT_F32,
                         .x = &y->shape,
                         .w = &w->shape,
                         .y = &x->shape,
                         .x_layout = y->layout,
                         .y_layout = x->layout,
                         .groups = ot_attr_int(node, "group"),
                         .strides = t->g.stride,
                         .dilations = t->g.dilation,
                         .pads = t->g.pad};
    return true;
}

static bool conv_transpose_can_dnnl(const ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *bias = ot_prep_in(p, 2);
    ot__dnnl_conv c;
    transposed t;

    // What is rounded to bf16 already takes no bias: that would be rounded twice.
    if (!ot__conv_takes(x, ot_prep_in(p, 1), ot_prep_out(p, 0)) ||
        (bias != NULL && (x->dtype != OT_F32 || bias->dtype != OT_F32)))
        return ot_prep_declines(p, "types that oneDNN is not faster with on this processor");
    return (transposed_problem(p, &t, &c) && ot__dnnl_can_conv(&c)) ||
           ot_prep_declines(p, "oneDNN has no convolution with that gradient");
}

static void conv_transpose_layouts_dnnl(ot_prep *p)
{
    const ot_layout *x_layout, *y_layout;
    ot__dnnl_conv c;
    transposed t;

    if (!transposed_problem(p, &t, &c))
        return;
    ot__dnnl_conv_layouts(&c, &y_layout, &x_layout);
    ot_prep_want_in(p, 0, x_layout);
    ot_prep_want_out(p, 0, y_layout);
}

static ot_status prepare_bias(const ot_arg *y, transpose_state *state)
{
    const int64_t n = y->shape.dim[1];

    (void)ot__channels_of(&y->shape, y->layout, &state->channels);
    state->ones = ot__alloc_zero((size_t)n, sizeof(float));
    state->zeros = ot__alloc_zero((size_t)n, sizeof(float));
    if (!state->ones || !state->zeros)
        return OT_ERR_NO_MEMORY;
    for (int64_t k = 0; k < n; k++)
        state->ones[k] = 1;
    return OT_OK;
}

static ot_status prepare_transposed(ot_prep *p, bool is_exact)
{
    transpose_state *state = ot_prep_state(p, sizeof(*state));
    ot__dnnl_conv c;
    transposed t;

    OT_TRY(ot__made(state));
    if (!transposed_problem(p, &t, &c))
        return ot_prep_fail(p, OT_ERR_INVALID, "X, W and Y do not belong to one convolution");
    c.is_exact = is_exact;
    OT_TRY(ot__dnnl_conv_grad_create(&c, true, false, false, &state->program));
    (void)ot_prep_takes(p, ot__dnnl_names(state->program));
    ot_prep_scratch(p, ot__dnnl_scratch_bytes(state->program));
    return ot_prep_in(p, 2) == NULL ? OT_OK : prepare_bias(ot_prep_out(p, 0), state);
}

static ot_status conv_transpose_prepare_dnnl(ot_prep *p)
{
    return prepare_transposed(p, false);
}

static ot_status conv_transpose_prepare_dnnl_exact(ot_prep *p)
{
    return prepare_transposed(p, true);
}

static ot_status conv_transpose_run_dnnl(const ot_run *r)
{
    const transpose_state *state = r->state;
    float *y = r->out[0]->data;
    void *const slots[OT__DNNL_CONV_GRAD_SLOTS] = {
        [OT__DNNL_CONV_GRAD_DY] = r->in[0]->data,
        [OT__DNNL_CONV_GRAD_W] = r->in[1]->data,
        [OT__DNNL_CONV_GRAD_DX] = y,
    };

    OT_TRY(ot__dnnl_run(state->program, slots, r->scratch));
    if (state->ones)
        ot__norms_best()->apply(&(ot__norm_apply){.mean = state->zeros,
                                                  .factor = state->ones,
                                                  .offset = r->in[2]->data,
                                                  .type = OT_F32,
                                                  .x = y,
                                                  .y = y},
                                &state->channels);
    return OT_OK;
}

static void conv_transpose_release_dnnl(void *state)
{
    const transpose_state *s = state;

    ot__dnnl_destroy(s->program);
    ot__free(s->ones);
    ot__free(s->zeros);
}

// ---- gradient ----

// dY without the elements at the ends of axes that no window reaches; those that a stride skips
// anyway may stay. Settles the pads: they then surround what is left.
static ot_value *emit_reached(ot_grad *g, transposed *t, ot_value *dy)
{
    int64_t starts[OT__WINDOW_AXES] = {0}, ends[OT__WINDOW_AXES], axes[OT__WINDOW_AXES];
    int n = 0;

    for (int a = 0; a < t->g.n_axes; a++) {
        t->g.pad_end[a] -= t->extra[a];
        if (t->g.pad_end[a] <= -t->g.stride[a]) {
            ends[n] = t->g.pad_end[a];
            axes[n++] = 2 + a;
        }
        t->g.pad_end[a] = OT_MAX(t->g.pad_end[a], 0);
    }
    if (n > 0) {
        ot_value *in[] = {dy, NULL, NULL, NULL};

        in[1] = ot_emit_constant_i64(g, starts, n);
        in[2] = ot_emit_constant_i64(g, ends, n);
        in[3] = ot_emit_constant_i64(g, axes, n);
        dy = ot_emit_output(g, ot_emit(g, "Slice", NULL, in, 4, 1), 0);
    }
    return dy;
}

// dX = convolution of dY by W; dW as a convolution's, with X and dY in each other's place; dB = sum
// of dY.
static void conv_transpose_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *w = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0), *reached;
    const int64_t groups = ot_attr_int(ot_grad_node(g), "group");
    const ot_shape *extents = ot_value_shape(x);
    ot_node *node;
    transposed t;

    if (!ot__grad_knows_axes(g, x) || !ot__grad_knows_axes(g, w))
        return;
    (void)read_transposed(&t, ot_grad_node(g), extents, ot_value_shape(w));
    for (int a = 0; a < t.g.n_axes; a++) {
        if (t.given && !ot_dim_is_number(extents->dim[2 + a])) {
            ot_grad_fail(g, "output_shape needs spatial dim sizes that are numbers");
            return;
        }
        settle_pads(&t, a, extents->dim[2 + a]);
    }
    t.g.padding = OT__PAD_GIVEN;
    reached = emit_reached(g, &t, dy);
    if (ot_grad_wants(g, 0)) {
        ot_value *in[] = {reached, w};
        node = ot_emit(g, "Conv", NULL, in, 2, 1);
        ot_emit_int(g, node, "group", groups);
        if (ot__geometry_emit(g, node, &t.g, extents, true))
            ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
    }
    if (ot_grad_wants(g, 1)) {
        ot_value *in[] = {x, reached, w};
        node = ot_emit(g, "com.microsoft.ConvGrad", NULL, in, 3, 2);
        ot_emit_int(g, node, "group", groups);
        ot_emit_omit_output(g, node, 0);
        if (ot__geometry_emit(g, node, &t.g, extents, true))
            ot_grad_set_dx(g, 1, ot_emit_output(g, node, 1));
    }
    if (ot_grad_wants(g, 2))
        ot_grad_set_dx(g, 2, ot__emit_channel_sum(g, dy, false));
}

static const ot_port conv_transpose_in[] = {
    {"X", "T", 0}, {"W", "T", OT_PORT_WEIGHT}, {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS}, {0}};
static const ot_attr_spec conv_transpose_attrs[] = {
    OT__STRING_ATTR("auto_pad", "NOTSET"),
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("group", 1),
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS},
    {.name = "output_padding", .kind = OT_ATTRIBUTE_INTS},
    {.name = "output_shape", .kind = OT_ATTRIBUTE_INTS},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel conv_transpose_kernels[] = {
    OT__CONV_DNNL_KERNELS(conv_transpose_can_dnnl, conv_transpose_layouts_dnnl,
                          conv_transpose_prepare_dnnl, conv_transpose_run_dnnl,
                          conv_transpose_release_dnnl),
    OT__REF_KERNELS(conv_transpose_prepare, conv_transpose_run),
    {0},
};
const ot_op_def ot__op_conv_transpose[] = {
    {.name = "ConvTranspose",
     .since = 1,
     .inputs = conv_transpose_in,
     .outputs = ot__unary_out,
     .attrs = conv_transpose_attrs,
     .types = "T: f32 f64",
     .infer = conv_transpose_infer,
     .kernels = conv_transpose_kernels,
     .grad = conv_transpose_grad,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
