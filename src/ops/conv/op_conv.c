// SPDX-License-Identifier: Apache-2.0
// Y = convolution of X (N, C, spatial...) by W (M, C/group, kernel...) plus B (M).
#include "ops/conv/conv.h"
#include "ops/move/move.h"

void ot__conv_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *w = ot_infer_shape(c, 1);
    const int64_t groups = ot_attr_int(ot_infer_node(c), "group");
    ot__geometry g;
    ot_shape y = {0};
    const char *wrong;
    bool kernel_is_known = w->ndim == x->ndim;

    if (x->ndim != w->ndim || x->ndim < 3) {
        ot_infer_fail(c, "X and W must have the same three to five axes, got %d and %d", x->ndim,
                      w->ndim);
        return;
    }
    for (int i = 2; i < w->ndim; i++)
        kernel_is_known = kernel_is_known && ot_dim_is_number(w->dim[i]);
    wrong = kernel_is_known ? ot__geometry_read(&g, ot_infer_node(c), x, w->dim + 2)
                            : "the kernel sizes of W must be numbers";
    if (wrong) {
        ot_infer_fail(c, "%s", wrong);
        return;
    }
    if (groups < 1 || (ot_dim_is_number(w->dim[0]) && w->dim[0] % groups != 0)) {
        ot_infer_fail(c, "W has %" PRId64 " output channels for %" PRId64 " groups", w->dim[0],
                      groups);
        return;
    }
    if (ot_dim_is_number(x->dim[1]) && ot_dim_is_number(w->dim[1]) &&
        x->dim[1] != w->dim[1] * groups) {
        ot_infer_fail(c, "X has %" PRId64 " channels, W expects %" PRId64, x->dim[1],
                      w->dim[1] * groups);
        return;
    }
    if (ot_infer_has(c, 2)) {
        const ot_shape *b = ot_infer_shape(c, 2);
        if (b->ndim != 1 || (ot_dim_is_number(b->dim[0]) && ot_dim_is_number(w->dim[0]) &&
                             b->dim[0] != w->dim[0])) {
            ot_infer_fail(c, "B must have the %" PRId64 " output channels of W", w->dim[0]);
            return;
        }
    }
    y.dim[0] = x->dim[0];
    y.dim[1] = w->dim[0];
    if (ot__geometry_infer(c, &g, x, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

ot_status ot__conv_prepare_ref(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *w = ot_prep_in(p, 1), *y = ot_prep_out(p, 0);
    ot__conv *conv = ot_prep_state(p, sizeof(*conv));
    ot__geometry g;

    if (!conv)
        return OT_ERR_NO_MEMORY;
    (void)ot__geometry_read(&g, ot_prep_node(p), &x->shape,
                            w->shape.dim + 2); // inference has checked it
    for (int a = 0; a < g.n_axes; a++)
        (void)ot__geometry_out(&g, a, x->shape.dim[2 + a]); // settles SAME padding
    *conv =
        ot__conv_make(&g, &x->shape, &w->shape, &y->shape, ot_attr_int(ot_prep_node(p), "group"));
    ot_prep_scratch(p, (size_t)(conv->c_in * conv->window.n_kernel * conv->window.n_out) *
                           ot_dtype_size(x->dtype));
    return OT_OK;
}

ot_status ot__conv_run_ref(const ot_run *r)
{
    const ot__conv *p = r->state;
    const void *b = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL;

    if (r->in[0]->dtype == OT_F32)
        ot__ref_conv_f32(r->out[0]->data, r->in[0]->data, r->in[1]->data, b, p, r->scratch);
    else
        ot__ref_conv_f64(r->out[0]->data, r->in[0]->data, r->in[1]->data, b, p, r->scratch);
    return OT_OK;
}

// All three gradients by one node; those that nobody wants are omitted.
static void conv_grad(ot_grad *g)
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

static const ot_port conv_in[] = {
    {"X", "T", 0}, {"W", "T", OT_PORT_WEIGHT}, {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS}, {0}};
static const ot_port conv_out[] = {{"Y", "T", 0}, {0}};
static const ot_kernel conv_kernels[] = {
    {.name = "dnnl",
     .flags = OT_KERNEL_LIBRARY,
     .can_run = ot__conv_can_dnnl,
     .forms = ot__conv_forms_dnnl,
     .prepare = ot__conv_prepare_dnnl,
     .run = ot__conv_run_dnnl,
     .release = ot__conv_release_dnnl},
    {.name = "dnnl_exact",
     .flags = OT_KERNEL_LIBRARY | OT_KERNEL_THREAD_EXACT,
     .can_run = ot__conv_can_dnnl,
     .forms = ot__conv_forms_dnnl,
     .prepare = ot__conv_prepare_dnnl_exact,
     .run = ot__conv_run_dnnl,
     .release = ot__conv_release_dnnl},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__conv_prepare_ref,
     .run = ot__conv_run_ref},
    {0},
};
const ot_op_def ot__op_conv[] = {
    {.name = "Conv",
     .since = 1,
     .inputs = conv_in,
     .outputs = conv_out,
     .attrs = ot__conv_attrs,
     .types = "T: f32 f64",
     .infer = ot__conv_infer,
     .kernels = conv_kernels,
     .grad = conv_grad},
    {0},
};
