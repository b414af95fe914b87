// A plain recurrent layer over a sequence: h = f(W x + R h + b)
#include "ops/recurrent.h"

static const ot__recurrent_op rnn_op = {
    .cell = OT__CELL_RNN,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_LENGTHS, OT__RR_H0},
    .out = {OT__RR_Y, OT__RR_Y_H},
};

static void rnn_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &rnn_op);
}

static ot_status rnn_prepare(ot_prep *p)
{
    return ot__recurrent_prepare(p, &rnn_op);
}

static ot_status rnn_prepare_simd(ot_prep *p)
{
    return ot__recurrent_prepare_simd(p, &rnn_op);
}

static const ot_port rnn_in[] = {{"X", "T", 0},
                                 {"W", "T", 0},
                                 {"R", "T", 0},
                                 {"B", "T", OT_PORT_OPTIONAL},
                                 {"sequence_lens", "i32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                 {"initial_h", "T", OT_PORT_OPTIONAL},
                                 {0}};
static const ot_port rnn_out[] = {
    {"Y", "T", OT_PORT_OPTIONAL}, {"Y_h", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel rnn_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = rnn_prepare_simd,
     .run = ot__recurrent_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = rnn_prepare,
     .run = ot__recurrent_run},
    {0},
};
const ot_op_def ot__op_rnn[] = {
    {.name = "RNN",
     .since = 7,
     .inputs = rnn_in,
     .outputs = rnn_out,
     .attrs = ot__rnn_attrs_7,
     .types = "T: f32 f64",
     .infer = rnn_infer,
     .kernels = rnn_kernels,
     .grad = ot__recurrent_grad},
    {.name = "RNN",
     .since = 14,
     .inputs = rnn_in,
     .outputs = rnn_out,
     .attrs = ot__rnn_attrs,
     .types = "T: f32 f64",
     .infer = rnn_infer,
     .kernels = rnn_kernels,
     .grad = ot__recurrent_grad},
    {0},
};
