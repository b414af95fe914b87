// SPDX-License-Identifier: Apache-2.0
// The Gelu operators that unary.def does not make: ONNX's own with its attribute, and those with a
// bias.
#include "ops/elementwise/elementwise.h"

#include <string.h>

static const ot_tile exact_tile = {.f32 = ot__simd_bias_gelu_f32, .f64 = ot__ref_bias_gelu_f64};
static const ot_tile fast_tile = {.f32 = ot__simd_bias_fast_gelu_f32,
                                  .f64 = ot__ref_bias_fast_gelu_f64};

// ---- ai.onnx Gelu ----

static bool is_fast(const ot_node *node)
{
    return strcmp(ot_attr_string(node, "approximate"), "tanh") == 0;
}

static void gelu_infer(ot_infer *c)
{
    const char *form = ot_attr_string(ot_infer_node(c), "approximate");

    if (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0)
        ot_infer_fail(c, "approximate must be none or tanh, found '%s'", form);
    ot__infer_same_shape(c);
}

static ot_status gelu_prepare(ot_prep *p)
{
    return ot__tile_prepare_as(p, is_fast(p->node) ? &fast_tile : &exact_tile);
}

// Y = X * (1 + erf(X / sqrt(2))) / 2, or its approximation by tanh; each has its own gradient
// operator.
static void gelu_grad(ot_grad *g)
{
    const char *op =
        is_fast(ot_grad_node(g)) ? "com.microsoft.FastGeluGrad" : "com.microsoft.GeluGrad";

    ot_grad_set_dx(g, 0, ot_emit2(g, op, ot_grad_dy(g, 0), ot_grad_x(g, 0)));
}

static const ot_attr_spec gelu_attrs[] = {OT__STRING_ATTR("approximate", "none"), {0}};
static const ot_kernel gelu_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(NULL, gelu_prepare, ot__tile_run_f32),
    OT__REF_KERNEL("T: f32", gelu_prepare, ot__tile_run_f32_ref),
    OT__REF_KERNEL("T: f64", gelu_prepare, ot__tile_run_f64),
    {0},
};
const ot_op_def ot__op_onnx_gelu[] = {
    {.name = "Gelu",
     .since = 20,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = gelu_attrs,
     .types = "T: f32 f64",
     .infer = gelu_infer,
     .kernels = gelu_kernels,
     .grad = gelu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};

// ---- with a bias: Y = Gelu(X + B), dB is dX summed over the leading axes ----

static void biased_set(ot_grad *g, ot_value *dx)
{
    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, dx);
    if (ot_grad_wants(g, 1))
        ot_grad_set_dx(g, 1, ot_emit_sum_to(g, dx, ot_grad_x(g, 1)));
}

static void bias_gelu_grad(ot_grad *g)
{
    biased_set(g, ot_emit3(g, "com.microsoft.BiasGeluGrad_dX", ot_grad_dy(g, 0), ot_grad_x(g, 0),
                           ot_grad_x(g, 1)));
}

static void fast_gelu_grad(ot_grad *g)
{
    ot_value *dy = ot_grad_dy(g, 0), *x = ot_grad_x(g, 0), *b = ot_grad_x(g, 1);

    biased_set(g, b == NULL ? ot_emit2(g, "com.microsoft.FastGeluGrad", dy, x)
                            : ot_emit3(g, "com.microsoft.BiasFastGeluGrad_dX", dy, x, b));
}

static const ot_port bias_gelu_in[] = {{"X", "T", 0}, {"B", "T", OT_PORT_BIAS}, {0}};
const ot_op_def ot__op_bias_gelu[] = {
    {.domain = "com.microsoft",
     .name = "BiasGelu",
     .since = 1,
     .inputs = bias_gelu_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_bias,
     .kernels = ot__tile_kernels,
     .tile = &exact_tile,
     .grad = bias_gelu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
static const ot_port fast_gelu_in[] = {
    {"X", "T", 0}, {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS}, {0}};
const ot_op_def ot__op_fast_gelu[] = {
    {.domain = "com.microsoft",
     .name = "FastGelu",
     .since = 1,
     .inputs = fast_gelu_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_bias,
     .kernels = ot__tile_kernels,
     .tile = &fast_tile,
     .grad = fast_gelu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
