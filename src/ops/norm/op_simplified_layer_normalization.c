// SPDX-License-Identifier: Apache-2.0
// Y = X / sqrt(mean(X^2) + epsilon) * scale over the axes from `axis` on; second output: the factor
// before the scale. An operator of ONNX Runtime in ONNX's own domain.
#include "ops/norm/layer_norm.h"

static void norm_infer(ot_infer *c)
{
    ot_shape stats;

    if (!ot__layer_norm_check(c, 0, 1, -1, &stats))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
    ot_infer_set(c, 1, ot_infer_dtype(c, 0), &stats);
}

static ot_status norm_prepare(ot_prep *p)
{
    return ot__layer_norm_prepare(p, 0);
}

static void *output_of(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

static ot_status norm_run(const ot_run *r)
{
    const ot__layer_norm *p = r->state;
    void *inv = output_of(r, 1);

    if (r->in[0]->dtype == OT_F32)
        ot__ref_layer_norm_f32(r->out[0]->data, NULL, inv, r->in[0]->data, r->in[1]->data, NULL,
                               p->epsilon, false, p->rows, p->columns);
    else
        ot__ref_layer_norm_f64(r->out[0]->data, NULL, inv, r->in[0]->data, r->in[1]->data, NULL,
                               p->epsilon, false, p->rows, p->columns);
    return OT_OK;
}

// The factor is kept by the forward node, also where its output was omitted.
static void norm_grad(ot_grad *g)
{
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0), ot_grad_x(g, 1), ot_grad_y(g, 1)};
    ot_node *node;

    if (!in[0])
        return;
    node = ot_emit(g, "com.microsoft.SimplifiedLayerNormalizationGrad", NULL, in, 4, 2);
    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    for (int i = 0; i < 2; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
}

static const ot_port norm_in[] = {{"X", "T", 0}, {"scale", "T", OT_PORT_SCALE | OT_PORT_F32}, {0}};
static const ot_port norm_out[] = {
    {"Y", "T", 0}, {"inv_std_var", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32}, {0}};
static const ot_kernel norm_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = norm_prepare,
     .run = norm_run},
    {0},
};
const ot_op_def ot__op_simplified_layer_normalization[] = {
    {.name = "SimplifiedLayerNormalization",
     .since = 1,
     .inputs = norm_in,
     .outputs = norm_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64",
     .infer = norm_infer,
     .kernels = norm_kernels,
     .grad = norm_grad},
    {0},
};
