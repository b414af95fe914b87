// Long short-term memory over a sequence, as ONNX has it:
//   i, f = f(W x + R h + b + P c), g = g(W x + R h + b), c = f * c + i * g,
//   o = f(W x + R h + b + P c), h = o * h(c)
#include "ops/recurrent.h"

static const ot__recurrent_op lstm_op = {
    .cell = OT__CELL_LSTM,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_LENGTHS, OT__RR_H0, OT__RR_C0, OT__RR_P},
    .out = {OT__RR_Y, OT__RR_Y_H, OT__RR_Y_C},
};

static void lstm_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &lstm_op);
}

static ot_status lstm_prepare(ot_prep *p)
{
    return ot__recurrent_prepare(p, &lstm_op);
}

static ot_status lstm_prepare_simd(ot_prep *p)
{
    return ot__recurrent_prepare_simd(p, &lstm_op);
}

static const ot_port lstm_in[] = {{"X", "T", 0},
                                  {"W", "T", 0},
                                  {"R", "T", 0},
                                  {"B", "T", OT_PORT_OPTIONAL},
                                  {"sequence_lens", "i32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                  {"initial_h", "T", OT_PORT_OPTIONAL},
                                  {"initial_c", "T", OT_PORT_OPTIONAL},
                                  {"P", "T", OT_PORT_OPTIONAL},
                                  {0}};
static const ot_port lstm_out[] = {{"Y", "T", OT_PORT_OPTIONAL},
                                   {"Y_h", "T", OT_PORT_OPTIONAL},
                                   {"Y_c", "T", OT_PORT_OPTIONAL},
                                   {0}};
static const ot_kernel lstm_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = lstm_prepare_simd,
     .run = ot__recurrent_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = lstm_prepare,
     .run = ot__recurrent_run},
    {0},
};
const ot_op_def ot__op_lstm[] = {
    {.name = "LSTM",
     .since = 7,
     .inputs = lstm_in,
     .outputs = lstm_out,
     .attrs = ot__lstm_attrs_7,
     .types = "T: f32 f64",
     .infer = lstm_infer,
     .kernels = lstm_kernels,
     .grad = ot__recurrent_grad},
    {.name = "LSTM",
     .since = 14,
     .inputs = lstm_in,
     .outputs = lstm_out,
     .attrs = ot__lstm_attrs,
     .types = "T: f32 f64",
     .infer = lstm_infer,
     .kernels = lstm_kernels,
     .grad = ot__recurrent_grad},
    {0},
};
