#include "ops/elementwise.h"

static void quick_gelu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->quick_gelu_grad(y, x, n, attrs);
}

static const ot_attr_spec quick_gelu_grad_attrs[] = {
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1.702F},
    {0},
};
static const ot_tile quick_gelu_grad_tile = {
    .f32 = quick_gelu_grad_f32, .f64 = ot__ref_quick_gelu_grad_f64, .attrs = {"alpha"}};
const ot_op_def ot__op_quick_gelu_grad[] = {
    {.domain = "com.microsoft",
     .name = "QuickGeluGrad",
     .since = 1,
     .inputs = ot__gradient_in_x,
     .outputs = ot__gradient_out,
     .attrs = quick_gelu_grad_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &quick_gelu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
