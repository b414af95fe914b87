// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void is_nan_infer(ot_infer *c)
{
    ot_infer_set(c, 0, OT_BOOL, ot_infer_shape(c, 0));
}

static double number_at(const void *x, ot_dtype dtype, int64_t k)
{
    switch (dtype) {
    case OT_F32:
        return (double)((const float *)x)[k];
    case OT_F64:
        return ((const double *)x)[k];
    case OT_F16:
        return (double)ot__f16_to_f32(((const uint16_t *)x)[k]);
    default:
        return (double)ot__bf16_to_f32(((const uint16_t *)x)[k]);
    }
}

static void is_nan_piece(void *to, const void *const *x, int64_t n, const void *context)
{
    uint8_t *y = to;

    for (int64_t k = 0; k < n; k++) {
        const double v = number_at(x[0], *(const ot_dtype *)context, k);

        y[k] = v != v;
    }
}

static ot_status is_nan_run(const ot_run *r)
{
    ot__pieces_run(r, is_nan_piece, &r->in[0]->dtype);
    return OT_OK;
}

static const ot_kernel is_nan_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__pieces_prepare,
     .run = is_nan_run},
    {0},
};
const ot_op_def ot__op_is_nan[] = {
    {.name = "IsNaN",
     .since = 9,
     .inputs = ot__unary_in,
     .outputs = ot__bool_out,
     .types = "T: f32 f64 f16 bf16",
     .infer = is_nan_infer,
     .kernels = is_nan_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
