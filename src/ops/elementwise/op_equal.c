// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

// Extents are never negative, so a symbol differs from -1, which shape arithmetic likes to compare
// with.
static int64_t equal_known(ot_infer *c, int64_t a, int64_t b)
{
    (void)c;
    if (a == OT_DIM_UNKNOWN || b == OT_DIM_UNKNOWN)
        return OT_DIM_UNKNOWN;
    if (a == b)
        return 1;
    if (ot_dim_is_number(a) && ot_dim_is_number(b))
        return 0;
    return (ot_dim_is_number(a) && a < 0) || (ot_dim_is_number(b) && b < 0) ? 0 : OT_DIM_UNKNOWN;
}

static void equal_infer(ot_infer *c)
{
    ot__infer_broadcast_bool(c);
    ot__infer_known(c, equal_known);
}

static ot_status equal_run(const ot_run *r)
{
    ot__compare_run(r, OT__EQUAL);
    return OT_OK;
}

static const ot_kernel equal_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__pieces_prepare,
     .run = equal_run},
    {0},
};
const ot_op_def ot__op_equal[] = {
    {.name = "Equal",
     .since = 7,
     .inputs = ot__binary_in,
     .outputs = ot__bool_out,
     .types = "T: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool string",
     .infer = equal_infer,
     .kernels = equal_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
