// SPDX-License-Identifier: Apache-2.0
// SGD over sequences of parameters and gradients: SGDOptimizerV2 is w = w - lr * gradient;
// SGDMomentumOptimizer has momentum, Nesterov's form and weight decay, as PyTorch's SGD with
// dampening 0.
#include "ops/optimizer/optimizer.h"

enum { LR, WEIGHTS, GRADIENTS, MOMENTUMS };
enum { MOMENTUM, DECAY, NESTEROV, HAS_MOMENTUM }; // ot__pieces.numbers

static ot_status sgd_prepare(ot_prep *p)
{
    (void)ot__pieces_make(p, WEIGHTS, 1);
    return p->status;
}

static ot_status sgd_momentum_prepare(ot_prep *p)
{
    ot__pieces *pieces = ot__pieces_make(p, WEIGHTS, 2);

    OT_TRY(p->status);
    pieces->numbers[MOMENTUM] = (double)ot_attr_float(ot_prep_node(p), "momentum");
    pieces->numbers[DECAY] = (double)ot_attr_float(ot_prep_node(p), "weight_decay");
    pieces->numbers[NESTEROV] = (double)ot_attr_int(ot_prep_node(p), "nesterov");
    pieces->numbers[HAS_MOMENTUM] = 1;
    return OT_OK;
}

#define TEMPLATE "ops/optimizer/sgd.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_status sgd_run_simd(const ot_run *r)
{
    return sgd_update_f32(r, ot__updates_best()->sgd);
}

#define SGD_IN                                                                                     \
    {"lr", "f32", OT_PORT_F32}, {"weights", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},  \
    {                                                                                              \
        "gradients", "T", OT_PORT_SEQUENCE | OT_PORT_F32                                           \
    }
#define SGD_SIGNAL                                                                                 \
    {                                                                                              \
        "update_signal", "bool", OT_PORT_OPTIONAL                                                  \
    }
static const ot_port sgd_in[] = {SGD_IN, SGD_SIGNAL, {0}};
static const ot_port sgd_momentum_in[] = {
    SGD_IN,
    {"momentums", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    SGD_SIGNAL,
    {0},
};
static const ot_port sgd_out[] = {{"update_completed", "bool", 0}, {0}};
static const ot_attr_spec sgd_momentum_attrs[] = {
    OT__FLOAT_IN("momentum", 0.9f, 0, 1e30),
    OT__FLOAT_IN("weight_decay", 0, 0, 1e30),
    OT__FLAG_ATTR("nesterov", 0),
    {0},
};
static const ot_update_rule sgd_rule = {.state = ""};
static const ot_update_rule sgd_momentum_rule = {.state = "momentum", .n_slots = 1};

#define SGD(symbol, domain_, name_, ports, attributes, prepare, rule_)                             \
    static const ot_kernel symbol##_kernels[] = {                                                  \
        OT__SIMD_KERNEL("T: f32", NULL, prepare, sgd_run_simd),                                    \
        OT__REF_KERNELS(prepare, sgd_run_ref),                                                     \
        {0}};                                                                                      \
    const ot_op_def ot__op_##symbol[] = {{.domain = domain_,                                       \
                                          .name = name_,                                           \
                                          .since = 1,                                              \
                                          .inputs = ports,                                         \
                                          .outputs = sgd_out,                                      \
                                          .attrs = attributes,                                     \
                                          .types = "T: f32 f64",                                   \
                                          .infer = ot__optimizer_infer,                            \
                                          .kernels = symbol##_kernels,                             \
                                          .rule = &(rule_),                                        \
                                          .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},              \
                                         {0}};
SGD(sgd_optimizer_v2, OT__MS, "SGDOptimizerV2", sgd_in, NULL, sgd_prepare, sgd_rule)
SGD(sgd_momentum_optimizer, "ai.onnxtrain", "SGDMomentumOptimizer", sgd_momentum_in,
    sgd_momentum_attrs, sgd_momentum_prepare, sgd_momentum_rule)
