// SPDX-License-Identifier: Apache-2.0
// Moving averages of parameters, after an update that was applied: the formula is a loop like those
// of the optimizers.
#include "ops/optimizer/optimizer.h"

enum { PARAMS, AVERAGES, UPDATED };

static void average_infer(ot_infer *c)
{
    if (!ot_infer_has(c, UPDATED) || ot__infer_one_element(c, UPDATED))
        ot_infer_set(c, 0, OT_BOOL, &OT_SHAPE(1));
}

static ot_status average_prepare(ot_prep *p)
{
    ot__pieces *pieces;

    if (!ot__pieces_fit(p, PARAMS, AVERAGES))
        return p->status;
    pieces = ot__pieces_make(p, PARAMS, sizeof(float));
    OT_TRY(p->status);
    *(float *)pieces->own = ot_attr_float(ot_prep_node(p), "decay");
    return OT_OK;
}

#define TEMPLATE "ops/optimizer/parameter_average.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_status average_run_simd(const ot_run *r)
{
    return average_all_f32(r, ot__updates_best()->average);
}

static const ot_port average_in[] = {
    {"params", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32}, // after what updates them
    {"averages", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"updated", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port average_out[] = {{"averaged", "bool", 0}, {0}};
static const ot_attr_spec average_attrs[] = {OT__FLOAT_IN("decay", 0.999f, 0, 1), {0}};
static const ot_kernel average_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, average_prepare, average_run_simd),
    OT__REF_KERNELS(average_prepare, average_run),
    {0},
};
const ot_op_def ot__op_parameter_average[] = {
    {.domain = "ai.onnxtrain",
     .name = "ParameterAverage",
     .since = 1,
     .inputs = average_in,
     .outputs = average_out,
     .attrs = average_attrs,
     .types = "T: f32 f64",
     .infer = average_infer,
     .kernels = average_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT | OT_OP_TENSORWISE},
    {0},
};
