// Gated recurrent units over a sequence, as ONNX has them:
//   z, r = f(W x + R h + b), n = g(W x + b + R (r * h) + b') or, with linear_before_reset,
//   g(W x + b + r * (R h + b')), h = (1 - z) * n + z * h
#include "ops/recurrent.h"

static const ot__recurrent_op gru_op = {
    .cell = OT__CELL_GRU,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_LENGTHS, OT__RR_H0},
    .out = {OT__RR_Y, OT__RR_Y_H},
};

static void gru_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &gru_op);
}

static ot_status gru_prepare(ot_prep *p)
{
    return ot__recurrent_prepare(p, &gru_op);
}

static ot_status gru_prepare_simd(ot_prep *p)
{
    return ot__recurrent_prepare_simd(p, &gru_op);
}

static const ot_port gru_in[] = {{"X", "T", 0},
                                 {"W", "T", 0},
                                 {"R", "T", 0},
                                 {"B", "T", OT_PORT_OPTIONAL},
                                 {"sequence_lens", "i32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                 {"initial_h", "T", OT_PORT_OPTIONAL},
                                 {0}};
static const ot_port gru_out[] = {
    {"Y", "T", OT_PORT_OPTIONAL}, {"Y_h", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel gru_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = gru_prepare_simd,
     .run = ot__recurrent_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = gru_prepare,
     .run = ot__recurrent_run},
    {0},
};
const ot_op_def ot__op_gru[] = {
    {.name = "GRU",
     .since = 7,
     .inputs = gru_in,
     .outputs = gru_out,
     .attrs = ot__gru_attrs_7,
     .types = "T: f32 f64",
     .infer = gru_infer,
     .kernels = gru_kernels,
     .grad = ot__recurrent_grad},
    {.name = "GRU",
     .since = 14,
     .inputs = gru_in,
     .outputs = gru_out,
     .attrs = ot__gru_attrs,
     .types = "T: f32 f64",
     .infer = gru_infer,
     .kernels = gru_kernels,
     .grad = ot__recurrent_grad},
    {0},
};
