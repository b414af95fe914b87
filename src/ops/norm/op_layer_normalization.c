// SPDX-License-Identifier: Apache-2.0
// Y = (X - mean) * inv_std * Scale + B over the axes from `axis` on. ONNX has it from opset 17 on,
// ONNX Runtime at any.
#include "ops/norm/layer_norm.h"

static void norm_infer(ot_infer *c)
{
    ot_shape stats;

    if (!ot__layer_norm_check(c, 0, 1, 2, &stats))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
    ot_infer_set(c, 1, ot_infer_dtype(c, 0), &stats);
    ot_infer_set(c, 2, ot_infer_dtype(c, 0), &stats);
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
    const void *bias = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL;
    void *mean = output_of(r, 1), *inv = output_of(r, 2);

    if (r->in[0]->dtype == OT_F32)
        ot__ref_layer_norm_f32(r->out[0]->data, mean, inv, r->in[0]->data, r->in[1]->data, bias,
                               p->epsilon, true, p->rows, p->columns);
    else
        ot__ref_layer_norm_f64(r->out[0]->data, mean, inv, r->in[0]->data, r->in[1]->data, bias,
                               p->epsilon, true, p->rows, p->columns);
    return OT_OK;
}

static bool norm_can_simd(const ot_prep *p)
{
    return ot_prep_in(p, 0)->dtype == OT_F32 && ot_prep_in(p, 0)->count > 0;
}

static ot_status norm_run_simd(const ot_run *r)
{
    const ot__layer_norm *p = r->state;
    ot__row_norm rows = {.y = r->out[0]->data,
                         .mean = output_of(r, 1),
                         .inv = output_of(r, 2),
                         .x = r->in[0]->data,
                         .scale = r->in[1]->data,
                         .b = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL,
                         .epsilon = p->epsilon,
                         .centered = true,
                         .columns = p->columns};

    ot__parallel_for(p->rows, OT_PAR_MIN / p->columns + 1, ot__rows_best()->layer_norm, &rows);
    return OT_OK;
}

// Mean and factor are kept by the forward node, also where its outputs were omitted.
static void norm_grad(ot_grad *g)
{
    ot_value *mean = ot_grad_y(g, 1);
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0), ot_grad_x(g, 1), mean,
                            ot_grad_y(g, 2)};
    ot_node *node;

    if (!in[0])
        return;
    node = ot_emit(g, "com.microsoft.LayerNormalizationGrad", NULL, in, 5, 3);
    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    for (int i = 0; i < 3; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
}

static const ot_port norm_in[] = {{"X", "T", 0},
                                  {"Scale", "T", OT_PORT_SCALE | OT_PORT_F32},
                                  {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS | OT_PORT_F32},
                                  {0}};
static const ot_port norm_out[] = {
    {"Y", "T", 0},
    {"Mean", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {"InvStdDev", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {0}};
static const ot_kernel norm_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = norm_can_simd,
     .prepare = norm_prepare,
     .run = norm_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = norm_prepare,
     .run = norm_run},
    {0},
};
const ot_op_def ot__op_layer_normalization[] = {
    {.name = "LayerNormalization",
     .since = 1,
     .inputs = norm_in,
     .outputs = norm_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64",
     .infer = norm_infer,
     .kernels = norm_kernels,
     .grad = norm_grad,
     .flags = OT_OP_LATE_PARTS},
    {0},
};
