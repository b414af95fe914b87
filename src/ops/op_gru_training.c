// GRU as ONNX Runtime trains it: activated gates are kept for the gradient.
#include "ops/recurrent.h"

static const ot__recurrent_op gru_training_op = {
    .cell = OT__CELL_GRU,
    .is_plain_only = true,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_LENGTHS, OT__RR_H0},
    .out = {OT__RR_Y, OT__RR_Y_H, OT__RR_GATES},
};

static void gru_training_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &gru_training_op);
}

static ot_status gru_training_prepare(ot_prep *p)
{
    return ot__recurrent_prepare(p, &gru_training_op);
}

static ot_status gru_training_prepare_simd(ot_prep *p)
{
    return ot__recurrent_prepare_simd(p, &gru_training_op);
}

static const ot_port gru_training_in[] = {
    {"X", "T", 0},
    {"W", "T", 0},
    {"R", "T", 0},
    {"B", "T", OT_PORT_OPTIONAL},
    {"sequence_lens", "i32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"initial_h", "T", OT_PORT_OPTIONAL},
    {0}};
static const ot_port gru_training_out[] = {{"HAll", "T", OT_PORT_OPTIONAL},
                                           {"HFinal", "T", OT_PORT_OPTIONAL},
                                           {"zrh", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                           {0}};
static const ot_kernel gru_training_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = gru_training_prepare_simd,
     .run = ot__recurrent_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = gru_training_prepare,
     .run = ot__recurrent_run},
    {0},
};
const ot_op_def ot__op_gru_training[] = {
    {.domain = "com.microsoft",
     .name = "GRUTraining",
     .since = 1,
     .inputs = gru_training_in,
     .outputs = gru_training_out,
     .attrs = ot__gru_attrs_7,
     .types = "T: f32 f64",
     .infer = gru_training_infer,
     .kernels = gru_training_kernels,
     .grad = ot__recurrent_training_grad},
    {0},
};
