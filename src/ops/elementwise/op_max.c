// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void max_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->max(y, x, n, attrs);
}

static const ot_port max_in[] = {{"data_0", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port max_out[] = {{"max", "T", 0}, {0}};
static const ot_tile max_tile = {
    .f32 = max_f32, .f64 = ot__ref_max_f64, .i32 = ot__ref_max_i32, .i64 = ot__ref_max_i64};
const ot_op_def ot__op_max[] = {
    {.name = "Max",
     .since = 6,
     .inputs = max_in,
     .outputs = max_out,
     .types = "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64 f16 bf16",
     .infer = ot__infer_broadcast,
     .kernels = ot__tile_kernels,
     .tile = &max_tile,
     .grad = ot__extremes_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
