// SPDX-License-Identifier: Apache-2.0
// dX = dY's elements, added up at MaxPool's indices.
#include "op/expand.h"
#include "ops/pool/pool.h"

void ot__max_pool_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0), *indices = ot_infer_shape(c, 1);
    ot_shape x;

    for (int i = 0; i < OT_MAX(dy->ndim, indices->ndim); i++)
        if (dy->ndim != indices->ndim ||
            (ot_dim_is_number(dy->dim[i]) && ot_dim_is_number(indices->dim[i]) &&
             dy->dim[i] != indices->dim[i])) {
            ot_infer_fail(c, "dY and the indices must have the same shape");
            return;
        }
    ot__pool_infer_input(c, dy, &x);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &x);
}

static ot_status max_pool_grad_prepare(ot_prep *p)
{
    return ot__pool_prepare(p, ot_prep_out(p, 0), ot_prep_in(p, 0));
}

static ot_status check(int64_t at, const int64_t *indices, int64_t n_in)
{
    return at < 0 ? OT_OK
                  : ot__error(OT_ERR_INVALID,
                              "index %" PRId64 " at position %" PRId64
                              " is outside its plane of %" PRId64 " elements",
                              indices[at], at, n_in);
}

static ot_status max_pool_grad_run(const ot_run *r)
{
    const ot__pool *p = r->state;
    const int64_t *indices = r->in[1]->data;
    const ot__channels planes = {.outer = p->n, .blocks = 1, .width = 1};

    OT_TRY(check(ot__pool_check_indices(indices, &p->window, &planes), indices, p->window.n_in));
    if (r->in[0]->dtype == OT_F32)
        ot__ref_max_pool_grad_f32(r->out[0]->data, r->in[0]->data, indices, p->n, p->window.n_in,
                                  p->window.n_out);
    else
        ot__ref_max_pool_grad_f64(r->out[0]->data, r->in[0]->data, indices, p->n, p->window.n_in,
                                  p->window.n_out);
    return OT_OK;
}

// ---- any form: that of the indices ----

bool ot__max_pool_grad_can_simd(const ot_prep *p)
{
    return ot__pool_has_any_form(ot_prep_out(p, 0), ot_prep_in(p, 0));
}

void ot__max_pool_grad_forms(ot_prep *p)
{
    const ot_form *form = ot_prep_offered_in(p, 1);

    ot_prep_want_in(p, 0, form);
    ot_prep_want_in(p, 1, form);
    ot_prep_want_out(p, 0, form);
}

ot_status ot__max_pool_grad_prepare_simd(ot_prep *p)
{
    return ot__any_pool_prepare(p, ot_prep_out(p, 0), ot_prep_in(p, 0));
}

bool ot__max_pool_grad_simd(const ot_run *r)
{
    const ot__any_pool *p = r->state;
    const ot__maxima at = ot__pool_maxima(r->in[1]);

    return ot__pools_best()->max_pool_grad(r->out[0]->data, r->in[0]->data, &at, &p->pool.window,
                                           &p->channels);
}

static ot_status max_pool_grad_run_simd(const ot_run *r)
{
    const ot__any_pool *p = r->state;
    const ot__window *w = &p->pool.window;
    const int64_t *indices = r->in[1]->data;

    if (ot__max_pool_grad_simd(r))
        return OT_OK;
    return check(ot__pool_check_indices(indices, w, &p->channels), indices, w->n_in);
}

static const ot_port max_pool_grad_in[] = {{"dY", "T", 0}, {"Indices", "i64", 0}, {0}};
static const ot_port max_pool_grad_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel max_pool_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__max_pool_grad_can_simd,
     .forms = ot__max_pool_grad_forms,
     .prepare = ot__max_pool_grad_prepare_simd,
     .run = max_pool_grad_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = max_pool_grad_prepare,
     .run = max_pool_grad_run},
    {0},
};
const ot_op_def ot__op_max_pool_grad[] = {
    {.name = "MaxPoolGrad", // ONNX Runtime has it in ONNX's own domain
     .since = 9,
     .inputs = max_pool_grad_in,
     .outputs = max_pool_grad_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = ot__max_pool_grad_infer,
     .kernels = max_pool_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__max_pool_grad_expand},
    {0},
};
