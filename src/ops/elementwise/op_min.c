// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void min_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->min(y, x, n, attrs);
}

static const ot_port min_in[] = {{"data_0", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port min_out[] = {{"min", "T", 0}, {0}};
static const ot_tile min_tile = {
    .f32 = min_f32, .f64 = ot__ref_min_f64, .i32 = ot__ref_min_i32, .i64 = ot__ref_min_i64};
const ot_op_def ot__op_min[] = {
    {.name = "Min",
     .since = 6,
     .inputs = min_in,
     .outputs = min_out,
     .types = "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64 f16 bf16",
     .infer = ot__infer_broadcast,
     .kernels = ot__tile_kernels,
     .tile = &min_tile,
     .grad = ot__extremes_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
