// SPDX-License-Identifier: Apache-2.0
// Tensors for what a plan computes. Of strings the plan has only where they are, in its inputs,
// constants and kernels; what is handed out has characters of its own.
#include "session/session_internal.h"

ot_status ot__output_make(ot__plan *plan, int i_output, ot_tensor **out)
{
    const ot_arg *y = ot__plan_output(plan, i_output);

    if (y->dtype == OT_STRING)
        return OT_OK;
    OT_TRY(ot_tensor_create(y->dtype, &y->shape, out));
    ot__plan_bind_output(plan, i_output, (*out)->data);
    return OT_OK;
}

ot_status ot__output_take(const ot__plan *plan, int i_output, ot_tensor **out)
{
    const ot_arg *y = ot__plan_output(plan, i_output);

    return y->dtype == OT_STRING ? ot__tensor_copy_strings(&y->shape, y->data, out) : OT_OK;
}
