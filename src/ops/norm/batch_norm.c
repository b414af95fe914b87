// SPDX-License-Identifier: Apache-2.0
// Y = (X - mean) / sqrt(var + epsilon) * scale + B, by stored statistics or by the batch's, which
// are then blended into the running ones; also with what follows in residual networks: + Z, Relu.
#include "ops/norm/batch_norm.h"

enum { SAVED_MEAN = OT__BN_MEAN, SAVED_INV_STD = OT__BN_VAR }; // inputs of BatchNormReluAgain

// ---- inference ----

bool ot__infer_channels(ot_infer *c, int x, int n_axes, int first, int last, int64_t *channels)
{
    const ot_shape *shape = ot_infer_shape(c, x);

    if (shape->ndim < n_axes)
        return ot__refuse(c, "X has %d axes, expected at least %d", shape->ndim, n_axes);
    *channels = shape->dim[1];
    for (int i = first; i <= last; i++) {
        const ot_shape *v = ot_infer_shape(c, i);

        if (v->ndim != 1 || ot__dim_differs(*channels, v->dim[0]))
            return ot__refuse(c, "input %d must have one element a channel", i);
        if (!ot_dim_is_number(*channels))
            *channels = v->dim[0];
    }
    return true;
}

static void batch_norm_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, OT__BN_X);
    const ot_dtype dtype = ot_infer_dtype(c, OT__BN_X);
    int64_t channels;

    if (ot_infer_has(c, OT__BN_Z) && !ot__shape_equal(ot_infer_shape(c, OT__BN_Z), x))
        ot_infer_fail(c, "X and Z have different shapes");
    if (!ot__infer_channels(c, OT__BN_X, 2, OT__BN_SCALE, OT__BN_VAR, &channels))
        return;
    ot_infer_set(c, OT__BN_Y, dtype, x);
    for (int i = OT__BN_RUNNING_MEAN; i <= OT__BN_SAVED_SPREAD; i++)
        ot_infer_set(c, i, dtype, &OT_SHAPE(channels));
}

// ---- what a node does ----

static bool norm_has_relu(const ot_op_def *op)
{
    return ot__op_input_port(op, OT__BN_Z) != NULL;
}

bool ot__batch_norm_is_internal(const ot_op_def *op)
{
    return (ot__op_input_port(op, OT__BN_MEAN)->flags & OT_PORT_STATE) != 0;
}

// Before opset 14 there was no attribute: more outputs than one meant training.
bool ot__batch_norm_is_training(const ot_node *node)
{
    if (norm_has_relu(node->op))
        return true;
    if (ot__batch_norm_is_internal(node->op) || node->op->since >= 14)
        return ot_attr_int(node, "training_mode") != 0;
    for (int i = 1; i < node->n_outputs; i++)
        if (node->outputs[i])
            return true;
    return false;
}

// Where images have one pixel, their rows are pixels of fewer images, whose channels lie last: sums
// are then of whole rows, and of few images. How many follows from the shape alone.
static void join_images(ot__channels *c)
{
    enum { IMAGES = 16 };
    const int64_t n = c->outer, channels = c->blocks * c->width;

    if (n == 0 || c->inner != 1 || (c->width != 1 && c->blocks != 1))
        return;
    *c = (ot__channels){.outer = OT_MIN(n, (int64_t)IMAGES), .blocks = 1, .width = channels};
    while (n % c->outer != 0)
        c->outer--;
    c->inner = n / c->outer;
}

ot_status ot__batch_norm_state(ot_prep *p, int x)
{
    const ot_arg *arg = ot_prep_in(p, x);
    const ot_shape *shape = &arg->shape;
    ot__batch_norm *norm = ot_prep_state(p, sizeof(*norm));

    OT_TRY(ot__made(norm));
    norm->n = shape->dim[0];
    norm->channels = shape->dim[1];
    norm->inner = 1;
    for (int i = 2; i < shape->ndim; i++)
        norm->inner *= shape->dim[i];
    norm->epsilon = (double)ot_attr_float(ot_prep_node(p), "epsilon");
    norm->is_sync = (ot_prep_node(p)->op->flags & OT_OP_ORDERED) != 0;
    if (!ot__channels_of(shape, arg->layout, &norm->layout))
        return ot_prep_fail(p, OT_ERR_INTERNAL, "the layout of X is not one of images");
    join_images(&norm->layout);
    return OT_OK;
}

bool ot__batch_norm_is_ghost(const ot_run *r)
{
    const ot_exchange *exchange = r->step != NULL ? r->step->exchange : NULL;

    return exchange != NULL && exchange->is_ghost;
}

// Of scratch, for sums over ranks; 0: there are none.
static size_t sync_bytes(const ot__batch_norm *norm)
{
    return norm->is_sync ? (2 * (size_t)norm->channels + 1) * sizeof(double) : 0;
}

static ot_status batch_norm_describe(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    ot__batch_norm *norm;

    OT_TRY(ot__batch_norm_state(p, OT__BN_X));
    norm = p->state;
    norm->momentum = (double)ot_attr_float(node, "momentum");
    norm->is_training = ot__batch_norm_is_training(node);
    norm->is_internal = ot__batch_norm_is_internal(node->op);
    norm->relu = norm_has_relu(node->op);
    return OT_OK;
}

// ---- reference ----

static ot_status batch_norm_prepare_ref(ot_prep *p)
{
    enum { VECTORS = 2 }; // mean, variance
    const ot_arg *x = ot_prep_in(p, OT__BN_X);

    OT_TRY(batch_norm_describe(p));
    ot_prep_scratch(p, VECTORS * (size_t)x->shape.dim[1] * ot_dtype_size(x->dtype) +
                           sync_bytes(p->state));
    return OT_OK;
}

static ot_status batch_norm_again_prepare_ref(ot_prep *p)
{
    return ot__batch_norm_state(p, OT__BN_X);
}

#define TEMPLATE "ops/norm/batch_norm.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- by vector code, in whatever layout X has ----

static bool is_image_or_f32(const ot_arg *arg, ot_dtype images)
{
    return arg == NULL || arg->dtype == (arg->shape.ndim > 1 ? images : OT_F32);
}

bool ot__batch_norm_can_simd(const ot_prep *p)
{
    const ot_dtype images = ot_prep_in(p, OT__BN_X)->dtype;

    for (int i = 0; i < p->n_in; i++)
        if (!is_image_or_f32(p->in[i], images))
            return ot_prep_declines(p, "types that do not meet in training");
    for (int i = 0; i < p->n_out; i++)
        if (!is_image_or_f32(p->out[i], images))
            return ot_prep_declines(p, "types that do not meet in training");
    return ot__prep_has_elements(p);
}

static void batch_norm_layouts(ot_prep *p)
{
    const ot_layout *layout = ot_prep_offered_in(p, OT__BN_X);

    ot_prep_want_in(p, OT__BN_X, layout);
    ot_prep_want_in(p, OT__BN_Z, layout);
    ot_prep_want_out(p, OT__BN_Y, layout);
}

static ot_status batch_norm_prepare_simd(ot_prep *p)
{
    enum { VECTORS = 4 }; // mean, variance, factor, offset
    const ot__batch_norm *norm;

    OT_TRY(batch_norm_describe(p));
    norm = p->state;
    ot_prep_scratch(p, ot__norm_scratch_bytes(&norm->layout) +
                           VECTORS * (size_t)norm->channels * sizeof(float) + sync_bytes(norm));
    return OT_OK;
}

static ot_status batch_norm_run_simd(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const ot__norms *norms = ot__norms_best();
    const ot_arg *x = r->in[OT__BN_X];
    const float *scale = r->in[OT__BN_SCALE]->data;
    float *batch_mean = (void *)((uint8_t *)r->scratch + ot__norm_scratch_bytes(&p->layout));
    float *batch_var = batch_mean + p->channels, *factor = batch_var + p->channels;
    const float *mean = p->is_training ? batch_mean : r->in[OT__BN_MEAN]->data;
    const float *var = p->is_training ? batch_var : r->in[OT__BN_VAR]->data;
    double count = (double)(p->n * p->inner);

    if (p->is_training)
        norms->moments(batch_mean, batch_var, x->dtype, x->data, &p->layout, r->scratch);
    if (p->is_sync)
        OT_TRY(batch_norm_sync_f32(r, batch_mean, batch_var, (void *)(factor + 2 * p->channels),
                                   &count));
    ot__ref_inv_std_f32(factor, var, p->epsilon, p->channels); // as it is saved
    for (int64_t c = 0; c < p->channels; c++)
        factor[c] = ot__batch_norm_factor(scale[c], factor[c]);
    norms->apply(&(ot__norm_apply){.mean = mean,
                                   .factor = factor,
                                   .offset = r->in[OT__BN_BIAS]->data,
                                   .type = x->dtype,
                                   .x = x->data,
                                   .z = ot__run_in(r, OT__BN_Z),
                                   .y = r->out[OT__BN_Y]->data,
                                   .relu = p->relu},
                 &p->layout);
    batch_norm_finish_f32(r, mean, var, count);
    return OT_OK;
}

static ot_status batch_norm_again_prepare_simd(ot_prep *p)
{
    ot_prep_scratch(p, (size_t)ot_prep_in(p, OT__BN_X)->shape.dim[1] * sizeof(float)); // factor
    return ot__batch_norm_state(p, OT__BN_X);
}

static ot_status batch_norm_again_run_simd(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const float *scale = r->in[OT__BN_SCALE]->data, *inv_std = r->in[SAVED_INV_STD]->data;
    float *factor = r->scratch;

    for (int64_t c = 0; c < p->channels; c++)
        factor[c] = ot__batch_norm_factor(scale[c], inv_std[c]);
    ot__norms_best()->apply(&(ot__norm_apply){.mean = r->in[SAVED_MEAN]->data,
                                              .factor = factor,
                                              .offset = r->in[OT__BN_BIAS]->data,
                                              .type = r->in[OT__BN_X]->dtype,
                                              .x = r->in[OT__BN_X]->data,
                                              .z = ot__run_in(r, OT__BN_Z),
                                              .y = r->out[OT__BN_Y]->data,
                                              .relu = true},
                            &p->layout);
    return OT_OK;
}

// Y = Relu((X - mean) * inv_std * scale + B + Z), with what it saved of X.
static ot_value *batch_norm_recompute(ot_grad *g)
{
    ot_value *z = ot_grad_x(g, OT__BN_Z);
    ot_value *in[] = {ot_grad_x(g, OT__BN_X),
                      ot_grad_x(g, OT__BN_SCALE),
                      ot_grad_x(g, OT__BN_BIAS),
                      NULL,
                      NULL,
                      z};

    if (!ot_expand_wants(g, OT__BN_SAVED_MEAN) || !ot_expand_wants(g, OT__BN_SAVED_SPREAD))
        return NULL;
    in[SAVED_MEAN] = ot_grad_y(g, OT__BN_SAVED_MEAN);
    in[SAVED_INV_STD] = ot_grad_y(g, OT__BN_SAVED_SPREAD);
    return ot_emit_output(g,
                          ot_emit(g, "ai.onnxtrain.BatchNormReluAgain", NULL, in,
                                  z == NULL ? OT__BN_Z : OT__BN_Z + 1, 1),
                          0);
}

// ---- records ----

enum {
    KEPT = OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32,
    STATISTIC = OT_PORT_STATISTIC | OT_PORT_F32,
    UPDATED = STATISTIC | OT_PORT_NO_GRAD | OT_PORT_STATE
};

#define NORM_IN(scale, bias, statistic)                                                            \
    {"X", "T", 0}, {"scale", "T", (scale) | OT_PORT_F32}, {"B", "T", (bias) | OT_PORT_F32},        \
        {"input_mean", "T", statistic},                                                            \
    {                                                                                              \
        "input_var", "T", statistic                                                                \
    }
static const ot_port batch_norm_in[] = {NORM_IN(OT_PORT_SCALE, OT_PORT_BIAS, STATISTIC), {0}};
static const ot_port internal_in[] = {NORM_IN(OT_PORT_SCALE, OT_PORT_BIAS, UPDATED), {0}};
static const ot_port batch_norm_relu_in[] = {
    NORM_IN(0, 0, UPDATED), {"Z", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_port batch_norm_again_in[] = {{"X", "T", 0},
                                              {"scale", "T", OT_PORT_F32},
                                              {"B", "T", OT_PORT_F32},
                                              {"saved_mean", "T", OT_PORT_F32},
                                              {"saved_inv_std", "T", OT_PORT_F32},
                                              {"Z", "T", OT_PORT_OPTIONAL},
                                              {0}};
static const ot_port batch_norm_out_7[] = {{"Y", "T", 0},
                                           {"mean", "T", KEPT},
                                           {"var", "T", KEPT},
                                           {"saved_mean", "T", KEPT},
                                           {"saved_var", "T", KEPT},
                                           {0}};
static const ot_port batch_norm_out[] = {
    {"Y", "T", 0}, {"running_mean", "T", KEPT}, {"running_var", "T", KEPT}, {0}};
static const ot_port internal_out[] = {{"Y", "T", 0},
                                       {"running_mean", "T", KEPT | OT_PORT_STATE},
                                       {"running_var", "T", KEPT | OT_PORT_STATE},
                                       {"saved_mean", "T", KEPT},
                                       {"saved_inv_std", "T", KEPT},
                                       {0}};

#define NUMBERS OT__FLOAT_ATTR("epsilon", 1e-5f), OT__FLOAT_ATTR("momentum", 0.9f)
const ot_attr_spec ot__epsilon_attrs[] = {OT__FLOAT_ATTR("epsilon", 1e-5f), {0}};
static const ot_attr_spec batch_norm_attrs_7[] = {NUMBERS, OT__INT_ATTR("spatial", 1), {0}};
static const ot_attr_spec batch_norm_attrs_9[] = {NUMBERS, {0}};
static const ot_attr_spec batch_norm_attrs[] = {NUMBERS, OT__INT_ATTR("training_mode", 0), {0}};
static const ot_attr_spec internal_attrs[] = {NUMBERS, OT__INT_ATTR("training_mode", 1), {0}};

static const ot_kernel batch_norm_kernels[] = {
    OT__BATCH_NORM_KERNEL(batch_norm_layouts, batch_norm_prepare_simd, batch_norm_run_simd),
    OT__REF_KERNELS(batch_norm_prepare_ref, batch_norm_run),
    {0},
};
static const ot_kernel batch_norm_again_kernels[] = {
    OT__BATCH_NORM_KERNEL(batch_norm_layouts, batch_norm_again_prepare_simd,
                          batch_norm_again_run_simd),
    OT__REF_KERNELS(batch_norm_again_prepare_ref, batch_norm_again_run),
    {0},
};

static void drop_spatial(ot_upgrade *u)
{
    if (ot_attr_int(ot_upgrade_node(u), "spatial") != 1)
        ot_upgrade_fail(u, "spatial is %" PRId64 ", expected 1",
                        ot_attr_int(ot_upgrade_node(u), "spatial"));
    ot_upgrade_remove_attr(u, "spatial");
}

#define BATCH_NORM .types = "T: f32 f64", .infer = batch_norm_infer
#define BATCH_NORMALIZATION BATCH_NORM, .name = "BatchNormalization", .inputs = batch_norm_in
#define RUNS .kernels = batch_norm_kernels, .grad = ot__batch_norm_rule
const ot_op_def ot__op_batch_normalization[] = {
    {BATCH_NORMALIZATION, .since = 7, .outputs = batch_norm_out_7, .attrs = batch_norm_attrs_7,
     .upgrade = drop_spatial},
    {BATCH_NORMALIZATION, RUNS, .since = 9, .outputs = batch_norm_out_7,
     .attrs = batch_norm_attrs_9},
    {BATCH_NORMALIZATION, RUNS, .since = 14, .outputs = batch_norm_out, .attrs = batch_norm_attrs},
    {0},
};
const ot_op_def ot__op_batch_norm_internal[] = {
    {BATCH_NORM, RUNS, .domain = OT__MS, .name = "BatchNormInternal", .since = 1,
     .inputs = internal_in, .outputs = internal_out, .attrs = internal_attrs},
    {0},
};
// BatchNormInternal by the statistics of the batches of all ranks, each of which has such a node
// (fuse_sync_norm.c).
const ot_op_def ot__op_sync_batch_normalization[] = {
    {BATCH_NORM, .domain = "ai.onnxtrain", .name = "SyncBatchNormalization", .since = 1,
     .inputs = internal_in, .outputs = internal_out, .attrs = internal_attrs,
     .kernels = batch_norm_kernels, .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL | OT_OP_ORDERED},
    {0},
};
// BatchNormInternal, an optional sum with Z, and Relu: what lies between them is never stored.
const ot_op_def ot__op_batch_norm_relu[] = {
    {BATCH_NORM, .domain = "ai.onnxtrain", .name = "BatchNormRelu", .since = 1,
     .inputs = batch_norm_relu_in, .outputs = internal_out, .attrs = batch_norm_attrs_9,
     .kernels = batch_norm_kernels, .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL | OT_OP_FREE_AGAIN,
     .recompute = batch_norm_recompute},
    {0},
};
// Its Y once more, from the statistics that it saved: what is cheap to make again need
// not be kept until the backward pass.
const ot_op_def ot__op_batch_norm_relu_again[] = {
    {BATCH_NORM, .domain = "ai.onnxtrain", .name = "BatchNormReluAgain", .since = 1,
     .inputs = batch_norm_again_in, .outputs = ot__unary_out, .kernels = batch_norm_again_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
