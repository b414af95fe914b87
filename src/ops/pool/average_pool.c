// SPDX-License-Identifier: Apache-2.0
// Y = the mean of each window, over its elements in X or, with count_include_pad, in the padding
// too; dX = for each element the sum of dY's shares of the windows that it is in.
#include "op/expand.h"
#include "ops/conv/conv.h"
#include "ops/move/move.h"
#include "ops/pool/pool.h"

static void average_pool_infer(ot_infer *c)
{
    ot_shape y;

    if (ot__pool_infer(c, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static void average_pool_grad_infer(ot_infer *c)
{
    ot_shape x;

    ot__pool_infer_input(c, ot_infer_shape(c, 0), &x);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &x);
}

static void average_pool_grad_like_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0);
    ot__geometry g;
    ot_shape x, made;

    if (!ot__infer_shape_input(c, 1, &x)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    if (x.ndim != dy->ndim) {
        ot_infer_fail(c, "dY has %d axes, the shape %d", dy->ndim, x.ndim);
        return;
    }
    made = x;
    if (!ot__pool_read(c, ot_infer_node(c), &x, &g) || !ot__geometry_infer(c, &g, &x, &made))
        return;
    for (int i = 0; i < x.ndim; i++)
        if (ot__dim_differs(made.dim[i], dy->dim[i])) {
            ot_infer_fail(c, "dY has size %" PRId64 " along axis %d, the shape makes %" PRId64,
                          dy->dim[i], i, made.dim[i]);
            return;
        }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &x);
}

#define TEMPLATE "ops/pool/average_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- f32 ----

enum { SUMS_MAX = 1024 }; // elements of a window that are added up in f32

static bool average_takes_rows(const ot_prep *p, const ot_arg *x)
{
    const ot_node *node = ot_prep_node(p);
    ot__geometry g;
    ot__window w;

    if (x->count == 0)
        return ot_prep_declines(p, "there is nothing to compute");
    (void)ot__pool_read(NULL, node, &x->shape, &g);
    w = ot__window_make(&g, &x->shape, &x->shape);
    if (w.n_kernel > SUMS_MAX || !ot__pool_has_short_rows(&w))
        return ot_prep_declines(p, "the window is large");
    return true;
}

static bool average_pool_can_simd(const ot_prep *p)
{
    return average_takes_rows(p, ot_prep_in(p, 0));
}

static bool average_pool_grad_can_simd(const ot_prep *p)
{
    return average_takes_rows(p, ot_prep_out(p, 0));
}

static ot_status average_pool_run_simd(const ot_run *r)
{
    const ot__pool_state *p = r->state;

    ot__row_pools_best()->average_pool(r->out[0]->data, r->in[0]->data, &p->pool);
    return OT_OK;
}

static ot_status average_pool_grad_run_simd(const ot_run *r)
{
    const ot__pool_state *p = r->state;

    ot__row_pools_best()->average_pool_grad(r->out[0]->data, r->in[0]->data, &p->pool);
    return OT_OK;
}

// ---- the gradient, spread over the windows by a transposed convolution ----

// Elements of window `position` along spatial axis a that the mean is over; x has extent n.
static int64_t count_elements(const ot__geometry *g, int a, int64_t n, int64_t position,
                              bool counts_pads)
{
    const int64_t low = counts_pads ? -g->pad[a] : 0, high = n + (counts_pads ? g->pad_end[a] : 0);
    int64_t count = 0;

    for (int64_t k = 0; k < g->kernel[a]; k++) {
        const int64_t at = position * g->stride[a] - g->pad[a] + k * g->dilation[a];
        count += at >= low && at < high;
    }
    return count;
}

// dY divided by the number of elements of each window; dY itself when it is `volume` throughout.
static ot_value *emit_shares(ot_grad *g, const ot__geometry *window, ot_value *x, ot_value *dy,
                             int64_t volume)
{
    const bool counts_pads = ot_attr_int(ot_grad_node(g), "count_include_pad") != 0;
    const ot_shape *in = ot_value_shape(x), *out = ot_value_shape(dy);
    ot_shape shape = *out;
    ot_value *factors;
    bool differ = false;

    shape.dim[0] = shape.dim[1] = 1;
    factors = ot__emit_tensor(g, ot_value_dtype(dy), &shape);
    for (int64_t i = 0; factors && i < ot__plane_elements(&shape); i++) {
        int64_t rest = i, count = 1;

        for (int a = window->n_axes - 1; a >= 0; a--) {
            count *= count_elements(window, a, in->dim[a + 2], rest % out->dim[a + 2], counts_pads);
            rest /= out->dim[a + 2];
        }
        differ = differ || count != volume;
        ot__set_element(factors->constant, i, count == 0 ? 0 : (double)volume / (double)count);
    }
    return differ ? ot_emit2(g, "Mul", dy, factors) : dy;
}

static ot_value *emit_share_sums(ot_grad *g, const ot__geometry *window, ot_value *x, ot_value *dy)
{
    const int64_t channels = ot_value_shape(x)->dim[1];
    ot_value *shares, *weights;
    int64_t volume = 1;

    for (int a = 0; a < window->n_axes; a++)
        volume *= window->kernel[a];
    shares = emit_shares(g, window, x, dy, volume);
    weights = ot__pool_emit_window(g, window, channels, 1 / (double)volume, ot_value_dtype(x));
    return ot__emit_spread(g, window, channels, shares, weights, ot_value_shape(x), NULL);
}

static bool window_is_plain(const ot__geometry *g)
{
    for (int i = 0; i < g->n_axes; i++)
        if (g->dilation[i] != 1)
            return false;
    return !g->ceil_mode;
}

static ot_value *emit_pool_grad(ot_grad *g, const ot__geometry *window, ot_value *x, ot_value *dy)
{
    ot_node *node = ot_emit(g, "AveragePoolGrad", NULL, &dy, 1, 1);

    ot_emit_ints(g, node, "kernel_shape", window->kernel, window->n_axes);
    ot_emit_ints(g, node, "strides", window->stride, window->n_axes);
    ot__geometry_emit_pads(g, node, window);
    ot_emit_int(g, node, "count_include_pad", ot_attr_int(ot_grad_node(g), "count_include_pad"));
    ot__pool_emit_extents(g, node, x);
    return ot_emit_output(g, node, 0);
}

// dX = for each element the sum of dY's shares of the windows that it is in. ONNX Runtime's
// AveragePoolGrad where it works, which is for static shapes and plain windows; else a transposed
// convolution where the spatial extents are known; else our own.
static void average_pool_rule(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot__geometry window;

    if (!dy)
        return;
    (void)ot__pool_read(NULL, ot_grad_node(g), ot_value_shape(x), &window);
    if (ot__spatial_is_static(x) && ot_dim_is_number(ot_value_shape(x)->dim[1])) {
        const bool has_kernel =
            ot_dim_is_number(ot_value_shape(x)->dim[0]) && window_is_plain(&window);

        ot__geometry_settle(&window, ot_value_shape(x));
        ot_grad_set_dx(g, 0,
                       has_kernel ? emit_pool_grad(g, &window, x, dy)
                                  : emit_share_sums(g, &window, x, dy));
    } else {
        ot_value *const in[] = {dy, ot_emit_shape(g, x)};
        ot_node *node = ot_emit(g, "ai.onnxtrain.AveragePoolGrad", NULL, in, 2, 1);
        ot_emit_forward_attrs(g, node);
        ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
    }
}

// ---- records ----

static const ot_port average_pool_grad_in[] = {{"dY", "T", 0}, {0}};
static const ot_port average_pool_grad_like_in[] = {{"dY", "T", 0}, {"shape", "i64", 0}, {0}};
static const ot_kernel average_pool_kernels[] = {
    OT__SIMD_KERNEL("T: f32", average_pool_can_simd, ot__pool_prepare, average_pool_run_simd),
    OT__REF_KERNELS(ot__pool_prepare, average_pool_run),
    {0},
};
static const ot_kernel average_pool_grad_kernels[] = {
    OT__SIMD_KERNEL("T: f32", average_pool_grad_can_simd, ot__pool_grad_prepare,
                    average_pool_grad_run_simd),
    OT__REF_KERNELS(ot__pool_grad_prepare, average_pool_grad_run),
    {0},
};
const ot_op_def ot__op_average_pool[] = {
    {.name = "AveragePool",
     .since = 7,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = average_pool_infer,
     .kernels = average_pool_kernels,
     .grad = average_pool_rule,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
const ot_op_def ot__op_average_pool_grad[] = {
    {.name = "AveragePoolGrad", // ONNX Runtime has it in ONNX's own domain
     .since = 9,
     .inputs = average_pool_grad_in,
     .outputs = ot__gradient_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = average_pool_grad_infer,
     .kernels = average_pool_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__average_pool_grad_expand,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
// For images whose extents are known only at run time.
const ot_op_def ot__op_average_pool_grad_like[] = {
    {.domain = "ai.onnxtrain",
     .name = "AveragePoolGrad",
     .since = 1,
     .inputs = average_pool_grad_like_in,
     .outputs = ot__gradient_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = average_pool_grad_like_infer,
     .kernels = average_pool_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__average_pool_grad_expand},
    {0},
};
