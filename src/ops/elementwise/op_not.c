// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void not_piece(void *to, const void *const *x, int64_t n, const void *context)
{
    const uint8_t *a = x[0];
    uint8_t *y = to;

    (void)context;
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] == 0;
}

static ot_status not_run(const ot_run *r)
{
    ot__pieces_run(r, not_piece, NULL);
    return OT_OK;
}

static const ot_kernel not_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__pieces_prepare,
     .run = not_run},
    {0},
};
const ot_op_def ot__op_not[] = {
    {.name = "Not",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: bool",
     .infer = ot__infer_same_shape,
     .kernels = not_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
