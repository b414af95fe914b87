// SPDX-License-Identifier: Apache-2.0
// dX = dY's elements, added up where MaxPoolShort says that the maxima are.
#include "ops/pool/pool.h"

// Scratch for indices as MaxPool has them.
static ot_status max_pool_short_grad_prepare(ot_prep *p)
{
    ot_prep_scratch(p, (size_t)ot_prep_in(p, 0)->count * sizeof(int64_t));
    return ot__pool_prepare(p, ot_prep_out(p, 0), ot_prep_in(p, 0));
}

static ot_status outside(void)
{
    return ot__error(OT_ERR_INVALID, "a maximum is outside its plane");
}

static ot_status max_pool_short_grad_run(const ot_run *r)
{
    const ot__pool *p = r->state;
    const ot__window *w = &p->window;
    const ot__maxima at = ot__pool_maxima(r->in[1]);

    if (!ot__ref_max_pool_lengthen(r->scratch, at.cells, at.positions, p))
        return outside();
    if (r->in[0]->dtype == OT_F32)
        ot__ref_max_pool_grad_f32(r->out[0]->data, r->in[0]->data, r->scratch, p->n, w->n_in,
                                  w->n_out);
    else
        ot__ref_max_pool_grad_f64(r->out[0]->data, r->in[0]->data, r->scratch, p->n, w->n_in,
                                  w->n_out);
    return OT_OK;
}

static ot_status max_pool_short_grad_run_simd(const ot_run *r)
{
    return ot__max_pool_grad_simd(r) ? OT_OK : outside();
}

static const ot_port max_pool_short_grad_in[] = {{"dY", "T", 0}, {"Maxima", "M", 0}, {0}};
static const ot_port max_pool_short_grad_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel max_pool_short_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__max_pool_grad_can_simd,
     .forms = ot__max_pool_grad_forms,
     .prepare = ot__max_pool_grad_prepare_simd,
     .run = max_pool_short_grad_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = max_pool_short_grad_prepare,
     .run = max_pool_short_grad_run},
    {0},
};
const ot_op_def ot__op_max_pool_short_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "MaxPoolShortGrad",
     .since = 1,
     .inputs = max_pool_short_grad_in,
     .outputs = max_pool_short_grad_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64; M: u8 i32",
     .infer = ot__max_pool_grad_infer,
     .kernels = max_pool_short_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
