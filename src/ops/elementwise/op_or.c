// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void or_piece(void *to, const void *const *x, int64_t n, const void *context)
{
    const uint8_t *a = x[0], *b = x[1];
    uint8_t *y = to;

    (void)context;
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] | b[k];
}

static ot_status or_run(const ot_run *r)
{
    ot__pieces_run(r, or_piece, NULL);
    return OT_OK;
}

static const ot_kernel or_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__pieces_prepare,
     .run = or_run},
    {0},
};
const ot_op_def ot__op_or[] = {
    {.name = "Or",
     .since = 7,
     .inputs = ot__binary_in,
     .outputs = ot__bool_out,
     .types = "T: bool",
     .infer = ot__infer_broadcast_bool,
     .kernels = or_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
