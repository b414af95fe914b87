// SPDX-License-Identifier: Apache-2.0
// Y = the mean of each window, over its elements in X or, with count_include_pad, in the padding
// too.
#include "op/grad.h"
#include "ops/pool/pool.h"

static void average_pool_infer(ot_infer *c)
{
    ot_shape y;

    if (ot__pool_infer(c, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_status average_pool_prepare(ot_prep *p)
{
    return ot__pool_prepare(p, ot_prep_in(p, 0), ot_prep_out(p, 0));
}

static ot_status average_pool_run(const ot_run *r)
{
    const ot__pool *p = r->state;

    if (r->in[0]->dtype == OT_F32)
        ot__ref_average_pool_f32(r->out[0]->data, r->in[0]->data, p);
    else
        ot__ref_average_pool_f64(r->out[0]->data, r->in[0]->data, p);
    return OT_OK;
}

// ---- the gradient, spread over the windows by a transposed convolution ----

static void fill(ot_tensor *tensor, int64_t i, double value)
{
    char *to = (char *)tensor->data + (size_t)i * ot_dtype_size(tensor->dtype);

    (void)ot__convert(to, tensor->dtype, &value, OT_F64, 1);
}

// Elements of window `position` along spatial axis a that the mean is over; x has extent n.
static int64_t counted(const ot__geometry *g, int a, int64_t n, int64_t position, bool counts_pads)
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
            count *= counted(window, a, in->dim[a + 2], rest % out->dim[a + 2], counts_pads);
            rest /= out->dim[a + 2];
        }
        differ = differ || count != volume;
        fill(factors->constant, i, count == 0 ? 0 : (double)volume / (double)count);
    }
    return differ ? ot_emit2(g, "Mul", dy, factors) : dy;
}

static ot_value *emit_spread(ot_grad *g, const ot__geometry *window, ot_value *x, ot_value *dy)
{
    const ot_shape *in = ot_value_shape(x), *out = ot_value_shape(dy);
    const int n = window->n_axes;
    int64_t pads[2 * OT__WINDOW_AXES] = {0}, extra[OT__WINDOW_AXES], volume = 1;
    ot_shape w_shape = *in;
    ot_value *values[2];
    ot_node *node;

    w_shape.dim[0] = in->dim[1];
    w_shape.dim[1] = 1;
    for (int a = 0; a < n; a++) {
        const int64_t covered = (out->dim[a + 2] - 1) * window->stride[a] +
                                (window->kernel[a] - 1) * window->dilation[a] + 1;

        w_shape.dim[a + 2] = window->kernel[a];
        volume *= window->kernel[a];
        extra[a] = OT_MAX(in->dim[a + 2] + window->pad[a] - covered, 0);
        pads[a] = window->pad[a];
        pads[n + a] = OT_MAX(covered - window->pad[a] - in->dim[a + 2], 0);
    }
    values[0] = emit_shares(g, window, x, dy, volume);
    values[1] = ot__emit_tensor(g, ot_value_dtype(x), &w_shape);
    for (int64_t i = 0; values[1] && i < in->dim[1] * volume; i++)
        fill(values[1]->constant, i, 1 / (double)volume);
    node = ot_emit(g, "ConvTranspose", NULL, values, 2, 1);
    ot_emit_ints(g, node, "kernel_shape", window->kernel, n);
    ot_emit_ints(g, node, "strides", window->stride, n);
    ot_emit_ints(g, node, "dilations", window->dilation, n);
    ot_emit_ints(g, node, "pads", pads, 2 * n);
    ot_emit_ints(g, node, "output_padding", extra, n);
    ot_emit_int(g, node, "group", in->dim[1]);
    return ot_emit_output(g, node, 0);
}

static bool is_plain(const ot__geometry *g)
{
    for (int i = 0; i < g->n_axes; i++)
        if (g->dilation[i] != 1)
            return false;
    return !g->ceil_mode;
}

static ot_value *emit_pool_grad(ot_grad *g, ot__geometry *window, ot_value *x, ot_value *dy)
{
    ot_node *node = ot_emit(g, "AveragePoolGrad", NULL, &dy, 1, 1);
    int64_t pads[2 * OT__WINDOW_AXES];

    for (int a = 0; a < window->n_axes; a++) {
        pads[a] = window->pad[a];
        pads[window->n_axes + a] = window->pad_end[a];
    }
    ot_emit_ints(g, node, "kernel_shape", window->kernel, window->n_axes);
    ot_emit_ints(g, node, "strides", window->stride, window->n_axes);
    ot_emit_ints(g, node, "pads", pads, 2 * window->n_axes);
    ot_emit_int(g, node, "count_include_pad", ot_attr_int(ot_grad_node(g), "count_include_pad"));
    ot__pool_emit_extents(g, node, x);
    return ot_emit_output(g, node, 0);
}

// dX = for each element the sum of dY's shares of the windows that it is in. ONNX Runtime's
// AveragePoolGrad where it works, which is for static shapes and plain windows; else a transposed
// convolution where the spatial extents are known; else our own.
static void average_pool_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot__geometry window;

    if (!dy)
        return;
    (void)ot__pool_read(NULL, ot_grad_node(g), ot_value_shape(x), &window);
    if (ot__spatial_is_static(x) && ot_dim_is_number(ot_value_shape(x)->dim[1])) {
        const bool has_kernel = ot_dim_is_number(ot_value_shape(x)->dim[0]) && is_plain(&window);
        for (int a = 0; a < window.n_axes; a++)
            (void)ot__geometry_out(&window, a,
                                   ot_value_shape(x)->dim[a + 2]); // settles SAME padding
        ot_grad_set_dx(
            g, 0, has_kernel ? emit_pool_grad(g, &window, x, dy) : emit_spread(g, &window, x, dy));
    } else {
        ot_value *const in[] = {dy, ot_emit_shape(g, x)};
        ot_node *node = ot_emit(g, "ai.onnxtrain.AveragePoolGrad", NULL, in, 2, 1);
        ot_emit_forward_attrs(g, node);
        ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
    }
}

static const ot_kernel average_pool_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = average_pool_prepare,
     .run = average_pool_run},
    {0},
};
const ot_op_def ot__op_average_pool[] = {
    {.name = "AveragePool",
     .since = 7,
     .inputs = ot__pool_in,
     .outputs = ot__pool_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = average_pool_infer,
     .kernels = average_pool_kernels,
     .grad = average_pool_grad},
    {0},
};
