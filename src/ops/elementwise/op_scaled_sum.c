// SPDX-License-Identifier: Apache-2.0
// ScaledSum: Y = scale_0 * X_0 + scale_1 * X_1 [+ scale_2 * X_2]
#include "ops/elementwise/elementwise.h"

enum { MAX_TERMS = 3 };
static const char *const scale_names[MAX_TERMS] = {"scale_0", "scale_1", "scale_2"};

static void scaled_sum_f64(double *y, const double *const *x, int64_t n, const float *scales)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = x[0][k] * (double)scales[0] + x[1][k] * (double)scales[1] +
               (x[2] != NULL ? x[2][k] * (double)scales[2] : 0);
}

static void scaled_sum_infer(ot_infer *c)
{
    if (ot__infer_matches(c, 0, 1) && (!ot_infer_has(c, 2) || ot__infer_matches(c, 0, 2)))
        ot__infer_same_shape(c);
}

// dX_i = scale_i * dY
static void scaled_sum_grad(ot_grad *g)
{
    ot_value *dy = ot_grad_dy(g, 0);

    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(
                g, i,
                ot_emit2(g, "Mul", dy,
                         ot_emit_constant(g, (double)ot_attr_float(ot_grad_node(g), scale_names[i]),
                                          dy)));
}

static const ot_port scaled_sum_in[] = {
    {"input_0", "T", 0}, {"input_1", "T", 0}, {"input_2", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_attr_spec scaled_sum_attrs[] = {
    {.name = "scale_0", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_REQUIRED},
    {.name = "scale_1", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_REQUIRED},
    OT__FLOAT_ATTR("scale_2", 0),
    {0},
};
static const ot_tile scaled_sum_tile = {.f64 = scaled_sum_f64};
const ot_op_def ot__op_scaled_sum[] = {
    {.domain = "com.microsoft",
     .name = "ScaledSum",
     .since = 1,
     .inputs = scaled_sum_in,
     .outputs = ot__output_out,
     .attrs = scaled_sum_attrs,
     .types = "T: f32 f64",
     .infer = scaled_sum_infer,
     .kernels = ot__tile_kernels,
     .tile = &scaled_sum_tile,
     .grad = scaled_sum_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
