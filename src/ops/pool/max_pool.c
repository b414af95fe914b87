// SPDX-License-Identifier: Apache-2.0
// Y = the maximum of each window, and where in X it is; dX = dY's elements, added up there.
#include "op/expand.h"
#include "ops/pool/pool.h"

// ---- inference ----

static void max_pool_infer(ot_infer *c)
{
    ot_shape y;

    if (!ot__pool_infer(c, &y))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    ot_infer_set(c, 1, OT_I64, &y);
}

static void max_pool_short_infer(ot_infer *c)
{
    const int64_t *kernel;
    int64_t n_cells = 1;
    ot_shape y;
    int n;

    if (!ot__pool_infer(c, &y))
        return;
    kernel = ot_attr_ints(ot_infer_node(c), "kernel_shape", &n);
    for (int a = 0; a < n && n_cells <= OT__NO_CELL; a++)
        n_cells = kernel[a] > OT__NO_CELL ? kernel[a] : n_cells * kernel[a];
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    ot_infer_set(c, 1, n_cells <= OT__NO_CELL ? OT_U8 : OT_I32, &y);
}

static void max_pool_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0);
    ot_shape x;

    if (!ot__shape_may_equal(dy, ot_infer_shape(c, 1)))
        ot_infer_fail(c, "dY and the indices must have the same shape");
    ot__pool_infer_input(c, dy, &x);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &x);
}

// ---- reference ----

static ot_status max_pool_narrow_prepare(ot_prep *p)
{
    ot__pool_scratch_narrow(p);
    return ot__pool_prepare(p);
}

// Scratch for indices as MaxPool has them.
static ot_status max_pool_short_prepare(ot_prep *p)
{
    ot_prep_scratch(p, (size_t)ot_prep_out(p, 0)->count * sizeof(int64_t));
    return ot__pool_prepare(p);
}

static ot_status max_pool_short_grad_prepare(ot_prep *p)
{
    ot_prep_scratch(p, (size_t)ot_prep_in(p, 0)->count * sizeof(int64_t));
    return ot__pool_grad_prepare(p);
}

// Where maxima are, in an argument of type i64, i32 or u8, or NULL.
static ot__maxima maxima_in(const ot_arg *at)
{
    return (ot__maxima){
        .indices = at != NULL && at->dtype == OT_I64 ? at->data : NULL,
        .positions = at != NULL && at->dtype == OT_I32 ? at->data : NULL,
        .cells = at != NULL && at->dtype == OT_U8 ? at->data : NULL,
    };
}

static ot_status check_indices(const ot_run *r)
{
    const ot__pool_state *p = r->state;
    const ot__window *w = &p->pool.window;
    const int64_t *indices = r->in[1]->data, at = ot__pool_check_indices(indices, w, &p->channels);

    return at < 0 ? OT_OK
                  : ot__error(OT_ERR_INVALID,
                              "index %" PRId64 " at position %" PRId64
                              " is outside its plane of %" PRId64 " elements",
                              indices[at], at, w->n_in);
}

static ot_status maximum_outside(void)
{
    return ot__error(OT_ERR_INVALID, "a maximum is outside its plane");
}

#define TEMPLATE "ops/pool/max_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_status max_pool_run_narrow(const ot_run *r)
{
    return ot__pool_run_narrow(r, max_pool_run_f32);
}

// ---- f32 in any layout ----

static bool planes_are_small(const ot_prep *p, const ot_arg *x, const ot_arg *y)
{
    if (x->count == 0 || y->count == 0)
        return ot_prep_declines(p, "there is nothing to compute");
    return ot__plane_elements(&x->shape) <= INT32_MAX ||
           ot_prep_declines(p, "a plane has more elements than 32 bits count");
}

static bool max_pool_can_simd(const ot_prep *p)
{
    if (ot_attr_int(ot_prep_node(p), "storage_order") != 0)
        return ot_prep_declines(p, "indices by columns (storage_order)");
    return planes_are_small(p, ot_prep_in(p, 0), ot_prep_out(p, 0));
}

static void max_pool_layouts(ot_prep *p)
{
    const ot_layout *layout = ot_prep_offered_in(p, 0);

    ot_prep_want_in(p, 0, layout);
    ot_prep_want_out(p, 0, layout);
    ot_prep_want_out(p, 1, layout);
}

static ot_status max_pool_run_simd(const ot_run *r)
{
    const ot__pool_state *p = r->state;
    const ot__maxima at = maxima_in(r->n_out > 1 ? r->out[1] : NULL);

    if (p->channels.width == 1 && ot__pool_has_short_rows(&p->pool.window))
        ot__row_pools_best()->max_pool(r->out[0]->data, &at, r->in[0]->data, &p->pool);
    else
        ot__pools_best()->max_pool(r->out[0]->data, &at, r->in[0]->data, &p->pool.window,
                                   &p->channels);
    return OT_OK;
}

static bool max_pool_grad_can_simd(const ot_prep *p)
{
    return planes_are_small(p, ot_prep_out(p, 0), ot_prep_in(p, 0));
}

// That of the indices.
static void max_pool_grad_layouts(ot_prep *p)
{
    const ot_layout *layout = ot_prep_offered_in(p, 1);

    ot_prep_want_in(p, 0, layout);
    ot_prep_want_in(p, 1, layout);
    ot_prep_want_out(p, 0, layout);
}

static ot_status max_pool_grad_run_simd(const ot_run *r)
{
    const ot__pool_state *p = r->state;
    const ot__maxima at = maxima_in(r->in[1]);

    if (ot__pools_best()->max_pool_grad(r->out[0]->data, r->in[0]->data, &at, &p->pool.window,
                                        &p->channels))
        return OT_OK;
    return at.indices ? check_indices(r) : maximum_outside();
}

// ---- gradient ----

// Indices that count the last axis fastest, as gradients want them.
static ot_value *emit_maxima(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);
    ot_node *again;

    if (ot_attr_int(ot_grad_node(g), "storage_order") == 0)
        return ot_grad_y(g, 1);
    again = ot_emit(g, "MaxPool", NULL, &x, 1, 2);
    ot_emit_forward_attrs(g, again);
    ot_emit_int(g, again, "storage_order", 0);
    return ot_emit_output(g, again, 1);
}

// Where X's extents are not known before run time: dY's elements added up at flat indices.
static ot_value *emit_scattered_maxima(ot_grad *g, ot_value *dy, ot_value *indices, ot_value *x)
{
    ot_value *all = ot_emit_constant_i64(g, &(int64_t){-1}, 1);
    ot_value *size = ot_emit2(g, "Reshape", ot_emit1(g, "Size", x), all);
    ot_value *terms = ot_emit2(g, "Reshape", dy, all);
    ot_value *flat =
        ot_emit3(g, "com.microsoft.GatherGrad", size, ot_emit2(g, "Reshape", indices, all), terms);

    return ot_emit_reshape_like(g, flat, x);
}

// dX = dY's elements, added up where their maxima came from.
static void max_pool_rule(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *in[] = {dy, NULL};
    ot_node *node;

    if (!dy)
        return;
    in[1] = emit_maxima(g);
    if (!ot__spatial_is_static(x)) {
        ot_grad_set_dx(g, 0, emit_scattered_maxima(g, dy, in[1], x));
        return;
    }
    node = ot_emit(g, "MaxPoolGrad", NULL, in, 2, 1);
    ot_emit_forward_attrs(g, node);
    ot__pool_emit_extents(g, node, x);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

// ---- records ----

static const ot_port max_pool_out[] = {
    {"Y", "T", 0}, {"Indices", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_port max_pool_short_out[] = {{"Y", "T", 0}, {"Maxima", "M", 0}, {0}};
static const ot_port max_pool_grad_in[] = {{"dY", "T", 0}, {"Indices", "i64", 0}, {0}};
static const ot_port max_pool_short_grad_in[] = {{"dY", "T", 0}, {"Maxima", "M", 0}, {0}};
static const ot_kernel max_pool_kernels[] = {
    OT__LAYOUTS_KERNEL("T: f32", max_pool_can_simd, max_pool_layouts, ot__pool_prepare,
                       max_pool_run_simd),
    OT__REF_KERNELS(ot__pool_prepare, max_pool_run),
    OT__REF_KERNEL("T: f16 bf16 i8 u8", max_pool_narrow_prepare, max_pool_run_narrow),
    {0},
};
static const ot_kernel max_pool_short_kernels[] = {
    OT__LAYOUTS_KERNEL("T: f32", max_pool_can_simd, max_pool_layouts, ot__pool_prepare,
                       max_pool_run_simd),
    OT__REF_KERNELS(max_pool_short_prepare, max_pool_short_run),
    {0},
};
static const ot_kernel max_pool_grad_kernels[] = {
    OT__LAYOUTS_KERNEL("T: f32", max_pool_grad_can_simd, max_pool_grad_layouts,
                       ot__pool_grad_prepare, max_pool_grad_run_simd),
    OT__REF_KERNELS(ot__pool_grad_prepare, max_pool_grad_run),
    {0},
};
static const ot_kernel max_pool_short_grad_kernels[] = {
    OT__LAYOUTS_KERNEL("T: f32", max_pool_grad_can_simd, max_pool_grad_layouts,
                       ot__pool_grad_prepare, max_pool_grad_run_simd),
    OT__REF_KERNELS(max_pool_short_grad_prepare, max_pool_short_grad_run),
    {0},
};
const ot_op_def ot__op_max_pool[] = {
    {.name = "MaxPool",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = max_pool_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64 f16 bf16 i8 u8",
     .infer = max_pool_infer,
     .kernels = max_pool_kernels,
     .grad = max_pool_rule},
    {0},
};
const ot_op_def ot__op_max_pool_grad[] = {
    {.name = "MaxPoolGrad", // ONNX Runtime has it in ONNX's own domain
     .since = 9,
     .inputs = max_pool_grad_in,
     .outputs = ot__gradient_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = max_pool_grad_infer,
     .kernels = max_pool_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__max_pool_grad_expand},
    {0},
};
// The indices take as little memory as the window allows: a byte, the number of the cell in the
// window, or an i32, the position in the plane. Made of MaxPool by passes/fuse_pool.c.
const ot_op_def ot__op_max_pool_short[] = {
    {.domain = "ai.onnxtrain",
     .name = "MaxPoolShort",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = max_pool_short_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64; M: u8 i32",
     .infer = max_pool_short_infer,
     .kernels = max_pool_short_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL,
     .by_image = {.in = 1, .out = 1 << 0 | 1 << 1}},
    {0},
};
const ot_op_def ot__op_max_pool_short_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "MaxPoolShortGrad",
     .since = 1,
     .inputs = max_pool_short_grad_in,
     .outputs = ot__gradient_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64; M: u8 i32",
     .infer = max_pool_grad_infer,
     .kernels = max_pool_short_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL,
     .by_image = {.in = 1 << 0 | 1 << 1, .out = 1}},
    {0},
};
