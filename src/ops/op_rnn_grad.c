// The gradient of RNN, whose outputs are all that it needs.
#include "ops/recurrent.h"

static const ot__recurrent_op rnn_grad_op = {
    .cell = OT__CELL_RNN,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_LENGTHS, OT__RR_H0, OT__RR_Y, OT__RR_DY,
           OT__RR_DY_H},
    .out = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_H0},
};

static void rnn_grad_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &rnn_grad_op);
}

static ot_status rnn_grad_prepare(ot_prep *p)
{
    return ot__recurrent_grad_prepare(p, &rnn_grad_op);
}

static ot_status rnn_grad_prepare_simd(ot_prep *p)
{
    return ot__recurrent_grad_prepare_simd(p, &rnn_grad_op);
}

static const ot_port rnn_grad_in[] = {{"X", "T", 0},
                                      {"W", "T", 0},
                                      {"R", "T", 0},
                                      {"SL", "i32", OT_PORT_OPTIONAL},
                                      {"H0", "T", OT_PORT_OPTIONAL},
                                      {"HAll", "T", 0},
                                      {"dHAll", "T", OT_PORT_OPTIONAL},
                                      {"dHFinal", "T", OT_PORT_OPTIONAL},
                                      {0}};
static const ot_port rnn_grad_out[] = {
    {"dX", "T", OT_PORT_OPTIONAL}, {"dW", "T", OT_PORT_OPTIONAL},  {"dR", "T", OT_PORT_OPTIONAL},
    {"dB", "T", OT_PORT_OPTIONAL}, {"dH0", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel rnn_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = rnn_grad_prepare_simd,
     .run = ot__recurrent_grad_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = rnn_grad_prepare,
     .run = ot__recurrent_grad_run},
    {0},
};
const ot_op_def ot__op_rnn_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "RNNGrad",
     .since = 1,
     .inputs = rnn_grad_in,
     .outputs = rnn_grad_out,
     .attrs = ot__rnn_attrs_7,
     .types = "T: f32 f64",
     .infer = rnn_grad_infer,
     .kernels = rnn_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
