// SPDX-License-Identifier: Apache-2.0
// Norms over several tensors as if they were one: ReduceAllL2 gives it, InplaceClipGradNorm scales
// all gradients together: g *= min(max_norm / (norm + 1e-6), 1).
#include "ops/optimizer/optimizer.h"

#include <math.h>
#include <string.h>

enum { MAX_NORM }; // ot__pieces.numbers
static const double norm_epsilon = 1e-6;

#define TEMPLATE "ops/training/gradient_norm.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- ReduceAllL2 ----

static void reduce_all_l2_infer(ot_infer *c)
{
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &OT_SHAPE_SCALAR);
}

static const ot_port reduce_all_l2_in[] = {{"X", "T", OT_PORT_VARIADIC | OT_PORT_F32}, {0}};
static const ot_port reduce_all_l2_out[] = {{"Y", "T", OT_PORT_F32}, {0}};
static const ot_kernel reduce_all_l2_kernels[] = {OT__REF_KERNELS(NULL, reduce_all_l2_run), {0}};
const ot_op_def ot__op_reduce_all_l2[] = {
    {.domain = OT__MS,
     .name = "ReduceAllL2",
     .since = 1,
     .inputs = reduce_all_l2_in,
     .outputs = reduce_all_l2_out,
     .types = "T: f32 f64",
     .infer = reduce_all_l2_infer,
     .kernels = reduce_all_l2_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};

// ---- InplaceClipGradNorm ----

static void clip_norm_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (strcmp(ot_attr_string(node, "norm_type"), "fro") != 0)
        ot_infer_fail(c, "norm_type is '%s', expected fro", ot_attr_string(node, "norm_type"));
    else if (!(ot_attr_float(node, "max_norm") > 0.0f))
        ot_infer_fail(c, "max_norm is %g, expected more than 0",
                      (double)ot_attr_float(node, "max_norm"));
    else
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
}

static ot_status clip_norm_prepare(ot_prep *p)
{
    ot__pieces *pieces = ot__pieces_make(p, 0, 0);

    OT_TRY(p->status);
    pieces->numbers[MAX_NORM] = (double)ot_attr_float(ot_prep_node(p), "max_norm");
    ot_prep_scratch(p, (size_t)pieces->n_pieces * sizeof(double));
    return OT_OK;
}

static const ot_port clip_norm_in[] = {
    {"gradients", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32}, {0}};
static const ot_port clip_norm_out[] = {
    {"clipped_gradients", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32}, {0}};
static const ot_attr_spec clip_norm_attrs[] = {
    OT__FLOAT_ATTR("max_norm", 1.0f),
    OT__STRING_ATTR("norm_type", "fro"),
    {0},
};
static const ot_kernel clip_norm_kernels[] = {OT__REF_KERNELS(clip_norm_prepare, clip_norm_run),
                                              {0}};
const ot_op_def ot__op_inplace_clip_grad_norm[] = {
    {.domain = OT__MS,
     .name = "InplaceClipGradNorm",
     .since = 1,
     .inputs = clip_norm_in,
     .outputs = clip_norm_out,
     .attrs = clip_norm_attrs,
     .types = "T: f32 f64",
     .infer = clip_norm_infer,
     .kernels = clip_norm_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
