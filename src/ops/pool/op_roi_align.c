// SPDX-License-Identifier: Apache-2.0
// RoiAlign: regions of images as means, or maxima, over points between elements.
#include "op/attr_word.h"
#include "ops/move/move.h"
#include "ops/pool/roi.h"

extern const ot_op_def ot__op_roi_align[];

enum { X, ROIS, BATCH_INDICES };                              // inputs of RoiAlign
enum { DY, DX_SHAPE, GRAD_ROIS, GRAD_BATCH_INDICES, GRAD_X }; // of its gradient
enum { SAMPLES_MAX = 4096 };                                  // along an axis of an element

// ---- inference ----

static const char *const places[] = {"half_pixel", "output_half_pixel", NULL};

// Before opset 16 coordinates are not shifted.
static int read_place(ot_infer *c, const ot_node *node)
{
    return node->op == &ot__op_roi_align[0]
               ? 1
               : ot__attr_word(c, node, "coordinate_transformation_mode", places);
}

static bool read_roi_align(ot_infer *c, const ot_node *node, ot__roi_align *p)
{
    static const char *const modes[] = {"avg", "max", NULL};
    const int mode = ot__attr_word(c, node, "mode", modes), place = read_place(c, node);

    if (mode < 0 || place < 0)
        return false;
    p->is_max = mode == 1;
    p->is_shifted = place == 0;
    p->out[0] = ot_attr_int(node, "output_height");
    p->out[1] = ot_attr_int(node, "output_width");
    p->n_samples = ot_attr_int(node, "sampling_ratio");
    p->scale = ot_attr_float(node, "spatial_scale");
    return true;
}

// The shape of the result; the inputs of regions start at input `rois`.
static bool infer_aligned(ot_infer *c, const ot_shape *x, int rois, ot_shape *y)
{
    const ot_shape *regions = ot_infer_shape(c, rois), *images = ot_infer_shape(c, rois + 1);
    ot__roi_align p;

    if (!ot__infer_rois(c, x, regions, 4) || !read_roi_align(c, ot_infer_node(c), &p))
        return false;
    if (images->ndim != 1 || ot__dim_differs(images->dim[0], regions->dim[0]))
        return ot__refuse(c, "batch_indices must be a list of one number a region");
    if (!ot__infer_roi_pool(c, x, regions, p.out, y))
        return false;
    if (!ot_dim_is_number(y->dim[0]))
        y->dim[0] = images->dim[0];
    return true;
}

static void roi_align_infer(ot_infer *c)
{
    ot_shape y;

    if (infer_aligned(c, ot_infer_shape(c, X), ROIS, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
}

static void roi_align_grad_infer(ot_infer *c)
{
    const bool has_x = ot_infer_has(c, GRAD_X);
    ot_shape x, y;
    ot__roi_align p;

    if (!read_roi_align(c, ot_infer_node(c), &p))
        return;
    if (p.is_max && !has_x) {
        ot_infer_fail(c, "X must be given for maxima");
        return;
    }
    if (!ot__infer_shape_input(c, DX_SHAPE, &x)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, DY));
        return;
    }
    if (has_x && !ot__shape_may_equal(&x, ot_infer_shape(c, GRAD_X)))
        ot_infer_fail(c, "X does not have the shape that is stated");
    if (infer_aligned(c, &x, GRAD_ROIS, &y) && ot__infer_roi_gradient(c, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, DY), &x);
}

// ---- kernels ----

// The shapes that inputs state may have become known after inference.
static ot_status prep_roi_align(ot_prep *p, const ot_arg *x, const ot_arg *y, const ot_arg *rois,
                                const ot_arg *images)
{
    ot__roi_align *s = ot_prep_state(p, sizeof *s);
    size_t n_bytes;

    OT_TRY(ot__made(s));
    (void)read_roi_align(NULL, ot_prep_node(p), s);
    if (x->shape.ndim != 4 || x->shape.dim[2] < 1 || x->shape.dim[3] < 1 ||
        !ot__shape_equal(&y->shape,
                         &OT_SHAPE(rois->shape.dim[0], x->shape.dim[1], s->out[0], s->out[1])) ||
        images->count != rois->shape.dim[0])
        return ot_prep_fail(p, OT_ERR_INVALID, "X, rois and batch_indices do not fit each other");
    s->n_rois = rois->shape.dim[0];
    s->batch = x->shape.dim[0];
    s->channels = x->shape.dim[1];
    for (int a = 0; a < OT__ROI_AXES; a++)
        s->in[a] = x->shape.dim[2 + a];
    s->n_parts = y->count > OT_PAR_MIN ? ot_prep_threads(p) : 1;
    if (!ot__ref_roi_align_bytes(s, &n_bytes))
        return ot_prep_fail(p, OT_ERR_INVALID, "the result has too many samples");
    ot_prep_scratch(p, n_bytes);
    return OT_OK;
}

static ot_status roi_align_prep(ot_prep *p)
{
    return prep_roi_align(p, ot_prep_in(p, X), ot_prep_out(p, 0), ot_prep_in(p, ROIS),
                          ot_prep_in(p, BATCH_INDICES));
}

static ot_status roi_align_grad_prep(ot_prep *p)
{
    const ot_arg *x = GRAD_X < ot_prep_input_count(p) ? ot_prep_in(p, GRAD_X) : NULL;

    if (x != NULL && !ot__shape_equal(&x->shape, &ot_prep_out(p, 0)->shape))
        return ot_prep_fail(p, OT_ERR_INVALID, "X does not have the shape that is stated");
    return prep_roi_align(p, ot_prep_out(p, 0), ot_prep_in(p, DY), ot_prep_in(p, GRAD_ROIS),
                          ot_prep_in(p, GRAD_BATCH_INDICES));
}

static ot_status check_images(const ot_arg *images, int64_t batch)
{
    const int64_t *image = images->data;

    for (int64_t r = 0; r < images->count; r++)
        if (image[r] < 0 || image[r] >= batch)
            return ot__error(OT_ERR_INVALID,
                             "batch_indices has %" PRId64 " at position %" PRId64 ", X has %" PRId64
                             " images",
                             image[r], r, batch);
    return OT_OK;
}

#define TEMPLATE "ops/pool/roi_align.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- gradient ----

static void roi_align_grad(ot_grad *g)
{
    ot__roi_align p;
    ot_value *x = ot_grad_x(g, X);
    ot_value *in[] = {ot_grad_dy(g, 0), ot_emit_shape(g, x), ot_grad_x(g, ROIS),
                      ot_grad_x(g, BATCH_INDICES), x};
    ot_node *node;

    (void)read_roi_align(NULL, ot_grad_node(g), &p);
    node = ot_emit(g, "ai.onnxtrain.RoiAlignGrad", NULL, in, p.is_max ? 5 : 4, 1);
    ot_emit_forward_attrs(g, node);
    ot_emit_string(g, node, "coordinate_transformation_mode", places[p.is_shifted ? 0 : 1]);
    ot_grad_set_dx(g, X, ot_emit_output(g, node, 0));
}

static void roi_align_raise(ot_upgrade *u)
{
    ot_upgrade_set_string(u, "coordinate_transformation_mode", places[1]);
}

// ---- records ----

static const ot_port roi_align_in[] = {
    {"X", "T", 0},
    {"rois", "T", OT_PORT_NO_GRAD | OT_PORT_F32},
    {"batch_indices", "i64", OT_PORT_NO_GRAD},
    {0},
};
static const ot_port roi_align_grad_in[] = {
    {"dY", "T", 0},
    {"shape", "i64", 0},
    {"rois", "T", OT_PORT_F32},
    {"batch_indices", "i64", 0},
    {"X", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec roi_align_attrs[] = {
    OT__STRING_ATTR("coordinate_transformation_mode", "half_pixel"), // since opset 16
    OT__STRING_ATTR("mode", "avg"),
    OT__INT_ATTR("output_height", 1),
    OT__INT_ATTR("output_width", 1),
    {.name = "sampling_ratio",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_HAS_DEFAULT,
     .low = 0,
     .high = SAMPLES_MAX + 1},
    OT__FLOAT_ATTR("spatial_scale", 1.0F),
    {0},
};
static const ot_kernel roi_align_kernels[] = {OT__REF_KERNELS(roi_align_prep, roi_align_run), {0}};
static const ot_kernel roi_align_grad_kernels[] = {
    OT__REF_KERNELS(roi_align_grad_prep, roi_align_grad_run), {0}};
#define ROI_ALIGN                                                                                  \
    .name = "RoiAlign", .inputs = roi_align_in, .outputs = ot__unary_out, .types = "T: f32 f64",   \
    .infer = roi_align_infer, .kernels = roi_align_kernels, .grad = roi_align_grad
const ot_op_def ot__op_roi_align[] = {
    {ROI_ALIGN, .since = 10, .attrs = roi_align_attrs + 1, .raise = roi_align_raise},
    {ROI_ALIGN, .since = 16, .attrs = roi_align_attrs},
    {0},
};
const ot_op_def ot__op_roi_align_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "RoiAlignGrad",
     .since = 1,
     .inputs = roi_align_grad_in,
     .outputs = ot__gradient_out,
     .attrs = roi_align_attrs,
     .types = "T: f32 f64",
     .infer = roi_align_grad_infer,
     .kernels = roi_align_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
