// SPDX-License-Identifier: Apache-2.0
// Gradients of LayerNormalization from its output: (Y - bias) / scale is what the normalised X was.
#include "ops/norm/layer_norm.h"

enum { DY, Y, SCALE, BIAS, INV, N_IN };

static ot_status invertible_prepare(ot_prep *p)
{
    const ot__layer_norm *state;
    size_t elements;

    OT_TRY(ot__layer_norm_prepare(p, Y));
    state = p->state;
    // X, centered, and the zeros that are then its means
    if (ot__size_mul_overflows((size_t)state->rows, (size_t)state->columns + 1, &elements) ||
        elements > SIZE_MAX / sizeof(double))
        return ot_prep_fail(p, OT_ERR_INVALID, "the input is too large");
    ot_prep_scratch(p, elements * ot_dtype_size(ot_prep_in(p, Y)->dtype));
    return OT_OK;
}

static void *output_of(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] != NULL ? r->out[i]->data : NULL;
}

#define T float
#define RUN run_f32
#define GRAD ot__ref_layer_norm_grad_f32
#include "ops/norm/invertible.tmpl.h"
#undef T
#undef RUN
#undef GRAD

#define T double
#define RUN run_f64
#define GRAD ot__ref_layer_norm_grad_f64
#include "ops/norm/invertible.tmpl.h"
#undef T
#undef RUN
#undef GRAD

static ot_status invertible_run(const ot_run *r)
{
    (r->in[Y]->dtype == OT_F32 ? run_f32 : run_f64)(r, r->state);
    return OT_OK;
}

static const ot_port invertible_in[] = {{"Y_grad", "T", 0},
                                        {"Y", "T", 0},
                                        {"scale", "T", OT_PORT_F32},
                                        {"bias", "T", OT_PORT_F32},
                                        {"inv_std_var", "T", OT_PORT_F32},
                                        {0}};
static const ot_port invertible_out[] = {{"X_grad", "T", OT_PORT_OPTIONAL},
                                         {"scale_grad", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                         {"bias_grad", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                         {0}};
static const ot_kernel invertible_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = invertible_prepare,
     .run = invertible_run},
    {0},
};
const ot_op_def ot__op_invertible_layer_normalization_grad[] = {
    {.domain = "com.microsoft",
     .name = "InvertibleLayerNormalizationGrad",
     .since = 1,
     .inputs = invertible_in,
     .outputs = invertible_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64",
     .infer = ot__invertible_norm_grad_infer,
     .kernels = invertible_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
