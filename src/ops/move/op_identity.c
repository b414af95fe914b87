// SPDX-License-Identifier: Apache-2.0
#include "ops/move/move.h"

// Y = X:  dX = dY
static void identity_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_grad_dy(g, 0));
}

static const ot_port identity_in[] = {{"input", "V", 0}, {0}};
static const ot_port identity_out[] = {{"output", "V", 0}, {0}};
const ot_op_def ot__op_identity[] = {
    {.name = "Identity",
     .since = 1,
     .inputs = identity_in,
     .outputs = identity_out,
     .types = "V: any string",
     .infer = ot__infer_same_shape,
     .kernels = ot__view_kernels,
     .grad = identity_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_VIEW | OT_OP_ANY_LAYOUT,
     .identity_when = ot__identity_always},
    {0},
};
