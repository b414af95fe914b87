// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

// Towards zero, as the kernel; unknown for a divisor of 0, which running reports.
static int64_t div_known(ot_infer *c, int64_t a, int64_t b)
{
    if (b == 0)
        return OT_DIM_UNKNOWN;
    if (!ot_dim_is_number(a) || !ot_dim_is_number(b))
        return ot_infer_div(c, a, b);
    return b == -1 ? ot_infer_sub(c, 0, a) : a / b;
}

static void div_infer(ot_infer *c)
{
    ot__infer_broadcast_known(c, div_known);
}

// C = A / B:  dA = dC / B and dB = -dC * A / B^2, each summed over the axes that were broadcast.
static void div_grad(ot_grad *g)
{
    ot_value *a = ot_grad_x(g, 0), *b = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);
    ot_value *const inputs[] = {dy, a, b};
    ot_node *node;

    if (!ot_grad_wants(g, 1)) {
        ot_grad_set_dx(g, 0, ot_emit_sum_to(g, ot_emit2(g, "Div", dy, b), a));
        return;
    }
    node = ot_emit(g, "com.microsoft.DivGrad", NULL, inputs, 3, 2);
    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
    else
        ot_emit_omit_output(g, node, 0);
    ot_grad_set_dx(g, 1, ot_emit_output(g, node, 1));
}

static ot_status div_prepare_u64(ot_prep *p)
{
    return ot__pairs_prepare(p, ot__divide_u64);
}

#define REF(types, run) OT__REF_KERNEL(types, ot__tile_prepare, run)
static const ot_kernel div_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(NULL, ot__tile_prepare, ot__tile_run_f32),
    REF("T: f32", ot__tile_run_f32_ref),
    REF("T: f64", ot__tile_run_f64),
    REF("T: i8 i16 i32 i64 u8 u16 u32", ot__tile_run_divided),
    OT__REF_KERNEL("T: u64", div_prepare_u64, ot__tile_run_divided),
    {0},
};
static const ot_tile div_tile = {.f32 = ot__simd_div_f32,
                                 .f64 = ot__ref_div_f64,
                                 .i32 = ot__ref_div_i32,
                                 .i64 = ot__ref_div_i64,
                                 .rounds_once = true};
const ot_op_def ot__op_div[] = {
    {.name = "Div",
     .since = 7,
     .inputs = ot__binary_in,
     .outputs = ot__binary_out,
     .types = "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64",
     .infer = div_infer,
     .kernels = div_kernels,
     .tile = &div_tile,
     .grad = div_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
