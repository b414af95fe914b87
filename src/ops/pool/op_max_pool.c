// SPDX-License-Identifier: Apache-2.0
// Y = the maximum of each window; Indices: where in X it is.
#include "ops/pool/pool.h"

static void max_pool_infer(ot_infer *c)
{
    ot_shape y;

    if (!ot__pool_infer(c, &y))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    ot_infer_set(c, 1, OT_I64, &y);
}

static ot_status max_pool_prepare(ot_prep *p)
{
    ot__pool_scratch_narrow(p);
    return ot__pool_prepare(p, ot_prep_in(p, 0), ot_prep_out(p, 0));
}

static int64_t *indices_of(const ot_run *r)
{
    return r->n_out > 1 && r->out[1] ? r->out[1]->data : NULL;
}

static void max_pool_f32(const ot_run *r, float *y, const float *x)
{
    ot__ref_max_pool_f32(y, indices_of(r), x, r->state);
}

static ot_status max_pool_run(const ot_run *r)
{
    if (r->in[0]->dtype == OT_F32)
        max_pool_f32(r, r->out[0]->data, r->in[0]->data);
    else if (r->in[0]->dtype == OT_F64)
        ot__ref_max_pool_f64(r->out[0]->data, indices_of(r), r->in[0]->data, r->state);
    else
        ot__pool_run_narrow(r, max_pool_f32);
    return OT_OK;
}

// ---- any form ----

bool ot__max_pool_can_simd(const ot_prep *p)
{
    return ot__pool_has_any_form(ot_prep_in(p, 0), ot_prep_out(p, 0)) &&
           ot_attr_int(ot_prep_node(p), "storage_order") == 0;
}

void ot__max_pool_forms(ot_prep *p)
{
    const ot_form *form = ot_prep_offered_in(p, 0);

    ot_prep_want_in(p, 0, form);
    ot_prep_want_out(p, 0, form);
    ot_prep_want_out(p, 1, form);
}

ot_status ot__max_pool_prepare_simd(ot_prep *p)
{
    return ot__any_pool_prepare(p, ot_prep_in(p, 0), ot_prep_out(p, 0));
}

ot_status ot__max_pool_run_simd(const ot_run *r)
{
    const ot__any_pool *p = r->state;
    const ot__maxima at = ot__pool_maxima(r->n_out > 1 ? r->out[1] : NULL);

    ot__pools_best()->max_pool(r->out[0]->data, &at, r->in[0]->data, &p->pool.window, &p->channels);
    return OT_OK;
}

// ---- gradient ----

// Indices that count the last axis fastest, as gradients want them.
static ot_value *emit_indices(ot_grad *g)
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
static ot_value *emit_scatter(ot_grad *g, ot_value *dy, ot_value *indices, ot_value *x)
{
    ot_value *all = ot_emit_constant_i64(g, &(int64_t){-1}, 1);
    ot_value *size = ot_emit2(g, "Reshape", ot_emit1(g, "Size", x), all);
    ot_value *terms = ot_emit2(g, "Reshape", dy, all);
    ot_value *flat =
        ot_emit3(g, "com.microsoft.GatherGrad", size, ot_emit2(g, "Reshape", indices, all), terms);

    return ot_emit_reshape_like(g, flat, x);
}

// dX = dY's elements, added up where their maxima came from.
static void max_pool_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *in[] = {dy, NULL};
    ot_node *node;

    if (!dy)
        return;
    in[1] = emit_indices(g);
    if (!ot__spatial_is_static(x)) {
        ot_grad_set_dx(g, 0, emit_scatter(g, dy, in[1], x));
        return;
    }
    node = ot_emit(g, "MaxPoolGrad", NULL, in, 2, 1);
    ot_emit_forward_attrs(g, node);
    ot__pool_emit_extents(g, node, x);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port max_pool_out[] = {
    {"Y", "T", 0}, {"Indices", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_kernel max_pool_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__max_pool_can_simd,
     .forms = ot__max_pool_forms,
     .prepare = ot__max_pool_prepare_simd,
     .run = ot__max_pool_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = max_pool_prepare,
     .run = max_pool_run},
    {0},
};
const ot_op_def ot__op_max_pool[] = {
    {.name = "MaxPool",
     .since = 1,
     .inputs = ot__pool_in,
     .outputs = max_pool_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64 f16 bf16 i8 u8",
     .infer = max_pool_infer,
     .kernels = max_pool_kernels,
     .grad = max_pool_grad},
    {0},
};
