// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

#include <string.h>

static bool is_tanh(const ot_node *node)
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

static void gelu_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->gelu(y, x, n, attrs);
}

static void gelu_tanh_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->fast_gelu(y, x, n, attrs);
}

static const ot_tile gelu_tile = {.f32 = gelu_f32, .f64 = ot__ref_gelu_f64};
static const ot_tile gelu_tanh_tile = {.f32 = gelu_tanh_f32, .f64 = ot__ref_fast_gelu_f64};

static ot_status gelu_prepare(ot_prep *p)
{
    return ot__tile_prepare_as(p, is_tanh(p->node) ? &gelu_tanh_tile : &gelu_tile);
}

static bool gelu_can_simd(const ot_prep *p)
{
    return p->out[0]->dtype == OT_F32;
}

// Y = X * (1 + erf(X / sqrt(2))) / 2, or its approximation by tanh; each has its own gradient
// operator.
static void gelu_grad(ot_grad *g)
{
    const char *op =
        is_tanh(ot_grad_node(g)) ? "com.microsoft.FastGeluGrad" : "com.microsoft.GeluGrad";

    ot_grad_set_dx(g, 0, ot_emit2(g, op, ot_grad_dy(g, 0), ot_grad_x(g, 0)));
}

static const ot_attr_spec gelu_attrs[] = {
    {.name = "approximate", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "none"},
    {0},
};
static const ot_kernel gelu_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = gelu_can_simd,
     .prepare = gelu_prepare,
     .run = ot__tile_run},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = gelu_prepare,
     .run = ot__tile_run_ref},
    {0},
};
const ot_op_def ot__op_gelu[] = {
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
