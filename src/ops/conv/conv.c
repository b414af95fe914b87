// SPDX-License-Identifier: Apache-2.0
// Y = convolution of X (N, C, spatial...) by W (M, C/group, kernel...) plus B (M), also with Relu;
// and its gradients: dX, dW and dB from dY, X and W, of which each may be omitted.
#include "ops/conv/conv.h"
#include "op/grad.h"

enum { ADDS_DW = 1 << 1, ADDS_DB = 1 << 2 };

extern const ot_op_def ot__op_conv_relu[], ot__op_conv_grad[];

// ---- inference ----

bool ot__conv_shape(ot_infer *c, int x_port, int w_port, int b_port, ot_shape *y)
{
    const ot_shape *x = ot_infer_shape(c, x_port), *w = ot_infer_shape(c, w_port);
    const int64_t groups = ot_attr_int(ot_infer_node(c), "group");
    ot__geometry g;
    const char *wrong;
    bool kernel_is_known = w->ndim == x->ndim;

    if (x->ndim != w->ndim || x->ndim < 3)
        return ot__refuse(c, "X and W must have the same three to five axes, got %d and %d",
                          x->ndim, w->ndim);
    for (int i = 2; i < w->ndim; i++)
        kernel_is_known = kernel_is_known && ot_dim_is_number(w->dim[i]);
    wrong = kernel_is_known ? ot__geometry_read(&g, ot_infer_node(c), x, w->dim + 2)
                            : "the kernel sizes of W must be numbers";
    if (wrong)
        return ot__refuse(c, "%s", wrong);
    if (groups < 1 || (ot_dim_is_number(w->dim[0]) && w->dim[0] % groups != 0))
        return ot__refuse(c, "W has %" PRId64 " output channels for %" PRId64 " groups", w->dim[0],
                          groups);
    if (ot_dim_is_number(w->dim[1]) && ot__dim_differs(x->dim[1], w->dim[1] * groups))
        return ot__refuse(c, "X has %" PRId64 " channels, W expects %" PRId64, x->dim[1],
                          w->dim[1] * groups);
    if (ot_infer_has(c, b_port)) {
        const ot_shape *b = ot_infer_shape(c, b_port);
        if (b->ndim != 1 || ot__dim_differs(b->dim[0], w->dim[0]))
            return ot__refuse(c, "B must have the %" PRId64 " output channels of W", w->dim[0]);
    }
    *y = (ot_shape){.dim = {x->dim[0], w->dim[0]}};
    return ot__geometry_infer(c, &g, x, y);
}

static void conv_infer(ot_infer *c)
{
    ot_shape y;

    if (ot__conv_shape(c, 0, 1, 2, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static void conv_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0), *x = ot_infer_shape(c, 1), *w = ot_infer_shape(c, 2);

    if (x->ndim < 3 || x->ndim != w->ndim || dy->ndim != x->ndim)
        ot_infer_fail(c, "dY, X and W must have the same three to five axes, got %d, %d and %d",
                      dy->ndim, x->ndim, w->ndim);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), x);
    ot_infer_set(c, 1, ot_infer_dtype(c, 0), w);
    ot_infer_set(c, 2, ot_infer_dtype(c, 0), &OT_SHAPE(w->dim[0]));
}

// ---- the problem of a node ----

typedef struct conv_args {
    const ot_arg *x, *w, *y; // or dY
} conv_args;

static bool is_gradient(const ot_prep *p)
{
    return ot_prep_node(p)->op == ot__op_conv_grad;
}

static bool conv_has_relu(const ot_prep *p)
{
    return ot_prep_node(p)->op == ot__op_conv_relu;
}

static conv_args args_of(const ot_prep *p)
{
    if (is_gradient(p))
        return (conv_args){ot_prep_in(p, 1), ot_prep_in(p, 2), ot_prep_in(p, 0)};
    return (conv_args){ot_prep_in(p, 0), ot_prep_in(p, 1), ot_prep_out(p, 0)};
}

// ---- reference ----

typedef struct conv_state {
    ot__conv conv;
    bool relu;
} conv_state;

// What inference has not checked fails only for gradients.
static ot_status conv_prepare_ref(ot_prep *p)
{
    const conv_args args = args_of(p);
    const ot_shape *x = &args.x->shape, *w = &args.w->shape, *dy = &args.y->shape;
    const int64_t groups = ot_attr_int(ot_prep_node(p), "group");
    conv_state *state = ot_prep_state(p, sizeof(*state));
    ot__geometry g;
    const char *wrong;

    OT_TRY(ot__made(state));
    wrong = ot__geometry_read(&g, ot_prep_node(p), x, w->dim + 2);
    if (wrong)
        return ot_prep_fail(p, OT_ERR_INVALID, "%s", wrong);
    if (groups < 1 || w->dim[0] % groups != 0 || x->dim[1] != w->dim[1] * groups ||
        dy->dim[0] != x->dim[0] || dy->dim[1] != w->dim[0])
        return ot_prep_fail(p, OT_ERR_INVALID,
                            "dY, X, W and group do not belong to one convolution");
    for (int a = 0; a < g.n_axes; a++)
        if (ot__geometry_out(&g, a, x->dim[2 + a]) != dy->dim[2 + a])
            return ot_prep_fail(p, OT_ERR_INVALID,
                                "dY has size %" PRId64 " along spatial axis %d, expected %" PRId64,
                                dy->dim[2 + a], a, ot__geometry_out(&g, a, x->dim[2 + a]));
    state->relu = conv_has_relu(p);
    state->conv = ot__conv_make(&g, x, w, dy, groups);
    ot_prep_scratch(p, ot__conv_scratch_bytes(&state->conv, args.x->dtype));
    return OT_OK;
}

#define TEMPLATE "ops/conv/conv.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- oneDNN; what is prepared as exact gives the same bits for any number of threads ----

typedef struct dnnl_state {
    ot__dnnl_primitives *program;
    bool sums_channels; // the gradients of W and B are ours
    ot__depthwise depthwise;
} dnnl_state;

// What oneDNN is asked for; `geometry` keeps the numbers that it points to.
static bool conv_problem(const ot_prep *p, ot__geometry *geometry, ot__dnnl_conv *c)
{
    const conv_args args = args_of(p);
    const ot_shape *x = &args.x->shape, *w = &args.w->shape, *y = &args.y->shape;
    const ot_arg *bias = is_gradient(p) ? NULL : ot_prep_in(p, 2);

    if (x->ndim != w->ndim || x->ndim != y->ndim ||
        ot__geometry_read(geometry, ot_prep_node(p), x, w->dim + 2) != NULL)
        return false;
    for (int a = 0; a < geometry->n_axes; a++) // settles SAME padding
        if (ot__geometry_out(geometry, a, x->dim[2 + a]) != y->dim[2 + a])
            return false;
    *c = (ot__dnnl_conv){.type = args.x->dtype,
                         .bias_type = bias != NULL ? bias->dtype : OT_F32,
                         .x = x,
                         .w = w,
                         .y = y,
                         .x_layout = args.x->layout,
                         .w_layout = args.w->layout,
                         .y_layout = args.y->layout,
                         .groups = ot_attr_int(ot_prep_node(p), "group"),
                         .strides = geometry->stride,
                         .dilations = geometry->dilation,
                         .pads = geometry->pad};
    return c->groups >= 1 && w->dim[0] % c->groups == 0 && x->dim[1] == w->dim[1] * c->groups &&
           y->dim[1] == w->dim[0] && y->dim[0] == x->dim[0];
}

// Where the processor multiplies bf16 oneDNN takes about half of the time that it takes in f32, for
// all three directions; where it does not, it is slower than with conversions.
bool ot__conv_takes(const ot_arg *x, const ot_arg *w, const ot_arg *y)
{
    return w->dtype == x->dtype && y->dtype == x->dtype &&
           (x->dtype == OT_F32 || ot__dnnl_has_bf16());
}

static bool is_f32_or_none(const ot_arg *arg)
{
    return arg == NULL || arg->dtype == OT_F32;
}

static bool conv_takes_types(const ot_prep *p)
{
    const conv_args args = args_of(p);
    const ot_arg *dx = ot_prep_out(p, 0), *bias = ot_prep_in(p, 2);

    if (!ot__conv_takes(args.x, args.w, args.y))
        return false;
    if (!is_gradient(p))
        return is_f32_or_none(bias) || bias->dtype == args.x->dtype;
    return (dx == NULL || dx->dtype == args.x->dtype) && is_f32_or_none(ot_prep_out(p, 1)) &&
           is_f32_or_none(ot_prep_out(p, 2));
}

static bool conv_can_dnnl(const ot_prep *p)
{
    ot__geometry geometry;
    ot__dnnl_conv c;

    if (!conv_takes_types(p))
        return ot_prep_declines(p, "types that oneDNN is not faster with on this processor");
    if (!conv_problem(p, &geometry, &c))
        return ot_prep_declines(p, "shapes that belong to no convolution");
    return (is_gradient(p) ? ot__dnnl_can_conv_grad(&c) : ot__dnnl_can_conv(&c)) ||
           ot_prep_declines(p, "oneDNN has no convolution of these shapes");
}

// The layout of the weights, which are input i: what they have, where that is settled. What is
// fastest may follow from the number of threads.
static const ot_layout *weights_layout(const ot_prep *p, int i, const ot__dnnl_conv *c)
{
    if (ot_prep_is_open(p, i))
        return ot_prep_reproducible(p) ? NULL : ot__dnnl_conv_weights_layout(c);
    return ot__dnnl_conv_accepts_weights(c) ? ot_prep_offered_in(p, i) : NULL;
}

static void conv_layouts_dnnl(ot_prep *p)
{
    ot__geometry geometry;
    ot__dnnl_conv c;

    if (!conv_problem(p, &geometry, &c))
        return;
    ot__dnnl_conv_layouts(&c, &c.x_layout, &c.y_layout);
    ot_prep_want_in(p, 0, c.x_layout);
    ot_prep_want_in(p, 1, weights_layout(p, 1, &c));
    ot_prep_want_out(p, 0, c.y_layout);
}

static void conv_grad_layouts_dnnl(ot_prep *p)
{
    const ot_layout *w_layout;
    ot__geometry geometry;
    ot__dnnl_conv c;

    if (!conv_problem(p, &geometry, &c))
        return;
    ot__dnnl_conv_layouts(&c, &c.x_layout, &c.y_layout);
    w_layout = weights_layout(p, 2, &c);
    ot_prep_want_in(p, 0, c.y_layout);
    ot_prep_want_in(p, 1, c.x_layout);
    ot_prep_want_in(p, 2, w_layout);
    ot_prep_want_out(p, 0, c.x_layout);
    ot_prep_want_out(p, 1, w_layout);
}

static ot_status prepare_gradients(ot_prep *p, dnnl_state *state, const ot__dnnl_conv *c)
{
    const bool wants_dx = ot_prep_out(p, 0) != NULL, wants_dw = ot_prep_out(p, 1) != NULL,
               wants_db = ot_prep_out(p, 2) != NULL;
    const bool ours = (wants_dw || wants_db) &&
                      ot__depthwise_make(&state->depthwise, c, ot__depthwise_kernel_best()) &&
                      !ot__dnnl_conv_sums_channels(c);

    state->sums_channels = ours;
    OT_TRY(ot__dnnl_conv_grad_create(c, wants_dx, wants_dw && !ours, wants_db && !ours,
                                     &state->program));
    if (ours)
        ot__dnnl_note(state->program, wants_dx ? ", dW simd" : "dW simd");
    return OT_OK;
}

static ot_status conv_prepare(ot_prep *p, bool is_exact)
{
    dnnl_state *state = ot_prep_state(p, sizeof(*state));
    ot__geometry geometry;
    ot__dnnl_conv c;

    OT_TRY(ot__made(state));
    if (!conv_problem(p, &geometry, &c))
        return ot_prep_fail(p, OT_ERR_INVALID, "X, W and Y do not belong to one convolution");
    c.is_exact = is_exact;
    c.relu = conv_has_relu(p);
    c.has_bias = !is_gradient(p) && ot_prep_in(p, 2) != NULL;
    if (is_gradient(p))
        OT_TRY(prepare_gradients(p, state, &c));
    else
        OT_TRY(ot__dnnl_conv_create(&c, &state->program));
    (void)ot_prep_takes(p, ot__dnnl_names(state->program));
    ot_prep_scratch(p, OT_MAX(ot__dnnl_scratch_bytes(state->program),
                              state->sums_channels ? state->depthwise.scratch_bytes : 0));
    return OT_OK;
}

static ot_status conv_prepare_dnnl(ot_prep *p)
{
    return conv_prepare(p, false);
}

static ot_status conv_prepare_dnnl_exact(ot_prep *p)
{
    return conv_prepare(p, true);
}

static void conv_release_dnnl(void *state)
{
    ot__dnnl_destroy(((dnnl_state *)state)->program);
}

static ot_status conv_run_dnnl(const ot_run *r)
{
    void *const slots[] = {
        [OT__DNNL_CONV_X] = r->in[0]->data,
        [OT__DNNL_CONV_W] = r->in[1]->data,
        [OT__DNNL_CONV_B] = ot__run_in(r, 2),
        [OT__DNNL_CONV_Y] = r->out[0]->data,
    };

    return ot__dnnl_run(((const dnnl_state *)r->state)->program, slots, r->scratch);
}

static ot_status conv_grad_run_dnnl(const ot_run *r)
{
    const dnnl_state *state = r->state;
    void *const slots[] = {
        [OT__DNNL_CONV_GRAD_DY] = r->in[0]->data,    [OT__DNNL_CONV_GRAD_X] = r->in[1]->data,
        [OT__DNNL_CONV_GRAD_W] = r->in[2]->data,     [OT__DNNL_CONV_GRAD_DX] = ot__run_out(r, 0),
        [OT__DNNL_CONV_GRAD_DW] = ot__run_out(r, 1), [OT__DNNL_CONV_GRAD_DB] = ot__run_out(r, 2),
    };

    if (state->sums_channels) // first: dX may be in the place of X
        ot__depthwise_run(&state->depthwise, ot__depthwise_kernel_best(), r->in[1]->data,
                          r->in[0]->data, ot__run_out(r, 1), ot__run_out(r, 2), r->scratch);
    return ot__dnnl_run(state->program, slots, r->scratch);
}

// ---- gradient ----

// All three gradients by one node; those that nobody wants are omitted.
static void conv_rule(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *w = ot_grad_x(g, 1);
    ot_value *in[] = {ot_grad_dy(g, 0), x, w};
    ot__geometry geometry;
    ot_node *node;

    if (!ot__grad_knows_axes(g, x) || !ot__grad_knows_axes(g, w))
        return;
    (void)ot__geometry_read(&geometry, ot_grad_node(g), ot_value_shape(x),
                            ot_value_shape(w)->dim + 2);
    node = ot_emit(g, "com.microsoft.ConvGrad", NULL, in, 3, 3);
    ot_emit_int(g, node, "group", ot_attr_int(ot_grad_node(g), "group"));
    if (!ot__geometry_emit(g, node, &geometry, ot_value_shape(x), true))
        return;
    for (int i = 0; i < 3; i++)
        if (!ot_grad_wants(g, i))
            ot_emit_omit_output(g, node, i);
    for (int i = 0; i < 3; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
}

// ---- records ----

static const ot_port conv_in[] = {
    {"X", "T", 0}, {"W", "T", OT_PORT_WEIGHT}, {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS}, {0}};
static const ot_port conv_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {"W", "T", 0}, {0}};
static const ot_port conv_grad_out[] = {{"dX", "T", OT_PORT_OPTIONAL},
                                        {"dW", "T", OT_PORT_OPTIONAL},
                                        {"dB", "T", OT_PORT_OPTIONAL},
                                        {0}};
static const ot_kernel conv_kernels[] = {
    OT__CONV_DNNL_KERNELS(conv_can_dnnl, conv_layouts_dnnl, conv_prepare_dnnl, conv_run_dnnl,
                          conv_release_dnnl),
    OT__REF_KERNELS(conv_prepare_ref, conv_run),
    {0},
};
static const ot_kernel conv_grad_kernels[] = {
    OT__CONV_DNNL_KERNELS(conv_can_dnnl, conv_grad_layouts_dnnl, conv_prepare_dnnl,
                          conv_grad_run_dnnl, conv_release_dnnl),
    {.name = "ref",
     .types = "T: f32",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .accumulates = ADDS_DW | ADDS_DB,
     .prepare = conv_prepare_ref,
     .run = conv_grad_run_f32},
    {.name = "ref",
     .types = "T: f64",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .accumulates = ADDS_DW | ADDS_DB,
     .prepare = conv_prepare_ref,
     .run = conv_grad_run_f64},
    {0},
};
const ot_op_def ot__op_conv[] = {
    {.name = "Conv",
     .since = 1,
     .inputs = conv_in,
     .outputs = ot__unary_out,
     .attrs = ot__conv_attrs,
     .types = "T: f32 f64",
     .infer = conv_infer,
     .kernels = conv_kernels,
     .grad = conv_rule,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
// Made of Conv and Relu by passes/fuse_conv.c.
const ot_op_def ot__op_conv_relu[] = {
    {.domain = "ai.onnxtrain",
     .name = "ConvRelu",
     .since = 1,
     .inputs = conv_in,
     .outputs = ot__unary_out,
     .attrs = ot__conv_attrs,
     .types = "T: f32 f64",
     .infer = conv_infer,
     .kernels = conv_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
const ot_op_def ot__op_conv_grad[] = {
    {.domain = OT__MS,
     .name = "ConvGrad",
     .since = 1,
     .inputs = conv_grad_in,
     .outputs = conv_grad_out,
     .attrs = ot__conv_attrs,
     .types = "T: f32 f64",
     .infer = conv_grad_infer,
     .kernels = conv_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__conv_grad_expand,
     .by_image = {.in = 1 << 0 | 1 << 1, .out = 1, .sums = ADDS_DW | ADDS_DB},
     .spent = 1 << 1},
    {0},
};
