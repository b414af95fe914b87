// SPDX-License-Identifier: Apache-2.0
// Optimizers of other makers and of files written before, over the update of update.c: those of
// ONNX Runtime, which artifacts are written with where they suffice, and SGDMomentumOptimizer. In
// files those of ONNX Runtime have no gradient_divisor: sessions add it (optimizer_divisor.c).
#include "ops/optimizer/optimizer.h"

// ---- AdamWOptimizer ----

static bool adamw_modes_agree(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    return ot_attr_int(node, "adam_mode") != 0 || ot_attr_int(node, "correct_bias") != 0 ||
           ot__refuse(c, "adam_mode 0 needs correct_bias 1");
}

static const ot_port adamw_in[] = {
    {"lr", "f32", OT_PORT_F32},
    {"step", "i64", 0},
    {"weights", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"gradients", "T", OT_PORT_SEQUENCE | OT_PORT_F32},
    {"momentums_1", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"momentums_2", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {"gradient_divisor", "f32", OT_PORT_F32 | OT_PORT_OPTIONAL},
    {0},
};
static const ot__rule_ports adamw_ports = {0, 1, 2, 3, {4, 5}, 7, -1, 6};
static const ot_port adamw_out[] = {{"updated_flag", "bool", 0}, {0}};
static const ot_attr_spec adamw_attrs[] = {
    OT__FLOAT_IN("alpha", 0.9f, 0, 1),
    OT__FLOAT_IN("beta", 0.999f, 0, 1),
    OT__FLOAT_IN("epsilon", 1e-8f, 0, 1e30),
    OT__FLOAT_IN("weight_decay", 0.01f, 0, 1e30),
    OT__FLAG_ATTR("correct_bias", 1),
    OT__FLAG_ATTR("adam_mode", 0),
    {0},
};
// ONNX Runtime's artifacts have these numbers.
static const ot_hyper adamw_artifacts[] = {
    {"epsilon", 1e-6}, {"weight_decay", 0}, {"adam_mode", 1}, {0}};
static const ot__hyper_alias adamw_general[] = {{"weight_decay", "lambda"},
                                                {"correct_bias", "do_bias_correction"},
                                                {"adam_mode", "weight_decay_mode"},
                                                {0}};
static const ot_update_rule adamw = {.state = "adam",
                                     .n_slots = 2,
                                     .loop = offsetof(ot__updates, adam),
                                     .ports = &adamw_ports,
                                     .correction = "correct_bias",
                                     .needs_step = true,
                                     .check = adamw_modes_agree,
                                     .artifacts = adamw_artifacts,
                                     .general = "AdamOptimizer",
                                     .general_names = adamw_general};
const ot_op_def ot__op_adamw_optimizer[] = {
    {.domain = OT__MS,
     .name = "AdamWOptimizer",
     .since = 1,
     .inputs = adamw_in,
     .outputs = adamw_out,
     .attrs = adamw_attrs,
     .types = "T: f32 f64",
     .infer = ot__rule_infer,
     .kernels = ot__rule_kernels,
     .rule = &adamw,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT | OT_OP_TENSORWISE},
    {0},
};

// ---- SGDOptimizerV2 ----

#define SGD_IN                                                                                     \
    {"lr", "f32", OT_PORT_F32}, {"weights", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},  \
    {                                                                                              \
        "gradients", "T", OT_PORT_SEQUENCE | OT_PORT_F32                                           \
    }
static const ot_port sgd_v2_in[] = {
    SGD_IN,
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {"gradient_divisor", "f32", OT_PORT_F32 | OT_PORT_OPTIONAL},
    {0},
};
static const ot_port sgd_v2_out[] = {{"update_completed", "bool", 0}, {0}};
static const ot__rule_ports sgd_v2_ports = {0, -1, 1, 2, {-1, -1}, 4, -1, 3};
static const ot_update_rule sgd_v2 = {.state = "",
                                      .loop = offsetof(ot__updates, sgd),
                                      .ports = &sgd_v2_ports,
                                      .general = "SGDOptimizer"};
const ot_op_def ot__op_sgd_optimizer_v2[] = {
    {.domain = OT__MS,
     .name = "SGDOptimizerV2",
     .since = 1,
     .inputs = sgd_v2_in,
     .outputs = sgd_v2_out,
     .types = "T: f32 f64",
     .infer = ot__rule_infer,
     .kernels = ot__rule_kernels,
     .rule = &sgd_v2,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT | OT_OP_TENSORWISE},
    {0},
};

// ---- SGDMomentumOptimizer: SGDOptimizer by the name and the ports that it had first ----

static void momentum_upgrade(ot_upgrade *u)
{
    enum { OLD_PORTS = 5, N_PORTS = 9 };
    static const int8_t place[OLD_PORTS] = {0, 2, 3, 4, 8}; // of lr, weights, gradients, ...
    ot_node *node = ot_upgrade_node(u);
    ot_value **inputs = ot__arena_alloc(node->graph->model->arena, N_PORTS * sizeof(ot_value *));
    const float numbers[] = {ot_attr_float(node, "momentum"), ot_attr_float(node, "weight_decay")};
    const int64_t nesterov = ot_attr_int(node, "nesterov");

    if (inputs != NULL) {
        for (int i = 0; i < OLD_PORTS && i < node->n_inputs; i++)
            inputs[place[i]] = node->inputs[i];
        node->inputs = inputs;
        node->n_inputs = N_PORTS;
    }
    ot__upgrade_made(u, inputs != NULL && ot__node_set_floats(node, "momentum", &numbers[0], 1) &&
                            ot__node_set_floats(node, "weight_decay", &numbers[1], 1) &&
                            ot__node_set_ints(node, "nesterov", &nesterov, 1));
    ot_upgrade_rename(u, "SGDOptimizer");
}

static const ot_port momentum_in[] = {
    SGD_IN,
    {"momentums", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec momentum_attrs[] = {
    OT__FLOAT_IN("momentum", 0.9f, 0, 1e30),
    OT__FLOAT_IN("weight_decay", 0, 0, 1e30),
    OT__FLAG_ATTR("nesterov", 0),
    {0},
};
static const ot_update_rule momentum = {.state = "momentum", .n_slots = 1};
const ot_op_def ot__op_sgd_momentum_optimizer[] = {
    {.domain = "ai.onnxtrain",
     .name = "SGDMomentumOptimizer",
     .since = 1,
     .inputs = momentum_in,
     .outputs = sgd_v2_out,
     .attrs = momentum_attrs,
     .types = "T: f32 f64",
     .rule = &momentum,
     .upgrade = momentum_upgrade,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT | OT_OP_TENSORWISE},
    {0},
};
