// LSTM with every direction and option: cell states and activated gates are kept for the gradient.
#include "ops/recurrent.h"

static const ot__recurrent_op lstm_training_general_op = {
    .cell = OT__CELL_LSTM,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_LENGTHS, OT__RR_H0, OT__RR_C0, OT__RR_P},
    .out = {OT__RR_Y, OT__RR_Y_H, OT__RR_Y_C, OT__RR_CELLS, OT__RR_GATES},
};

static void lstm_training_general_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &lstm_training_general_op);
}

static ot_status lstm_training_general_prepare(ot_prep *p)
{
    return ot__recurrent_prepare(p, &lstm_training_general_op);
}

static ot_status lstm_training_general_prepare_simd(ot_prep *p)
{
    return ot__recurrent_prepare_simd(p, &lstm_training_general_op);
}

static const ot_port lstm_training_general_in[] = {
    {"X", "T", 0},
    {"W", "T", 0},
    {"R", "T", 0},
    {"B", "T", OT_PORT_OPTIONAL},
    {"sequence_lens", "i32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"initial_h", "T", OT_PORT_OPTIONAL},
    {"initial_c", "T", OT_PORT_OPTIONAL},
    {"P", "T", OT_PORT_OPTIONAL},
    {0}};
static const ot_port lstm_training_general_out[] = {
    {"HAll", "T", OT_PORT_OPTIONAL},
    {"HFinal", "T", OT_PORT_OPTIONAL},
    {"CFinal", "T", OT_PORT_OPTIONAL},
    {"CAll", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"iofc", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0}};
static const ot_kernel lstm_training_general_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = lstm_training_general_prepare_simd,
     .run = ot__recurrent_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = lstm_training_general_prepare,
     .run = ot__recurrent_run},
    {0},
};
const ot_op_def ot__op_lstm_training_general[] = {
    {.domain = "ai.onnxtrain",
     .name = "LSTMTraining",
     .since = 1,
     .inputs = lstm_training_general_in,
     .outputs = lstm_training_general_out,
     .attrs = ot__lstm_attrs_7,
     .types = "T: f32 f64",
     .infer = lstm_training_general_infer,
     .kernels = lstm_training_general_kernels,
     .grad = ot__recurrent_training_grad},
    {0},
};
