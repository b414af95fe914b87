// The gradient of GRUTraining with every direction and option.
#include "ops/recurrent.h"

static const ot__recurrent_op gru_grad_general_op = {
    .cell = OT__CELL_GRU,
    .in = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_LENGTHS, OT__RR_H0, OT__RR_Y,
           OT__RR_GATES, OT__RR_DY, OT__RR_DY_H},
    .out = {OT__RR_X, OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_H0},
};

static void gru_grad_general_infer(ot_infer *c)
{
    ot__recurrent_infer(c, &gru_grad_general_op);
}

static ot_status gru_grad_general_prepare(ot_prep *p)
{
    return ot__recurrent_grad_prepare(p, &gru_grad_general_op);
}

static ot_status gru_grad_general_prepare_simd(ot_prep *p)
{
    return ot__recurrent_grad_prepare_simd(p, &gru_grad_general_op);
}

static const ot_port gru_grad_general_in[] = {{"X", "T", 0},
                                              {"W", "T", 0},
                                              {"R", "T", 0},
                                              {"B", "T", OT_PORT_OPTIONAL},
                                              {"SL", "i32", OT_PORT_OPTIONAL},
                                              {"H0", "T", OT_PORT_OPTIONAL},
                                              {"HAll", "T", 0},
                                              {"zrh", "T", 0},
                                              {"dHAll", "T", OT_PORT_OPTIONAL},
                                              {"dHFinal", "T", OT_PORT_OPTIONAL},
                                              {0}};
static const ot_port gru_grad_general_out[] = {
    {"dX", "T", OT_PORT_OPTIONAL}, {"dW", "T", OT_PORT_OPTIONAL},  {"dR", "T", OT_PORT_OPTIONAL},
    {"dB", "T", OT_PORT_OPTIONAL}, {"dH0", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel gru_grad_general_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__recurrent_can_simd,
     .prepare = gru_grad_general_prepare_simd,
     .run = ot__recurrent_grad_run},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = gru_grad_general_prepare,
     .run = ot__recurrent_grad_run},
    {0},
};
const ot_op_def ot__op_gru_grad_general[] = {
    {.domain = "ai.onnxtrain",
     .name = "GRUGrad",
     .since = 1,
     .inputs = gru_grad_general_in,
     .outputs = gru_grad_general_out,
     .attrs = ot__gru_attrs_7,
     .types = "T: f32 f64",
     .infer = gru_grad_general_infer,
     .kernels = gru_grad_general_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
