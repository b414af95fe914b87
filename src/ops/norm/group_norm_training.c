// SPDX-License-Identifier: Apache-2.0
// Group normalisation with its mean and 1 / sqrt(variance + epsilon) of each image's groups, and
// its gradient: what fuse_group_norm.c makes of GroupNormalization and InstanceNormalization.
#include <math.h>
#include <string.h>

#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"

enum { X, SCALE, BIAS };
enum { Y, MEAN, INV_STD };
enum { DY, GRAD_X, GRAD_SCALE, GRAD_MEAN, GRAD_INV_STD };
enum { DX, DSCALE, DB };

typedef struct group_norm {
    ot__group_norm sizes;
    // For the vector kernels, which take as many groups at a time as the second cache holds.
    int64_t at_once;
    ot__channels image; // in X's layout
} group_norm;

// ---- inference ----

// One element for each of so many channels, along whatever axis.
static bool has_each_channel(const ot_shape *shape, int64_t channels)
{
    bool has_channels = false;

    for (int k = 0; k < shape->ndim; k++) {
        const bool is_channels = !has_channels && !ot__dim_differs(shape->dim[k], channels);

        if (!is_channels && shape->dim[k] != 1)
            return false;
        has_channels = has_channels || is_channels;
    }
    return has_channels;
}

// The shape of mean and factor; false with the failure.
static bool group_norm_check(ot_infer *c, int x, ot_shape *stats)
{
    const ot_shape *shape = ot_infer_shape(c, x);
    const int64_t groups = ot_attr_int(ot_infer_node(c), "num_groups");

    if (shape->ndim < 2)
        return ot__refuse(c, "X has %d axes, expected at least 2", shape->ndim);
    if (groups < 1 || (ot_dim_is_number(shape->dim[1]) && shape->dim[1] % groups != 0))
        return ot__refuse(c, "%" PRId64 " channels are not divisible by num_groups, %" PRId64,
                          shape->dim[1], groups);
    for (int i = x + 1; i <= x + (x == X ? BIAS : SCALE); i++)
        if (ot_infer_has(c, i) && !has_each_channel(ot_infer_shape(c, i), shape->dim[1]))
            return ot__refuse(c, "input %d must have one element a channel", i);
    *stats = OT_SHAPE(shape->dim[0], groups);
    return true;
}

static void group_norm_training_infer(ot_infer *c)
{
    ot_shape stats;

    if (!group_norm_check(c, X, &stats))
        return;
    ot_infer_set(c, Y, ot_infer_dtype(c, X), ot_infer_shape(c, X));
    for (int i = MEAN; i <= INV_STD; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, X), &stats);
}

static void group_norm_grad_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, GRAD_X);
    const ot_shape channels = x->ndim > 1 ? OT_SHAPE(x->dim[1]) : OT_SHAPE(0);
    ot_shape stats;

    if (!group_norm_check(c, GRAD_X, &stats))
        return;
    if (!ot__shape_may_equal(ot_infer_shape(c, DY), x))
        ot_infer_fail(c, "dY and X must have the same shape");
    for (int i = GRAD_MEAN; i <= GRAD_INV_STD; i++)
        if (!ot__shape_may_equal(ot_infer_shape(c, i), &stats))
            ot_infer_fail(c, "input %d must have an element for each group of an image", i);
    for (int i = DX; i <= DB; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, GRAD_X),
                     i == DX                       ? x
                     : ot_infer_has(c, GRAD_SCALE) ? ot_infer_shape(c, GRAD_SCALE)
                                                   : &channels);
}

// ---- reference ----

static ot_status prepare_state(ot_prep *p, int x)
{
    const ot_arg *arg = ot_prep_in(p, x);
    const ot_shape *shape = &arg->shape;
    const int64_t groups = ot_attr_int(ot_prep_node(p), "num_groups");
    group_norm *norm = ot_prep_state(p, sizeof *norm);

    OT_TRY(ot__made(norm));
    norm->sizes = (ot__group_norm){.n = shape->dim[0],
                                   .groups = groups,
                                   .channels = shape->dim[1] / groups,
                                   .inner = 1,
                                   .epsilon = (double)ot_attr_float(ot_prep_node(p), "epsilon")};
    for (int k = 2; k < shape->ndim; k++)
        norm->sizes.inner *= shape->dim[k];
    if (!ot__channels_of(shape, arg->layout, &norm->image))
        return ot_prep_fail(p, OT_ERR_INTERNAL, "the layout of X is not one of images");
    norm->image.outer = 1;
    return OT_OK;
}

static ot_status group_norm_training_prepare(ot_prep *p)
{
    return prepare_state(p, X);
}

static ot_status group_norm_grad_prepare(ot_prep *p)
{
    return prepare_state(p, GRAD_X);
}

#define TEMPLATE "ops/norm/group_norm_training.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- by vector code, in whatever layout X has ----

// Floats and doubles for each channel of each image that is worked on.
enum { FORWARD_FLOATS = 4, GRAD_FLOATS = 4, GRAD_DOUBLES = 2 };
// Doubles for each channel, of all images.
enum { TOTALS = 2 };

static int64_t count_channels(const ot__group_norm *sizes)
{
    return sizes->groups * sizes->channels;
}

// Elements that stay in the caches of all threads while they are read twice, beside two times as
// many others.
static int64_t elements_at_once(int n_threads)
{
    return ot__second_cache() / (int64_t)(4 * sizeof(float)) * n_threads;
}

static int64_t all_groups(const ot__group_norm *sizes)
{
    return sizes->n * sizes->groups;
}

// Groups of row-major images follow each other, others are taken image by image. Threads share out
// channels, of which each has some.
static int64_t groups_at_once(const group_norm *norm, int n_threads)
{
    enum { CHANNELS_OF_THREAD = 4 };
    const ot__group_norm *sizes = &norm->sizes;
    const int64_t step = norm->image.width == 1 ? 1 : sizes->groups;
    const int64_t channels = OT_MAX(step * sizes->channels, (int64_t)1);
    const int64_t elements = OT_MAX(channels * sizes->inner, (int64_t)1);
    const int64_t fit = elements_at_once(n_threads) / elements;
    const int64_t enough = (CHANNELS_OF_THREAD * n_threads + channels - 1) / channels;

    return OT_MAX(OT_MIN(OT_MAX(fit, enough) * step, all_groups(sizes)), step);
}

// Of n_groups groups, each of whose channels is a channel of its own.
static ot__channels groups_layout(const group_norm *norm, int64_t n_groups)
{
    ot__channels layout = norm->image;

    layout.blocks = n_groups * norm->sizes.channels / layout.width;
    return layout;
}

static ot_status prepare_simd(ot_prep *p, int x, size_t bytes_of_channel, size_t bytes_of_all)
{
    group_norm *norm;
    ot__channels layout;

    OT_TRY(prepare_state(p, x));
    norm = p->state;
    norm->at_once = groups_at_once(norm, ot_prep_threads(p));
    layout = groups_layout(norm, norm->at_once);
    ot_prep_scratch(p, ot__norm_scratch_bytes(&layout) +
                           (size_t)(norm->at_once * norm->sizes.channels) * bytes_of_channel +
                           (size_t)count_channels(&norm->sizes) * bytes_of_all);
    return OT_OK;
}

// n groups from `first` on.
typedef struct group_part {
    const ot__group_norm *sizes;
    int64_t first, n;
    ot__channels layout;
    size_t offset;           // bytes before them
    void *scratch, *numbers; // of the kernels, and behind that
} group_part;

static group_part part_from(const group_norm *norm, int64_t first, ot_dtype type, void *scratch)
{
    const int64_t n = OT_MIN(all_groups(&norm->sizes) - first, norm->at_once);
    group_part part = {
        .sizes = &norm->sizes, .first = first, .n = n, .layout = groups_layout(norm, n)};

    part.offset =
        (size_t)(first * norm->sizes.channels * norm->sizes.inner) * ot__element_size(type);
    part.scratch = scratch;
    part.numbers = (uint8_t *)scratch + ot__norm_scratch_bytes(&part.layout);
    return part;
}

static void *part_of(void *data, const group_part *part)
{
    return data == NULL ? NULL : (uint8_t *)data + part->offset;
}

// Images of one type beside f32.
static bool has_one_type(const ot_arg *a, const ot_arg *b)
{
    return a == NULL || b == NULL || a->dtype == b->dtype;
}

static bool group_norm_training_can_simd(const ot_prep *p)
{
    if (!ot__layer_norm_others_are_f32(p, X, Y) || !has_one_type(p->in[X], p->out[Y]))
        return ot_prep_declines(p, "types that do not meet in training");
    return ot__prep_has_elements(p);
}

static void group_norm_training_layouts(ot_prep *p)
{
    const ot_layout *layout = ot_prep_offered_in(p, X);

    ot_prep_want_in(p, X, layout);
    ot_prep_want_out(p, Y, layout);
}

static ot_status group_norm_training_prepare_simd(ot_prep *p)
{
    return prepare_simd(p, X, FORWARD_FLOATS * sizeof(float), 0);
}

// Of the moments of all channels, each of as many elements, those of a group.
static void merge_channels(const float *mean, const float *variance, int64_t n, double *group_mean,
                           double *group_variance)
{
    double sum = 0, spread = 0;

    for (int64_t c = 0; c < n; c++)
        sum += (double)mean[c];
    *group_mean = sum / (double)n;
    for (int64_t c = 0; c < n; c++) {
        const double off = (double)mean[c] - *group_mean;

        spread += (double)variance[c] + off * off;
    }
    *group_variance = spread / (double)n;
}

static void normalise_groups(const ot_run *r, const group_part *part)
{
    const ot__norms *norms = ot__norms_best();
    const ot_dtype type = r->in[X]->dtype;
    const void *x = part_of(r->in[X]->data, part);
    const float *scale = ot__run_in(r, SCALE), *bias = ot__run_in(r, BIAS);
    const int64_t channels = part->sizes->channels, n = part->n * channels;
    float *kept_mean = ot__run_out(r, MEAN), *kept_inv = ot__run_out(r, INV_STD);
    float *mean = part->numbers, *variance = mean + n, *factor = variance + n;
    float *offset = factor + n;

    norms->moments(mean, variance, type, x, &part->layout, part->scratch);
    for (int64_t i = 0; i < part->n; i++) {
        const int64_t first = (part->first + i) % part->sizes->groups * channels;
        const int64_t at = i * channels;
        double group_mean, group_variance;
        float inv;

        merge_channels(mean + at, variance + at, channels, &group_mean, &group_variance);
        inv = (float)(1 / sqrt(group_variance + part->sizes->epsilon));
        for (int64_t c = 0; c < channels; c++) {
            mean[at + c] = (float)group_mean;
            factor[at + c] = ot__batch_norm_factor(scale == NULL ? 1 : scale[first + c], inv);
            offset[at + c] = bias == NULL ? 0 : bias[first + c];
        }
        if (kept_mean != NULL)
            kept_mean[part->first + i] = (float)group_mean;
        if (kept_inv != NULL)
            kept_inv[part->first + i] = inv;
    }
    norms->apply(&(ot__norm_apply){.mean = mean,
                                   .factor = factor,
                                   .offset = offset,
                                   .type = type,
                                   .x = x,
                                   .y = part_of(r->out[Y]->data, part)},
                 &part->layout);
}

static ot_status group_norm_training_run_simd(const ot_run *r)
{
    const group_norm *norm = r->state;

    for (int64_t i = 0; i < all_groups(&norm->sizes); i += norm->at_once) {
        const group_part part = part_from(norm, i, r->in[X]->dtype, r->scratch);

        normalise_groups(r, &part);
    }
    return OT_OK;
}

static bool group_norm_grad_can_simd(const ot_prep *p)
{
    if (!ot__layer_norm_others_are_f32(p, GRAD_X, DX) || !has_one_type(p->in[GRAD_X], p->in[DY]) ||
        !has_one_type(p->in[GRAD_X], p->out[DX]))
        return ot_prep_declines(p, "types that do not meet in training");
    return ot__prep_has_elements(p);
}

static void group_norm_grad_layouts(ot_prep *p)
{
    const ot_layout *layout = ot_prep_offered_in(p, GRAD_X);

    ot_prep_want_in(p, DY, layout);
    ot_prep_want_in(p, GRAD_X, layout);
    ot_prep_want_out(p, DX, layout);
}

static ot_status group_norm_grad_prepare_simd(ot_prep *p)
{
    return prepare_simd(p, GRAD_X, GRAD_FLOATS * sizeof(float) + GRAD_DOUBLES * sizeof(double),
                        TOTALS * sizeof(double));
}

// Adds the sums of each image's channels to those of all; of dy * (x - mean) those times inv.
static void add_channel_sums(const group_part *part, const double *sum, const double *sum_x,
                             const float *inv, double *total)
{
    const int64_t channels = part->sizes->channels, all = count_channels(part->sizes);

    for (int64_t k = 0; k < part->n * channels; k++) {
        const int64_t c = (part->first * channels + k) % all;

        total[c] += sum[k];
        total[all + c] += sum_x[k] * (double)inv[k / channels];
    }
}

// With xh = (x - mean) * inv, g = dy * scale and means over all of a group:
// dx = inv * (g - mean(g) - xh * mean(g * xh)), written as dy * a + (x - mean) * b + d.
static void group_gradients(const ot_run *r, const group_part *part, double *total)
{
    const ot__norms *norms = ot__norms_best();
    const ot_dtype type = r->in[GRAD_X]->dtype;
    const void *x = part_of(r->in[GRAD_X]->data, part), *dy = part_of(r->in[DY]->data, part);
    const float *scale = ot__run_in(r, GRAD_SCALE);
    const float *group_mean = (const float *)r->in[GRAD_MEAN]->data + part->first;
    const float *inv = (const float *)r->in[GRAD_INV_STD]->data + part->first;
    const int64_t channels = part->sizes->channels, n = part->n * channels;
    double *sum = part->numbers, *sum_x = sum + n;
    float *mean = (void *)(sum_x + n), *a = mean + n, *b = a + n, *d = b + n;
    void *dx = part_of(ot__run_out(r, DX), part);

    for (int64_t c = 0; c < n; c++)
        mean[c] = group_mean[c / channels];
    norms->sums(
        &(ot__norm_sums){
            .mean = mean, .type = type, .dy = dy, .x = x, .sum_g = sum, .sum_gx = sum_x},
        &part->layout, part->scratch);
    add_channel_sums(part, sum, sum_x, inv, total);
    for (int64_t i = 0; i < part->n; i++) {
        const int64_t first = (part->first + i) % part->sizes->groups * channels;
        const int64_t at = i * channels;
        const double s = (double)inv[i], count = (double)(channels * part->sizes->inner);
        double all = 0, all_x = 0;

        for (int64_t c = 0; c < channels; c++) {
            const double factor = scale == NULL ? 1 : (double)scale[first + c];

            all += factor * sum[at + c];
            all_x += factor * sum_x[at + c];
        }
        for (int64_t c = 0; c < channels; c++) {
            a[at + c] = ot__batch_norm_factor(scale == NULL ? 1 : scale[first + c], inv[i]);
            b[at + c] = (float)(-s * s * s * all_x / count);
            d[at + c] = (float)(-s * all / count);
        }
    }
    if (dx != NULL)
        norms->dx(
            &(ot__norm_dx){
                .mean = mean, .a = a, .b = b, .d = d, .type = type, .dy = dy, .x = x, .dx = dx},
            &part->layout);
}

static ot_status group_norm_grad_run_simd(const ot_run *r)
{
    const group_norm *norm = r->state;
    const int64_t n_channels = count_channels(&norm->sizes);
    float *dscale = ot__run_out(r, DSCALE), *db = ot__run_out(r, DB);
    double *total = r->scratch; // before that of the images

    memset(total, 0, TOTALS * (size_t)n_channels * sizeof *total);
    for (int64_t i = 0; i < all_groups(&norm->sizes); i += norm->at_once) {
        const group_part part =
            part_from(norm, i, r->in[GRAD_X]->dtype, total + TOTALS * n_channels);

        group_gradients(r, &part, total);
    }
    for (int64_t c = 0; c < n_channels; c++) {
        if (dscale != NULL)
            dscale[c] = (float)total[n_channels + c];
        if (db != NULL)
            db[c] = (float)total[c];
    }
    return OT_OK;
}

static void group_norm_training_grad(ot_grad *g)
{
    ot_value *in[] = {ot_grad_dy(g, Y), ot_grad_x(g, X), NULL, NULL, NULL};
    const int n_inputs = ot_grad_input_count(g);
    ot_node *node;

    if (in[DY] == NULL)
        return;
    in[GRAD_MEAN] = ot_grad_y(g, MEAN);
    in[GRAD_INV_STD] = ot_grad_y(g, INV_STD);
    if (n_inputs > SCALE)
        in[GRAD_SCALE] = ot_grad_x(g, SCALE);
    node = ot_emit(g, "ai.onnxtrain.GroupNormGrad", NULL, in, GRAD_INV_STD + 1, DB + 1);
    ot_emit_int(g, node, "num_groups", ot_attr_int(ot_grad_node(g), "num_groups"));
    for (int i = 0; i < n_inputs; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
}

// ---- records ----

enum {
    BY_CHANNEL = OT_PORT_OPTIONAL | OT_PORT_F32,
    KEPT = OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32
};
static const ot_port group_norm_training_in[] = {{"X", "T", 0},
                                                 {"scale", "T", BY_CHANNEL | OT_PORT_SCALE},
                                                 {"B", "T", BY_CHANNEL | OT_PORT_BIAS},
                                                 {0}};
static const ot_port group_norm_training_out[] = {
    {"Y", "T", 0}, {"Mean", "T", KEPT}, {"InvStdDev", "T", KEPT}, {0}};
static const ot_port group_norm_grad_in[] = {{"dY", "T", 0},
                                             {"X", "T", 0},
                                             {"scale", "T", BY_CHANNEL},
                                             {"mean", "T", OT_PORT_F32},
                                             {"inv_std", "T", OT_PORT_F32},
                                             {0}};
static const ot_port group_norm_grad_out[] = {
    {"dX", "T", OT_PORT_OPTIONAL}, {"dScale", "T", BY_CHANNEL}, {"dB", "T", BY_CHANNEL}, {0}};
static const ot_attr_spec group_norm_attrs[] = {
    OT__FLOAT_ATTR("epsilon", 1e-5f), OT__INT_ATTR("num_groups", 1), {0}};
#define GROUP_NORM_KERNELS(symbol)                                                                 \
    {.name = "simd",                                                                               \
     .types = "T: f32 f16 bf16",                                                                   \
     .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED,                                            \
     .can_run = symbol##_can_simd,                                                                 \
     .layouts = symbol##_layouts,                                                                  \
     .prepare = symbol##_prepare_simd,                                                             \
     .run = symbol##_run_simd},                                                                    \
        OT__REF_KERNELS(symbol##_prepare, symbol##_run),                                           \
    {                                                                                              \
        0                                                                                          \
    }
static const ot_kernel group_norm_training_kernels[] = {GROUP_NORM_KERNELS(group_norm_training)};
static const ot_kernel group_norm_grad_kernels[] = {GROUP_NORM_KERNELS(group_norm_grad)};
const ot_op_def ot__op_group_norm_training[] = {
    {.domain = "ai.onnxtrain",
     .name = "GroupNormTraining",
     .since = 1,
     .inputs = group_norm_training_in,
     .outputs = group_norm_training_out,
     .attrs = group_norm_attrs,
     .types = "T: f32 f64",
     .infer = group_norm_training_infer,
     .kernels = group_norm_training_kernels,
     .grad = group_norm_training_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_INTERNAL},
    {0},
};
// scale is given where it is one of GroupNormTraining's inputs.
const ot_op_def ot__op_group_norm_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "GroupNormGrad",
     .since = 1,
     .inputs = group_norm_grad_in,
     .outputs = group_norm_grad_out,
     .attrs = group_norm_attrs,
     .types = "T: f32 f64",
     .infer = group_norm_grad_infer,
     .kernels = group_norm_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_INTERNAL},
    {0},
};
