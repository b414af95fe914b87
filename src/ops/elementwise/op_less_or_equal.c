// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static ot_status less_or_equal_run(const ot_run *r)
{
    ot__compare_run(r, OT__LESS_OR_EQUAL);
    return OT_OK;
}

static const ot_kernel less_or_equal_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__pieces_prepare,
     .run = less_or_equal_run},
    {0},
};
const ot_op_def ot__op_less_or_equal[] = {
    {.name = "LessOrEqual",
     .since = 12,
     .inputs = ot__binary_in,
     .outputs = ot__bool_out,
     .types = "T: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64",
     .infer = ot__infer_broadcast_bool,
     .kernels = less_or_equal_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
