#include "ops/elementwise.h"

static void leaky_relu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->leaky_relu_grad(y, x, n, attrs);
}

static const ot_attr_spec leaky_relu_grad_attrs[] = {
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.01F},
    {0},
};
static const ot_tile leaky_relu_grad_tile = {.f32 = leaky_relu_grad_f32,
                                             .f64 = ot__ref_leaky_relu_grad_f64,
                                             .attrs = {"alpha"},
                                             .rounds_once = true};
const ot_op_def ot__op_leaky_relu_grad[] = {
    {.domain = "com.microsoft",
     .name = "LeakyReluGrad",
     .since = 1,
     .inputs = ot__gradient_in_y,
     .outputs = ot__gradient_out,
     .attrs = leaky_relu_grad_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &leaky_relu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
