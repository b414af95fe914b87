// SPDX-License-Identifier: Apache-2.0
// ConvInteger: a convolution of integers of 8 bits, less their zero points, in 32 bits.
// QLinearConv: the same with a bias, scaled and rounded to 8 bits again. Zero points and scales of
// W are one for all, or one for each output channel. A padded element is the zero point of X.
#include "ops/conv/conv.h"
#include "ops/quantize/integer.h"

// Inputs of an operator; -1: it has none.
typedef struct conv_ports {
    int x, w, x_scale, w_scale, x_zero, w_zero, y_scale, y_zero, b;
} conv_ports;

static const conv_ports plain_ports_of_conv = {0, 1, -1, -1, 2, 3, -1, -1, -1};
static const conv_ports scaled_ports_of_conv = {0, 3, 1, 4, 2, 5, 6, 7, 8};

static const conv_ports *conv_ports_of(const ot_node *node)
{
    return ot__op_input_port(node->op, scaled_ports_of_conv.y_zero) != NULL ? &scaled_ports_of_conv
                                                                            : &plain_ports_of_conv;
}

// ---- inference ----

// One for all, or one for each output channel.
static bool check_channels(ot_infer *c, int i, const ot_shape *w)
{
    const ot_shape *points = ot_infer_shape(c, i);

    if (i < 0 || !ot_infer_has(c, i) || ot__is_single_shape(points) ||
        (points->ndim == 1 && !ot__dim_differs(points->dim[0], w->dim[0])))
        return true;
    return ot__refuse(c, "input %d is neither one for all nor one for each output channel", i);
}

static void integer_conv_infer(ot_infer *c)
{
    const conv_ports *p = conv_ports_of(ot_infer_node(c));
    const ot_shape *w = ot_infer_shape(c, p->w);
    ot_shape y;

    if (!ot__conv_shape(c, p->x, p->w, p->b, &y) || !ot__infer_single(c, p->x_zero) ||
        !check_channels(c, p->w_zero, w))
        return;
    if (p->y_scale >= 0 && (!check_channels(c, p->w_scale, w) || !ot__infer_single(c, p->x_scale) ||
                            !ot__infer_single(c, p->y_scale) || !ot__infer_single(c, p->y_zero)))
        return;
    ot_infer_set(c, 0, p->y_zero >= 0 ? ot_infer_dtype(c, p->y_zero) : OT_I32, &y);
}

// ---- the kernel ----

// Scratch: the image of a group widened, its columns, sums, the scales of W.
typedef struct integer_conv {
    const conv_ports *ports;
    ot__conv conv;
    size_t columns_at, sums_at, scales_at;
} integer_conv;

static ot_status integer_conv_prepare(ot_prep *p)
{
    const conv_ports *ports = conv_ports_of(ot_prep_node(p));
    const ot_shape *x = &ot_prep_in(p, ports->x)->shape, *w = &ot_prep_in(p, ports->w)->shape;
    const ot_arg *w_zero = ot_prep_in(p, ports->w_zero);
    integer_conv *s = ot_prep_state(p, sizeof *s);
    ot__geometry g;
    const char *wrong;
    size_t end = 0;
    int64_t n_columns;

    OT_TRY(ot__made(s));
    wrong = ot__geometry_read(&g, ot_prep_node(p), x, w->dim + 2);
    if (wrong)
        return ot_prep_fail(p, OT_ERR_INVALID, "%s", wrong);
    if (w_zero != NULL && w_zero->count != 1 && w_zero->count != w->dim[0])
        return ot_prep_fail(p, OT_ERR_INVALID,
                            "w_zero_point has %" PRId64 " elements, W %" PRId64 " output channels",
                            w_zero->count, w->dim[0]);
    ot__geometry_settle(&g, x);
    s->ports = ports;
    s->conv =
        ot__conv_make(&g, x, w, &ot_prep_out(p, 0)->shape, ot_attr_int(ot_prep_node(p), "group"));
    n_columns = s->conv.c_in * s->conv.window.n_kernel * s->conv.window.n_out;
    (void)ot__scratch_place(&end, s->conv.c_in * s->conv.window.n_in, sizeof(int16_t));
    s->columns_at = ot__scratch_place(&end, n_columns, sizeof(int16_t));
    if (ports->y_scale >= 0) {
        s->sums_at = ot__scratch_place(&end, s->conv.c_out * s->conv.window.n_out, sizeof(int32_t));
        s->scales_at = ot__scratch_place(&end, ot_prep_in(p, ports->w_scale)->count, sizeof(float));
    }
    ot_prep_scratch(p, end);
    return OT_OK;
}

// Sums of `group` of one image, whose output channels begin at first_channel.
static void convolve_group(const ot_run *r, const void *image, int64_t first_channel, int32_t *sums)
{
    const integer_conv *s = r->state;
    const ot__conv *conv = &s->conv;
    const ot_arg *x = r->in[s->ports->x], *w = r->in[s->ports->w];
    const ot__zero_points x_zero = ot__zero_points_of(r, s->ports->x_zero);
    int16_t *columns = (int16_t *)((char *)r->scratch + s->columns_at);
    ot__integer_product p = {.m = conv->c_out,
                             .n = conv->window.n_out,
                             .k = conv->c_in * conv->window.n_kernel,
                             .a_is_signed = w->dtype == OT_I8,
                             .a_zero = ot__zero_points_of(r, s->ports->w_zero),
                             .b = columns};

    ot__ref_integer_widen(r->scratch, image, x->dtype == OT_I8, &x_zero, conv->c_in,
                          conv->window.n_in);
    ot__ref_to_columns_i16(columns, r->scratch, conv->c_in, &conv->window);
    p.a = (const char *)w->data + first_channel * p.k;
    if (p.a_zero.count > 1) {
        p.a_zero.data = (const char *)p.a_zero.data + first_channel;
        p.a_zero.count = conv->c_out;
    }
    ot__ref_integer_product(sums, &p);
}

static void requantize_group(const ot_run *r, int64_t first_channel, int64_t at)
{
    const integer_conv *s = r->state;
    const float *scales = (const float *)((const char *)r->scratch + s->scales_at);
    const float x_scale = ot__quantized_scale(r, s->ports->x_scale);
    const bool differ = r->in[s->ports->w_scale]->count > 1;
    const int32_t *bias = ot__run_in(r, s->ports->b);
    const ot__requantization q = {
        .rows = s->conv.c_out,
        .columns = s->conv.window.n_out,
        .bias = bias != NULL ? bias + first_channel : NULL,
        .row_scale = differ ? scales + first_channel : scales,
        .column_scale = &x_scale,
        .rows_differ = differ ? s->conv.c_out : 0,
        .y_scale = ot__quantized_scale(r, s->ports->y_scale),
        .y_is_signed = r->out[0]->dtype == OT_I8,
        .y_zero = ot__quantized_zero(r, s->ports->y_zero),
    };

    ot__ref_requantize((char *)r->out[0]->data + at,
                       (const int32_t *)((const char *)r->scratch + s->sums_at), &q);
}

static ot_status integer_conv_run(const ot_run *r)
{
    const integer_conv *s = r->state;
    const ot__conv *conv = &s->conv;
    const int64_t image = conv->c_in * conv->window.n_in, made = conv->c_out * conv->window.n_out;

    if (s->ports->y_scale >= 0)
        (void)ot__quantized_scales(r, s->ports->w_scale,
                                   (float *)((char *)r->scratch + s->scales_at));
    for (int64_t i = 0; i < conv->batch * conv->groups; i++) {
        const int64_t first_channel = i % conv->groups * conv->c_out;
        int32_t *sums = s->ports->y_scale >= 0 ? (int32_t *)((char *)r->scratch + s->sums_at)
                                               : (int32_t *)r->out[0]->data + i * made;

        convolve_group(r, (const char *)r->in[s->ports->x]->data + i * image, first_channel, sums);
        if (s->ports->y_scale >= 0)
            requantize_group(r, first_channel, i * made);
    }
    return OT_OK;
}

// ---- records ----

static const ot_port conv_integer_in[] = {
    {"x", "T1", 0},
    {"w", "T2", 0},
    {"x_zero_point", "T1", OT_PORT_OPTIONAL},
    {"w_zero_point", "T2", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port conv_integer_out[] = {{"y", "i32", 0}, {0}};
static const ot_port qlinear_conv_in[] = {
    {"x", "T1", 0},
    {"x_scale", "f32", 0},
    {"x_zero_point", "T1", 0},
    {"w", "T2", 0},
    {"w_scale", "f32", 0},
    {"w_zero_point", "T2", 0},
    {"y_scale", "f32", 0},
    {"y_zero_point", "T3", 0},
    {"B", "i32", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {0},
};
static const ot_port qlinear_conv_out[] = {{"y", "T3", 0}, {0}};
static const ot_kernel integer_conv_kernels[] = {
    OT__REF_KERNEL(NULL, integer_conv_prepare, integer_conv_run),
    {0},
};
const ot_op_def ot__op_conv_integer[] = {
    {.name = "ConvInteger",
     .since = 10,
     .inputs = conv_integer_in,
     .outputs = conv_integer_out,
     .attrs = ot__conv_attrs,
     .types = "T1: i8 u8; T2: i8 u8",
     .infer = integer_conv_infer,
     .kernels = integer_conv_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
const ot_op_def ot__op_qlinear_conv[] = {
    {.name = "QLinearConv",
     .since = 10,
     .inputs = qlinear_conv_in,
     .outputs = qlinear_conv_out,
     .attrs = ot__conv_attrs,
     .types = "T1: i8 u8; T2: i8 u8; T3: i8 u8",
     .infer = integer_conv_infer,
     .kernels = integer_conv_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
