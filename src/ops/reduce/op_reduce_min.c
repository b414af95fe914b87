// SPDX-License-Identifier: Apache-2.0
// ReduceMin: least elements over axes.
#include "ops/reduce/reduction.h"

// Of numbers only: nothing can be said about symbols.
static int64_t fold(ot_infer *c, int64_t a, int64_t b)
{
    (void)c;
    return ot_dim_is_number(a) && ot_dim_is_number(b) ? OT_MIN(a, b) : ot_dim_unknown();
}

static void reduce_min_infer(ot_infer *c)
{
    ot__infer_reduce_known(c, fold);
}

static ot_status reduce_min_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_MIN);
}

static const ot_kernel reduce_min_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_min_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_min[] = {
    {.name = "ReduceMin",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 f16 bf16 i8 u8 i32 i64 bool",
     .infer = reduce_min_infer,
     .kernels = reduce_min_kernels,
     .grad = ot__reduce_extreme_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceMin",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 f16 bf16 i8 u8 i32 i64 bool",
     .infer = reduce_min_infer,
     .kernels = reduce_min_kernels,
     .grad = ot__reduce_extreme_grad},
    {0},
};
