// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void scale_infer(ot_infer *c)
{
    const ot_shape *s = ot_infer_shape(c, 1);

    if (s->ndim > 1 || (s->ndim == 1 && ot_dim_is_number(s->dim[0]) && s->dim[0] != 1))
        ot_infer_fail(c, "scale must have one element");
    ot__infer_same_shape(c);
}

typedef struct scaling {
    ot_dtype dtype;
    double factor;
    bool is_down;
} scaling;

static void scale_piece(void *to, const void *const *x, int64_t n, const void *context)
{
    const scaling *s = context;

    if (s->dtype == OT_F32) {
        const float *a = x[0], factor = (float)s->factor;
        float *y = to;

        for (int64_t k = 0; k < n; k++)
            y[k] = s->is_down ? a[k] / factor : a[k] * factor;
    } else {
        const double *a = x[0];
        double *y = to;

        for (int64_t k = 0; k < n; k++)
            y[k] = s->is_down ? a[k] / s->factor : a[k] * s->factor;
    }
}

typedef struct scale_state {
    ot__elementwise plan;
    bool is_down;
} scale_state;

static ot_status scale_prepare(ot_prep *p)
{
    scale_state *s = ot_prep_state(p, sizeof(*s));

    OT_TRY(p->status);
    ot__elementwise_plan(&s->plan, p->out[0], p->in, 1);
    s->is_down = ot_attr_int(p->node, "scale_down") != 0;
    return OT_OK;
}

static ot_status scale_run(const ot_run *r)
{
    const scale_state *s = r->state;
    const void *x[OT__MAX_OPERANDS] = {r->in[0]->data};
    scaling context = {.dtype = r->out[0]->dtype, .is_down = s->is_down};

    ot__convert(&context.factor, OT_F64, r->in[1]->data, r->in[1]->dtype, 1);
    ot__elementwise_run(&s->plan, r->out[0]->data, x, scale_piece, &context);
    return OT_OK;
}

// Y = X * s, or X / s when scaling down:  dX = dY scaled the same way.
static void scale_grad(ot_grad *g)
{
    ot_value *const inputs[] = {ot_grad_dy(g, 0), ot_grad_x(g, 1)};
    ot_node *node = ot_emit(g, "com.microsoft.Scale", NULL, inputs, 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port scale_in[] = {{"input", "T", 0}, {"scale", "ScaleT", OT_PORT_NO_GRAD}, {0}};
static const ot_attr_spec scale_attrs[] = {OT__INT_ATTR("scale_down", 0), {0}};
static const ot_kernel scale_kernels[] = {
    OT__REF_KERNEL(NULL, scale_prepare, scale_run),
    {0},
};
const ot_op_def ot__op_scale[] = {
    {.domain = "com.microsoft",
     .name = "Scale",
     .since = 1,
     .inputs = scale_in,
     .outputs = ot__output_out,
     .attrs = scale_attrs,
     .types = "T: f32 f64; ScaleT: f32 f64 f16 bf16 i32 i64",
     .infer = scale_infer,
     .kernels = scale_kernels,
     .grad = scale_grad,
     .flags = OT_OP_IN_PLACE},
    {0},
};
