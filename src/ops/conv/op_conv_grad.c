// SPDX-License-Identifier: Apache-2.0
// Gradients of Conv: dX, dW and dB from dY, X and W; each may be omitted.
#include "op/expand.h"
#include "ops/conv/conv.h"

enum { ADDS_DW = 1 << 1, ADDS_DB = 1 << 2 };

static void conv_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0), *x = ot_infer_shape(c, 1), *w = ot_infer_shape(c, 2);

    if (x->ndim < 3 || x->ndim != w->ndim || dy->ndim != x->ndim) {
        ot_infer_fail(c, "dY, X and W must have the same three to five axes, got %d, %d and %d",
                      dy->ndim, x->ndim, w->ndim);
        return;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), x);
    ot_infer_set(c, 1, ot_infer_dtype(c, 0), w);
    ot_infer_set(c, 2, ot_infer_dtype(c, 0), &OT_SHAPE(w->dim[0]));
}

static ot_status conv_grad_prepare(ot_prep *p)
{
    const ot_arg *dy = ot_prep_in(p, 0), *x = ot_prep_in(p, 1), *w = ot_prep_in(p, 2);
    const int64_t groups = ot_attr_int(ot_prep_node(p), "group");
    ot__conv *conv = ot_prep_state(p, sizeof(*conv));
    ot__geometry g;
    const char *wrong;

    if (!conv)
        return OT_ERR_NO_MEMORY;
    wrong = ot__geometry_read(&g, ot_prep_node(p), &x->shape, w->shape.dim + 2);
    if (wrong)
        return ot_prep_fail(p, OT_ERR_INVALID, "%s", wrong);
    if (groups < 1 || w->shape.dim[0] % groups != 0 ||
        x->shape.dim[1] != w->shape.dim[1] * groups || dy->shape.dim[0] != x->shape.dim[0] ||
        dy->shape.dim[1] != w->shape.dim[0])
        return ot_prep_fail(p, OT_ERR_INVALID,
                            "dY, X, W and group do not belong to one convolution");
    for (int a = 0; a < g.n_axes; a++)
        if (ot__geometry_out(&g, a, x->shape.dim[2 + a]) != dy->shape.dim[2 + a])
            return ot_prep_fail(p, OT_ERR_INVALID,
                                "dY has size %" PRId64 " along spatial axis %d, expected %" PRId64,
                                dy->shape.dim[2 + a], a,
                                ot__geometry_out(&g, a, x->shape.dim[2 + a]));
    *conv = ot__conv_make(&g, &x->shape, &w->shape, &dy->shape, groups);
    ot_prep_scratch(p, (size_t)(conv->c_in * conv->window.n_kernel * conv->window.n_out) *
                           ot_dtype_size(x->dtype));
    return OT_OK;
}

static ot_status conv_grad_run(const ot_run *r)
{
    const ot__conv *p = r->state;
    const ot_arg *dy = r->in[0], *x = r->in[1], *w = r->in[2];
    ot_arg *dx = r->out[0], *dw = r->n_out > 1 ? r->out[1] : NULL,
           *db = r->n_out > 2 ? r->out[2] : NULL;
    const bool adds_dw = (r->adds & ADDS_DW) != 0, adds_db = (r->adds & ADDS_DB) != 0;

    if (dy->dtype == OT_F32) {
        if (dx)
            ot__ref_conv_dx_f32(dx->data, dy->data, w->data, NULL, p, r->scratch);
        if (dw)
            ot__ref_conv_dw_f32(dw->data, dy->data, x->data, p, r->scratch, adds_dw);
        if (db)
            ot__ref_conv_db_f32(db->data, dy->data, p, adds_db);
    } else {
        if (dx)
            ot__ref_conv_dx_f64(dx->data, dy->data, w->data, NULL, p, r->scratch);
        if (dw)
            ot__ref_conv_dw_f64(dw->data, dy->data, x->data, p, r->scratch, adds_dw);
        if (db)
            ot__ref_conv_db_f64(db->data, dy->data, p, adds_db);
    }
    return OT_OK;
}

static const ot_port conv_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {"W", "T", 0}, {0}};
static const ot_port conv_grad_out[] = {{"dX", "T", OT_PORT_OPTIONAL},
                                        {"dW", "T", OT_PORT_OPTIONAL},
                                        {"dB", "T", OT_PORT_OPTIONAL},
                                        {0}};
static const ot_kernel conv_grad_kernels[] = {
    {.name = "dnnl",
     .flags = OT_KERNEL_LIBRARY,
     .can_run = ot__conv_grad_can_dnnl,
     .forms = ot__conv_grad_forms_dnnl,
     .prepare = ot__conv_grad_prepare_dnnl,
     .run = ot__conv_grad_run_dnnl,
     .release = ot__conv_release_dnnl},
    {.name = "dnnl_exact",
     .flags = OT_KERNEL_LIBRARY | OT_KERNEL_THREAD_EXACT,
     .can_run = ot__conv_grad_can_dnnl,
     .forms = ot__conv_grad_forms_dnnl,
     .prepare = ot__conv_grad_prepare_dnnl_exact,
     .run = ot__conv_grad_run_dnnl,
     .release = ot__conv_release_dnnl},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .adds = ADDS_DW | ADDS_DB,
     .prepare = conv_grad_prepare,
     .run = conv_grad_run},
    {0},
};
const ot_op_def ot__op_conv_grad[] = {
    {.domain = "com.microsoft",
     .name = "ConvGrad",
     .since = 1,
     .inputs = conv_grad_in,
     .outputs = conv_grad_out,
     .attrs = ot__conv_attrs,
     .types = "T: f32 f64",
     .infer = conv_grad_infer,
     .kernels = conv_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__conv_grad_expand},
    {0},
};
