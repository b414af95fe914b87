#include "ops/elementwise.h"

static void fast_gelu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->fast_gelu_grad(y, x, n, attrs);
}

static const ot_tile fast_gelu_grad_tile = {.f32 = fast_gelu_grad_f32,
                                            .f64 = ot__ref_fast_gelu_grad_f64};
const ot_op_def ot__op_fast_gelu_grad[] = {
    {.domain = "com.microsoft",
     .name = "FastGeluGrad",
     .since = 1,
     .inputs = ot__gradient_in_x,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &fast_gelu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
