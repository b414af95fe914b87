// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

// The sign of the divisor (fmod 0) and of the dividend (fmod 1) agree on extents.
static int64_t mod_known(ot_infer *c, int64_t a, int64_t b)
{
    const bool may_be_negative = (ot_dim_is_number(a) && a < 0) || (ot_dim_is_number(b) && b < 0);

    return b == 0 || may_be_negative ? OT_DIM_UNKNOWN : ot_infer_mod(c, a, b);
}

static void mod_infer(ot_infer *c)
{
    ot__infer_broadcast_known(c, mod_known);
}

// Before opset 28 floating point had only the form with the sign of the dividend.
static void mod_10_infer(ot_infer *c)
{
    if (ot_attr_int(ot_infer_node(c), "fmod") == 0 && ot__dtype_is_float(ot_infer_dtype(c, 0)))
        ot_infer_fail(c, "fmod must be 1 for %s", ot_dtype_name(ot_infer_dtype(c, 0)));
    mod_infer(c);
}

static const ot_tile mod_tile = {.f32 = ot__simd_mod_f32,
                                 .f64 = ot__ref_mod_f64,
                                 .i32 = ot__ref_mod_i32,
                                 .i64 = ot__ref_mod_i64};
static const ot_tile fmod_tile = {.f32 = ot__simd_fmod_f32,
                                  .f64 = ot__ref_fmod_f64,
                                  .i32 = ot__ref_fmod_i32,
                                  .i64 = ot__ref_fmod_i64};

static ot_status mod_prepare(ot_prep *p)
{
    return ot__tile_prepare_as(p, ot_attr_int(p->node, "fmod") != 0 ? &fmod_tile : &mod_tile);
}

// C = A - whole(A / B) * B, where whole is floor or trunc:  dA = dC and dB = -dC * (A - C) / B,
// each summed over the axes that were broadcast.
static void mod_grad(ot_grad *g)
{
    ot_value *a = ot_grad_x(g, 0), *b = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);

    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, ot_emit_sum_to(g, dy, a));
    if (ot_grad_wants(g, 1)) {
        ot_value *whole = ot_emit2(g, "Div", ot_emit2(g, "Sub", ot_grad_y(g, 0), a), b);

        ot_grad_set_dx(g, 1, ot_emit_sum_to(g, ot_emit2(g, "Mul", dy, whole), b));
    }
}

// Without a sign both forms agree.
static ot_status mod_prepare_u64(ot_prep *p)
{
    return ot__pairs_prepare(p, ot__remainder_u64);
}

static const ot_attr_spec mod_attrs[] = {OT__INT_ATTR("fmod", 0), {0}};
#define REF(types, run) OT__REF_KERNEL(types, mod_prepare, run)
static const ot_kernel mod_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(NULL, mod_prepare, ot__tile_run_f32),
    REF("T: f32", ot__tile_run_f32_ref),
    REF("T: f64", ot__tile_run_f64),
    REF("T: i8 i16 i32 i64 u8 u16 u32", ot__tile_run_divided),
    OT__REF_KERNEL("T: u64", mod_prepare_u64, ot__tile_run_divided),
    {0},
};
#define MOD(since_, infer_)                                                                        \
    {                                                                                              \
        .name = "Mod", .since = since_, .inputs = ot__binary_in, .outputs = ot__binary_out,        \
        .attrs = mod_attrs, .types = "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64", .infer = infer_,  \
        .kernels = mod_kernels, .grad = mod_grad, .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT       \
    }
const ot_op_def ot__op_mod[] = {MOD(10, mod_10_infer), MOD(28, mod_infer), {0}};
