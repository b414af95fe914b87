// SPDX-License-Identifier: Apache-2.0
// MaxRoiPool: maxima over parts of regions of images; dX = dY's elements, added up where the maxima
// came from.
#include "ops/move/move.h"
#include "ops/pool/roi.h"

enum { X, ROIS };               // inputs of MaxRoiPool
enum { DY, GRAD_X, GRAD_ROIS }; // of its gradient

static bool infer_pooled_regions(ot_infer *c, const ot_shape *x, const ot_shape *rois, ot_shape *y)
{
    int n;
    const int64_t *out = ot_attr_ints(ot_infer_node(c), "pooled_shape", &n);

    if (!ot__infer_rois(c, x, rois, 5))
        return false;
    if (n != OT__ROI_AXES)
        return ot__refuse(c, "pooled_shape has %d numbers, expected height and width", n);
    return ot__infer_roi_pool(c, x, rois, out, y);
}

static void max_roi_pool_infer(ot_infer *c)
{
    ot_shape y;

    if (infer_pooled_regions(c, ot_infer_shape(c, X), ot_infer_shape(c, ROIS), &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
}

static void max_roi_pool_grad_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, GRAD_X);
    ot_shape y;

    if (infer_pooled_regions(c, x, ot_infer_shape(c, GRAD_ROIS), &y) &&
        ot__infer_roi_gradient(c, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, DY), x);
}

// ---- kernels ----

static ot_status prep_max_roi(ot_prep *p, const ot_arg *x, const ot_arg *rois)
{
    ot__roi_pool *s = ot_prep_state(p, sizeof *s);
    int n;
    const int64_t *out = ot_attr_ints(ot_prep_node(p), "pooled_shape", &n);

    OT_TRY(ot__made(s));
    *s = (ot__roi_pool){.n_rois = rois->shape.dim[0],
                        .batch = x->shape.dim[0],
                        .channels = x->shape.dim[1],
                        .scale = ot_attr_float(ot_prep_node(p), "spatial_scale")};
    for (int a = 0; a < OT__ROI_AXES; a++) {
        s->in[a] = x->shape.dim[2 + a];
        s->out[a] = out[a];
    }
    return OT_OK;
}

static ot_status max_roi_pool_prep(ot_prep *p)
{
    return prep_max_roi(p, ot_prep_in(p, X), ot_prep_in(p, ROIS));
}

static ot_status max_roi_pool_grad_prep(ot_prep *p)
{
    return prep_max_roi(p, ot_prep_in(p, GRAD_X), ot_prep_in(p, GRAD_ROIS));
}

static ot_status no_such_image(int64_t roi, const ot__roi_pool *p)
{
    return roi < 0
               ? OT_OK
               : ot__error(OT_ERR_INVALID, "region %" PRId64 " is in none of %" PRId64 " images",
                           roi, p->batch);
}

#define TEMPLATE "ops/pool/max_roi_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"

static void max_roi_pool_rule(ot_grad *g)
{
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_x(g, X), ot_grad_x(g, ROIS)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.MaxRoiPoolGrad", NULL, in, 3, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, X, ot_emit_output(g, node, 0));
}

static const ot_port max_roi_pool_in[] = {
    {"X", "T", 0}, {"rois", "T", OT_PORT_NO_GRAD | OT_PORT_F32}, {0}};
static const ot_port max_roi_pool_grad_in[] = {
    {"dY", "T", 0}, {"X", "T", 0}, {"rois", "T", OT_PORT_F32}, {0}};
static const ot_attr_spec max_roi_pool_attrs[] = {
    {.name = "pooled_shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    OT__FLOAT_ATTR("spatial_scale", 1.0F),
    {0},
};
static const ot_kernel max_roi_pool_kernels[] = {
    OT__REF_KERNELS(max_roi_pool_prep, max_roi_pool_run), {0}};
static const ot_kernel max_roi_pool_grad_kernels[] = {
    OT__REF_KERNELS(max_roi_pool_grad_prep, max_roi_pool_grad_run), {0}};
const ot_op_def ot__op_max_roi_pool[] = {
    {.name = "MaxRoiPool",
     .since = 1,
     .inputs = max_roi_pool_in,
     .outputs = ot__unary_out,
     .attrs = max_roi_pool_attrs,
     .types = "T: f32 f64",
     .infer = max_roi_pool_infer,
     .kernels = max_roi_pool_kernels,
     .grad = max_roi_pool_rule},
    {0},
};
const ot_op_def ot__op_max_roi_pool_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "MaxRoiPoolGrad",
     .since = 1,
     .inputs = max_roi_pool_grad_in,
     .outputs = ot__gradient_out,
     .attrs = max_roi_pool_attrs,
     .types = "T: f32 f64",
     .infer = max_roi_pool_grad_infer,
     .kernels = max_roi_pool_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
