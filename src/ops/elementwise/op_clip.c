// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

#include <float.h>

// ONNX wants scalars; ONNX Runtime takes, and its onnxblock writes, bounds of shape [1].
static void clip_bounds_infer(ot_infer *c)
{
    for (int i = 1; i <= 2; i++)
        if (ot_infer_has(c, i) && ot_infer_shape(c, i)->ndim > 1)
            ot_infer_fail(c, "%s must be a scalar, got %d axes", i == 1 ? "min" : "max",
                          ot_infer_shape(c, i)->ndim);
        else if (ot_infer_has(c, i) && !ot__infer_one_element(c, i))
            return;
    ot__infer_same_shape(c);
}

// Y = min(max(X, low), high):  dX = dY where X is within the bounds, themselves included, else 0.
static void clip_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *low = ot_grad_x(g, 1), *high = ot_grad_x(g, 2);
    ot_value *above = ot_emit2(g, "GreaterOrEqual", x, low),
             *below = ot_emit2(g, "LessOrEqual", x, high);
    ot_value *within = above == NULL   ? below
                       : below == NULL ? above
                                       : ot_emit2(g, "And", above, below);

    ot_value *dx = within == NULL ? ot_grad_dy(g, 0)
                                  : ot_emit3(g, "Where", within, ot_grad_dy(g, 0),
                                             ot_emit_constant(g, 0.0, x));

    ot_grad_set_dx(g, 0, ot_emit_reshape_like(g, dx, x)); // a bound of shape [1] adds an axis
}

// Before opset 11 the bounds were attributes, with the whole range of f32 as default.
static void clip_upgrade(ot_upgrade *u)
{
    const ot_node *node = ot_upgrade_node(u);
    const bool has_max = ot_attr_given(node, "max") && ot_attr_float(node, "max") < FLT_MAX;
    const bool has_min = ot_attr_given(node, "min") && ot_attr_float(node, "min") > -FLT_MAX;

    if (has_min)
        ot_upgrade_float_to_input(u, "min", 0.0F, 1);
    if (has_max)
        ot_upgrade_float_to_input(u, "max", 0.0F, 2);
    ot_upgrade_remove_attr(u, "min");
    ot_upgrade_remove_attr(u, "max");
}

static const ot_attr_spec clip_6_attrs[] = {
    OT__FLOAT_ATTR("min", -FLT_MAX),
    OT__FLOAT_ATTR("max", FLT_MAX),
    {0},
};
static const ot_port clip_in[] = {{"input", "T", 0},
                                  {"min", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                  {"max", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                  {0}};
static const ot_tile clip_tile = {.f32 = ot__simd_clip_f32,
                                  .f64 = ot__ref_clip_f64,
                                  .i32 = ot__ref_clip_integers_i32,
                                  .i64 = ot__ref_clip_integers_i64};
const ot_op_def ot__op_clip[] = {
    {.name = "Clip",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = clip_6_attrs,
     .types = "T: f32 f64",
     .upgrade = clip_upgrade},
    {.name = "Clip",
     .since = 11,
     .inputs = clip_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64 f16 bf16",
     .infer = clip_bounds_infer,
     .kernels = ot__tile_kernels,
     .tile = &clip_tile,
     .grad = clip_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};

// ---- Clip and the mask that its gradient reads, as one operator (passes/fuse_clip.c) ----

static void clip_mask_infer(ot_infer *c)
{
    clip_bounds_infer(c);
    ot_infer_set(c, 1, OT_BOOL, ot_infer_shape(c, 0));
}

static ot_status clip_mask_run(const ot_run *r,
                               void (*kernel)(void *context, int64_t first, int64_t last))
{
    ot__clip_mask range = {.y = r->out[0]->data,
                           .mask = r->out[1]->data,
                           .x = r->in[0]->data,
                           .low = ot__run_in(r, 1),
                           .high = ot__run_in(r, 2)};

    ot__parallel_for(r->out[0]->count, OT_PAR_MIN, kernel, &range);
    return OT_OK;
}

// Of f16 or bf16, a few elements of which are f32 at a time.
typedef struct clip_narrow {
    const uint16_t *x;
    uint16_t *y;
    uint8_t *mask;
    const float *low, *high;
    ot_dtype type;
} clip_narrow;

static void clip_narrow_range(void *context, int64_t first, int64_t last)
{
    enum { FEW = 512 };
    const clip_narrow *c = context;
    const ot__floats *floats = ot__floats_best();
    float few[FEW];

    for (int64_t at = first; at < last; at += FEW) {
        const int64_t n = OT_MIN(last - at, (int64_t)FEW);
        ot__clip_mask part = {
            .y = few, .mask = c->mask + at, .x = few, .low = c->low, .high = c->high};

        floats->widen[c->type](few, c->x + at, n);
        ot__tiles_best()->clip_mask(&part, 0, n);
        floats->narrow[c->type](c->y + at, few, n);
    }
}

// A bound, of any type, in f32; NULL: there is none.
static const float *clip_bound(const ot_run *r, int i, float *bound)
{
    if (ot__run_in(r, i) == NULL)
        return NULL;
    (void)ot__convert(bound, OT_F32, r->in[i]->data, r->in[i]->dtype, 1);
    return bound;
}

static ot_status clip_mask_run_narrow(const ot_run *r)
{
    float low, high;
    clip_narrow c = {.x = r->in[0]->data,
                     .y = r->out[0]->data,
                     .mask = r->out[1]->data,
                     .low = clip_bound(r, 1, &low),
                     .high = clip_bound(r, 2, &high),
                     .type = r->in[0]->dtype};

    ot__parallel_for(r->out[0]->count, OT_PAR_MIN, clip_narrow_range, &c);
    return OT_OK;
}

static bool clip_mask_can_simd(const ot_prep *p)
{
    const ot_dtype type = ot_prep_in(p, 0)->dtype;

    for (int i = 1; i <= 2 && type == OT_F32; i++)
        if (ot_prep_in(p, i) != NULL && ot_prep_in(p, i)->dtype != OT_F32)
            return false;
    return ot_prep_out(p, 0)->dtype == type;
}

static ot_status clip_mask_run_simd(const ot_run *r)
{
    return r->in[0]->dtype == OT_F32 ? clip_mask_run(r, ot__tiles_best()->clip_mask)
                                     : clip_mask_run_narrow(r);
}

static ot_status clip_mask_run_f32(const ot_run *r)
{
    return clip_mask_run(r, ot__ref_clip_mask_f32);
}

static ot_status clip_mask_run_f64(const ot_run *r)
{
    return clip_mask_run(r, ot__ref_clip_mask_f64);
}

static const ot_port clip_mask_out[] = {{"Y", "T", 0}, {"mask", "bool", 0}, {0}};
static const ot_kernel clip_mask_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(clip_mask_can_simd, NULL, clip_mask_run_simd),
    OT__REF_KERNELS(NULL, clip_mask_run),
    {0},
};
const ot_op_def ot__op_clip_mask[] = {
    {.domain = "ai.onnxtrain",
     .name = "ClipMask",
     .since = 1,
     .inputs = clip_in,
     .outputs = clip_mask_out,
     .types = "T: f32 f64",
     .infer = clip_mask_infer,
     .kernels = clip_mask_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_INTERNAL | OT_OP_ANY_LAYOUT},
    {0},
};
