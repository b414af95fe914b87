// SPDX-License-Identifier: Apache-2.0
// ReduceMax: greatest elements over axes.
#include "ops/reduce/reduction.h"

// Of numbers only: nothing can be said about symbols.
static int64_t fold(ot_infer *c, int64_t a, int64_t b)
{
    (void)c;
    return ot_dim_is_number(a) && ot_dim_is_number(b) ? OT_MAX(a, b) : ot_dim_unknown();
}

static void reduce_max_infer(ot_infer *c)
{
    ot__infer_reduce_known(c, fold);
}

static ot_status reduce_max_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_MAX);
}

static const ot_kernel reduce_max_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_max_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_max[] = {
    {.name = "ReduceMax",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 f16 bf16 i8 u8 i32 i64 bool",
     .infer = reduce_max_infer,
     .kernels = reduce_max_kernels,
     .grad = ot__reduce_extreme_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceMax",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 f16 bf16 i8 u8 i32 i64 bool",
     .infer = reduce_max_infer,
     .kernels = reduce_max_kernels,
     .grad = ot__reduce_extreme_grad},
    {0},
};
