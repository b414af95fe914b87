// SPDX-License-Identifier: Apache-2.0
// FakeQuant: Y is what is left of X by quantising and back; the mask says where it was in the
// range. FakeQuantGrad: dX = dY where the mask is true, else 0.
#include "kernels/kernels.h"
#include "op/op.h"

enum { IN_X, IN_SCALE, IN_ZERO_POINT };

static void fake_quant_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (!ot__infer_one_element(c, IN_SCALE) || !ot__infer_one_element(c, IN_ZERO_POINT))
        return;
    if (ot_attr_int(node, "quant_min") >= ot_attr_int(node, "quant_max"))
        ot_infer_fail(c, "quant_min is %" PRId64 ", quant_max %" PRId64,
                      ot_attr_int(node, "quant_min"), ot_attr_int(node, "quant_max"));
    ot_infer_set(c, 0, ot_infer_dtype(c, IN_X), ot_infer_shape(c, IN_X));
    ot_infer_set(c, 1, OT_BOOL, ot_infer_shape(c, IN_X));
}

typedef struct fake_quant_range {
    double low, high;
} fake_quant_range;

static ot_status fake_quant_prepare(ot_prep *p)
{
    fake_quant_range *state = ot_prep_state(p, sizeof *state);

    OT_TRY(ot__made(state));
    state->low = (double)ot_attr_int(ot_prep_node(p), "quant_min");
    state->high = (double)ot_attr_int(ot_prep_node(p), "quant_max");
    return OT_OK;
}

#define TEMPLATE "ops/quantize/fake_quant.tmpl.h"
#include "kernels/by_float.tmpl.h"

// Straight through: dX = dY where X was in the range, else 0.
static void fake_quant_grad(ot_grad *g)
{
    if (ot_grad_wants(g, IN_X) && ot_grad_dy(g, 0) != NULL)
        ot_grad_set_dx(
            g, IN_X, ot_emit2(g, "com.microsoft.FakeQuantGrad", ot_grad_dy(g, 0), ot_grad_y(g, 1)));
}

// With q = round(X / scale) + zero_point:  Y = (min(max(q, low), high) - zero_point) * scale, and
// the mask is low <= q and q <= high.
static void fake_quant_expand(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, IN_X), *scale = ot_grad_x(g, IN_SCALE);
    ot_value *zero = ot_grad_x(g, IN_ZERO_POINT), *q, *low, *high, *y;

    if (ot_value_shape(x)->ndim == 0 &&
        ot_value_shape(scale)->ndim + ot_value_shape(zero)->ndim > 0)
        return; // Y would have an axis
    q = ot_emit2(g, "Add", ot_emit1(g, "Round", ot_emit2(g, "Div", x, scale)), zero);
    low = ot_emit_constant(g, (double)ot_attr_int(ot_grad_node(g), "quant_min"), x);
    high = ot_emit_constant(g, (double)ot_attr_int(ot_grad_node(g), "quant_max"), x);
    y = ot_emit2(g, "Min", ot_emit2(g, "Max", q, low), high);
    y = ot_emit2(g, "Mul", ot_emit2(g, "Sub", y, zero), scale);
    if (ot_expand_wants(g, 1)) {
        ot_value *below = ot_emit2(g, "LessOrEqual", q, high);

        ot_expand_set(g, 1, ot_emit2(g, "And", ot_emit2(g, "GreaterOrEqual", q, low), below));
    }
    ot_expand_set(g, 0, y);
}

static const ot_port fake_quant_in[] = {
    {"X", "T", 0}, {"scale", "T", OT_PORT_NO_GRAD}, {"zero_point", "T", OT_PORT_NO_GRAD}, {0}};
static const ot_port fake_quant_out[] = {
    {"Y", "T", 0}, {"mask", "bool", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_attr_spec fake_quant_attrs[] = {
    OT__INT_ATTR("quant_max", 255),
    OT__INT_ATTR("quant_min", 0),
    {0},
};
static const ot_kernel fake_quant_kernels[] = {OT__REF_KERNELS(fake_quant_prepare, fake_quant_run),
                                               {0}};
const ot_op_def ot__op_fake_quant[] = {
    {.domain = OT__MS,
     .name = "FakeQuant",
     .since = 1,
     .inputs = fake_quant_in,
     .outputs = fake_quant_out,
     .attrs = fake_quant_attrs,
     .types = "T: f32 f64",
     .infer = fake_quant_infer,
     .kernels = fake_quant_kernels,
     .grad = fake_quant_grad,
     .expand = fake_quant_expand},
    {0},
};

// ---- FakeQuantGrad ----

static void fake_quant_grad_infer(ot_infer *c)
{
    if (ot__infer_matches(c, 0, 1))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

static void fake_quant_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, 0);

    ot_expand_set(g, 0, ot_emit3(g, "Where", ot_grad_x(g, 1), dy, ot_emit_constant(g, 0, dy)));
}

static const ot_port fake_quant_grad_in[] = {{"dY", "T", 0}, {"mask", "bool", 0}, {0}};
static const ot_kernel fake_quant_grad_kernels[] = {OT__REF_KERNELS(NULL, fake_quant_grad_run),
                                                    {0}};
const ot_op_def ot__op_fake_quant_grad[] = {
    {.domain = OT__MS,
     .name = "FakeQuantGrad",
     .since = 1,
     .inputs = fake_quant_grad_in,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = fake_quant_grad_infer,
     .kernels = fake_quant_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = fake_quant_grad_expand},
    {0},
};
