// SPDX-License-Identifier: Apache-2.0
// BatchScale: Y_i = scale_i * X, two or three of them
#include "op/op.h"

enum { MAX_OUTPUTS = 3 };
static const char *const scale_names[MAX_OUTPUTS] = {"scale_0", "scale_1", "scale_2"};

static void batch_scale_infer(ot_infer *c)
{
    for (int i = 0; i < ot_infer_output_count(c); i++)
        ot_infer_set(c, i, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

typedef struct scales {
    double of[MAX_OUTPUTS];
} scales;

static ot_status batch_scale_prepare(ot_prep *p)
{
    scales *state = ot_prep_state(p, sizeof *state);

    OT_TRY(ot__made(state));
    for (int i = 0; i < MAX_OUTPUTS; i++)
        state->of[i] = (double)ot_attr_float(ot_prep_node(p), scale_names[i]);
    return OT_OK;
}

#define TEMPLATE "ops/norm/batch_scale.tmpl.h"
#include "kernels/by_float.tmpl.h"

// dX = sum of scale_i * dY_i
static void batch_scale_grad(ot_grad *g)
{
    ot_value *dx = NULL;

    for (int i = 0; i < ot_grad_output_count(g); i++) {
        ot_value *dy = ot_grad_dy(g, i), *term;

        if (dy == NULL)
            continue;
        term = ot_emit2(
            g, "Mul", dy,
            ot_emit_constant(g, (double)ot_attr_float(ot_grad_node(g), scale_names[i]), dy));
        dx = dx == NULL ? term : ot_emit2(g, "Add", dx, term);
    }
    ot_grad_set_dx(g, 0, dx);
}

static const ot_port batch_scale_out[] = {
    {"output_0", "T", 0}, {"output_1", "T", 0}, {"output_2", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_attr_spec batch_scale_attrs[] = {
    {.name = "scale_0", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_REQUIRED},
    {.name = "scale_1", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_REQUIRED},
    OT__FLOAT_ATTR("scale_2", 0),
    {0},
};
static const ot_kernel batch_scale_kernels[] = {
    OT__REF_KERNELS(batch_scale_prepare, batch_scale_run), {0}};
const ot_op_def ot__op_batch_scale[] = {
    {.domain = "com.microsoft",
     .name = "BatchScale",
     .since = 1,
     .inputs = ot__input_in,
     .outputs = batch_scale_out,
     .attrs = batch_scale_attrs,
     .types = "T: f32 f64",
     .infer = batch_scale_infer,
     .kernels = batch_scale_kernels,
     .grad = batch_scale_grad},
    {0},
};
