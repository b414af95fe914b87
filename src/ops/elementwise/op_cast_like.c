// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/cast.h"

static void cast_like_infer(ot_infer *c)
{
    ot__cast_infer(c, ot_infer_dtype(c, 1));
}

// Y = cast(X):  dX = cast(dY) to the type of X
static void cast_like_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit_cast(g, ot_grad_dy(g, 0), ot_value_dtype(ot_grad_x(g, 0))));
}

static const ot_port cast_like_in[] = {
    {"input", "T1", 0}, {"target_type", "T2", OT_PORT_NO_GRAD}, {0}};
static const ot_port cast_like_out[] = {{"output", "T2", 0}, {0}};
static const ot_attr_spec cast_like_attrs[] = {
    {.name = "round_mode", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "up"},
    {.name = "saturate", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1},
    {0},
};
const ot_op_def ot__op_cast_like[] = {
    {.name = "CastLike",
     .since = 15,
     .inputs = cast_like_in,
     .outputs = cast_like_out,
     .attrs = cast_like_attrs,
     .types = "T1: any string; T2: any string",
     .infer = cast_like_infer,
     .kernels = ot__cast_kernels,
     .grad = cast_like_grad,
     .flags = OT_OP_REARRANGE,
     .identity_when = ot__identity_of_type},
    {0},
};
