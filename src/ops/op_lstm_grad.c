// The gradient of LSTMTraining as ONNX Runtime trains it.
#include "ops/recurrent.h"

static const ot__recurrent_op lstm_grad_op = {
    .cell = OT__CELL_LSTM,
    .is_plain_only = true,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_LENGTHS, OT__RR_H0, OT__RR_C0, OT__RR_Y,
           OT__RR_CELLS, OT__RR_GATES, OT__RR_DY, OT__RR_DY_H, OT__RR_DY_C},
    .out = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_H0, OT__RR_C0, OT__RR_P},
};

static void lstm_grad_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &lstm_grad_op);
}

static ot_status lstm_grad_prepare(ot_prep *p)
{
    return ot__recurrent_grad_prepare(p, &lstm_grad_op);
}

static ot_status lstm_grad_prepare_simd(ot_prep *p)
{
    return ot__recurrent_grad_prepare_simd(p, &lstm_grad_op);
}

static const ot_port lstm_grad_in[] = {{"X", "T", 0},
                                       {"W", "T", 0},
                                       {"R", "T", 0},
                                       {"SL", "i32", OT_PORT_OPTIONAL},
                                       {"H0", "T", OT_PORT_OPTIONAL},
                                       {"C0", "T", OT_PORT_OPTIONAL},
                                       {"HAll", "T", 0},
                                       {"CAll", "T", 0},
                                       {"iofc", "T", 0},
                                       {"dHAll", "T", OT_PORT_OPTIONAL},
                                       {"dHFinal", "T", OT_PORT_OPTIONAL},
                                       {"dCFinal", "T", OT_PORT_OPTIONAL},
                                       {0}};
static const ot_port lstm_grad_out[] = {
    {"dX", "T", OT_PORT_OPTIONAL},  {"dW", "T", OT_PORT_OPTIONAL},
    {"dR", "T", OT_PORT_OPTIONAL},  {"dB", "T", OT_PORT_OPTIONAL},
    {"dH0", "T", OT_PORT_OPTIONAL}, {"dC0", "T", OT_PORT_OPTIONAL},
    {"dP", "T", OT_PORT_OPTIONAL},  {0}};
static const ot_kernel lstm_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = lstm_grad_prepare_simd,
     .run = ot__recurrent_grad_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = lstm_grad_prepare,
     .run = ot__recurrent_grad_run},
    {0},
};
const ot_op_def ot__op_lstm_grad[] = {
    {.domain = "com.microsoft",
     .name = "LSTMGrad",
     .since = 1,
     .inputs = lstm_grad_in,
     .outputs = lstm_grad_out,
     .attrs = ot__lstm_attrs_7,
     .types = "T: f32 f64",
     .infer = lstm_grad_infer,
     .kernels = lstm_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
