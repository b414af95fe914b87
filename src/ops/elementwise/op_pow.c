// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

enum { CHUNK = 128 }; // elements on a thread's stack, of base and exponent

// Integers of any two types, by the tile of i64: what does not fit wraps around. Exponents that i64
// does not hold become others with the same power: those of odd numbers repeat after 2^62, and
// those of even ones are 0 from 64 on.
static void pow_integer_piece(void *to, const void *const *x, int64_t n, const void *context)
{
    static const int64_t period = (int64_t)1 << 62;
    const ot_run *r = context;
    const ot_dtype a_type = r->in[0]->dtype, b_type = r->in[1]->dtype;
    const uint8_t *a = x[0], *b = x[1];
    int64_t base[CHUNK], exponent[CHUNK];
    const int64_t *const xs[OT__TILE_INPUTS] = {base, exponent};
    uint8_t *y = to;

    for (int64_t start = 0; start < n; start += CHUNK) {
        const int64_t m = OT_MIN(CHUNK, n - start);

        ot__convert(base, OT_I64, a + (size_t)start * ot_dtype_size(a_type), a_type, m);
        ot__convert(exponent, OT_I64, b + (size_t)start * ot_dtype_size(b_type), b_type, m);
        for (int64_t k = 0; b_type == OT_U64 && k < m; k++)
            exponent[k] = exponent[k] < 0 ? (exponent[k] & (period - 1)) + period : exponent[k];
        ot__ref_pow_i64(base, xs, m, NULL);
        ot__convert(y + (size_t)start * ot_dtype_size(a_type), a_type, base, OT_I64, m);
    }
}

// Base and exponent of any other two types, through f64: what the tiles leave over.
static void pow_mixed_piece(void *to, const void *const *x, int64_t n, const void *context)
{
    const ot_run *r = context;
    const uint8_t *a = x[0], *b = x[1];
    double base[CHUNK], exponent[CHUNK];
    const double *const xs[OT__TILE_INPUTS] = {base, exponent};
    uint8_t *y = to;

    for (int64_t start = 0; start < n; start += CHUNK) {
        const int64_t m = OT_MIN(CHUNK, n - start);
        const size_t a_size = ot_dtype_size(r->in[0]->dtype),
                     b_size = ot_dtype_size(r->in[1]->dtype);

        ot__convert(base, OT_F64, a + (size_t)start * a_size, r->in[0]->dtype, m);
        ot__convert(exponent, OT_F64, b + (size_t)start * b_size, r->in[1]->dtype, m);
        ot__ref_pow_f64(base, xs, m, NULL);
        ot__convert(y + (size_t)start * a_size, r->out[0]->dtype, base, OT_F64, m);
    }
}

static ot_status pow_run_mixed(const ot_run *r)
{
    const bool are_integers =
        ot__dtype_is_int(r->in[0]->dtype) && ot__dtype_is_int(r->in[1]->dtype);

    ot__pieces_run(r, are_integers ? pow_integer_piece : pow_mixed_piece, r);
    return OT_OK;
}

static ot_value *zero_like(ot_grad *g, const ot_value *v)
{
    return ot_emit_constant(g, 0.0, v);
}

// P * X^(P - 1), with 2 X for squares, and 0 for P = 0 even at X = 0.
static ot_value *slope_of_base(ot_grad *g, ot_value *x, ot_value *p)
{
    const ot_tensor *number = ot_grad_wants(g, 1) ? NULL : ot_value_constant(p);
    ot_value *slope, *zero;

    if (number != NULL && ot_tensor_count(number) == 1 && ot__tensor_get_f64(number, 0) == 2.0)
        return ot_emit2(g, "Mul", x, ot_emit_constant(g, 2.0, x));
    slope = ot_emit2(g, "Pow", x, ot_emit2(g, "Sub", p, ot_emit_constant(g, 1.0, p)));
    slope = ot_emit2(g, "Mul", p, slope);
    if (number != NULL && ot_tensor_count(number) == 1 && ot__tensor_get_f64(number, 0) != 0.0)
        return slope;
    zero = zero_like(g, x);
    return ot_emit3(g, "Where", ot_emit2(g, "Equal", p, zero_like(g, p)), zero, slope);
}

// Z = X^P:  dX = dZ * P * X^(P - 1) and dP = dZ * Z * log(X), each summed over the axes that were
// broadcast.  Where X is not positive, dP is 0.
static void pow_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dz = ot_grad_dy(g, 0);

    if (ot_grad_wants(g, 0)) {
        ot_value *p = ot_emit_cast(g, ot_grad_x(g, 1), ot_value_dtype(x));

        ot_grad_set_dx(g, 0, ot_emit_sum_to(g, ot_emit2(g, "Mul", dz, slope_of_base(g, x, p)), x));
    }
    if (ot_grad_wants(g, 1)) {
        ot_value *p = ot_grad_x(g, 1);
        ot_value *positive = ot_emit2(g, "Greater", x, zero_like(g, x));
        ot_value *safe = ot_emit3(g, "Where", positive, x, ot_emit_constant(g, 1.0, x));
        ot_value *log = ot_emit1(g, "Log", safe);
        ot_value *slope = ot_emit2(g, "Mul", ot_grad_y(g, 0), log);
        ot_value *dp = ot_emit_sum_to(g, ot_emit2(g, "Mul", dz, slope), p);

        ot_grad_set_dx(g, 1, ot_emit_cast(g, dp, ot_value_dtype(p)));
    }
}

static const ot_port pow_in[] = {{"X", "T", 0}, {"Y", "T1", 0}, {0}};
static const ot_port pow_out[] = {{"Z", "T", 0}, {0}};
#define TILE(types_, run_)                                                                         \
    {                                                                                              \
        .name = "tile", .types = types_, .flags = OT_KERNEL_THREAD_EXACT,                          \
        .prepare = ot__tile_prepare, .run = run_                                                   \
    }
static const ot_kernel pow_kernels[] = {
    {.name = "simd",
     .types = "T: f32 f16 bf16; T1: f32 f16 bf16",
     .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED,
     .prepare = ot__tile_prepare,
     .run = ot__tile_run_f32},
    TILE("T: f64; T1: f64", ot__tile_run_f64),
    TILE("T: i32; T1: i32", ot__tile_run_i32),
    TILE("T: i64; T1: i64", ot__tile_run_i64),
    OT__REF_KERNEL(NULL, ot__pieces_prepare, pow_run_mixed),
    {0},
};
static const ot_tile pow_tile = {.f32 = ot__simd_pow_f32,
                                 .f64 = ot__ref_pow_f64,
                                 .i32 = ot__ref_pow_i32,
                                 .i64 = ot__ref_pow_i64};
const ot_op_def ot__op_pow[] = {
    {.name = "Pow",
     .since = 7,
     .inputs = pow_in,
     .outputs = pow_out,
     .types = "T: f32 f64 i32 i64; T1: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64",
     .infer = ot__infer_broadcast,
     .kernels = pow_kernels,
     .tile = &pow_tile,
     .grad = pow_grad,
     .flags = OT_OP_ANY_LAYOUT},
    {0},
};
